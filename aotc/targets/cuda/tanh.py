"""tanh of f16 and bf16 on a GPU, from an exponential and a reciprocal instruction.

libdevice has a tanh of f32 with an error of two ULP of f32, which takes twice as long. Here
tanh x = 1 - 2 / (1 + 2^(2x log2 e)) in f32. Near 0, where that loses digits, it is x - x³/3. Both
have a relative error of at most 2^-16, and are rounded once. (ex2.approx and rcp.approx have
relative errors of 2^-22 and 2^-23, PTX manual.)
"""

from __future__ import annotations

import math
from typing import Any

from aotc import llvm_ops, ops
from aotc.mlir import ir

_NARROW = ("f16", "bf16")
# Below this, the next term of the series, 2x⁵/15, is less than 2^-26 of x.
_SMALL = 2.0**-6
_OLT = 4  # of arith.cmpf


def replace_narrow_tanh(device: Any) -> None:
    """Changes the module in place, within its context."""
    for tanh in ops.find(device, "math.tanh"):
        if str(tanh.operands[0].type) in _NARROW:
            with tanh.location, ir.InsertionPoint(tanh):
                made = _tanh(tanh.operands[0])
            ops.replace(tanh, [made])


def _tanh(value: Any) -> Any:
    x = ops.unary("arith.extf", value, _f32())
    power = _asm("ex2", ops.binary("arith.mulf", x, ops.constant(_f32(), 2 * math.log2(math.e))))
    one = ops.constant(_f32(), 1.0)
    part = _asm("rcp", ops.binary("arith.addf", power, one))
    large = _fma(part, ops.constant(_f32(), -2.0), one)
    third = _fma(ops.binary("arith.mulf", x, x), ops.constant(_f32(), -1 / 3), one)
    small = ops.binary("arith.mulf", third, x)
    size = ops.unary("math.absf", x, _f32())
    is_small = ops.compare_floats(_OLT, size, ops.constant(_f32(), _SMALL))
    chosen = ops.select(is_small, small, large)
    return ops.unary("arith.truncf", chosen, value.type)


def _f32() -> Any:
    return ir.F32Type.get()


def _fma(one: Any, other: Any, sum_: Any) -> Any:
    return ops.create("math.fma", [one, other, sum_], [_f32()]).result


def _asm(name: str, operand: Any) -> Any:
    """An approximate instruction; it flushes subnormal numbers to 0."""
    return llvm_ops.assembly(f"{name}.approx.ftz.f32 $0, $1;", "=f,f", [operand], _f32())
