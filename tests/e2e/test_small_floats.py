"""Floats of 4, 6 and 8 bits on the CPU: conversions and arithmetic of all formats, as ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import aotc

# By MLIR's name: ml_dtypes', and the bits.
FORMATS: dict[str, tuple[Any, int]] = {
    "f8E5M2": (ml_dtypes.float8_e5m2, 8),
    "f8E4M3": (ml_dtypes.float8_e4m3, 8),
    "f8E3M4": (ml_dtypes.float8_e3m4, 8),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 8),
    "f8E5M2FNUZ": (ml_dtypes.float8_e5m2fnuz, 8),
    "f8E4M3FNUZ": (ml_dtypes.float8_e4m3fnuz, 8),
    "f8E4M3B11FNUZ": (ml_dtypes.float8_e4m3b11fnuz, 8),
    "f8E8M0FNU": (ml_dtypes.float8_e8m0fnu, 8),
    "f6E2M3FN": (ml_dtypes.float6_e2m3fn, 6),
    "f6E3M2FN": (ml_dtypes.float6_e3m2fn, 6),
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 4),
}
WITHOUT_NAN = ("f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
MODES = ("downward", "upward", "toward_zero", "to_nearest_away")
ENTRY = "attributes {llvm.emit_c_interface}"


def from_byte(name: str, bits: int, shape: str = "") -> str:
    """`%byte` of i8 → `%small` of the format."""
    of = (lambda element: f"vector<{shape}x{element}>") if shape else str
    whole = "" if bits == 8 else f"%bits = arith.trunci %byte : {of('i8')} to {of(f'i{bits}')}"
    given = "%byte" if bits == 8 else "%bits"
    return f"{whole}\n    %small = arith.bitcast {given} : {of(f'i{bits}')} to {of(name)}"


def to_byte(name: str, bits: int, value: str, shape: str = "") -> str:
    """`value` of the format → `%result` of i8."""
    of = (lambda element: f"vector<{shape}x{element}>") if shape else str
    cast = f"arith.bitcast {value} : {of(name)} to {of(f'i{bits}')}"
    if bits == 8:
        return f"%result = {cast}"
    return f"%narrow = {cast}\n    %result = arith.extui %narrow : {of(f'i{bits}')} to {of('i8')}"


def kernel(name: str, source: str, target: str, body: str) -> str:
    """An entry with a kernel: for each element `%x` of the first buffer, `%result` is written."""
    return f"""
func.func @{name}(%xs: memref<?x{source}>, %ys: memref<?x{target}>) {ENTRY} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %xs, %c0 : memref<?x{source}>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %byte = memref.load %xs[%i] : memref<?x{source}>
    {body}
    memref.store %result, %ys[%i] : memref<?x{target}>
  }}
  return
}}
"""


def vectors(name: str, source: str, target: str, body: str) -> str:
    """An entry on the host, by vectors of 8."""
    return f"""
