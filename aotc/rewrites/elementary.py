"""Elementary functions of f32 → arithmetic, which LLVM vectorizes.

A call of libm prevents a loop's vectorization, and takes ten times as long. Results are within 2
ULP of the exact ones (tests/unit/test_elementary.py), for every number, infinity and NaN. Subnormal
numbers are not flushed.

The argument reduction is that of W. J. Cody and W. Waite (Software Manual for the Elementary
Functions, 1980). The coefficients are minimax polynomials of the functions that the comments name,
computed with Lawson's iteration and rounded to f32. Multiply-adds are FMAs on every processor and
at every level of optimization, so that results are bit-identical.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir
from aotc.ops import (
    binary,
    constant,
    create,
    element_type,
    erase,
    integer,
    unary,
    with_element_type,
)

# (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2. `_EXP` is the polynomial of exp(r) that it gives.
_EXP_TAIL = (
    *(0.5, 0.166665181517601, 0.04166620597243309, 0.008368953131139278),
    0.0013950600987300277,
)
_EXP = (1.0, 1.0, *_EXP_TAIL)
# (log(1 + f) - f + f² / 2) / f³ from sqrt(1/2) - 1 to sqrt(2) - 1.
_LOG = (
    *(0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053),
    *(0.14219552278518677, -0.1240558922290802, 0.11888162046670914, -0.11675652116537094),
    0.06746640801429749,
)
# (tanh(x) / x - 1) / z, where z = x², for |x| <= 0.625.
_TANH = (
    *(-0.3333333134651184, 0.13333210349082947, -0.05394720286130905, 0.021702969446778297),
    *(-0.008182677440345287, 0.002147539984434843),
)
_TANH_BOUND = 0.625
# erf(x) / x - 1 as a polynomial of z = x², for |x| <= 1.
_ERF = (
    *(0.12837916612625122, -0.3761262595653534, 0.1128358542919159, -0.026853812858462334),
    *(0.005188329145312309, -0.000801020534709096, 7.853896386222914e-05),
)
_ERF_BOUND = 1.0
# 1 - erf(x) as a polynomial of x - 2.5, from 1 to 3.95. Above 3.92, erf rounds to 1.
_ERFC = (
    *(0.00040692908805795014, -0.002178067807108164, 0.0054467543959617615),
    *(-0.008353382349014282, 0.008614674210548401, -0.006102780345827341),
    *(0.0028196386992931366, -0.0005709651159122586, -0.00028799069696106017),
    *(0.0002792269515339285, -6.120143370935693e-05, -2.1104964616824873e-05),
    9.006673280964606e-06,
)
_ERFC_MIDDLE, _ERFC_END = 2.5, 3.92
# (sin(x) / x - 1) / z and (cos(x) - 1 + z / 2) / z², where z = x², for |x| <= pi / 4.
_SINE = (-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751)
_COSINE = (0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05)
# pi / 2 as a sum of f32. Up to the bound, the differences from its multiples are exact enough.
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
_HALF_PI_BOUND = 2.0**17
# The bits of 2 / pi behind a word of zeros.
_TWO_BY_PI = (
    *(0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB),
)
# ln(2) as a sum: the first part has so few bits that its products with exponents are exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.1219444e-4
# If this is added to a number below 2^22, the last bits of the sum are the nearest integer.
_ROUNDS = 12582912.0
# Below the lower bound, the exponential is 0; above the upper bound, it is infinite.
_EXP_BOUNDS = (-104.0, 89.0)
# Below the lower bound, 1 + the exponential is 1.
_EXP_PLUS_ONE_BOUNDS = (-60.0, 89.0)
_FRACTION_BITS, _ONE_BITS, _BIAS = 23, 0x3F800000, 127
_FRACTION_MASK = (1 << _FRACTION_BITS) - 1
_SIGN_BIT = 31
# The bits of the sign and the exponent.
_EXPONENT_MASK = -0x800000
_LEAST_NORMAL = 2.0**-126
# Predicates of arith.cmpf. An ordered comparison (O...) with NaN is false.
_OEQ, _OGT, _OLT, _OLE, _UNO = 1, 2, 4, 5, 14
_EQ, _NE = 0, 1  # of arith.cmpi


def expand_function(operation: Any) -> Any:
    """The value of a math operation of f32 or vectors of f32, expanded at the insertion point; None
    if `FUNCTIONS` does not have the operation."""
    make = FUNCTIONS.get(operation.name)
    if make is None or not _is_of_f32(operation):
        return None
    value = operation.operands[0]
    return make(_Numbers(value.type), value)


def replace_exp_plus_one(operation: Any) -> bool:
    """Replaces an exponential whose only use is an addition of 1, as in a sigmoid, together with
    the addition. This takes fewer operations than the exponential alone. Returns whether the
    operation was such an exponential."""
    if operation.name != "math.exp" or not _is_of_f32(operation):
        return False
    sum_ = _sum_with_one(operation)
    if sum_ is None:
        return False
    value = operation.operands[0]
    with ir.InsertionPoint(operation), operation.location:
        sum_.results[0].replace_all_uses_with(_exp_plus_one(_Numbers(value.type), value))
    erase(sum_)
    erase(operation)
    return True


def _is_of_f32(operation: Any) -> bool:
    return isinstance(element_type(operation.operands[0].type), ir.F32Type)


def _sum_with_one(exponential: Any) -> Any | None:
    """The addition of 1 that is the only user of the exponential, or None."""
    uses = list(exponential.results[0].uses)
    sum_ = uses[0].owner.operation if len(uses) == 1 else None
    if sum_ is None or sum_.name != "arith.addf":
        return None
    value = ops.known_constant(sum_.operands[1 - uses[0].operand_number])
    if isinstance(value, ir.DenseElementsAttr):
        value = value.get_splat_value() if value.is_splat else None
    return sum_ if isinstance(value, ir.FloatAttr) and value.value == 1 else None


class _Numbers:
    """Creates operations on numbers, or vectors, of one type."""

    def __init__(self, type_: Any) -> None:
        self.type = type_
        self.bits_type = with_element_type(type_, integer(32))

    def number(self, value: float) -> Any:
        return constant(self.type, value)

    def integer(self, value: int) -> Any:
        return constant(self.bits_type, value)

    def add(self, x: Any, y: Any) -> Any:
        return binary("arith.addf", x, y)

    def subtract(self, x: Any, y: Any) -> Any:
        return binary("arith.subf", x, y)

    def multiply(self, x: Any, y: Any) -> Any:
        return binary("arith.mulf", x, y)

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        return create("math.fma", [x, y, z], [self.type]).result

    def divide(self, x: Any, y: Any) -> Any:
        return binary("arith.divf", x, y)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        *others, sum_ = map(self.number, coefficients)
        for coefficient in reversed(others):
            sum_ = self.multiply_add(sum_, x, coefficient)
        return sum_

    def compare(self, predicate: int, x: Any, y: Any) -> Any:
        return ops.compare_floats(predicate, x, y)

    def select(self, condition: Any, yes: Any, no: Any) -> Any:
        return ops.select(condition, yes, no)

    def magnitude(self, x: Any) -> Any:
        return unary("math.absf", x, self.type)

    def with_sign_of(self, x: Any, sign: Any) -> Any:
        return binary("math.copysign", x, sign)

    def bits(self, x: Any) -> Any:
        return unary("arith.bitcast", x, self.bits_type)

    def of_bits(self, bits: Any) -> Any:
        return unary("arith.bitcast", bits, self.type)


def _reduced(n: _Numbers, x: Any, more: int = 0) -> tuple[Any, Any]:
    """The argument reduction of the exponential: (k, r) with x = k ln(2) + r and k the nearest
    integer. k + `more` is returned in the exponent bits of a float."""
    rounds = n.number(_ROUNDS + more)
    shifted = n.multiply_add(x, n.number(1 / math.log(2)), rounds)
    count = n.subtract(shifted, rounds)
    rest = n.multiply_add(count, n.number(-_LN2_HIGH), x)
    rest = n.multiply_add(count, n.number(-_LN2_LOW), rest)
    # The shift moves the bits of `_ROUNDS` out of the integer.
    return binary("arith.shli", n.bits(shifted), n.integer(_FRACTION_BITS)), rest


def _exp_less_one(n: _Numbers, rest: Any) -> Any:
    square = n.multiply(rest, rest)
    return n.multiply_add(square, n.polynomial(rest, _EXP_TAIL), rest)


def _power_of_two(n: _Numbers, exponent: Any) -> Any:
    """2^k, with k as `_reduced` returns it."""
    return n.of_bits(binary("arith.addi", exponent, n.integer(_ONE_BITS)))


def _between(n: _Numbers, x: Any, bounds: tuple[float, float]) -> Any:
    """x, clamped to the bounds."""
    least, most = map(n.number, bounds)
    x = n.select(n.compare(_OLT, x, least), least, x)
    return n.select(n.compare(_OGT, x, most), most, x)


def _exp(n: _Numbers, x: Any) -> Any:
    exponent, rest = _reduced(n, _between(n, x, _EXP_BOUNDS))
    found = n.polynomial(rest, _EXP)
    # Scales by two factors: a single one could not be represented if the result is subnormal or
    # infinite.
    half = binary("arith.shrsi", exponent, n.integer(1))
    half = binary("arith.andi", half, n.integer(_EXPONENT_MASK))
    found = n.multiply(found, _power_of_two(n, half))
    return n.multiply(found, _power_of_two(n, binary("arith.subi", exponent, half)))


def _exp_plus_one(n: _Numbers, x: Any) -> Any:
    """1 + exp(x), as 1 + (2 p) 2^(k - 1), because 2^k might be infinite."""
    bits, rest = _reduced(n, _between(n, x, _EXP_PLUS_ONE_BOUNDS), more=_BIAS - 1)
    twice = n.polynomial(rest, [2 * coefficient for coefficient in _EXP])
    return n.multiply_add(twice, n.of_bits(bits), n.number(1.0))


def _expm1(n: _Numbers, x: Any) -> Any:
    """2^k (exp(r) - 1) + (2^k - 1); for large |x|, exp(x) - 1."""
    one, bound = n.number(1.0), n.number(20.0)
    magnitude = n.magnitude(x)
    is_large = n.compare(_OGT, magnitude, bound)
    exponent, rest = _reduced(n, n.select(is_large, bound, x))
    scale = _power_of_two(n, exponent)
    small = n.multiply_add(_exp_less_one(n, rest), scale, n.subtract(scale, one))
    large = n.subtract(_exp(n, x), one)
    return n.with_sign_of(n.select(is_large, large, small), x)


def _log(n: _Numbers, x: Any) -> Any:
    # Subnormal numbers are scaled by 2^23.
    is_tiny = n.compare(_OLT, x, n.number(_LEAST_NORMAL))
    scaled = n.select(is_tiny, n.multiply(x, n.number(2.0**_FRACTION_BITS)), x)
    bits = n.bits(scaled)
    # The fraction is between sqrt(1/2) and sqrt(2).
    offset = 0x3F3504F3
    moved = binary("arith.subi", bits, n.integer(offset))
    exponent = binary("arith.shrsi", moved, n.integer(_FRACTION_BITS))
    whole = binary("arith.shli", exponent, n.integer(_FRACTION_BITS))
    fraction = n.of_bits(binary("arith.subi", bits, whole))
    less = n.select(is_tiny, n.integer(_FRACTION_BITS), n.integer(0))
    count = unary("arith.sitofp", binary("arith.subi", exponent, less), n.type)
    f = n.subtract(fraction, n.number(1.0))
    square = n.multiply(f, f)
    tail = n.multiply(n.multiply(square, f), n.polynomial(f, _LOG))
    tail = n.multiply_add(count, n.number(_LN2_LOW), tail)
    tail = n.multiply_add(square, n.number(-0.5), tail)
    found = n.multiply_add(count, n.number(_LN2_HIGH), n.add(tail, f))
    infinity = n.number(math.inf)
    zero = n.number(0.0)
    found = n.select(n.compare(_OEQ, x, infinity), infinity, found)
    found = n.select(n.compare(_OEQ, x, zero), n.number(-math.inf), found)
    found = n.select(n.compare(_OLT, x, zero), n.number(math.nan), found)
    return n.select(n.compare(_UNO, x, x), x, found)


def _log1p(n: _Numbers, x: Any) -> Any:
    """log(u) + c / u, where u is 1 + x rounded and c its rounding error."""
    one, zero = n.number(1.0), n.number(0.0)
    u = n.add(x, one)
    lost = n.subtract(x, n.subtract(u, one))
    is_finite = n.compare(_OLT, u, n.number(math.inf))
    # For x = -1 and x = infinity, log(u) is the result.
    is_usual = binary("arith.andi", is_finite, n.compare(_OGT, u, zero))
    part = n.divide(n.select(is_usual, lost, zero), n.select(is_usual, u, one))
    found = n.add(_log(n, u), part)
    return n.with_sign_of(found, x)


def _tanh(n: _Numbers, x: Any) -> Any:
    magnitude = n.magnitude(x)
    square = n.multiply(x, x)
    small = n.multiply(square, n.polynomial(square, _TANH))
    small = n.multiply_add(small, x, x)
    one, two = n.number(1.0), n.number(2.0)
    exp_plus_one = _exp_plus_one(n, n.add(magnitude, magnitude))
    large = n.subtract(one, n.divide(two, exp_plus_one))
    is_small = n.compare(_OLE, magnitude, n.number(_TANH_BOUND))
    return n.with_sign_of(n.select(is_small, small, large), x)


def _erf(n: _Numbers, x: Any) -> Any:
    magnitude = n.magnitude(x)
    square = n.multiply(x, x)
    small = n.multiply_add(n.polynomial(square, _ERF), x, x)
    one = n.number(1.0)
    rest = n.polynomial(n.subtract(magnitude, n.number(_ERFC_MIDDLE)), _ERFC)
    # Exactly 1, as GELU multiplies what is left of 1 by its operand.
    is_one = n.compare(_OGT, magnitude, n.number(_ERFC_END))
    large = n.select(is_one, one, n.subtract(one, rest))
    is_small = n.compare(_OLE, magnitude, n.number(_ERF_BOUND))
    return n.with_sign_of(n.select(is_small, small, large), x)


def _sine(n: _Numbers, x: Any) -> Any:
    found = _of_quarter_turns(n, x, 0)
    return n.select(n.compare(_OEQ, x, n.number(0.0)), x, found)  # -0 is itself


def _cosine(n: _Numbers, x: Any) -> Any:
    return _of_quarter_turns(n, x, 1)


def _of_quarter_turns(n: _Numbers, x: Any, more: int) -> Any:
    """The sine of x + `more` pi / 2."""
    count, rest = _quarter_turns(n, x)
    count = binary("arith.addi", count, n.integer(more))
    square = n.multiply(rest, rest)
    sine = n.multiply_add(n.multiply(rest, square), n.polynomial(square, _SINE), rest)
    cosine = n.multiply_add(square, n.number(-0.5), n.number(1.0))
    cosine = n.multiply_add(n.multiply(square, square), n.polynomial(square, _COSINE), cosine)
    odd = binary("arith.andi", count, n.integer(1))
    found = n.select(ops.compare(_NE, odd, n.integer(0)), cosine, sine)
    # The second bit of the count is the sign.
    sign = binary("arith.shli", binary("arith.shrui", count, n.integer(1)), n.integer(_SIGN_BIT))
    found = n.of_bits(binary("arith.xori", n.bits(found), sign))
    is_finite = n.compare(_OLT, n.magnitude(x), n.number(math.inf))
    return n.select(is_finite, found, n.subtract(x, x))


def _quarter_turns(n: _Numbers, x: Any) -> tuple[Any, Any]:
    """(k, r) with x = k pi / 2 + r and k the nearest integer, of which the last two bits are
    right."""
    rounds = n.number(_ROUNDS)
    shifted = n.multiply_add(x, n.number(2 / math.pi), rounds)
    count, rest = n.subtract(shifted, rounds), x
    for part in _HALF_PI:
        rest = n.multiply_add(count, n.number(-part), rest)
    is_near = n.compare(_OLE, n.magnitude(x), n.number(_HALF_PI_BOUND))
    far_count, far_rest = _far_quarter_turns(n, x)
    return n.select(is_near, n.bits(shifted), far_count), n.select(is_near, rest, far_rest)


def _far_quarter_turns(n: _Numbers, x: Any) -> tuple[Any, Any]:
    """As `_quarter_turns`, for |x| above the bound: the reduction of M. H. Payne and R. N. Hanek
    (Radian Reduction for Trigonometric Functions, 1983).

    The fraction of x is multiplied by 96 bits of 2 / pi, without those whose products are multiples
    of 4. The product has 2 bits before the point.
    """
    i64, f64 = (with_element_type(n.type, one) for one in (integer(64), ir.F64Type.get()))
    bits = n.bits(n.magnitude(x))
    exponent = binary("arith.shrui", bits, n.integer(_FRACTION_BITS))
    fraction = binary("arith.andi", bits, n.integer(_FRACTION_MASK))
    fraction = binary("arith.ori", fraction, n.integer(_FRACTION_MASK + 1))
    # 24 bits of the fraction and 2 are in front of the point, and 32 zeros before the bits.
    first = binary("arith.subi", exponent, n.integer(_BIAS + 25 - 32))
    high, middle, low = _bits_from(n, first)
    wide = unary("arith.extui", fraction, i64)
    product = binary(
        "arith.shli",
        unary("arith.extui", binary("arith.muli", fraction, high), i64),
        constant(i64, 32),
    )
    below = binary("arith.muli", wide, unary("arith.extui", low, i64))
    for term in (
        binary("arith.muli", wide, unary("arith.extui", middle, i64)),
        binary("arith.shrui", below, constant(i64, 32)),
    ):
        product = binary("arith.addi", product, term)
    point = constant(i64, 62)
    nearest = binary("arith.addi", product, constant(i64, 1 << 61))
    count = binary("arith.shrui", nearest, point)
    turns = binary("arith.subi", product, binary("arith.shli", count, point))
    rest = binary(
        "arith.mulf", unary("arith.sitofp", turns, f64), constant(f64, math.pi / 2 * 2.0**-62)
    )
    rest = unary("arith.truncf", rest, n.type)
    count = unary("arith.trunci", count, n.bits_type)
    is_negative = n.compare(_OLT, x, n.number(0.0))
    opposite = binary("arith.subi", n.integer(0), count)
    return n.select(is_negative, opposite, count), n.with_sign_of(rest, n.multiply(rest, x))


def _bits_from(n: _Numbers, first: Any) -> list[Any]:
    """Three words of `_TWO_BY_PI` from the bit `first` on."""
    number = binary("arith.shrui", first, n.integer(5))
    shift = binary("arith.andi", first, n.integer(31))
    others = range(1, len(_TWO_BY_PI) - 3)
    chosen = [ops.compare(_EQ, number, n.integer(i)) for i in others]
    words = []
    for place in range(4):
        word = n.integer(_TWO_BY_PI[place])
        for i, is_it in zip(others, chosen, strict=True):
            word = n.select(is_it, n.integer(_TWO_BY_PI[place + i]), word)
        words.append(word)
    # Shifts by 32 have no result.
    back = binary("arith.subi", n.integer(31), shift)
    found = []
    for word, after in itertools.pairwise(words):
        half = binary("arith.shrui", after, n.integer(1))
        bits = binary("arith.shli", word, shift), binary("arith.shrui", half, back)
        found.append(binary("arith.ori", *bits))
    return found


FUNCTIONS: dict[str, Callable[[_Numbers, Any], Any]] = {
    "math.cos": _cosine,
    "math.erf": _erf,
    "math.exp": _exp,
    "math.expm1": _expm1,
    "math.log": _log,
    "math.log1p": _log1p,
    "math.sin": _sine,
    "math.tanh": _tanh,
}
