"""What each sample is called with, and what NumPy says that it must give.

A `Case` is one call of a program. Its inputs are seeded; its expectations are computed in
f64 and kept there, whatever the program computes in. `write_files` turns a case into .npy
files and the command line that reads them. The tests, the GPU bundle and the demo use these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# An array goes through a file; a number and a source (`random:seed=7`) are written on the
# command line; a shape is all that a buffer gets which is only written.
Argument = Array | float | int | str | tuple[int, ...]

SAMPLES = Path(__file__).resolve().parent.parent / "samples"

F32_RTOL = 1e-5
F64_RTOL = 1e-12
# Both the result and the file are rounded to f16, each by up to half a unit in the last place:
# 2^-10 together. The rest is for the f32 value before it.
F16_RTOL = 1e-3


@dataclass(frozen=True)
class Values:
    """The arguments of a call that are not left to the harness, and its results.

    Results are float64 where they are real, so that no tolerance is used up by their own
    rounding. `dtypes` has the types of results that are not of their array's type.
    """

    arguments: Mapping[str, Argument]
    results: Mapping[str, Array]
    dtypes: Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One call of one program. `make` gives the same values each time."""

    name: str
    program: str
    make: Callable[[], Values]
    rtol: float
    atol: float = 0.0
    entry: str | None = None
    options: tuple[str, ...] = ()
    runs_on_cpu: bool = True
    # The oldest GPU that has what the program uses, by its major compute capability.
    least_major: int = 8
    # Where it uses instructions that later architectures lack: the only major one that has them.
    only_major: int | None = None


def write_files(case: Case, folder: Path, *, shown_as: str | None = None) -> list[str]:
    """Writes the case's .npy files into `folder`; the words of the command line.

    The files start with the case's name. `shown_as` is what the command line calls the
    folder, when that is not where it is now.
    """
    values = case.make()
    place = shown_as if shown_as is not None else str(folder)
    words = [case.entry] if case.entry else []
    for name, value in values.arguments.items():
        if isinstance(value, np.ndarray):
            file = f"{case.name}.{name}.npy"
            np.save(folder / file, value)
            words += ["--arg", f"{name}={place}/{file}"]
        elif isinstance(value, tuple):
            words += ["--dim", f"{name}={'x'.join(map(str, value))}"]
        elif isinstance(value, str):
            words += ["--arg", f"{name}={value}"]
        else:
            words += ["--arg", f"{name}={value!r}"]
    for name, expected in values.results.items():
        file = f"{case.name}.expect.{name}.npy"
        np.save(folder / file, expected.astype(values.dtypes.get(name, expected.dtype)))
        words += ["--expect", f"{name}={place}/{file}"]
    return [*words, *case.options, "--rtol", repr(case.rtol), "--atol", repr(case.atol)]


def mismatch(case: Case, name: str, got: Array) -> str | None:
    """NumPy's own verdict on one result; None where it is as expected."""
    values = case.make()
    expected = values.results[name]
    if got.shape != expected.shape:
        return f"{case.name}: {name} has shape {got.shape}, not {expected.shape}"
    dtype = np.dtype(values.dtypes.get(name, expected.dtype))
    if got.dtype != dtype:
        return f"{case.name}: {name} is {got.dtype}, not {dtype}"
    try:
        np.testing.assert_allclose(
            got.astype(expected.dtype), expected, rtol=case.rtol, atol=case.atol, equal_nan=False
        )
    except AssertionError as error:
        return f"{case.name}: {name}: {error}"
    return None


def rng(case_name: str) -> np.random.Generator:
    """A generator of its own for each case: adding one changes no other."""
    return np.random.default_rng(list(case_name.encode()))


def uniform(
    generator: np.random.Generator,
    shape: int | tuple[int, ...],
    dtype: Any,
    low: float,
    high: float,
) -> Array:
    """Uniform values in [low, high), rounded to `dtype`."""
    return generator.uniform(low, high, shape).astype(dtype)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


# Sums are of positive numbers: relative errors then say something about each element.


def _matmul(name: str, *, has_c: bool) -> Values:
    # Large: from the harness's generator rather than from files.
    shape = (1024, 1024)
    a, b = (generated(n, shape, np.float32, seed=7) for n in "AB")
    arguments: dict[str, Argument] = {"A": "random:seed=7", "B": "random:seed=7"}
    product = _wide(a) @ _wide(b)
    if has_c:
        c = uniform(rng(name), shape, np.float32, 0, 100)
        arguments["C"] = c
        product += _wide(c)
    return Values(arguments, {"C": product}, {"C": np.float32})