func.func @{name}(%xs: memref<?x{source}>, %ys: memref<?x{target}>) {ENTRY} {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %xs, %c0 : memref<?x{source}>
  scf.for %i = %c0 to %n step %c8 {{
    %byte = vector.load %xs[%i] : memref<?x{source}>, vector<8x{source}>
    {body}
    vector.store %result, %ys[%i] : memref<?x{target}>, vector<8x{target}>
  }}
  return
}}
"""


def conversions(name: str, bits: int) -> str:
    widen = f"{from_byte(name, bits)}\n    %result = arith.extf %small : {name} to f32"
    narrow = f"%t = arith.truncf %byte : f32 to {name}\n    {to_byte(name, bits, '%t')}"
    from_f64 = (
        f"%t = arith.truncf %byte : vector<8xf64> to vector<8x{name}>\n"
        f"    {to_byte(name, bits, '%t', '8')}"
    )
    double = (
        f"{from_byte(name, bits, '8')}\n"
        f"    %sum = arith.addf %small, %small : vector<8x{name}>\n"
        f"    {to_byte(name, bits, '%sum', '8')}"
    )
    flush = (
        f"{from_byte(name, bits)}\n    %flushed = arith.flush_denormals %small : {name}\n"
        f"    {to_byte(name, bits, '%flushed')}"
    )
    return (
        kernel(f"widen_{name}", "i8", "f32", widen)
        + kernel(f"flush_{name}", "i8", "i8", flush)
        + kernel(f"narrow_{name}", "f32", "i8", narrow)
        + vectors(f"narrow_f64_{name}", "f64", "i8", from_f64)
        + vectors(f"double_{name}", "i8", "i8", double)
    )


def rounding(mode: str) -> str:
    body = f"%t = arith.truncf %byte {mode} : f32 to f8E4M3FN\n    "
    return kernel(f"narrow_{mode}", "f32", "i8", body + to_byte("f8E4M3FN", 8, "%t"))


# Source, result: kernels round the former, vectors of the host the latter.
WIDER: dict[str, tuple[str, Any]] = {
    "f16": ("f32", np.float16),
    "f32": ("f64", np.float32),
    "bf16": ("f32", ml_dtypes.bfloat16),
}


def wider_rounding(mode: str) -> str:
    return "".join(
        vectors(
            f"narrow_{mode}_{name}",
            source,
            name,
            f"%result = arith.truncf %byte {mode} : vector<8x{source}> to vector<8x{name}>",
        )
        if name == "bf16"
        else kernel(
            f"narrow_{mode}_{name}",
            source,
            name,
            f"%result = arith.truncf %byte {mode} : {source} to {name}",
        )
        for name, (source, _) in WIDER.items()
    )


SCALING = kernel(
    "scaled",
    "f32",
    "f32",
    """%scale = arith.constant 4.0 : f8E8M0FNU
    %q = arith.scaling_truncf %byte, %scale : f32, f8E8M0FNU to f4E2M1FN
    %result = arith.scaling_extf %q, %scale : f4E2M1FN, f8E8M0FNU to f32""",
)
ROOT = kernel(
    "root",
    "i8",
    "i8",
    f"""{from_byte("f8E5M2", 8)}
    %root = math.sqrt %small : f8E5M2
    {to_byte("f8E5M2", 8, "%root")}""",
)
SQUARE_AND_ADD = vectors(
    "square_and_add",
    "i8",
    "i8",
    f"""{from_byte("f8E4M3", 8, "8")}
    %sum = math.fma %small, %small, %small : vector<8xf8E4M3>
    {to_byte("f8E4M3", 8, "%sum", "8")}""",
)


TO_INTEGER = "".join(
    kernel(
        f"to_{kind}",
        "i8",
        "i8",
        f"""{from_byte("f8E4M3FN", 8)}
    %integer = arith.fpto{kind} %small : f8E4M3FN to i4
    %result = arith.ext{kind} %integer : i4 to i8""",
    )
    for kind in ("si", "ui")
)
FLUSH = kernel("flush_f16", "f16", "f16", "%result = arith.flush_denormals %byte : f16")
FLUSH += vectors("flush_f32", "f32", "f32", "%result = arith.flush_denormals %byte : vector<8xf32>")
# Between formats of one width.
SAME_WIDTH = kernel("to_bf16", "f16", "bf16", "%result = arith.convertf %byte : f16 to bf16")
SAME_WIDTH += vectors(
    "to_f16", "bf16", "f16", "%result = arith.convertf %byte : vector<8xbf16> to vector<8xf16>"
)
SAME_WIDTH += kernel(
    "to_f8E5M2",
    "i8",
    "i8",
    from_byte("f8E4M3FN", 8)
    + "\n    %t = arith.convertf %small : f8E4M3FN to f8E5M2\n    "
    + to_byte("f8E5M2", 8, "%t"),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    text = "".join(conversions(name, bits) for name, (_, bits) in FORMATS.items())
    text += "".join(rounding(mode) + wider_rounding(mode) for mode in MODES)
    text += SCALING + ROOT + SQUARE_AND_ADD + FLUSH + TO_INTEGER + SAME_WIDTH
    folder: Path = tmp_path_factory.mktemp("small_floats")
    artifact = aotc.build(
        text, name="small", emit="shared", out=folder / "libsmall.so", chips="sm_80", optimization=1
    )
    return aotc.load(artifact)


def call(library: Any, name: str, given: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    result = np.zeros(given.shape, dtype)
    getattr(library, name)(given, result)
    return result


def every(name: str) -> np.ndarray[Any, Any]:
    """All numbers of a format."""
    dtype, bits = FORMATS[name]
    return np.arange(1 << bits, dtype=np.uint8).view(dtype)


def sweep(name: str, dtype: Any) -> np.ndarray[Any, Any]:
    """Each finite number, the middle between it and the next, what is just beside that, and what
    is too large or too small; a multiple of 8 of them."""
    exact = np.unique(every(name).astype(np.float64))
    exact = exact[np.isfinite(exact)].astype(dtype)
    ties = (exact[1:] + exact[:-1]) / dtype(2)
    largest = exact[-1]
    over = largest + (exact[-1] - exact[-2]) / dtype(2)
    with np.errstate(over="ignore"):
        edges = np.array([over, largest * 2, largest * 64, np.inf, np.nan, 1e-30], dtype)
    numbers = np.concatenate([exact, ties, edges])
    beside = [np.nextafter(numbers, dtype(to)) for to in (np.inf, -np.inf)]
    found = np.concatenate([numbers, *beside, -edges])
    return np.pad(found, (0, -found.size % 8)).astype(dtype)


def to_odd(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As f32, the odd one of the two neighbours of what is none: this can be rounded again.
    (ml_dtypes rounds f64 to nearest f32 first.)"""
    with np.errstate(over="ignore"):
        nearest = numbers.astype(np.float32)
    ends = np.where(nearest.astype(np.float64) < numbers, np.inf, -np.inf).astype(np.float32)
    is_even = nearest.view(np.uint32) % 2 == 0
    inexact = (nearest != numbers) & ~np.isnan(numbers)
    return np.where(inexact & is_even, np.nextafter(nearest, ends), nearest)


