"""Host code that queries the compute capability of the GPU that its launches go to."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.module_names import CAPABILITY

_SGE = 5  # arith.cmpi's number of "signed greater or equal"
_DECLARATION = f"func.func private @{CAPABILITY}() -> i32"


def declare_capability(module: Any) -> None:
    """Declares the function that returns the compute capability, unless the module has it."""
    functions = [op.operation for op in ops.body_of_module(module).operations]
    if any(op.name == "func.func" and ops.symbol_of(op) == CAPABILITY for op in functions):
        return
    with ir.Location.unknown():
        parsed = ir.Module.parse(_DECLARATION)
    (declaration,) = parsed.body.operations
    declaration.operation.move_after(functions[-1])


def has_gpu() -> Any:
    """Whether launches go to a GPU, as an i1 at the insertion point. Needs `declare_capability`."""
    i32 = ops.integer(32)
    capability = ops.call(CAPABILITY, [], [i32]).result
    return ops.compare(_SGE, capability, ops.constant(i32, 1))


def asks_for_gpu(condition: Any) -> bool:
    """Whether a condition holds only if launches go to a GPU: it is that of `has_gpu`, or requires
    a minimum compute capability."""
    comparison = ops.defining(condition)
    if comparison is None or comparison.name != "arith.cmpi":
        return False
    asked = ops.defining(comparison.operands[0])
    if asked is None or asked.name != "func.call" or ops.callee_of(asked) != CAPABILITY:
        return False
    return int(ir.IntegerAttr(comparison.attributes["predicate"]).value) == _SGE
