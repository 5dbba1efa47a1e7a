"""Matmuls for the CPU device, against NumPy in double precision."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from e2e.support import run
from helpers.command import build_here
from helpers.guarded import at_end_of_page
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder

from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED, Variant
from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.problem import Matrix, Problem

DTYPES = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8),
}
# M, N and K: less than a vector, just over groups and steps, none, several tiles.
SIZES = (
    *((1, 1, 1), (5, 3, 7), (6, 16, 256), (7, 17, 257), (1, 300, 513), (97, 130, 301)),
    *((9, 8, 0), (0, 5, 3), (5, 0, 3)),
)


@dataclass(frozen=True)
class Case:
    """A product: the types of A and B, of C, of the sum; `pitched`: rows of A and C have gaps."""

    element: str
    result: str
    accumulator: str
    transposed: str = "nn"
    adds: bool = False
    batched: bool = False
    pitched: bool = False
    relu: bool = False

    @property
    def name(self) -> str:
        words = ("adds", "batched", "pitched", "relu")
        flags = [word for word in words if getattr(self, word)]
        types = (self.element, self.result, self.accumulator, self.transposed)
        return "_".join(["product", *types, *flags])

    @property
    def problem(self) -> Problem:
        return Problem(
            self._matrix(self.element, self.pitched, self.transposed[0] == "t"),
            self._matrix(self.element, False, self.transposed[1] == "t"),
            self._matrix(self.result, self.pitched, False),
            self.accumulator,
            adds=self.adds,
            batched=self.batched,
        )

    def _matrix(self, element: str, pitched: bool, transposed: bool) -> Matrix:
        strides = "?, ?, 1" if self.batched else "?, 1"
        layout = f", strided<[{strides}], offset: ?>" if pitched else ""
        sizes = "?x?x?" if self.batched else "?x?"
        type_ = f"memref<{sizes}x{element}{layout}>"
        return Matrix(type_, element, (None, None), None, 1, transposed)

    def text(self, variant: Variant | None = None) -> str:
        epilogue = TAKE_POSITIVE if self.relu else None
        problem = self.problem
        made = CPU_BLOCKED.function(
            problem, variant or CPU_BLOCKED.variants(problem)[0], self.name, epilogue
        )
        return made.replace(") {", ") attributes {llvm.emit_c_interface} {", 1)


def known_problem(m: int | None, n: int | None, k: int) -> Problem:
    shapes = ((m, k), (k, n), (m, n))
    types = ("x".join("?" if one is None else str(one) for one in shape) for shape in shapes)
    matrices = (
        Matrix(f"memref<{type_}xf32>", "f32", shape, shape[1], 4)
        for type_, shape in zip(types, shapes, strict=True)
    )
    return Problem(*matrices, "f32")


TAKE_POSITIVE = Epilogue(
    (
        Step("zero", "arith.constant", (), "{value = 0.0 : f32}", "() -> f32"),
        Step("result", "arith.maximumf", ("sum", "zero"), "{}", "(f32, f32) -> f32"),
    ),
    "result",
)
CASES = (
    *(Case("f32", "f32", "f32", transposed) for transposed in ("nn", "nt", "tn", "tt")),
    Case("f64", "f64", "f64"),
    Case("f64", "f64", "f64", "tt", adds=True),
    Case("f16", "f16", "f32"),
    Case("f16", "f32", "f32", "tt", adds=True),
    Case("f16", "f16", "f16", "nt"),
    Case("bf16", "bf16", "f32", "tn"),
    Case("i8", "i32", "i32"),
    Case("i32", "i32", "i32", "tt", adds=True),
    Case("f32", "f32", "f32", adds=True, pitched=True),
    Case("f32", "f32", "f32", "tn", batched=True, pitched=True),
    Case("f32", "f32", "f32", relu=True),
)


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu() -> None:
    os.environ["AOTC_DEVICE"] = "cpu"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """All cases, built once for all workers."""

    def make(folder: Path) -> None:
        build_library("\n".join(case.text() for case in CASES), folder, name="blocked")

    folder = made_once(shared_folder(tmp_path_factory) / "blocked", make)
    return Library(folder / "lib" / "libblocked.so", folder / "blocked.json")


def random_matrix(
    rng: np.random.Generator, sizes: tuple[int, ...], element: str, *, pitched: bool = False
) -> np.ndarray:
    """With gaps behind its rows, if asked for: NaN, which no result may see."""
    dtype = DTYPES[element]
    values = (
        rng.integers(-100, 100, sizes) if element.startswith("i") else rng.uniform(-1, 1, sizes)
    )
    if not pitched:
        return values.astype(dtype)
    room = np.full((*sizes[:-1], sizes[-1] + 5), np.nan, dtype)
    room[..., 2:-3] = values
    return room[..., 2:-3]


def check(
    library: Library, case: Case, m: int, n: int, k: int, *, entry: str | None = None
) -> None:
    rng = np.random.default_rng([m, n, k])
    batches = (3,) if case.batched else ()
    a_sizes = (k, m) if case.transposed[0] == "t" else (m, k)
    b_sizes = (n, k) if case.transposed[1] == "t" else (k, n)
    a = random_matrix(rng, (*batches, *a_sizes), case.element, pitched=case.pitched)
    b = random_matrix(rng, (*batches, *b_sizes), case.element)
    c = random_matrix(rng, (*batches, m, n), case.result, pitched=case.pitched)
    before = c.astype(np.float64)
    if not case.adds:
        c[...] = 77 if case.result.startswith("i") else np.nan
    around = None if c.base is None else c.base.copy()
    library.call(entry or case.name, a, b, c)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    wide_a = wide_a.swapaxes(-1, -2) if case.transposed[0] == "t" else wide_a
    wide_b = wide_b.swapaxes(-1, -2) if case.transposed[1] == "t" else wide_b
    expected = wide_a @ wide_b + (before if case.adds else 0)
    size = np.abs(wide_a) @ np.abs(wide_b) + np.abs(before)
    if case.relu:
        expected = np.maximum(expected, 0)
    assert np.all(np.abs(c.astype(np.float64) - expected) <= size * allowed(case, k))
    if around is not None:
        around[..., 2:-3] = c
        np.testing.assert_array_equal(c.base, around)


def allowed(case: Case, k: int) -> float:
    """The error, as a share of the sum of absolute products: of sums in f32 or f64, and of what is
    rounded at the end."""
    if case.result.startswith("i"):
        return 0
    sums = np.finfo(np.float64 if case.accumulator == "f64" else np.float32).eps * (k + 1)
    ends = [ml_dtypes.finfo(DTYPES[type_]).eps for type_ in (case.accumulator, case.result)]
    return float(sums + sum(map(float, ends)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_result_is_numpys(library: Library, case: Case) -> None:
    """C is the product for all sizes, whatever was in it, and nothing beside it changes."""
    for m, n, k in SIZES:
        check(library, case, m, n, k)


@pytest.mark.parametrize(("m", "n", "k"), [(1000, 900, 40), (1900, 1800, 9)])
def test_larger_tiles(library: Library, m: int, n: int, k: int) -> None:
    """Tiles of half and of full size, as large C have them."""
    check(library, CASES[0], m, n, k)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_every_variant_is_taken(tmp_path: Path, element: str) -> None:
    case = Case(element, element, element, "tn")
    tried = (*CPU_BLOCKED.variants(case.problem), Variant(4, 2, 16, 384, 32))
    assert all(CPU_BLOCKED.can_implement(case.problem, variant) for variant in tried)
    texts = [
        case.text(variant).replace(case.name, f"{case.name}{number}")
        for number, variant in enumerate(tried)
    ]
    library = build_library("\n".join(texts), tmp_path)
    for number, _ in enumerate(tried):
        check(library, case, 100, 70, 50, entry=f"{case.name}{number}")


# Sizes that are known: columns behind the last whole vector are packed, or single ones; rows begin
# at any address.
KNOWN_SIZES = (
    *((33, 50, 40), (70, 49, 300), (9, 198, 17), (5, 6, 600), (1, 53, 129)),
    *((64, 64, 64), (200, 196, 257), (13, 1000, 3)),
)
KNOWN = "\n".join(
    text.replace(") {", ") attributes {llvm.emit_c_interface} {", 1)
    for text in (
        CPU_BLOCKED.function(problem, CPU_BLOCKED.variants(problem)[0], f"known_{number}")
        for number, problem in enumerate(known_problem(*sizes) for sizes in KNOWN_SIZES)
    )
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Library:
    def make(folder: Path) -> None:
        build_library(KNOWN, folder, name="known")

    folder = made_once(shared_folder(tmp_path_factory) / "known", make)
    return Library(folder / "lib" / "libknown.so", folder / "known.json")


@pytest.mark.parametrize("number", range(len(KNOWN_SIZES)))
def test_known_sizes(known: Library, number: int) -> None:
    """Sizes in the types of the matrices are as good as those that come with them, and nothing is
    read behind a matrix."""
    m, n, k = KNOWN_SIZES[number]
    rng = np.random.default_rng(number)
    a, b, c = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    known.call(f"known_{number}", at_end_of_page(a), at_end_of_page(b), c)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(wide_a) @ np.abs(wide_b)
    assert np.all(np.abs(c - wide_a @ wide_b) <= size * 1e-7 * (k + 1))


LENGTHS = (16, 96, 300)


def columns_text(k: int) -> str:
    problem = known_problem(13, None, k)
    text = CPU_BLOCKED.function(problem, CPU_BLOCKED.variants(problem)[0], f"columns_{k}")
    return text.replace(") {", ") attributes {llvm.emit_c_interface} {", 1)


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Library:
    def make(folder: Path) -> None:
        build_library("\n".join(map(columns_text, LENGTHS)), folder, name="columns")

    folder = made_once(shared_folder(tmp_path_factory) / "columns", make)
    return Library(folder / "lib" / "libcolumns.so", folder / "columns.json")


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("n", [1, 3, 20, 21, 33, 190, 196, 197])
def test_an_unknown_number_of_columns(columns: Library, k: int, n: int) -> None:
    """Up to four columns behind the last whole vector may be multiplied by vectors along K."""
    rng = np.random.default_rng(n)
    a, b, c = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((13, k), (k, n), (13, n)))
    columns.call(f"columns_{k}", at_end_of_page(a), at_end_of_page(b), c)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(wide_a) @ np.abs(wide_b)
    assert np.all(np.abs(c - wide_a @ wide_b) <= size * 1e-7 * (k + 1))


def test_sums_of_vectors_along_k_are_worth_it() -> None:
    """A short K is shorter than the sums of the vectors."""
    assert ["vector.shuffle" in columns_text(k) for k in LENGTHS] == [False, True, True]


def test_types_without_a_lowering_are_refused() -> None:
    problem = Case("f32", "f32", "f32").problem
    f8 = Matrix("memref<?x?xf8E4M3FN>", "f8E4M3FN", (None, None), None, 1)
    assert not CPU_BLOCKED.can_implement(Problem(f8, f8, problem.c, "f32"), Variant())
    mixed = Matrix("memref<?x?xi8>", "i8", (None, None), None, 1)
    assert not CPU_BLOCKED.can_implement(Problem(mixed, mixed, problem.c, "f32"), Variant())
    assert not CPU_BLOCKED.can_implement(problem, Variant(rows=5))


def test_same_text_each_time() -> None:
    for case, _ in itertools.product(CASES, range(2)):
        assert case.text() == case.text()


# -------------------------------------------------------------------------------------------------
# Instruction sets


LEVEL_SIZES = {"any": (65, 70, 300), "known": (70, 52, 300)}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a matmul of any sizes, and of one of known ones."""
    problem = known_problem(*LEVEL_SIZES["known"])
    known = CPU_BLOCKED.function(problem, CPU_BLOCKED.variants(problem)[0], "product")
    texts = {
        "any": CASES[0].text(),
        "known": known.replace(") {", ") attributes {llvm.emit_c_interface} {", 1),
    }

    def make(folder: Path) -> None:
        for name, text in texts.items():
            source = folder / f"{name}.mlir"
            source.write_text(text)
            build_here(source, "--chip", "sm_90a", "-o", folder / name)

    return made_once(shared_folder(tmp_path_factory) / "blocked_levels", make)


