"""aotc's own passes by name: what a plan, or `--pipeline`, calls `aotc-...`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.emit.c_text import c_identifier
from aotc.errors import InputError
from aotc.input.entries import functions_of
from aotc.input.source import Source
from aotc.lower.analysis.aliasing import Roots, some_loops_kept_sequential
from aotc.lower.analysis.functions import Functions
from aotc.lower.mapping.loops import map_parallel_loops
from aotc.lower.mapping.written import is_sequential, mark_parallel, says_what_is_parallel
from aotc.lower.outlining.device_functions import separate_device_functions
from aotc.lower.outlining.module import gpu_modules, merge_outlined, spell_kernel_names
from aotc.lower.outlining.operands import hoist_globals, sink_vectors
from aotc.lower.placement import place_memory
from aotc.lower.plan.remarks import Remarks
from aotc.lower.plan.steps import Step
from aotc.lower.rewrites.copies import expand_copies, parallelize_copies
from aotc.lower.rewrites.steps import assert_steps
from aotc.lower.tensors.fills import separate_fills
from aotc.lower.tensors.functions import mark_tensors, return_in_arguments
from aotc.lower.tensors.plain_sizes import settle_sizes
from aotc.lower.tensors.products import hold_apart, let_go
from aotc.lower.tensors.reshapes import expand_reshapes
from aotc.lower.tensors.schedules import decompose, erase_schedules
from aotc.lower.tensors.size_checks import check_sizes
from aotc.lower.tensors.sizes import assert_sizes, unify_sizes
from aotc.lower.tensors.windows import trim_windows
from aotc.mlir import PassManager
from aotc.ops import symbol_of
from aotc.request import BuildRequest, MemoryMode, parse_block

# Loops that step by constants, and what they load and store, become affine ones.
_RAISING = ("raise-scf-to-affine", "affine-raise-from-memref")


class Lowering(Struct):
    """One lowering on its way: the source whose module changes, and what its passes have found.

    `by_hand` are the gpu.modules of the input; `managed_globals` the globals that kernels are
    given.
    """

    source: Source
    request: BuildRequest
    remarks: Remarks
    by_hand: frozenset[str] = frozenset()
    managed_globals: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.by_hand = frozenset(symbol_of(op) for op in gpu_modules(self.source.module))


Options = dict[str, str]


def run_own_pass(lowering: Lowering, step: Step) -> None:
    """Runs one of aotc's own passes. Raises InputError for one that is unknown, or an option."""
    if step.name not in _PASSES:
        known = ", ".join(_PASSES)
        raise InputError(f"Unknown pass '{step.name}'. aotc's own are: {known}.")
    run, options = _PASSES[step.name]
    for option in step.options:
        if option not in options:
            known = ", ".join(options) or "none"
            raise InputError(f"Unknown option '{option}' of {step.name}. Known: {known}.")
    run(lowering, step.options)


def _parallelize_loops(lowering: Lowering, options: Options) -> None:
    """Finds the parallel loops of functions that do not say themselves which are."""
    module = lowering.source.module
    with module.context:
        roots = Roots(Functions(module))
        for function in functions_of(module):
            operations = ops.walk(function)
            says_so = is_sequential(function) or any(map(says_what_is_parallel, operations))
            if function.name != "func.func" or says_so:
                continue
            # Raised, an unsigned loop would be a signed one.
            loops = [op for op in operations if op.name == "scf.for"]
            if loops and not any("unsignedCmp" in loop.attributes for loop in loops):
                PassManager.parse(f"func.func({','.join(_RAISING)})").run(function)
            with some_loops_kept_sequential(function, roots):
                PassManager.parse("func.func(affine-parallelize)").run(function)


def _map_parallel_loops(lowering: Lowering, options: Options) -> None:
    module = lowering.source.module
    map_parallel_loops(
        module,
        separate_device_functions(module),
        block=parse_block(options["block"]) if "block" in options else None,
        remarks=lowering.remarks,
    )