@pytest.mark.parametrize("name", FORMATS)
def test_every_value_is_widened_exactly(name: str, library: Any) -> None:
    numbers = every(name)
    got = call(library, f"widen_{name}", numbers.view(np.int8), np.float32)
    expected = numbers.astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("entry", ["narrow", "narrow_f64"])
@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded(name: str, entry: str, library: Any) -> None:
    dtype, _ = FORMATS[name]
    source = np.float32 if entry == "narrow" else np.float64
    numbers = sweep(name, source)
    if name in WITHOUT_NAN:
        numbers[np.isnan(numbers)] = 1
    if name == "f8E8M0FNU":
        # ml_dtypes makes NaN of 0, and rounds subnormal numbers of f32 up.
        numbers[np.abs(numbers) < 2.0**-126] = 1
    got = call(library, f"{entry}_{name}", numbers, np.int8).view(dtype)
    with np.errstate(over="ignore"):
        expected = to_odd(numbers).astype(dtype)
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    known = ~np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(got.view(np.uint8)[known], expected.view(np.uint8)[known])


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_numbers_of_one_width(library: Any) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    f16, bf16 = bits.view(np.float16), bits.view(ml_dtypes.bfloat16)
    got = call(library, "to_bf16", f16, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.astype(np.float32), f16.astype(bf16.dtype).astype(np.float32))
    got = call(library, "to_f16", bf16, np.float16)
    np.testing.assert_array_equal(got, bf16.astype(np.float16))
    small = every("f8E4M3FN")
    got = call(library, "to_f8E5M2", small.view(np.int8), np.int8).view(ml_dtypes.float8_e5m2)
    expected = small.astype(np.float32).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_nan_is_the_largest_number_where_there_is_none(name: str, library: Any) -> None:
    got = call(library, f"narrow_{name}", np.array([np.nan, -np.nan], np.float32), np.int8)
    largest = np.max(every(name).astype(np.float32))
    np.testing.assert_array_equal(got.view(FORMATS[name][0]).astype(np.float32), largest)


