"""Products to build and to run on the CPU device: problems, matrices, what must come out."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from e2e.support import run
from helpers.command import build_here
from helpers.shared import made_once
from numpy.typing import NDArray

from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem

DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i32": np.int32,
    "i8": np.int8,
}
# Rounding of what is stored; sums of a few hundred products in f32 or f64.
RTOLS = {"f64": 1e-12, "f32": 1e-5, "f16": 1e-3, "bf16": 8e-3, "i32": 0, "i8": 0}


@dataclass(frozen=True)
class Product:
    """A function and one call of it. What is dynamic in the types has the sizes m, n, k here, too.

    `dynamic`: which of m, n, k the types do not say. `pitches`: of a, b and c, where their rows do
    not follow each other. `alignment`: what is known of the rows' addresses, 0 for what the sizes
    tell.
    """

    name: str
    m: int
    n: int
    k: int
    element: str = "f32"
    accumulator: str = "f32"
    result: str = "f32"
    dynamic: str = "mnk"
    transposed_a: bool = False
    transposed_b: bool = False
    adds: bool = False
    batches: int = 0
    pitches: dict[str, int] = field(default_factory=dict)
    alignment: int = 0

    @property
    def problem(self) -> Problem:
        return Problem(
            self._matrix("a", "mk", self.element, self.transposed_a),
            self._matrix("b", "kn", self.element, self.transposed_b),
            self._matrix("c", "mn", self.result, False),
            self.accumulator,
            self.adds,
            self.batches > 0,
        )

    def _matrix(self, name: str, axes: str, element: str, transposed: bool) -> Matrix:
        axes = axes[::-1] if transposed else axes
        rows, columns = (None if axis in self.dynamic else getattr(self, axis) for axis in axes)
        shape = ["?"] if self.batches else []
        shape += ["?" if size is None else str(size) for size in (rows, columns)]
        pitch = self.pitches.get(name)
        layout = ""
        if pitch:
            assert not self.batches
            layout = f", strided<[{pitch}, 1], offset: ?>"
        known, bytes_ = pitch or columns, ELEMENT_BYTES[element]
        row = known * bytes_ if known else bytes_
        alignment = self.alignment or max(b for b in (1, 2, 4, 8, 16) if row % b == 0)
        type_ = f"memref<{'x'.join(shape)}x{element}{layout}>"
        return Matrix(type_, element, (rows, columns), known, alignment, transposed)


def entry(text: str) -> str:
    """A family's function as an entry."""
    return text.replace(") {\n", ") attributes {llvm.emit_c_interface} {\n", 1)


def call(program: Path, product: Product, folder: Path) -> str:
    """Runs a product in a C that holds NaN, twice, and compares it with what f64 gives; what is
    wrong, or nothing. What is between the rows of A and B is NaN, too."""
    folder.mkdir(exist_ok=True)
    a, b, c = _matrices(product)
    accumulated = DTYPES[product.accumulator]
    exact = np.float64 if product.accumulator[0] != "i" else np.int64
    left = a.swapaxes(-1, -2) if product.transposed_a else a
    right = b.swapaxes(-1, -2) if product.transposed_b else b
    expected = left.astype(exact) @ right.astype(exact)
    # Where terms cancel, errors are of the terms' size.
    size = np.abs(left.astype(exact)) @ np.abs(right.astype(exact))
    if product.adds:
        expected = expected + c.astype(exact)
    if exact is np.int64:
        expected = expected.astype(accumulated)
    for name, matrix in (("a", a), ("b", b), ("c", c)):
        np.save(folder / f"{name}.npy", matrix)
    words = [f"--{name}={folder / name}.npy" for name in "ab"]
    shape = "x".join(map(str, c.shape))
    words += [f"--c={folder}/c.npy"] if product.adds else ["--c=poison", "--dim", f"c={shape}"]
    arguments = [program, product.name, *words, "--device", "cpu", "-q"]
    results = []
    for number in range(2):
        out = folder / f"out{number}.npy"
        done = subprocess.run(
            [*arguments, "--out", f"c={out}"], capture_output=True, text=True, timeout=60
        )
        if done.returncode:
            return f"{product}: exit code {done.returncode}: {done.stderr}"
        results.append(np.load(out).view(DTYPES[product.result]))
    if results[0].tobytes() != results[1].tobytes():
        return f"{product}: two runs differ"
    got = results[0].astype(exact)
    error = np.abs(got - expected)
    allowed = RTOLS[product.result] * np.abs(expected)
    allowed = allowed + min(RTOLS[product.accumulator], 1e-6) * size
    if not (error <= allowed).all():
        wrong = np.argwhere(~(error <= allowed))
        at = tuple(wrong[0])
        return f"{product}: {len(wrong)} of {error.size} wrong, {at}: {got[at]} for {expected[at]}"
    return ""


def _matrices(product: Product) -> list[NDArray[Any]]:
    rng = np.random.default_rng(zlib.crc32(product.name.encode()))
    batch = (product.batches,) if product.batches else ()
    axes = ["km" if product.transposed_a else "mk", "nk" if product.transposed_b else "kn", "mn"]
    made: list[NDArray[Any]] = []
    for names, element in zip(axes, [product.element] * 2 + [product.result], strict=True):
        shape = (*batch, *(getattr(product, axis) for axis in names))
        if element[0] == "i":
            made.append(rng.integers(-100, 100, shape).astype(DTYPES[element]))
        else:
            made.append(rng.uniform(-1, 1, shape).astype(DTYPES[element]))
    return made


def build(
    products: Sequence[Product], text_of: Callable[[Product], str], folder: Path, *options: str
) -> Path:
    """A program with an entry for each product, in `folder`, which is made once for all workers."""

    def make(draft: Path) -> None:
        source = draft / "products.mlir"
        source.write_text("\n".join(entry(text_of(product)) for product in products))
        build_here(source, *options, "-o", draft / "products")

    return made_once(folder, make) / "products"


# The sum and its column, at least its row: f32 to f32.
CLAMPED = Epilogue(
    (
        Step("i", "arith.index_cast", ("row",), "{}", "(index) -> i32"),
        Step("least", "arith.sitofp", ("i",), "{}", "(i32) -> f32"),
        Step("j", "arith.index_cast", ("column",), "{}", "(index) -> i32"),
        Step("more", "arith.sitofp", ("j",), "{}", "(i32) -> f32"),
        Step("shifted", "arith.addf", ("sum", "more"), "{}", "(f32, f32) -> f32"),
        Step("result", "arith.maximumf", ("shifted", "least"), "{}", "(f32, f32) -> f32"),
    ),
    "result",
)


def check_clamped(product: Product, text: str, folder: Path) -> None:
    """Runs a product of ones and of -2 whose epilogue is `CLAMPED`: it is given the accumulator,
    its row and its column."""
    m, n, k = product.m, product.n, product.k
    program = build([product], lambda _: text, folder / "program", "--chip", "sm_80")
    a, b = np.ones((m, k), np.float32), np.full((k, n), -2, np.float32)
    row, column = np.indices((m, n))
    matrices = {
        "a": a.T.copy() if product.transposed_a else a,
        "b": b.T.copy() if product.transposed_b else b,
        "expected": np.maximum(-2.0 * k + column, row).astype(np.float32),
    }
    for name, matrix in matrices.items():
        np.save(folder / f"{name}.npy", matrix)
    words = ["--a", f"{folder}/a.npy", "--b", f"{folder}/b.npy", "--dim", f"c={m}x{n}"]
    words += ["--expect", f"c={folder}/expected.npy", "--device", "cpu"]
    done = run(program, *words)
    assert done.returncode == 0, done.stderr
