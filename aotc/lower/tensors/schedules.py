"""Erases transform schedules that have been run, and decomposes composite operations by a schedule
of aotc."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.input.source import Source
from aotc.lower.checks.supported import WINOGRAD
from aotc.lower.tensors.gather import expand_gathers
from aotc.lower.tensors.pads import expand_pads
from aotc.lower.tensors.softmax import expand_softmax_of_buffers
from aotc.mlir import ir
from aotc.rewrites.bitcasts import expand_bitcasts
from aotc.rewrites.buffer_packs import expand_buffer_packs
from aotc.rewrites.constant_loads import load_constant_globals
from aotc.rewrites.contractions import expand_contractions
from aotc.rewrites.kernel_prints import print_in_kernels
from aotc.rewrites.masks import mark_masked
from aotc.rewrites.powers import expand_powers
from aotc.rewrites.run import run_passes
from aotc.rewrites.warp_regions import expand_warp_regions

_HAS_SEQUENCES = "transform.with_named_sequence"
_SEQUENCE = "aotc_decompose"
_ANY = "!transform.any_op"
# Operation → the transform operation that decomposes it, its operand type, and its result types.
_DECOMPOSITIONS = {
    "linalg.softmax": ("decompose_interface %whole", _ANY, (_ANY,)),
    **dict.fromkeys(WINOGRAD, ("decompose_winograd_op %whole", _ANY, (_ANY,))),
    "linalg.pack": (
        "lower_pack %whole {lowerPadLikeWithInsertSlice = false}",
        '!transform.op<"linalg.pack">',
        tuple(
            f'!transform.op<"{name}">'
            for name in ("tensor.pad", "tensor.expand_shape", "linalg.transpose")
        ),
    ),
    "linalg.unpack": (
        "lower_unpack %whole {lowerUnpadLikeWithExtractSlice = false}",
        '!transform.op<"linalg.unpack">',
        tuple(
            f'!transform.op<"{name}">'
            for name in (
                "tensor.empty",
                "linalg.transpose",
                "tensor.collapse_shape",
                "tensor.extract_slice",
                "linalg.copy",
            )
        ),
    ),
}

# Operation → transform patterns that lower it, for operations that no pass lowers.
_PATTERNS = {"vector.scan": ("lower_scan",)}
# The same in kernels that the user wrote: the passes only run on functions.
_KERNEL_PATTERNS = {
    **_PATTERNS,
    "vector.mask": ("lower_masked_transfers",),
    "vector.multi_reduction": (
        "reorder_multi_reduction_dims",
        "multi_reduction_flattening",
        "multi_reduction_unrolling",
    ),
}


def decompose(source: Source) -> None:
    """Decomposes composite operations into simpler ones."""
    module = source.module
    mark_masked(module)
    load_constant_globals(module)
    expand_softmax_of_buffers(module)
    expand_contractions(module)
    expand_gathers(module)
    expand_buffer_packs(module)
    expand_warp_regions(source)
    print_in_kernels(module)
    steps = [_decomposition(name) for name in _DECOMPOSITIONS if ops.find(module.operation, name)]
    steps += _pattern_steps(module)
    if steps:
        _run_schedule(source, "".join(steps))
    expand_pads(module)
    expand_powers(module)
    expand_bitcasts(module)


def _pattern_steps(module: Any) -> list[str]:
    steps = []
    for place, rewritten in (("func.func", _PATTERNS), ("gpu.module", _KERNEL_PATTERNS)):
        inside = [op for one in ops.find(module.operation, place) for op in ops.walk(one)]
        names = {op.name for op in inside}
        patterns = [one for name in rewritten if name in names for one in rewritten[name]]
        if patterns:
            steps.append(_rewriting(place, patterns))
    return steps


def _run_schedule(source: Source, steps: str) -> None:
    module = source.module
    with module.context, ir.Location.unknown():
        module.operation.attributes[_HAS_SEQUENCES] = ir.UnitAttr.get()
        schedule = ir.Module.parse(_schedule(steps))
        for sequence in list(ops.body_of_module(schedule).operations):
            ops.body_of_module(module).append(sequence.operation)
    run_passes(
        module,
        (f"transform-interpreter{{entry-point={_SEQUENCE}}}",),
        name=source.name,
        lines=source.lines,
        doing="decomposing operations",
    )
    erase_schedules(module)


def _schedule(steps: str) -> str:
    """The text of a module with a named sequence of these steps."""
    return f"""
module attributes {{{_HAS_SEQUENCES}}} {{
  transform.named_sequence @{_SEQUENCE}(%module: {_ANY} {{transform.readonly}}) {{
{steps}    transform.yield
  }}
}}
"""


def _rewriting(place: str, patterns: list[str]) -> str:
    """A step that applies patterns of the vector dialect inside operations named `place`."""
    value = f"%{place.replace('.', '_')}"
    lines = "".join(f"      transform.apply_patterns.vector.{one}\n" for one in patterns)
    return f"""\
    {value} = transform.structured.match ops{{["{place}"]}} in %module : ({_ANY}) -> {_ANY}
    transform.apply_patterns to {value} {{
{lines}    }} : {_ANY}
"""


def _decomposition(name: str) -> str:
    how, type_, made = _DECOMPOSITIONS[name]
    whole = f"%{name.rpartition('.')[2]}"
    return f"""\
    {whole} = transform.structured.match ops{{["{name}"]}} in %module : ({_ANY}) -> {type_}
    {whole}_parts:{len(made)} = transform.structured.{how.replace("%whole", whole)}
      : ({type_}) -> ({", ".join(made)})
"""


def erase_schedules(module: Any) -> None:
    """Erases the module's transform sequences."""
    with module.context:
        for sequence in ops.find(module.operation, "transform.named_sequence"):
            owner = sequence.parent.operation
            ops.erase(sequence)
            # Upstream's tests keep the schedule in a separate nested module.
            if owner.parent is not None and not list(owner.regions[0].blocks[0].operations):
                ops.erase(owner)
        if _HAS_SEQUENCES in module.operation.attributes:
            del module.operation.attributes[_HAS_SEQUENCES]