def _vector_add(name: str, n: int) -> Values:
    r = rng(name)
    x, y = (uniform(r, n, np.float32, -1000, 1000) for _ in range(2))
    return Values({"x": x, "y": y, "z": (n,)}, {"z": _wide(x) + _wide(y)}, {"z": np.float32})


def _heat(_: str, rate: float) -> Values:
    old = generated("old", (500, 730), np.float64, seed=9, low=1, high=2)
    new = old.copy()
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] += rate * (around - 4 * old[1:-1, 1:-1])
    return Values({"old": "random:seed=9,low=1,high=2", "rate": rate}, {"new": new}, {})


# NumPy has no erf. This one is the C library's, through Python.
def _erf(x: Array) -> Array:
    from math import erf

    return np.array([erf(v) for v in x.flat]).reshape(x.shape)


def _activations(name: str, shape: tuple[int, int], results: tuple[str, ...]) -> Values:
    x = uniform(rng(name), shape, np.float16, -8, 8)
    v = _wide(x)
    everything = {
        "gelu": (0.5 * v * (1 + _erf(v * np.sqrt(0.5))), np.float16),
        "sigmoid": (1 / (1 + np.exp(-v)), np.float32),
        "tanh": (np.tanh(v), np.float32),
    }
    outputs = dict.fromkeys(everything, shape)
    return Values(
        {"x": x, **outputs},
        {result: everything[result][0] for result in results},
        {result: everything[result][1] for result in results},
    )


def _block_sums(name: str) -> Values:
    x = uniform(rng(name), 65536, np.float32, 0, 1)
    return Values({"x": x}, {"sums": _wide(x).reshape(256, 256).sum(1)}, {"sums": np.float32})


def _tiled_matmul(name: str, rows: int, columns: int, depth: int) -> Values:
    r = rng(name)
    a, b = (
        uniform(r, (rows, depth), np.float32, 0, 1),
        uniform(r, (depth, columns), np.float32, 0, 1),
    )
    product = _wide(a) @ _wide(b)
    return Values({"A": a, "B": b, "C": product.shape}, {"C": product}, {"C": np.float32})


def _row_sums(name: str, rows: int, columns: int) -> Values:
    x = uniform(rng(name), (rows, columns), np.float32, 0, 1)
    return Values({"x": x, "sums": (rows,)}, {"sums": _wide(x).sum(1)}, {"sums": np.float32})


def _warpgroup_gemm(name: str, rows: int, columns: int, depth: int) -> Values:
    # Small integers: every sum is exact, in whatever order.
    r = rng(name)
    a, b = (
        r.integers(-8, 9, shape).astype(np.float16) for shape in ((rows, depth), (depth, columns))
    )
    product = _wide(a) @ _wide(b)
    return Values({"A": a, "B": b, "C": product.shape}, {"C": product}, {"C": np.float32})


def _warpgroup_gemm_reals(name: str) -> Values:
    r = rng(name)
    a, b = (uniform(r, shape, np.float16, 0, 1) for shape in ((130, 504), (504, 72)))
    product = _wide(a) @ _wide(b)
    return Values({"A": a, "B": b, "C": product.shape}, {"C": product}, {"C": np.float32})


def _perceptron(name: str) -> Values:
    r = rng(name)
    shapes = {"x": (33, 100), "w1": (100, 65), "b1": (65,), "w2": (65, 10), "b2": (10,)}
    values = {key: uniform(r, shape, np.float32, 0, 1) for key, shape in shapes.items()}
    x, w1, b1, w2, b2 = (_wide(value) for value in values.values())
    result = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return Values(values, {"result0": result}, {"result0": np.float32})


def _attention(name: str, heads: int, tokens: int) -> Values:
    r = rng(name)
    values = {key: uniform(r, (heads, tokens, 16), np.float32, 0, 1) for key in "qkv"}
    q, k, v = (_wide(value) for value in values.values())
    scores = q @ k.transpose(0, 2, 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True) @ v
    return Values(values, {"result0": result}, {"result0": np.float32})


def _convolution(name: str, rows: int, columns: int) -> Values:
    r = rng(name)
    image = uniform(r, (1, rows + 2, columns + 2, 3), np.float32, 0, 1)
    filter_ = uniform(r, (3, 3, 3, 8), np.float32, 0, 1)
    windows = np.lib.stride_tricks.sliding_window_view(_wide(image), (3, 3), (1, 2))
    result = np.einsum("nhwcij,ijcf->nhwf", windows, _wide(filter_))
    arguments = {"image": image, "filter": filter_, "result": result.shape}
    return Values(arguments, {"result": result}, {"result": np.float32})


