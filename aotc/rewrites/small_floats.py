"""Floats of 4, 6 and 8 bits → arithmetic on f32 and on bits, which every chip and every CPU has.

Arithmetic is done in f32 and rounded (`arith-emulate-unsupported-floats`). Conversions follow from
the format's parameters (`FORMATS`). `arith.extf` is exact. `arith.truncf` rounds once, from f32 or
f64, in its rounding mode (by default to nearest even). An overflow gives infinity; in a format
without infinity, NaN; in a format with neither, the largest number, which a NaN becomes there, too.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from aotc import ops
from aotc.analysis.rounding import ROUNDED, ROUNDING_MODE, Rounding, rounding_of
from aotc.builder import FLOAT8, Builder
from aotc.builder.numbers import compare_values
from aotc.mlir import ir
from aotc.rewrites.run import PassWatch, run_pipeline

_SCALING = ("arith.scaling_extf", "arith.scaling_truncf")
_EXPAND_SCALING = "arith-expand{include-f8e8m0=true include-f4e2m1=true}"
_EXTEND_MATH = "math-extend-to-supported-types{extra-types=f16,bf16 target-type=f32}"


class Specials(Enum):
    """The values of a format that are not finite numbers."""

    IEEE = "infinities, and NaN above them, have the largest exponent"
    NAN_ALL_ONES = "NaN has all bits set behind the sign"
    NAN_NEGATIVE_ZERO = "NaN is what would be -0"
    NONE = "nothing"


class Format(Struct, frozen=True):
    """A float format of one sign bit, `exponent` bits and `mantissa` bits."""

    exponent: int
    mantissa: int
    bias: int
    specials: Specials

    @property
    def sign(self) -> int:
        """The sign bit as a mask."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        """The lowest magnitude bits that are not a finite number."""
        if self.specials is Specials.IEEE:
            return self.sign - (1 << self.mantissa)
        return self.sign - (self.specials is Specials.NAN_ALL_ONES)


_IEEE, _ONES, _ZERO = Specials.IEEE, Specials.NAN_ALL_ONES, Specials.NAN_NEGATIVE_ZERO
FORMATS = {
    "f8E5M2": Format(5, 2, 15, _IEEE),
    "f8E4M3": Format(4, 3, 7, _IEEE),
    "f8E3M4": Format(3, 4, 3, _IEEE),
    "f8E4M3FN": Format(4, 3, 7, _ONES),
    "f8E5M2FNUZ": Format(5, 2, 16, _ZERO),
    "f8E4M3FNUZ": Format(4, 3, 8, _ZERO),
    "f8E4M3B11FNUZ": Format(4, 3, 11, _ZERO),
    "f6E2M3FN": Format(2, 3, 1, Specials.NONE),
    "f6E3M2FN": Format(3, 2, 3, Specials.NONE),
    "f4E2M1FN": Format(2, 1, 1, Specials.NONE),
}
# Unsigned powers of two, 2^(bits - 127). All bits set is NaN.
_POWER = "f8E8M0FNU"
_POWER_BIAS = 127
SMALL_FLOATS = (*FORMATS, _POWER)


# Most operations of a kernel: their types need not be looked at.
_OF_INTEGERS = frozenset(
    f"arith.{name}"
    for name in (
        *("addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi"),
        *("andi", "ori", "xori", "shli", "shrsi", "shrui", "cmpi", "minsi", "maxsi"),
        *("minui", "maxui", "index_cast", "index_castui", "extsi", "extui", "trunci"),
    )
)


class _Wide(Struct, frozen=True):
    """An IEEE format to round from: its width, its mantissa bits, and its bias."""

    width: int
    mantissa: int
    bias: int

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def hidden(self) -> int:
        """The implicit bit of the significand."""
        return 1 << self.mantissa

    @property
    def infinity(self) -> int:
        return self.sign - self.hidden


_WIDE = {"f32": _Wide(32, 23, 127), "f64": _Wide(64, 52, 1023)}
# LLVM rounds to these formats to nearest even, whatever the operation's rounding mode is.
_ROUNDED_BY_LLVM = {
    "f32": Format(8, 23, 127, _IEEE),
    "f16": Format(5, 10, 15, _IEEE),
    "bf16": Format(8, 7, 127, _IEEE),
}
_INFINITY, _NAN, _SMALLEST_POWER = 0x7F800000, 0x7FC00000, 0x00400000  # as f32; 2^-127


class Conversions(Protocol):
    """The conversions of a device that has instructions for some formats."""

    def widen(self, value: Any, by_bits: Any) -> Any:
        """A small float as a wider one. `by_bits` is the result of the bit arithmetic, which is
        returned if there is no instruction."""

    def narrow(self, value: Any, by_bits: Any) -> Any:
        """An f32 rounded to nearest even. `by_bits` is the result of the bit arithmetic, which is
        returned if there is no instruction."""


def expand_small_floats(
    root: Any, watch: PassWatch, conversions: Conversions | None = None
) -> None:
    """Rewrites operations on small floats under `root`, scalars and vectors, in place, and
    `arith.convertf` and `arith.truncf` with a rounding mode of wider floats."""
    _expand_same_widths(root)
    _expand_roundings(root)
    names, formats = _users(root)
    if not formats:
        return
    if names.intersection(_SCALING):
        # That pass has its own conversions, which round differently to f8E8M0FNU.
        _expand_conversions(root, conversions)
        run_pipeline(root, [_EXPAND_SCALING], watch=watch)
    _flush_denormals(root)
    _clamp_to_integers(root)
    _widen_multiply_adds(root)
    _widen_prints(root)
    sources = ",".join(sorted(formats))
    passes = [f"arith-emulate-unsupported-floats{{source-types={sources} target-type=f32}}"]
    if any(name.startswith("math.") for name in names):
        passes.insert(0, _EXTEND_MATH)
    run_pipeline(root, passes, watch=watch)
    _expand_conversions(root, conversions)


def _users(root: Any) -> tuple[set[str], set[str]]:
    """The names of the operations that compute with small floats, and the formats they use."""
    elements: dict[Any, str] = {}
    names: set[str] = set()
    formats: set[str] = set()
    for operation in ops.walk(root):
        name = operation.name
        if name in _OF_INTEGERS or not name.startswith(("arith.", "math.", "vector.")):
            continue
        for value in (*operation.operands, *operation.results):
            type_ = value.type
            if type_ not in elements:
                elements[type_] = ops.element_name(type_)
            if elements[type_] in SMALL_FLOATS:
                names.add(name)
                formats.add(elements[type_])
    return names, formats


def _expand_same_widths(root: Any) -> None:
    """Replaces conversions between formats of one width, such as from f16 to bf16, by two through
    f32, of which one is exact. (Upstream's pass that computes bf16 in f32 makes invalid ones.)"""
    for operation in ops.find(root, "arith.convertf"):
        given, result = operation.operands[0], operation.results[0]
        with operation.location, ir.InsertionPoint(operation):
            wide = ops.unary(
                "arith.extf", given, ops.with_element_type(given.type, ir.F32Type.get())
            )
            narrow = ops.unary("arith.truncf", wide, result.type)
        if ROUNDING_MODE in operation.attributes:
            narrow.owner.attributes[ROUNDING_MODE] = operation.attributes[ROUNDING_MODE]
        ops.replace(operation, [narrow])


def _expand_roundings(root: Any) -> None:
    """Removes all rounding modes except those of small floats. MLIR lowers a rounding mode to a
    constrained intrinsic, which tells LLVM the processor's mode but does not set it, and is not
    vectorized. (Arithmetic with another mode than to nearest even is refused: `lower.checks`.)"""
    for operation in ops.find(root, *ROUNDED):
        if ROUNDING_MODE not in operation.attributes:
            continue
        form = _ROUNDED_BY_LLVM.get(ops.element_name(operation.results[0].type))
        if form is None:
            continue
        rounding = rounding_of(operation)
        del operation.attributes[ROUNDING_MODE]
        if operation.name == "arith.truncf" and rounding is not Rounding.TO_NEAREST_EVEN:
            given, result = operation.operands[0], operation.results[0]
            with operation.location, ir.InsertionPoint(operation):
                encoded = _encode(*_parts(given), form, rounding)
                result.replace_all_uses_with(encoded.as_float(result.type))
            ops.erase(operation)


def _flush_denormals(root: Any) -> None:
    """Expands flushes of small floats, because their subnormal numbers are normal in f32."""
    for operation in ops.find(root, "arith.flush_denormals"):
        given, result = operation.operands[0], operation.results[0]
        name = ops.element_name(given.type)
        if name not in SMALL_FLOATS:
            continue
        flushed = given  # powers of two have no subnormal numbers
        if name in FORMATS:
            form = FORMATS[name]
            with operation.location, ir.InsertionPoint(operation):
                bits = _bits_of(given)
                magnitude = bits & (form.sign - 1)
                zero = bits & form.sign
                if form.specials is Specials.NAN_NEGATIVE_ZERO:
                    zero = bits.is_("eq", form.sign).choose(form.sign, bits.like(0))
                is_normal = magnitude.is_("uge", 1 << form.mantissa)
                flushed = is_normal.choose(bits, zero).as_float(given.type)
        result.replace_all_uses_with(flushed)
        ops.erase(operation)


# An f32 has all integers of up to 24 bits. No signed format reaches larger ones.
_CLAMPED_BITS = 24


def _clamp_to_integers(root: Any) -> None:
    """Saturates conversions to integers, as upstream's APFloat does."""
    for conversion in ops.find(root, "arith.fptosi", "arith.fptoui"):
        given, width = conversion.operands[0], ops.element_type(conversion.results[0].type).width
        if ops.element_name(given.type) not in SMALL_FLOATS or width > _CLAMPED_BITS:
            continue
        is_signed = conversion.name == "arith.fptosi"
        least = -(1 << (width - 1)) if is_signed else 0
        wide = ops.with_element_type(given.type, ir.F32Type.get())
        with conversion.location, ir.InsertionPoint(conversion):
            value = ops.unary("arith.extf", given, wide)
            value = ops.binary("arith.maximumf", value, _splat(wide, least))
            value = ops.binary("arith.minimumf", value, _splat(wide, least + (1 << width) - 1))
        conversion.operands[0] = value


def _widen_multiply_adds(root: Any) -> None:
    """Computes `math.fma` in f64, whose result is exact except for operands of very different
    magnitude. In f32, it would be rounded twice."""
    for fma in ops.find(root, "math.fma"):
        result = fma.results[0]
        if ops.element_name(result.type) in SMALL_FLOATS:
            wide = ops.with_element_type(result.type, ir.F64Type.get())
            with fma.location, ir.InsertionPoint(fma):
                operands = [ops.unary("arith.extf", one, wide) for one in fma.operands]
                exact = ops.create("math.fma", operands, [wide]).result
                result.replace_all_uses_with(ops.unary("arith.truncf", exact, result.type))
            ops.erase(fma)


def _widen_prints(root: Any) -> None:
    """Prints small floats as f32."""
    for printing in ops.find(root, "vector.print"):
        for index, value in enumerate(printing.operands):
            if ops.element_name(value.type) in SMALL_FLOATS:
                wide = ops.with_element_type(value.type, ir.F32Type.get())
                with printing.location, ir.InsertionPoint(printing):
                    printing.operands[index] = ops.unary("arith.extf", value, wide)


def _expand_conversions(root: Any, conversions: Conversions | None) -> None:
    for operation in ops.find(root, "arith.extf", "arith.truncf"):
        given, result = operation.operands[0], operation.results[0]
        with operation.location, ir.InsertionPoint(operation):
            value = given
            if ops.element_name(given.type) in SMALL_FLOATS:
                value = _extend(given, result.type)
                if conversions is not None:
                    value = conversions.widen(given, value)
            if ops.element_name(result.type) in SMALL_FLOATS:
                value = _truncate(value, result.type, rounding_of(operation), conversions)
            if value != given:
                result.replace_all_uses_with(value)
                ops.erase(operation)


class _Bits:
    """Unsigned integers of one width, a scalar or a vector, with Python's operators."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.addi", other)

    def __sub__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.subi", other)

    def __and__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.andi", other)

    def __or__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.ori", other)

    def __lshift__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.shli", other)

    def __rshift__(self, other: _Bits | int) -> _Bits:
        return self._with("arith.shrui", other)

    def least(self, other: _Bits | int) -> _Bits:
        return self._with("arith.minui", other)

    def most(self, other: _Bits | int) -> _Bits:
        return self._with("arith.maxui", other)

    def _with(self, name: str, other: _Bits | int) -> _Bits:
        return _Bits(ops.binary(name, self.value, self.like(other).value))

    def like(self, other: _Bits | int) -> _Bits:
        """`other` as a value of the same type; a number is in each element."""
        return other if isinstance(other, _Bits) else _Bits(_splat(self.value.type, other))

    def is_(self, predicate: str, other: _Bits | int) -> _Bits:
        """`arith.cmpi` with a predicate (eq, ne, ult, ugt, ...). The result has one bit each."""
        return _Bits(compare_values(predicate, self.value, self.like(other).value))

    def choose(self, yes: _Bits | int, no: _Bits) -> _Bits:
        """For values of one bit: `yes` where it is set, else `no`."""
        chosen = ops.create(
            "arith.select", [self.value, no.like(yes).value, no.value], [no.value.type]
        )
        return _Bits(chosen.result)

    def widened(self, width: int) -> _Bits:
        type_ = ops.with_element_type(self.value.type, ops.integer(width))
        return _Bits(ops.unary("arith.extui", self.value, type_))

    def as_integer(self, like: _Bits) -> _Bits:
        """For values of one bit: 0 or 1, as wide as `like`."""
        return _Bits(ops.unary("arith.extui", self.value, like.value.type))

    def as_float(self, type_: Any) -> Any:
        """The float with these bits, truncated to the width of the type."""
        width = ops.element_type(type_).width
        narrow, value = ops.integer(width), self.value
        if width < ops.element_type(value.type).width:
            value = ops.unary("arith.trunci", value, ops.with_element_type(value.type, narrow))
        return ops.unary("arith.bitcast", value, type_)


def _bits_of(value: Any) -> _Bits:
    width = ops.element_type(value.type).width
    type_ = ops.with_element_type(value.type, ops.integer(width))
    return _Bits(ops.unary("arith.bitcast", value, type_))


def _splat(type_: Any, number: float) -> Any:
    return Builder().constant(number, type_)


def _convert(value: Any, type_: Any) -> Any:
    """Converts between floats of 16 bits or more, exactly or rounded to nearest even."""
    return Builder().convert(value, type_)


# --- To f32: exact ---------------------------------------------------------------------------


def _extend(value: Any, type_: Any) -> Any:
    """A small float as a float of `type_`; as f32 if `type_` is a small float, too."""
    name = ops.element_name(value.type)
    if ops.element_name(type_) in SMALL_FLOATS:
        type_ = ops.with_element_type(type_, ir.F32Type.get())
    if name in FLOAT8:
        return Builder().widen_float8(value, type_)
    wide = ops.with_element_type(type_, ir.F32Type.get())
    bits = _bits_of(value).widened(32)
    if name == _POWER:
        exact = bits.is_("eq", 0).choose(_SMALLEST_POWER, bits << 23)
        return _convert(bits.is_("eq", 0xFF).choose(_NAN, exact).as_float(wide), type_)
    form = FORMATS[name]
    magnitude = bits & (form.sign - 1)
    sign = (bits & form.sign) << (31 - form.exponent - form.mantissa)
    # Subnormal numbers are computed as scaled integers. Subnormal numbers of f32, which some
    # threads flush to zero, do not occur.
    unit = 2.0 ** (1 - form.bias - form.mantissa)
    scaled = ops.unary("arith.uitofp", magnitude.value, wide)
    subnormal = _bits_of(ops.binary("arith.mulf", scaled, _splat(wide, unit)))
    normal = (magnitude << (23 - form.mantissa)) + ((127 - form.bias) << 23)
    exact = magnitude.is_("ult", 1 << form.mantissa).choose(subnormal, normal) | sign
    if form.specials is Specials.IEEE:
        exact = magnitude.is_("uge", form.infinity).choose(sign | _INFINITY, exact)
        exact = magnitude.is_("ugt", form.infinity).choose(sign | _NAN, exact)
    elif form.specials is Specials.NAN_ALL_ONES:
        exact = magnitude.is_("uge", form.infinity).choose(sign | _NAN, exact)
    elif form.specials is Specials.NAN_NEGATIVE_ZERO:
        exact = bits.is_("eq", form.sign).choose(_NAN, exact)
    return _convert(exact.as_float(wide), type_)


# --- From f32 or f64: rounded ----------------------------------------------------------------


def _truncate(value: Any, type_: Any, rounding: Rounding, conversions: Conversions | None) -> Any:
    if ops.element_name(value.type) not in _WIDE:
        value = _convert(value, ops.with_element_type(value.type, ir.F32Type.get()))
    name = ops.element_name(type_)
    magnitude, is_negative, wide = _parts(value)
    if name == _POWER:
        encoded = _encode_power(magnitude, is_negative, wide, rounding)
    else:
        encoded = _encode(magnitude, is_negative, wide, FORMATS[name], rounding)
    result = encoded.as_float(type_)
    is_asked = ops.element_name(value.type) == "f32" and rounding is Rounding.TO_NEAREST_EVEN
    return result if conversions is None or not is_asked else conversions.narrow(value, result)


def _parts(value: Any) -> tuple[_Bits, _Bits, _Wide]:
    """The magnitude bits of an f32 or f64, whether it is negative, and its format."""
    wide = _WIDE[ops.element_name(value.type)]
    bits = _bits_of(value)
    return bits & (wide.sign - 1), (bits >> wide.width - 1).is_("ne", 0), wide


def _encode(
    magnitude: _Bits, is_negative: _Bits, wide: _Wide, form: Format, rounding: Rounding
) -> _Bits:
    exponent = magnitude >> wide.mantissa
    fraction = magnitude & (wide.hidden - 1)
    significand = exponent.is_("eq", 0).choose(fraction, fraction | wide.hidden)
    # The last bit that is kept is the one of the exponent, or that of subnormal numbers if it is
    # larger. A value below half of it rounds like any other that is not 0.
    least = wide.bias - form.bias + 1
    raised = exponent.most(least) - least
    dropped = wide.mantissa - form.mantissa
    if form.bias == wide.bias:
        exponent = exponent.most(1)  # for subnormal numbers
    shift = (exponent.like(least + dropped) - exponent.least(least)).least(wide.mantissa + 2)
    encoded = (raised << form.mantissa) + _rounded(significand, shift, is_negative, rounding)
    largest = form.infinity - 1
    if form.specials is Specials.NONE:
        encoded = encoded.least(largest)
    else:
        infinity = form.infinity if form.specials is not Specials.NAN_NEGATIVE_ZERO else form.sign
        overflow = encoded.like(infinity)
        if rounding is Rounding.TOWARD_ZERO:
            overflow = encoded.like(largest)
        elif rounding is Rounding.DOWNWARD:
            overflow = is_negative.choose(infinity, encoded.like(largest))
        elif rounding is Rounding.UPWARD:
            overflow = is_negative.choose(largest, encoded.like(infinity))
        encoded = encoded.is_("ugt", largest).choose(overflow, encoded)
        encoded = magnitude.is_("eq", wide.infinity).choose(infinity, encoded)
        nan = infinity
        if form.specials is Specials.IEEE:
            nan |= 1 << (form.mantissa - 1)
        encoded = magnitude.is_("ugt", wide.infinity).choose(nan, encoded)
    signed = is_negative.choose(encoded | form.sign, encoded)
    if form.specials is Specials.NAN_NEGATIVE_ZERO:
        return encoded.is_("eq", 0).choose(0, signed)
    if form.specials is Specials.NONE:
        return magnitude.is_("ugt", wide.infinity).choose(largest, signed)
    return signed


def _rounded(significand: _Bits, shift: _Bits, is_negative: _Bits, rounding: Rounding) -> _Bits:
    """The significand without its last `shift` bits, rounded. `shift` is at least 1."""
    kept = significand >> shift
    rest = significand - (kept << shift)
    if rounding is Rounding.TOWARD_ZERO:
        return kept
    if rounding in (Rounding.DOWNWARD, Rounding.UPWARD):
        up = rest.is_("ne", 0).as_integer(kept)
        none = kept.like(0)
        down = rounding is Rounding.DOWNWARD
        return kept + (is_negative.choose(up, none) if down else is_negative.choose(none, up))
    half = kept.like(1) << (shift - 1)
    if rounding is Rounding.TO_NEAREST_AWAY:
        return kept + rest.is_("uge", half).as_integer(kept)
    # A tie rounds to even.
    return kept + (rest + (kept & 1)).is_("ugt", half).as_integer(kept)


def _encode_power(magnitude: _Bits, is_negative: _Bits, wide: _Wide, rounding: Rounding) -> _Bits:
    """The nearest power of two; a tie rounds up. Zero and smaller numbers give 2^-127, as in MLIR's
    folding; infinities and negative numbers give NaN."""
    exponent = magnitude >> wide.mantissa
    fraction = magnitude & (wide.hidden - 1)
    if wide.bias == _POWER_BIAS:
        # Numbers between 2^-127 and 2^-126 are subnormal.
        is_subnormal = exponent.is_("eq", 0)
        shifted = (fraction.most(wide.hidden >> 1) - (wide.hidden >> 1)) << 1
        fraction = is_subnormal.choose(shifted, fraction)
    else:
        least = wide.bias - _POWER_BIAS
        fraction = exponent.is_("ult", least).choose(0, fraction)
        exponent = exponent.most(least) - least
    encoded = exponent
    if rounding is Rounding.UPWARD:
        encoded += fraction.is_("ne", 0).as_integer(encoded)
    elif rounding in (Rounding.TO_NEAREST_EVEN, Rounding.TO_NEAREST_AWAY):
        encoded += fraction.is_("uge", wide.hidden >> 1).as_integer(encoded)
    encoded = encoded.least(0xFF)
    is_number = magnitude.is_("eq", 0)
    return is_number.choose(encoded, is_negative.choose(0xFF, encoded))