def test_powers_of_two_near_zero(library: Any) -> None:
    given = np.array([0, -0.0, 1.0, 1.49, 1.5, 1.51, 2.0], np.float64) * 2.0**-127
    expected = [0, 0, 0, 0, 1, 1, 1]
    for entry, dtype in (("narrow", np.float32), ("narrow_f64", np.float64)):
        padded = np.pad(given, (0, 1)).astype(dtype)
        got = call(library, f"{entry}_f8E8M0FNU", padded, np.int8)
        assert got.tolist()[:7] == expected, entry


def flushed(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Zeros of the same sign, where there are two, in place of subnormal numbers."""
    wide = numbers.astype(np.float64)
    zeros = np.copysign(0, wide).astype(numbers.dtype)
    smallest = float(ml_dtypes.finfo(numbers.dtype).smallest_normal)
    return np.where(np.abs(wide) < smallest, zeros, numbers)


@pytest.mark.parametrize("name", FORMATS)
def test_subnormal_numbers_are_flushed(name: str, library: Any) -> None:
    numbers = every(name)
    got = call(library, f"flush_{name}", numbers.view(np.int8), np.int8).view(np.uint8)
    np.testing.assert_array_equal(got, flushed(numbers).view(np.uint8))


@pytest.mark.parametrize(("kind", "least", "largest"), [("si", -8, 7), ("ui", 0, 15)])
def test_integers_are_clamped(kind: str, least: int, largest: int, library: Any) -> None:
    numbers = every("f8E4M3FN")
    known = ~np.isnan(numbers.astype(np.float32))
    got = call(library, f"to_{kind}", numbers.view(np.int8), np.int8)
    expected = np.clip(np.trunc(numbers.astype(np.float32)), least, largest)
    np.testing.assert_array_equal(got[known], expected[known])


@pytest.mark.parametrize("name", ["f16", "f32"])
def test_subnormal_numbers_of_ieee_are_flushed(name: str, library: Any) -> None:
    """In kernels (f16) and by vectors of the host (f32)."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = (
        bits.view(np.float16) if name == "f16" else (bits.astype(np.uint32) << 8).view(np.float32)
    )
    got = call(library, f"flush_{name}", numbers, numbers.dtype)
    unsigned = np.uint16 if name == "f16" else np.uint32
    np.testing.assert_array_equal(got.view(unsigned), flushed(numbers).view(unsigned))


@pytest.mark.parametrize("name", FORMATS)
def test_sums_are_rounded(name: str, library: Any) -> None:
    numbers = every(name)
    got = call(library, f"double_{name}", numbers.view(np.int8), np.int8).view(numbers.dtype)
    wide = numbers.astype(np.float32)
    with np.errstate(over="ignore"):
        expected = (wide + wide).astype(numbers.dtype)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_rounding_modes(mode: str, library: Any) -> None:
    dtype, _ = FORMATS["f8E4M3FN"]
    exact = np.unique(every("f8E4M3FN").astype(np.float64))
    exact = exact[np.isfinite(exact)]
    numbers = sweep("f8E4M3FN", np.float32)
    numbers = numbers[np.abs(numbers) <= exact[-1]]
    below = exact[np.searchsorted(exact, numbers, side="right") - 1]
    above = exact[np.searchsorted(exact, numbers, side="left")]
    far = np.where(numbers < 0, below, above)
    nearest = np.where(numbers - below < above - numbers, below, above)
    nearest = np.where(numbers - below == above - numbers, far, nearest)
    expected = {
        "downward": below,
        "upward": above,
        "toward_zero": np.where(numbers < 0, above, below),
        "to_nearest_away": nearest,
    }[mode]
    got = call(library, f"narrow_{mode}", numbers, np.int8).view(dtype)
    np.testing.assert_array_equal(got.astype(np.float64), expected)
    overflow = call(library, f"narrow_{mode}", np.array([449, -449], np.float32), np.int8)
    largest = {"downward": [448, np.nan], "upward": [np.nan, -448], "toward_zero": [448, -448]}
    expected = np.array(largest.get(mode, [448, -448]))
    np.testing.assert_array_equal(overflow.view(dtype).astype(np.float64), expected)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("name", WIDER)