def _normalize(name: str, rows: int, columns: int) -> Values:
    x = uniform(rng(name), (rows, columns), np.float32, -1, 1)
    # Not (0, 0, ...): NaN is no result to compare.
    x[:, :1] += np.float32(2)
    unit = _wide(x) / np.sqrt((_wide(x) ** 2).sum(1, keepdims=True))
    return Values({"x": x, "y": x.shape}, {"y": unit}, {"y": np.float32})


def _dot(name: str, n: int) -> Values:
    r = rng(name)
    x, y = (uniform(r, n, np.float32, 0.5, 1.5) for _ in range(2))
    return Values({"x": x, "y": y}, {"result0": np.array(_wide(x) @ _wide(y))}, {})


def _softmax(name: str, rows: int, columns: int) -> Values:
    x = uniform(rng(name), (rows, columns), np.float32, -20, 20)
    weights = np.exp(_wide(x) - _wide(x).max(1, keepdims=True))
    result = weights / weights.sum(1, keepdims=True)
    return Values({"x": x, "y": x.shape}, {"y": result}, {"y": np.float32})


def _batched_matmul(name: str, batches: int, rows: int, columns: int, depth: int) -> Values:
    r = rng(name)
    a = uniform(r, (batches, rows, depth), np.float32, 0, 1)
    b = uniform(r, (batches, depth, columns), np.float32, 0, 1)
    return Values({"a": a, "b": b}, {"result0": _wide(a) @ _wide(b)}, {"result0": np.float32})


def _distances(name: str, n: int) -> Values:
    r = rng(name)
    points, center = uniform(r, (n, 4), np.float32, 1, 2), uniform(r, 4, np.float32, -2, -1)
    squares = ((_wide(points) - _wide(center)) ** 2).sum(1)
    arguments = {"points": points, "center": center, "result": (n,)}
    return Values(arguments, {"result": squares}, {"result": np.float32})


def _saxpy(name: str, n: int) -> Values:
    r = rng(name)
    x, y = (uniform(r, n, np.float32, 0, 1) for _ in range(2))
    return Values({"a": 2.5, "x": x, "y": y}, {"y": 2.5 * _wide(x) + _wide(y)}, {"y": np.float32})


def _layer(name: str, rows: int) -> Values:
    r = rng(name)
    x = uniform(r, (1, rows, 16), np.float32, 0, 1)
    w = uniform(r, (1, 16, 33), np.float32, 0, 1)
    b = uniform(r, (1, 1, 33), np.float32, 0, 3)
    result = np.clip(_wide(x) @ _wide(w) + _wide(b), 0, 6)
    return Values({"x": x, "w": w, "b": b}, {"result0": result}, {"result0": np.float32})


# None divides by a block's or a tile's size, or by a vector's.
SIZES = (1, 31, 33, 1000, 1025)
# Rows and columns: each size is once either. Small ones, for the files' sake, and one that is not.
SMALL_PAIRS = ((1, 1), (1, 1000), (1, 1025), (31, 33), (33, 31), (1000, 1), (1025, 1))
PAIRS = (*SMALL_PAIRS, (33, 1025))


