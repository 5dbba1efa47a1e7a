"""Thread functions in any dialect → the LLVM dialect, for the host."""

from __future__ import annotations

import re
from typing import Any

from aotc.analysis.legality import CAST, describe_cast
from aotc.mlir import ir
from aotc.ops import content, symbol_of, walk
from aotc.rewrites.atomics import exchange_folded_updates, expand_atomic_products
from aotc.rewrites.bit_casts import expand_bit_casts
from aotc.rewrites.host_passes import TO_BRANCHES, TO_LOOPS
from aotc.rewrites.masked_writes import expand_masked_writes
from aotc.rewrites.math import replace_math
from aotc.rewrites.packed_vectors import widen_packed_vectors
from aotc.rewrites.run import PassWatch, run_pipeline
from aotc.rewrites.small_floats import expand_small_floats
from aotc.symbols import has_body
from aotc.targets.cpu.expand.narrow_extrema import carry_extrema_as_integers
from aotc.targets.cpu.expand.padded_loads import load_under_conditions

_TO_LLVM = (
    "convert-complex-to-llvm",
    "convert-index-to-llvm",
    "convert-ub-to-llvm",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "canonicalize",
    "cse",
    "reconcile-unrealized-casts",
)

# All MLIR passes that are run here.
ALL_CPU_PASSES = (*TO_LOOPS, *TO_BRANCHES, *_TO_LLVM)


class LoweringError(Exception):
    """A kernel that cannot run on the CPU. The message says why."""

    def __init__(self, message: str, location: Any) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


def lower_to_llvm(module: Any, watch: PassWatch) -> None:
    """Lowers in place. Afterwards every operation is in the LLVM dialect, and every definition has
    internal linkage. Raises LoweringError.
    """
    expand_atomic_products(module.operation)
    load_under_conditions(module.operation)
    widen_packed_vectors(module.operation)
    expand_masked_writes(module.operation)
    expand_bit_casts(module.operation)
    _run(module, TO_LOOPS, watch)
    carry_extrema_as_integers(module.operation)
    replace_math(module, in_loops=True)
    expand_small_floats(module.operation, watch)
    _run(module, TO_BRANCHES, watch)
    exchange_folded_updates(module.operation)
    _run(module, _TO_LLVM, watch)
    _check_lowered(module)
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    for operation in content(module.operation):
        if operation.name == "llvm.func" and not has_body(operation):
            continue
        if "linkage" in operation.attributes:
            operation.attributes["linkage"] = internal


def _check_lowered(module: Any) -> None:
    left = [
        operation
        for operation in walk(module.operation)
        if not operation.name.startswith("llvm.") and operation.name != "builtin.module"
    ]
    # A cast is left if the operation that needs it was not lowered: report that one first.
    for operation in sorted(left, key=lambda op: op.name == CAST):
        what = describe_cast(operation) if operation.name == CAST else f"'{operation.name}'"
        raise LoweringError(f"{what} has no lowering for the CPU", operation.location)


def _run(module: Any, passes: tuple[str, ...], watch: PassWatch) -> None:
    try:
        run_pipeline(module.operation, passes, watch=watch)
    except ir.MLIRError as error:
        first = error.error_diagnostics[0] if error.error_diagnostics else None
        message = str(error) if first is None else first.message
        illegal = re.match(r"failed to legalize operation '([\w.]+)'", message)
        raise LoweringError(
            f"'{illegal[1]}' has no lowering for the CPU" if illegal else message,
            module.operation.location if first is None else first.location,
        ) from None


def prefix_helpers(module: Any, prefix: str) -> None:
    """Adds the prefix to the names of functions that passes added (`__mlir_math_ipowi_i32`)."""
    for operation in content(module.operation):
        if operation.name == "llvm.func" and has_body(operation):
            name = symbol_of(operation)
            if not name.startswith(prefix):
                new = prefix + name.lstrip("_")
                ir.SymbolTable.replace_all_symbol_uses(name, new, module.operation)
                operation.attributes["sym_name"] = ir.StringAttr.get(new)