@pytest.mark.parametrize("mode", MODES)
def test_rounding_modes_of_wider_floats(mode: str, name: str, library: Any) -> None:
    """LLVM's intrinsics with a rounding mode do not round so."""
    dtype = WIDER[name][1]
    random = np.random.default_rng(3)
    largest = float(ml_dtypes.finfo(dtype).max)
    numbers = random.standard_normal(200) * 10.0 ** random.integers(-9, 5, 200)
    # A half of the least step of 1, and subnormal numbers of bf16, which f32 has, too.
    numbers[:8] = 1 + np.arange(-4, 4) * float(ml_dtypes.finfo(dtype).eps) / 2
    numbers[8:16] *= 2.0**-126 if name == "bf16" else 1
    numbers[16:24] = [0, -0.0, np.inf, -np.inf, np.nan, largest, -largest, 1]
    numbers = numbers.astype(np.float64 if name == "f32" else np.float32)
    nearest = numbers.astype(dtype)
    wide = nearest.astype(np.float64)
    below = np.where(wide <= numbers, nearest, np.nextafter(nearest, dtype(-np.inf)))
    above = np.where(wide >= numbers, nearest, np.nextafter(nearest, dtype(np.inf)))
    to_zero, from_zero = np.where(numbers < 0, [above, below], [below, above])
    with np.errstate(invalid="ignore"):
        half = numbers - to_zero.astype(np.float64) == from_zero.astype(np.float64) - numbers
    expected = {
        "downward": below,
        "upward": above,
        "toward_zero": to_zero,
        "to_nearest_away": np.where(half, from_zero, nearest),
    }[mode]
    expected = np.where(np.isfinite(wide), expected, nearest).astype(np.float64)
    got = call(library, f"narrow_{mode}_{name}", numbers, dtype)
    np.testing.assert_array_equal(got.astype(np.float64), expected)
    edges = np.array([largest * 1.003, -largest * 1.003] * 4, numbers.dtype)
    got = call(library, f"narrow_{mode}_{name}", edges, dtype).astype(np.float64)[:2]
    stays = {"downward": [largest, -np.inf], "upward": [np.inf, -largest]}
    stays["toward_zero"] = [largest, -largest]
    np.testing.assert_array_equal(got, stays.get(mode, [np.inf, -np.inf]))


def test_scaled_numbers_and_functions(library: Any) -> None:
    given = np.array([0.5, 6.0, -13.0, 100.0], np.float32)
    got = call(library, "scaled", given, np.float32)
    np.testing.assert_array_equal(got, [0.0, 6.0, -12.0, 24.0])
    numbers = every("f8E5M2")
    got = call(library, "root", numbers.view(np.int8), np.int8).view(numbers.dtype)
    with np.errstate(invalid="ignore"):
        expected = np.sqrt(numbers.astype(np.float32)).astype(numbers.dtype)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
    numbers = every("f8E4M3")
    got = call(library, "square_and_add", numbers.view(np.int8), np.int8).view(numbers.dtype)
    wide = numbers.astype(np.float64)
    with np.errstate(invalid="ignore"):
        expected = to_odd(wide * wide + wide).astype(numbers.dtype)
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))