@pytest.mark.parametrize("sizes", LEVEL_SIZES)
@pytest.mark.parametrize("level", ["1", "2", "3", "4"])
def test_each_level_gives_the_product(
    programs: Path, tmp_path: Path, level: str, sizes: str
) -> None:
    """AOTC_CPU_LEVEL asks for the code of an older processor, never of a newer one. Those with a
    fused multiply-add have the same bits, with any number of threads."""
    m, n, k = LEVEL_SIZES[sizes]
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, s).astype(np.float32) for s in ((m, k), (k, n)))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    np.save(tmp_path / "c.npy", (a.astype(np.float64) @ b).astype(np.float32))
    words = [word for name in "ab" for word in (f"--{name}", str(tmp_path / f"{name}.npy"))]
    if sizes == "any":
        words += ["--dim", f"c={m}x{n}"]
    expect = ["--expect", f"c={tmp_path / 'c.npy'}", "--atol", "1e-4"]
    found = []
    for threads, levels in (("1", level), ("3", "3" if level == "4" else level)):
        save = ["--out", f"c={tmp_path / 'made.npy'}"]
        env = {"AOTC_CPU_LEVEL": levels, "AOTC_CPU_THREADS": threads}
        done = run(programs / sizes, *words, *expect, *save, "--device", "cpu", env=env)
        assert (done.stderr, done.returncode) == ("", 0)
        found.append((tmp_path / "made.npy").read_bytes())
    assert found[0] == found[1]


