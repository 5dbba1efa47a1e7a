"""Makes the shifts that torch-mlir generates well-defined for any shift amount.

`arith.shli`, `arith.shrsi` and `arith.shrui` return poison if the shift amount is not less than the
bit width. PyTorch and ONNX return 0 then, also for a negative amount; an arithmetic right shift
returns copies of the sign bit.
"""

from __future__ import annotations

from typing import Any

from aotc import ops

_SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_ULT = 6  # a predicate of arith.cmpi


def bound_shifts(module: Any) -> None:
    """Changes the shifts in the bodies of the module's `linalg.generic`, in place, except those of
    type index, which programs do not have."""
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
