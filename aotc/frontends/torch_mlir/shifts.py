"""Shifts as torch-mlir writes them → those that have a value for any number of bits.

`arith.shli`, `arith.shrsi` and `arith.shrui` have no value where the number of bits is the type's
width or more. PyTorch and ONNX give 0 there, also for a negative number; shifts to the right of
signed integers leave copies of the sign.
"""

from __future__ import annotations

from typing import Any

from aotc import ops

_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_ULT = 6  # arith.cmpi's number


def bound_shifts(module: Any) -> None:
    """Changes the shifts in the bodies of the module's `linalg.generic`, but for those of indices:
    no program has any."""
    from torch_mlir import ir

    for generic in ops.find(module.operation, "linalg.generic"):
        for shift in ops.find(generic, *_SHIFTS):
            if isinstance(shift.operands[0].type, ir.IntegerType):
                _bound(shift)


def _bound(shift: Any) -> None:
    from torch_mlir import ir

    value, bits = shift.operands
    width = ir.IntegerType(value.type).width
    with shift.location, ir.InsertionPoint(shift):
        is_less = ops.compare(_ULT, bits, ops.constant(value.type, width))
        if shift.name == "arith.shrsi":
            shift.operands[1] = ops.select(is_less, bits, ops.constant(value.type, width - 1))
            return
        shifted = ops.binary(shift.name, value, bits)
        bounded = ops.select(is_less, shifted, ops.constant(value.type, 0))
    ops.replace(shift, [bounded])
