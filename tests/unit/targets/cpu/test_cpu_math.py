"""Arithmetic on the CPU device: NumPy's numbers, in every type."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, compile_ir, gpu_module

Array = np.ndarray[Any, Any]

TYPES = ("f16", "bf16", "f32", "f64")
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
# Distance of 1 to the next number.
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}


def from_f64(values: Array, type_: str) -> Array:
    """`values`, which fit into f32 where the type is bf16, rounded to an MLIR type.

    NumPy has no bf16: its bits as uint16 stand for it.
    """
    if type_ != "bf16":
        with np.errstate(over="ignore"):
            return values.astype(DTYPES[type_])
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def to_f64(values: Array, type_: str) -> Array:
    if type_ == "bf16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


# Operation: what NumPy computes in f64.
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "absf": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
# Exact in every type: no rounding at all.
EXACT = {"absf", "ceil", "floor", "round", "roundeven", "trunc"}
POINTS = np.array(
    [1e-6, -1e-5, 1e-3, 0.1, -0.25, 0.5, -0.7, 0.999, 1.0, 1.5, 2.5, -2.5, 3.7, 9.0, 0.0, -0.0]
)

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "math.atan2": np.arctan2,
    "math.copysign": np.copysign,
    "math.powf": np.power,
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
}
CLASSES: dict[str, Callable[[Array, Array], Array]] = {
    "isnan": lambda x, tiny: np.isnan(x),
    "isinf": lambda x, tiny: np.isinf(x),
    "isfinite": lambda x, tiny: np.isfinite(x),
    "isnormal": lambda x, tiny: np.isfinite(x) & (np.abs(x) >= tiny),
}
TINY = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


def _elementwise(name: str, inputs: list[str], output: str, body: str) -> str:
    """A kernel whose thread reads %0, %1, ... at its place and stores %r there."""
    parameters = [f"%a{i}: memref<?x{type_}>" for i, type_ in enumerate(inputs)]
    loads = [f"%v{i} = memref.load %a{i}[%x] : memref<?x{t}>" for i, t in enumerate(inputs)]
    return "\n".join(
        [
            f"gpu.func @{name}({', '.join([*parameters, f'%out: memref<?x{output}>'])}) kernel {{",
            "%x = gpu.thread_id x",
            *loads,
            body,
            f"memref.store %r, %out[%x] : memref<?x{output}>",
            "gpu.return",
            "}",
        ]
    )


def _vector_form(operation: str, type_: str) -> str:
    """The operation on a vector of two dimensions, of which one element counts."""
    vector = f"vector<2x3x{type_}>"
    return f"""
    %v = vector.broadcast %v0 : {type_} to {vector}
    %w = {operation} %v : {vector}
    %r = vector.extract %w[1, 2] : {type_} from {vector}"""


def _float_kernels(type_: str) -> list[str]:
    t = type_
    kernels = [
        _elementwise(f"{name}_{t}", [t], t, f"%r = math.{name} %v0 : {t}") for name in FUNCTIONS
    ]
    kernels += [
        _elementwise(f"vector_{name}_{t}", [t], t, _vector_form(f"math.{name}", t))
        for name in FUNCTIONS
    ]
    kernels += [
        _elementwise(f"{name.split('.')[1]}_{t}", [t, t], t, f"%r = {name} %v0, %v1 : {t}")
        for name in BINARY
    ]
    kernels += [
        _elementwise(f"{name}_{t}", [t], "i1", f"%r = math.{name} %v0 : {t}") for name in CLASSES
    ]
    kernels += [
        _elementwise(f"fma_{t}", [t] * 3, t, f"%r = math.fma %v0, %v1, %v2 : {t}"),
        _elementwise(f"clampf_{t}", [t] * 3, t, f"%r = math.clampf %v0 to [%v1, %v2] : {t}"),
        _elementwise(f"sin_of_{t}", [t], t, f"%r, %cos = math.sincos %v0 : {t}"),
        _elementwise(f"cos_of_{t}", [t], t, f"%sin, %r = math.sincos %v0 : {t}"),
        _elementwise(f"fpowi_{t}", [t, "i32"], t, f"%r = math.fpowi %v0, %v1 : {t}, i32"),
        _elementwise(
            f"twice_{t}", [t], t, f"%s = arith.addf %v0, %v0 : {t}\n%r = math.exp %s : {t}"
        ),
    ]
    return kernels


INTEGER_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "floordivsi": np.floor_divide,
    "ceildivsi": lambda a, b: -(-a // b),
    "divsi": lambda a, b: np.trunc(a / b).astype(a.dtype),
    "remsi": np.fmod,
}
INDEX_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordivs": np.floor_divide,
    "ceildivs": lambda a, b: -(-a // b),
    "divs": lambda a, b: np.trunc(a / b).astype(a.dtype),
    "rems": np.fmod,
    "maxs": np.maximum,
    "mins": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
BITS: dict[str, Callable[[int], int]] = {
    "ctlz": lambda v: 32 - v.bit_length(),
    "cttz": lambda v: 32 if v == 0 else (v & -v).bit_length() - 1,
    "ctpop": lambda v: v.bit_count(),
}
COMPLEX: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "neg": np.negative,
    "conj": np.conjugate,
    "sign": lambda z: z / np.abs(z),
}
COMPLEX_BINARY = {"add", "sub", "mul", "div", "pow"}


def _complex_kernel(name: str, type_: str) -> str:
    c = f"complex<{type_}>"
    inputs = ["%v0", "%v1"] if name in COMPLEX_BINARY else ["%v0"]
    body = f"%r = complex.{name} {', '.join(inputs)} : {c}"
    return _elementwise(f"c_{name}_{type_}", [c] * len(inputs), c, body)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    kernels = [kernel for type_ in TYPES for kernel in _float_kernels(type_)]
    kernels += [
        _elementwise(f"{name}_i32", ["i32"] * 2, "i32", f"%r = arith.{name} %v0, %v1 : i32")
        for name in INTEGER_BINARY
    ]
    kernels += [
        _elementwise(f"index_{name}", ["index"] * 2, "index", f"%r = index.{name} %v0, %v1")
        for name in INDEX_BINARY
    ]
    kernels += [
        _elementwise(f"{name}_i32", ["i32"], "i32", f"%r = math.{name} %v0 : i32")
        for name in (*BITS, "absi")
    ]
    kernels += [
        _elementwise("ipowi_i32", ["i32"] * 2, "i32", "%r = math.ipowi %v0, %v1 : i32"),
        _elementwise("wide_bf16", ["f64"], "bf16", "%r = arith.truncf %v0 : f64 to bf16"),
        _elementwise("narrow_bf16", ["f32"], "bf16", "%r = arith.truncf %v0 : f32 to bf16"),
        _elementwise("wide_f16", ["f64"], "f16", "%r = arith.truncf %v0 : f64 to f16"),
        _elementwise("from_i32_bf16", ["i32"], "bf16", "%r = arith.sitofp %v0 : i32 to bf16"),
        _elementwise("to_i32_bf16", ["bf16"], "i32", "%r = arith.fptosi %v0 : bf16 to i32"),
        _elementwise(
            "extended", ["i32"] * 2, "i1", "%s, %r = arith.addui_extended %v0, %v1 : i32, i1"
        ),
        _elementwise("high", ["i32"] * 2, "i32", "%l, %r = arith.mulsi_extended %v0, %v1 : i32"),
        _elementwise("unsigned", ["i8"], "f32", "%r = arith.uitofp %v0 : i8 to f32"),
        _elementwise(
            "poison",
            ["i32"],
            "i32",
            "%p = ub.poison : i32\n%z = arith.constant 0 : i32\n"
            "%c = arith.cmpi sge, %v0, %z : i32\n%r = arith.select %c, %v0, %z : i32",
        ),
    ]
    kernels += [_complex_kernel(name, type_) for name in COMPLEX for type_ in ("f32", "f64")]
    return CpuDevice(gpu_module(*kernels), tmp_path_factory.mktemp("math"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("target", ["x86_64-linux-gnu.2.28", "aarch64-linux-gnu.2.28"])
def test_nothing_but_the_c_library_is_needed(
    device: CpuDevice, tmp_path: Path, target: str, optimization: str
) -> None:
    """Kernels of every type and function link against libc and libm of both host targets."""
    options = ["-target", target, optimization, "-shared", "-Wl,-z,defs", "-lm"]
    path, _ = compile_ir(device.text, tmp_path, "all.so", *options)
    assert path.read_bytes().startswith(b"\x7fELF")


def _check(got: Array, expected: Array, type_: str, *, exact: bool, what: str) -> None:
    rounded = to_f64(from_f64(expected, type_), type_)
    got = to_f64(got, type_)
    if exact:
        np.testing.assert_array_equal(got, rounded, err_msg=what)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(rounded), err_msg=what)
    else:
        # A few units in the last place in f64, where NumPy itself rounds; one elsewhere.
        tolerance = EPSILON[type_] * (4 if type_ == "f64" else 1.01)
        tiny = 2.0**-24 if type_ == "f16" else 0.0
        np.testing.assert_allclose(got, rounded, rtol=tolerance, atol=tiny, err_msg=what)


@pytest.mark.parametrize("form", ["", "vector_"])
@pytest.mark.parametrize("type_", TYPES)
def test_functions_of_one_number(device: CpuDevice, type_: str, form: str) -> None:
    """Every function of the math dialect is right to the last place, near 0 too."""
    inputs = from_f64(POINTS, type_)
    for name, function in FUNCTIONS.items():
        out = np.zeros_like(inputs)
        device.run(f"{form}{name}_{type_}", 1, len(inputs), inputs, out)
        with np.errstate(all="ignore"):
            expected = function(to_f64(inputs, type_))
        _check(out, expected, type_, exact=name in EXACT, what=name)


@pytest.mark.parametrize("type_", TYPES)
def test_functions_of_two_numbers(device: CpuDevice, type_: str) -> None:
    """Arithmetic rounds once, NaN included; f16 and bf16 do so after every operation."""
    values = np.array([1.0, -2.5, 3.1, 0.1, 7.0, -0.3, np.nan, np.inf, 0.0])
    a, b = (from_f64(part.ravel(), type_) for part in np.meshgrid(values, values))
    for name, function in BINARY.items():
        out = np.zeros_like(a)
        device.run(f"{name.split('.')[1]}_{type_}", 1, len(a), a, b, out)
        x, y = to_f64(a, type_), to_f64(b, type_)
        with np.errstate(all="ignore"):
            expected = function(x, y)
        exact = name.startswith("arith.") and name not in ("arith.maxnumf", "arith.minnumf")
        if exact:
            # The sign of a NaN is nobody's promise.
            is_nan = np.isnan(expected)
            assert np.isnan(to_f64(out, type_)[is_nan]).all(), name
            out[is_nan], expected[is_nan] = 0, 0
            expected[(expected == 0) & ~is_nan] = to_f64(out, type_)[(expected == 0) & ~is_nan]
        _check(out, expected, type_, exact=exact, what=name)


@pytest.mark.parametrize("type_", TYPES)
def test_kinds_of_numbers(device: CpuDevice, type_: str) -> None:
    """isnan, isinf, isfinite, isnormal ask in the type itself: its subnormals are not normal."""
    tiny = TINY[type_]
    values = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, tiny, tiny / 2, -tiny / 2, -tiny]
    inputs = from_f64(np.array(values), type_)
    for name, function in CLASSES.items():
        out = np.zeros(len(inputs), np.bool_)
        device.run(f"{name}_{type_}", 1, len(inputs), inputs, out)
        np.testing.assert_array_equal(out, function(to_f64(inputs, type_), tiny), err_msg=name)


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_fma_in_narrow_types_rounds_once(device: CpuDevice, type_: str) -> None:
    """Sums that f32 would round to the middle between two narrow numbers round right."""
    bits = 11 if type_ == "f16" else 8
    # 1.5 b is in the middle between two numbers from 2 to 4, and f32 does not see so small a c.
    unit = 2.0 ** (1 - bits)
    odd = np.arange(int(0.4 / unit) | 1, int(0.6 / unit), 2)
    b = np.repeat(1 + 2 * odd * unit, 3)
    b = b[b < 2]
    c = np.resize([2.0**-24, 0.0, -(2.0**-24)], len(b))
    inputs = [from_f64(part, type_) for part in (np.full(len(b), 1.5), b, c)]
    out = np.zeros_like(inputs[0])
    device.run(f"fma_{type_}", 1, len(b), *inputs, out)
    exact = 1.5 * b + c
    assert (exact.astype(np.float32) != exact).any()
    expected = _f64_to_bf16(exact) if type_ == "bf16" else exact.astype(np.float16)
    np.testing.assert_array_equal(out, expected)


def _f64_to_bf16(values: Array) -> Array:
    """Rounds once, ties to even; the bits."""
    bits = values.view(np.uint64)
    upper = bits >> np.uint64(45)  # 7 bits of fraction are left
    rest = bits & np.uint64((1 << 45) - 1)
    middle = np.uint64(1 << 44)
    upper = upper + ((rest > middle) | ((rest == middle) & ((upper & np.uint64(1)) == 1)))
    rounded = (upper << np.uint64(45)).view(np.float64)
    return (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def test_rounding_to_bf16(device: CpuDevice) -> None:
    """f32 and f64 round to the nearest bf16, ties to even, once; NaN stays NaN."""
    rng = np.random.default_rng(5)
    middles = (np.arange(0x3F80, 0x4000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    wide = np.concatenate(
        [
            rng.standard_normal(300),
            middles.astype(np.float64) * (1 + 2.0**-40),
            middles.astype(np.float64) * (1 - 2.0**-40),
            middles.astype(np.float64),
            -middles.astype(np.float64) * (1 + 2.0**-40),
        ]
    )
    out = np.zeros(len(wide), np.uint16)
    device.run("wide_bf16", 1, len(wide), wide, out)
    np.testing.assert_array_equal(out, _f64_to_bf16(wide))
    narrow = wide.astype(np.float32)
    device.run("narrow_bf16", 1, len(narrow), narrow, out)
    np.testing.assert_array_equal(out, from_f64(narrow, "bf16"))
    special = np.array([np.nan, np.inf, -np.inf, 1e39, -1e300, 1e-300, 0.0, -0.0])
    expected = np.array([0x7FC0, 0x7F80, 0xFF80, 0x7F80, 0xFF80, 0, 0, 0x8000], np.uint16)
    out = np.zeros(len(special), np.uint16)
    device.run("wide_bf16", 1, len(special), special, out)
    np.testing.assert_array_equal(out, expected)


def test_conversions(device: CpuDevice) -> None:
    """Between f64 and f16, integers and bf16, unsigned bytes and f32."""
    rng = np.random.default_rng(7)
    wide = rng.standard_normal(500) * 100
    out16 = np.zeros(500, np.float16)
    device.run("wide_f16", 1, 500, wide, out16)
    np.testing.assert_array_equal(out16, wide.astype(np.float16))
    numbers = rng.integers(-1000, 1000, 500).astype(np.int32)
    bf16 = np.zeros(500, np.uint16)
    device.run("from_i32_bf16", 1, 500, numbers, bf16)
    np.testing.assert_array_equal(bf16, from_f64(numbers.astype(np.float64), "bf16"))
    back = np.zeros(500, np.int32)
    device.run("to_i32_bf16", 1, 500, bf16, back)
    np.testing.assert_array_equal(back, to_f64(bf16, "bf16").astype(np.int32))
    bytes_ = np.arange(256, dtype=np.uint8)
    floats = np.zeros(256, np.float32)
    device.run("unsigned", 1, 256, bytes_, floats)
    np.testing.assert_array_equal(floats, bytes_.astype(np.float32))


@pytest.mark.parametrize("type_", TYPES)
def test_clamp_sincos_powers(device: CpuDevice, type_: str) -> None:
    """clampf, both results of sincos, and integer powers, negative ones too."""
    x = from_f64(np.array([-2.0, -0.5, 0.25, 0.75, 3.0]), type_)
    values = to_f64(x, type_)
    low, high = (from_f64(np.full(5, limit), type_) for limit in (-1.0, 1.5))
    out = np.zeros_like(x)
    device.run(f"clampf_{type_}", 1, 5, x, low, high, out)
    _check(out, np.clip(values, -1.0, 1.5), type_, exact=True, what="clampf")
    device.run(f"sin_of_{type_}", 1, 5, x, out)
    _check(out, np.sin(values), type_, exact=False, what="sin")
    device.run(f"cos_of_{type_}", 1, 5, x, out)
    _check(out, np.cos(values), type_, exact=False, what="cos")
    for exponent in (0, 1, 2, 7, -1, -3):
        device.run(f"fpowi_{type_}", 1, 5, x, np.full(5, exponent, np.int32), out)
        _check(out, values**exponent, type_, exact=False, what=f"fpowi {exponent}")


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_narrow_types_round_between_operations(device: CpuDevice, type_: str) -> None:
    """exp(x + x) sees the sum in the narrow type, not the wider one it was computed in."""
    x = from_f64(np.linspace(0.1, 2.0, 64), type_)
    out = np.zeros_like(x)
    device.run(f"twice_{type_}", 1, 64, x, out)
    doubled = to_f64(from_f64(2 * to_f64(x, type_), type_), type_)
    _check(out, np.exp(doubled), type_, exact=False, what="exp of sum")


def test_integers(device: CpuDevice) -> None:
    """i32 wraps; divisions round as their names say; bits are counted, those of 0 too."""
    rng = np.random.default_rng(11)
    a = rng.integers(-(2**31), 2**31, 200).astype(np.int32)
    b = rng.integers(1, 1000, 200).astype(np.int32) * rng.choice([-1, 1], 200).astype(np.int32)
    out = np.zeros_like(a)
    for name, function in INTEGER_BINARY.items():
        device.run(f"{name}_i32", 1, 200, a, b, out)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(out, function(a, b), err_msg=name)
    bits = np.concatenate([a[:50], np.array([0, 1, -1, -(2**31)], np.int32)])
    counted = np.zeros_like(bits)
    for name, count in BITS.items():
        device.run(f"{name}_i32", 1, len(bits), bits, counted)
        expected = [count(int(value) & 0xFFFFFFFF) for value in bits]
        np.testing.assert_array_equal(counted, expected, err_msg=name)
    device.run("absi_i32", 1, len(a), a, out)
    np.testing.assert_array_equal(out, np.abs(a))
    small, powers = np.array([3, -2, 1, 0, 7], np.int32), np.array([5, 3, -4, 2, 0], np.int32)
    power = np.zeros(5, np.int32)
    device.run("ipowi_i32", 1, 5, small, powers, power)
    np.testing.assert_array_equal(power, [243, -8, 1, 0, 1])


def test_wide_results_and_poison(device: CpuDevice) -> None:
    """Carries, high halves of products; a poison that nobody uses harms nobody."""
    a = np.array([0x7FFFFFFF, -1, 5, 0x40000000], np.int32)
    b = np.array([1, 1, -7, 8], np.int32)
    carry = np.zeros(4, np.bool_)
    device.run("extended", 1, 4, a, b, carry)
    np.testing.assert_array_equal(carry, [False, True, False, False])
    high = np.zeros(4, np.int32)
    device.run("high", 1, 4, a, b, high)
    np.testing.assert_array_equal(high, (a.astype(np.int64) * b) >> 32)
    out = np.full(4, 9, np.int32)
    device.run("poison", 1, 4, a, out)
    np.testing.assert_array_equal(out, np.maximum(a, 0))


def test_index_dialect(device: CpuDevice) -> None:
    """index is 64 bits wide."""
    rng = np.random.default_rng(13)
    a = rng.integers(-(2**40), 2**40, 100)
    b = rng.integers(1, 2**20, 100) * rng.choice([-1, 1], 100)
    out = np.zeros_like(a)
    for name, function in INDEX_BINARY.items():
        device.run(f"index_{name}", 1, 100, a, b, out)
        np.testing.assert_array_equal(out, function(a, b), err_msg=name)


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_complex_numbers(device: CpuDevice, type_: str) -> None:
    """The complex dialect, in memory as C and NumPy lay it out."""
    dtype = np.complex64 if type_ == "f32" else np.complex128
    a = np.array([1 + 2j, -0.5 + 0.25j, 2 - 1j, 0.1 + 0.1j, -1.5 - 0.5j], dtype)
    b = np.array([0.5 - 1j, 2 + 1j, -1 + 0.5j, 1.5 + 0j, 0.25 + 2j], dtype)
    tolerance = 1e-5 if type_ == "f32" else 1e-13
    for name, function in COMPLEX.items():
        inputs = [a, b] if name in COMPLEX_BINARY else [a]
        out = np.zeros_like(a)
        device.run(f"c_{name}_{type_}", 1, 5, *inputs, out)
        np.testing.assert_allclose(out, function(*inputs), rtol=tolerance, err_msg=name)