def _merge_kernels(lowering: Lowering, options: Options) -> None:
    name = f"{c_identifier(lowering.request.name)}_kernels"
    merge_outlined(lowering.source.module, set(lowering.by_hand), name)


def _place_memory(lowering: Lowering, options: Options) -> None:
    word = options.get("memory", MemoryMode.AUTO.value)
    modes = {mode.value: mode for mode in MemoryMode}
    if word not in modes:
        raise InputError(f"aotc-place-memory: memory={word} is none of {', '.join(modes)}.")
    lowering.managed_globals = place_memory(lowering.source.module, modes[word], lowering.remarks)


def _choose_product_kernels(lowering: Lowering, options: Options) -> None:
    # Modules without linalg need none of it.
    from aotc.kernels.matmul.dispatch import choose_product_kernels

    choose_product_kernels(lowering.source.module, lowering.request, lowering.remarks)


def _outline_attention(lowering: Lowering, options: Options) -> None:
    from aotc.kernels.attention.outline import outline_attention

    outline_attention(lowering.source.module, lowering.request)


def _choose_attention_kernels(lowering: Lowering, options: Options) -> None:
    from aotc.kernels.attention.dispatch import choose_attention_kernels

    choose_attention_kernels(lowering.source.module, lowering.request, lowering.remarks)


def _fold_constants(lowering: Lowering, options: Options) -> None:
    # It computes by NumPy, which takes longer to import than small modules to build.
    from aotc.lower.tensors.constants import fold_constants

    fold_constants(lowering.source.module)


def _on_module(change: Callable[[Any], object]) -> Callable[[Lowering, Options], None]:
    def run(lowering: Lowering, options: Options) -> None:
        change(lowering.source.module)

    return run


def _on_source(change: Callable[[Source], object]) -> Callable[[Lowering, Options], None]:
    def run(lowering: Lowering, options: Options) -> None:
        change(lowering.source)

    return run


# By name: the pass, and the options that it takes.
_PASSES: dict[str, tuple[Callable[[Lowering, Options], None], tuple[str, ...]]] = {
    "aotc-erase-schedules": (_on_module(erase_schedules), ()),
    "aotc-decompose": (_on_source(decompose), ()),
    "aotc-assert-steps": (_on_module(assert_steps), ()),
    "aotc-mark-parallel": (_on_source(mark_parallel), ()),
    "aotc-choose-product-kernels": (_choose_product_kernels, ()),
    "aotc-outline-attention": (_outline_attention, ()),
    "aotc-choose-attention-kernels": (_choose_attention_kernels, ()),
    "aotc-fold-constants": (_fold_constants, ()),
    "aotc-hold-apart": (_on_module(hold_apart), ()),
    "aotc-let-go": (_on_module(let_go), ()),
    "aotc-separate-fills": (_on_module(separate_fills), ()),
    "aotc-check-sizes": (_on_source(check_sizes), ()),
    "aotc-settle-sizes": (_on_module(settle_sizes), ()),
    "aotc-expand-reshapes": (_on_module(expand_reshapes), ()),
    "aotc-trim-windows": (_on_module(trim_windows), ()),
    "aotc-mark-tensors": (_on_module(mark_tensors), ()),
    "aotc-return-in-arguments": (_on_source(return_in_arguments), ()),
    "aotc-assert-sizes": (_on_module(assert_sizes), ()),
    "aotc-unify-sizes": (_on_module(unify_sizes), ()),
    "aotc-parallelize-loops": (_parallelize_loops, ()),
    "aotc-parallelize-copies": (_on_module(parallelize_copies), ()),
    "aotc-map-parallel-loops": (_map_parallel_loops, ("block",)),
    "aotc-hoist-globals": (_on_module(hoist_globals), ()),
    "aotc-sink-vectors": (_on_module(sink_vectors), ()),
    "aotc-merge-kernels": (_merge_kernels, ()),
    "aotc-spell-kernels": (_on_module(spell_kernel_names), ()),
    "aotc-expand-copies": (_on_module(expand_copies), ()),
    "aotc-place-memory": (_place_memory, ("memory",)),
}
