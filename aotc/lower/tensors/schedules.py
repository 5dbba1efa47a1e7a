"""Transform dialect: schedules are erased when they were run; one of ours for what has no pass."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.load.source import Source
from aotc.lower.passes.run import run_passes
from aotc.lower.tensors.softmax import expand_softmax_of_buffers
from aotc.mlir import ir

_HAS_SEQUENCES = "transform.with_named_sequence"
_OURS = "aotc_decompose"
_DECOMPOSE = f"""
module attributes {{{_HAS_SEQUENCES}}} {{
  transform.named_sequence @{_OURS}(%module: !transform.any_op {{transform.readonly}}) {{
    %whole = transform.structured.match ops{{["linalg.softmax"]}} in %module
      : (!transform.any_op) -> !transform.any_op
    %parts = transform.structured.decompose_interface %whole
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }}
}}
"""


def decompose(source: Source) -> None:
    """Operations that are made of others → these."""
    module = source.module
    expand_softmax_of_buffers(module)
    if not ops.find(module.operation, "linalg.softmax"):
        return
    with module.context, ir.Location.unknown():
        module.operation.attributes[_HAS_SEQUENCES] = ir.UnitAttr.get()
        schedule = ir.Module.parse(_DECOMPOSE)
        for sequence in list(schedule.body.operations):
            module.body.append(sequence.operation)
    run_passes(
        module,
        (f"transform-interpreter{{entry-point={_OURS}}}",),
        name=source.name,
        lines=source.lines,
        doing="decomposing operations",
    )
    erase_schedules(module)


def erase_schedules(module: Any) -> None:
    """Takes the module's transform sequences away."""
    with module.context:
        for sequence in ops.find(module.operation, "transform.named_sequence"):
            owner = sequence.parent.operation
            sequence.erase()
            # A module of its own for the schedule is how upstream's tests have it.
            if owner.parent is not None and not list(owner.regions[0].blocks[0].operations):
                owner.erase()
        if _HAS_SEQUENCES in module.operation.attributes:
            del module.operation.attributes[_HAS_SEQUENCES]