def processors(folder: Path, text: str, *options: str) -> list[str]:
    """What the functions of a build's kernels are for on the CPU, "" for the oldest."""
    source = folder / "kernel.mlir"
    source.write_text(text)
    build_here(source, "--emit", "cpu-mlir", "--chip", "sm_90a", *options, "-o", f"{folder}/")
    made = (folder / "kernel.cpu.mlir").read_text()
    return re.findall(r'target_cpu = "([\w-]+)"', made)


X86, ARM = (("--target", f"{name}-linux-gnu") for name in ("x86_64", "aarch64"))


def test_products_have_a_function_for_each_level(tmp_path: Path) -> None:
    """On x86-64 alone; a build for a debugger has one function."""
    text = CASES[0].text()
    assert processors(tmp_path, text, *X86) == ["x86-64-v4", "x86-64-v3"]
    assert processors(tmp_path, text, *ARM) == []
    assert processors(tmp_path, text, *X86, "-g") == []


KERNEL = """
func.func @scale(%x: memref<?xf32>, %f: f32) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  affine.parallel (%i) = (0) to (%n) {{
    %a = affine.load %x[%i] : memref<?xf32>
    {computed}
    affine.store %b, %x[%i] : memref<?xf32>
  }}
  return
}}
"""


def test_pools_of_f16_have_a_function_for_each_level(tmp_path: Path) -> None:
    """They compare integers, of which later levels have longer vectors."""
    text = """
func.func @pool(%x: tensor<1x9x9x32xf16>, %w: tensor<3x3xf16>) -> tensor<1x7x7x32xf16>
    attributes {llvm.emit_c_interface} {
  %low = arith.constant 0xFC00 : f16
  %empty = tensor.empty() : tensor<1x7x7x32xf16>
  %start = linalg.fill ins(%low : f16) outs(%empty : tensor<1x7x7x32xf16>) -> tensor<1x7x7x32xf16>
  %y = linalg.pooling_nhwc_max ins(%x, %w : tensor<1x9x9x32xf16>, tensor<3x3xf16>)
      outs(%start : tensor<1x7x7x32xf16>) -> tensor<1x7x7x32xf16>
  return %y : tensor<1x7x7x32xf16>
}
"""
    assert processors(tmp_path, text, *X86) == ["x86-64-v4", "x86-64-v3"]


@pytest.mark.parametrize(
    ("computed", "is_gain"),
    [
        ("%b = arith.mulf %a, %f : f32", False),
        ("%b = math.fma %a, %a, %f : f32", True),
        # The oldest processors call a function for each element.
        ("%b = math.floor %a : f32", True),
        ("%b = math.roundeven %a : f32", True),
        ("%c = arith.mulf %a, %f fastmath<contract> : f32 %b = arith.addf %c, %a : f32", True),
        # The oldest processors call a function for each f16.
        ("%c = arith.truncf %a : f32 to f16 %b = arith.extf %c : f16 to f32", True),
        ("%c = arith.truncf %a : f32 to bf16 %b = arith.extf %c : bf16 to f32", False),
    ],
)
def test_kernels_with_more_to_gain_have_a_function_for_each_level(
    tmp_path: Path, computed: str, is_gain: bool
) -> None:
    """Other kernels, whose results would be the same, have one function."""
    found = processors(tmp_path, KERNEL.format(computed=computed), *X86)
    assert bool(found) == is_gain
