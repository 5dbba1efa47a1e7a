"""Transform dialect: the module's own schedule is run, and one of ours for what has no pass."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import AotcError, InputError, InternalError
from aotc.load.source import Source
from aotc.lower.passes import run_passes
from aotc.mlir import ir

_HAS_SEQUENCES = "transform.with_named_sequence"
_MAIN = "__transform_main"
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


def run_schedule(source: Source) -> None:
    """Runs the input's `transform.named_sequence @__transform_main`, if it has one, and takes the
    sequences away. Raises InputError where the schedule fails."""
    module = source.module
    sequences = ops.find(module.operation, "transform.named_sequence")
    if not sequences:
        return
    if any(ops.symbol_of(sequence) == _MAIN for sequence in sequences):
        _interpret(source, _MAIN, InputError, "the module's schedule")
    _erase_sequences(module)


def decompose(source: Source) -> None:
    """Operations that are made of others → these."""
    module = source.module
    if not ops.find(module.operation, "linalg.softmax"):
        return
    with module.context, ir.Location.unknown():
        module.operation.attributes[_HAS_SEQUENCES] = ir.UnitAttr.get()
        schedule = ir.Module.parse(_DECOMPOSE)
        for sequence in list(schedule.body.operations):
            module.body.append(sequence.operation)
    _interpret(source, _OURS, InternalError, "decomposing operations")
    _erase_sequences(module)


def _interpret(source: Source, entry_point: str, blame: type[AotcError], doing: str) -> None:
    run_passes(
        source.module,
        (f"transform-interpreter{{entry-point={entry_point}}}",),
        name=source.name,
        lines=source.lines,
        blame=blame,
        doing=doing,
    )


def _erase_sequences(module: Any) -> None:
    with module.context:
        for sequence in ops.find(module.operation, "transform.named_sequence"):
            sequence.erase()
        if _HAS_SEQUENCES in module.operation.attributes:
            del module.operation.attributes[_HAS_SEQUENCES]
