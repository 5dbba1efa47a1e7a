"""Operations on f32 that the softmax of every kernel uses."""

from __future__ import annotations

import math

from aotc.builder import Builder
from aotc.builder.numbers import Float
from aotc.kernels.hopper.smem import assembly

LOG2_E = math.log2(math.e)


def exp2(b: Builder, power: Float) -> Float:
    """2 to a power, by the GPU's `ex2.approx.ftz`: within 2 units in the last place (PTX manual).
    The result is 0 if it would be below the smallest normal number."""
    text = "ex2.approx.ftz.f32 $0, $1;"
    return Float(assembly(b, text, "=f,f", [power], "f32", has_side_effects=False))


def minus_infinity(b: Builder) -> Float:
    found: Float = b.constant(-math.inf, "f32")
    return found


def unless_empty(b: Builder, row_max: Float, value: Float) -> Float:
    """The value; 0 for a row whose scores are all -infinity."""
    is_empty = b.compare_floats("oeq", row_max, minus_infinity(b))
    found: Float = b.select(is_empty, b.zero("f32"), value)
    return found