def _cases() -> dict[str, Case]:
    cases: list[Case] = []

    def add(name: str, program: str, make: Callable[..., Values], rtol: float, **more: Any) -> None:
        cases.append(Case(name, program, partial(make, name), rtol, **more))

    add("matmul", "matmul", partial(_matmul, has_c=False), F32_RTOL)
    add("matmul-accumulates", "matmul", partial(_matmul, has_c=True), F32_RTOL)
    # 0: no thread at all. 1, 255, 257: a block that is not full. 100003 is prime.
    for n in (0, *SIZES, 255, 256, 257, 100_003):
        add(f"vector_add-{n}", "vector_add", partial(_vector_add, n=n), F32_RTOL)
    add("stencil", "stencil", partial(_heat, rate=0.1), F64_RTOL)
    # Where 1 + erf(v) cancels, what is left of gelu is a few units in the last place of 1.
    gelu = partial(_activations, shape=(64, 1000), results=("gelu",))
    add("activations-f16", "activations", gelu, F16_RTOL, atol=1e-6)
    for shape in PAIRS:
        make = partial(_activations, shape=shape, results=("sigmoid", "tanh"))
        add(f"activations-{shape[0]}x{shape[1]}", "activations", make, F32_RTOL)
    add("block_sums", "block_sums", _block_sums, F32_RTOL)
    tiled = [(128, 256, 64), (33, 17, 0)]
    tiled += [(rows, columns, 5) for rows, columns in PAIRS]
    tiled += [(3, 5, depth) for depth in SIZES]
    for rows, columns, depth in tiled:
        make = partial(_tiled_matmul, rows=rows, columns=columns, depth=depth)
        add(f"tiled_matmul-{rows}x{columns}x{depth}", "tiled_matmul", make, F32_RTOL)
    for rows, columns in ((1, 0), *PAIRS):
        make = partial(_row_sums, rows=rows, columns=columns)
        add(f"row_sums-{rows}x{columns}", "row_sums", make, F32_RTOL)
    hopper: dict[str, Any] = {"runs_on_cpu": False, "least_major": 9, "only_major": 9}
    # Tiles are of 128 x 128, 64 deep, four in flight; columns and depth are multiples of 8.
    for shape in ((128, 128, 64), (1, 8, 8), (31, 40, 24), (256, 136, 512), (1025, 136, 200)):
        rows, columns, depth = shape
        make = partial(_warpgroup_gemm, rows=rows, columns=columns, depth=depth)
        add(f"warpgroup_gemm-{rows}x{columns}x{depth}", "warpgroup_gemm", make, 0, **hopper)
    add("warpgroup_gemm-reals", "warpgroup_gemm", _warpgroup_gemm_reals, F32_RTOL, **hopper)
    add("perceptron", "perceptron", _perceptron, F32_RTOL)
    for heads, tokens in ((4, 33), (31, 1), (33, 31), (1, 1000), (1, 1025), (1025, 1)):
        make = partial(_attention, heads=heads, tokens=tokens)
        add(f"attention-{heads}x{tokens}", "attention", make, F32_RTOL)
    for rows, columns in SMALL_PAIRS:
        make = partial(_convolution, rows=rows, columns=columns)
        add(f"convolution-{rows}x{columns}", "convolution", make, F32_RTOL)
    for rows, columns in ((300, 0), (300, 130), *PAIRS):
        make = partial(_normalize, rows=rows, columns=columns)
        add(f"normalize-{rows}x{columns}", "normalize", make, F32_RTOL)
    for rows, columns in PAIRS:
        make = partial(_softmax, rows=rows, columns=columns)
        # The smallest weights come of exponents near -40, which f32 has to a few parts in 10^6.
        add(f"softmax-{rows}x{columns}", "softmax", make, F32_RTOL)
    batched = [(3, rows, columns, 5) for rows, columns in SMALL_PAIRS]
    batched += [(1, 3, 5, depth) for depth in SIZES] + [(size, 3, 1, 5) for size in SIZES[1:]]
    for batches, rows, columns, depth in batched:
        make = partial(_batched_matmul, batches=batches, rows=rows, columns=columns, depth=depth)
        name = f"batched_matmul-{batches}x{rows}x{columns}x{depth}"
        add(name, "batched_matmul", make, F32_RTOL)
    for n in (0, *SIZES):
        add(f"distances-{n}", "distances", partial(_distances, n=n), F32_RTOL)
        add(f"saxpy-{n}", "saxpy", partial(_saxpy, n=n), F32_RTOL)
    for rows in SIZES:
        add(f"layer-{rows}", "layer", partial(_layer, rows=rows), F32_RTOL)
    for n in (0, *SIZES, 100_003):
        add(f"dot-{n}", "dot", partial(_dot, n=n), F64_RTOL)
    return {case.name: case for case in cases}


CASES: Mapping[str, Case] = _cases()
PROGRAMS: tuple[str, ...] = tuple(dict.fromkeys(case.program for case in CASES.values()))


# What a program's build needs to be told: chips that have its instructions.
OPTIONS: Mapping[str, tuple[str, ...]] = {"warpgroup_gemm": ("--chip", "sm_90a")}


def source_of(program: str) -> Path:
    """The sample's file."""
    return SAMPLES / f"{program}.mlir"


def generated(
    name: str, shape: tuple[int, ...], dtype: Any, *, seed: int = 0, low: float = 0, high: float = 1
) -> Array:
    """What the harness gives an argument called `name` that is left to `random`.

    docs/harness.md describes the generator. This is written from its words, for real
    numbers: SplitMix64 from a key that mixes the seed with the name's FNV-1a hash.
    """
    hashed = 0xCBF29CE484222325
    for byte in name.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    key = _mix(np.array([hashed], np.uint64) ^ _mix(np.array([seed], np.uint64)))
    steps: NDArray[np.uint64] = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.uint64)
    bits = _mix(np.add(key, steps * np.uint64(0x9E3779B97F4A7C15)))
    units = (bits >> np.uint64(11)) * 2.0**-53
    return (low + (high - low) * units).astype(dtype).reshape(shape)


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
