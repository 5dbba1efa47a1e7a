"""Products on tensor cores, on the CPU device, against NumPy's in f64."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from e2e.support import run
from helpers.command import Outcome, build_here
from msgspec.structs import replace
from numpy.typing import NDArray

from aotc.kernels.matmul.epilogue import Epilogue, Step
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC, Variant
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem

Array = NDArray[Any]

DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i8": np.int8,
}
# Of results that are rounded once, from sums of exact products; tf32's are of rounded factors.
RTOLS = {"f64": 1e-13, "f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2, "i32": 0.0, "i8": 0.0}
TF32_RTOL = 3e-3
ACCUMULATORS = {"f64": "f64", "i8": "i32"}
BATCHES = 3

SIZES = ((1, 1, 1), (33, 47, 65), (70, 31, 0), (0, 3, 5), (64, 64, 64))
ODD = SIZES[1:2]
ALIGNED = ((64, 96, 48), (40, 16, 176))


@dataclass(frozen=True)
class Product:
    """A problem in short, and the kernel for it. `sizes` of 0 are not known."""

    element: str
    result: str
    variant: Variant
    sizes: tuple[int, int, int] = (0, 0, 0)
    transposed: tuple[bool, bool] = (False, False)
    alignment: int = 0
    pitch: int | None = None
    result_pitch: int | None = None
    adds: bool = False
    batched: bool = False
    accumulator: str | None = None

    @property
    def problem(self) -> Problem:
        m, n, k = self.sizes
        return Problem(
            self._matrix(m, k, self.element, self.transposed[0], self.pitch),
            self._matrix(k, n, self.element, self.transposed[1]),
            self._matrix(m, n, self.result, False, self.result_pitch),
            self.accumulator or ACCUMULATORS.get(self.element, "f32"),
            self.adds,
            self.batched,
            allow_tf32=True,
        )

    def _matrix(
        self, m: int, n: int, element: str, transposed: bool = False, pitch: int | None = None
    ) -> Matrix:
        rows, columns = (n, m) if transposed else (m, n)
        sizes = [BATCHES] * self.batched + [rows, columns]
        shape = "x".join(str(size or "?") for size in sizes)
        offset = self.alignment or 5
        layout = f", strided<[{pitch}, 1], offset: {offset}>" if pitch else ""
        return Matrix(
            f"memref<{shape}x{element}{layout}>",
            element,
            (rows or None, columns or None),
            pitch or columns or None,
            max(self.alignment, ELEMENT_BYTES[element]),
            transposed,
        )


def text(product: Product, epilogue: Epilogue | None = None) -> str:
    made = MMA_SYNC.function(product.problem, product.variant, "gemm", epilogue)
    return made.replace("{\n", "attributes {llvm.emit_c_interface} {\n", 1)


def build(product: Product, folder: Path, epilogue: Epilogue | None = None) -> Path:
    assert MMA_SYNC.can_implement(product.problem, product.variant)
    source = folder / "gemm.mlir"
    source.write_text(text(product, epilogue))
    chip = "sm_90" if product.variant.instruction_k else "sm_80"
    build_here(source, "--chip", chip, "-o", folder / "gemm")
    return folder / "gemm"


def random(r: np.random.Generator, shape: tuple[int, ...], element: str) -> Array:
    if element.startswith("i") and max(shape) > 2**17:
        # Products of one sign: the sum leaves i32, and wraps.
        return np.full(shape, -128, DTYPES[element])
    if element.startswith("i"):
        return r.integers(-128, 128, shape).astype(DTYPES[element])
    # All of one sign: relative errors then say something about each element.
    return r.uniform(0.5, 1, shape).astype(DTYPES[element])


def wide(array: Array) -> Array:
    return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)


def save(path: Path, array: Array) -> str:
    np.save(path, array.view("V2") if array.dtype == ml_dtypes.bfloat16 else array)
    return str(path)


def check(program: Path, product: Product, sizes: tuple[int, int, int], finish: Any = None) -> None:
    """The program's C is NumPy's, and what it has before is not seen unless it is added to."""
    m, n, k = sizes
    r = np.random.default_rng([m, n, k])
    batch = (BATCHES,) if product.batched else ()
    shapes = [batch + ((k, m) if product.transposed[0] else (m, k))]
    shapes += [batch + ((n, k) if product.transposed[1] else (k, n))]
    a, b = (random(r, shape, product.element) for shape in shapes)
    c = random(r, (*batch, m, n), product.result)
    left, right = (
        wide(array).swapaxes(-1, -2) if is_transposed else wide(array)
        for array, is_transposed in zip((a, b), product.transposed, strict=True)
    )
    expected = left @ right
    if product.adds:
        expected += wide(c)
    if finish is not None:
        expected = finish(expected)
    if product.element == "i8":
        expected = expected.astype(np.int32)
    folder = program.parent
    done = run(
        program,
        *("--a", save(folder / "a.npy", a), "--b", save(folder / "b.npy", b)),
        *("--c", save(folder / "c.npy", c) if product.adds else "poison"),
        *(() if product.adds else ("--dim", f"c={'x'.join(map(str, c.shape))}")),
        *("--expect", f"c={save(folder / 'e.npy', expected.astype(c.dtype))}"),
        *("--rtol", str(TF32_RTOL if product.element == "f32" else RTOLS[product.result])),
        *("--atol", "0", "--device", "cpu"),
    )
    _succeeded(done, sizes)


def _succeeded(done: subprocess.CompletedProcess[str], sizes: tuple[int, int, int]) -> None:
    assert (done.stderr, done.returncode) == ("", 0), sizes
    assert "c matches" in done.stdout


SMALL = Variant(32, 32, 32, 1, 2, 3, copy_bytes=1)
F32 = replace(SMALL, k=16)
F64 = replace(SMALL, k=8)
# Hopper's instructions.
WIDE_F64 = replace(SMALL, k=16, instruction_k=8, copy_bytes=8)
I8 = replace(SMALL, k=64)
PLAIN, NT, TN, TT = ((left, right) for left in (False, True) for right in (False, True))

PRODUCTS = {
    "f16": (Product("f16", "f16", SMALL), SIZES),
    "f16_aligned_tt": (
        Product("f16", "f32", replace(SMALL, k=64, copy_bytes=16), (0, 0, 0), TT, 16, adds=True),
        ALIGNED,
    ),
    "f16_strided": (
        Product("f16", "f16", SMALL, (70, 31, 45), TN, 0, 77, accumulator="f16"),
        ((70, 31, 45),),
    ),
    "bf16_batched": (
        Product("bf16", "bf16", replace(SMALL, copy_bytes=4), (0, 0, 0), NT, 4, batched=True),
        ((33, 46, 66), (8, 2, 0)),
    ),
    "bf16_split": (
        Product(
            *("bf16", "f32", replace(SMALL, copy_bytes=8, split_k=3), (0, 0, 0), TN, 8),
            adds=True,
            batched=True,
        ),
        ((32, 48, 100), (4, 36, 20), (36, 4, 0), (0, 4, 4)),
    ),
    # With as many parts of K as the program chooses: 2, 3 and 1.
    "f16_parts": (
        Product("f16", "f16", replace(SMALL, split_k=0), (0, 0, 0), NT, adds=True),
        ((33, 46, 258), (8, 2, 400), (4, 36, 20)),
    ),
    "f32": (Product("f32", "f32", F32, (0, 0, 0), NT), SIZES),
    "f32_aligned": (
        Product("f32", "f32", replace(F32, copy_bytes=16), (0, 96, 0), TN, 16),
        ALIGNED[:1],
    ),
    "f64": (Product("f64", "f64", replace(F64, copy_bytes=8), (0, 0, 0), PLAIN, 8), SIZES),
    "f64_tt": (Product("f64", "f32", F64, (33, 47, 65), TT, adds=True), ODD),
    "f64_wide": (
        Product("f64", "f64", replace(WIDE_F64, instruction_k=4), (0, 0, 0), PLAIN, 8),
        SIZES,
    ),
    "f64_wide_nt": (
        Product("f64", "f64", replace(WIDE_F64, copy_bytes=16), (0, 0, 0), NT, 16, adds=True),
        ALIGNED,
    ),
    "f64_wide_tn": (
        Product(
            *("f64", "f32", replace(WIDE_F64, copy_bytes=1, split_k=2), (0, 0, 0), TN),
            batched=True,
        ),
        ODD,
    ),
    "f64_wide_tt": (
        Product(
            *("f64", "f64", replace(WIDE_F64, copy_bytes=1)),
            *((33, 47, 65), TT),
        ),
        ODD,
    ),
    "i8": (Product("i8", "i32", I8, (0, 0, 65), NT), ODD),
    "i8_pairs": (Product("i8", "i32", I8, (33, 47, 65), TN, adds=True), ODD),
    "i8_aligned": (
        Product("i8", "i8", replace(I8, k=128, copy_bytes=16), (0, 0, 176), PLAIN, 16),
        ((64, 32, 176), (16, 48, 176)),
    ),
    # Longer than sums of i8 may become without leaving i32: it is asked of every product.
    "i8_any_k": (Product("i8", "i32", replace(I8, m=16, warps_n=1)), ((2, 3, 140000), (17, 5, 9))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_product_is_numpys(tmp_path: Path, name: str) -> None:
    """Of every type, layout and size, aligned or not."""
    product, sizes = PRODUCTS[name]
    program = build(product, tmp_path)
    for size in sizes:
        check(program, product, size)


# The sum + row + 2 · column.
ADD_PLACE = Epilogue(
    (
        *(
            Step(f"{name}_f32", "arith.sitofp", (f"{name}_i32",), "{}", "(i32) -> f32")
            if is_cast
            else Step(f"{name}_i32", "arith.index_cast", (name,), "{}", "(index) -> i32")
            for name in ("row", "column")
            for is_cast in (False, True)
        ),
        *(
            Step(f"sum{number}", "arith.addf", (sum_, f"{name}_f32"), "{}", "(f32, f32) -> f32")
            for number, (sum_, name) in enumerate(
                (("sum", "row"), ("sum0", "column"), ("sum1", "column"))
            )
        ),
    ),
    "sum2",
)


@pytest.mark.parametrize("split_k", [1, 2])
def test_epilogue_sees_sum_row_and_column(tmp_path: Path, split_k: int) -> None:
    """C gets what the epilogue makes of them."""
    variant = replace(SMALL, split_k=split_k)
    product = Product("f16", "f32", variant, alignment=16, result_pitch=48)

    def finish(sums: Array) -> Array:
        rows, columns = np.indices(sums.shape)
        return sums + rows + 2 * columns

    check(build(product, tmp_path, ADD_PLACE), product, (50, 45, 130), finish)


CHIPS = "sm_80,sm_86,sm_89,sm_90,sm_100,sm_120"
LARGE = (4096, 4096, 4096)


@pytest.mark.parametrize(
    ("chips", "element", "transposed"),
    [
        (CHIPS, "f16", PLAIN),
        *(("sm_80", element, PLAIN) for element in ("f32", "f64", "i8")),
        *(("sm_80", element, TT) for element in ("f16", "f32", "f64", "i8")),
    ],
)
def test_first_variant_fits_into_registers(
    aotc: Callable[..., Outcome],
    tmp_path: Path,
    chips: str,
    element: str,
    transposed: tuple[bool, bool],
) -> None:
    """What is tried first for large squares spills nothing, on any chip."""
    result = {"i8": "i32"}.get(element, element)
    product = Product(element, result, SMALL, LARGE, transposed, 16)
    variant = MMA_SYNC.variants(product.problem)[0]
    source, object_ = tmp_path / "gemm.mlir", tmp_path / "gemm.o"
    source.write_text(text(dataclasses.replace(product, variant=variant)))
    options = ("--chip", chips, "--emit", "obj", "--no-cpu-kernels")
    aotc("build", source, *options, "-o", object_).succeeded()
    images = json.loads(aotc("inspect", object_, "--json").succeeded().stdout)["images"]
    assert len(images) == len(chips.split(","))
    for image in images:
        (kernel,) = image["kernels"]
        assert (kernel["spill_stores"], kernel["spill_loads"]) == (0, 0)


def test_alignment_decides_on_copies() -> None:
    """Copies are as wide as rows are known to be aligned, and no wider."""
    for alignment, least in ((16, 16), (8, 8), (4, 4), (2, 1)):
        product = Product("f16", "f16", SMALL, alignment=alignment)
        tried = MMA_SYNC.variants(product.problem)
        assert {variant.copy_bytes for variant in tried} == {least}
        for wider in (4, 8, 16):
            takes = MMA_SYNC.can_implement(product.problem, replace(SMALL, copy_bytes=wider))
            assert takes == (wider <= alignment)


@pytest.mark.parametrize(
    "variant",
    [
        replace(SMALL, n=96, warps_n=3),  # 12 chunks are not swizzled in place
        replace(SMALL, k=16),  # no second part of K to fetch in
        replace(SMALL, m=16, warps_m=2),  # half a tile for a warp
        replace(SMALL, stages=1),
        replace(SMALL, copy_bytes=32),
    ],
)
def test_tiles_without_equal_parts_are_refused(variant: Variant) -> None:
    """What threads could not share, or pipelines not hide."""
    assert not MMA_SYNC.can_implement(Product("f16", "f16", SMALL, alignment=32).problem, variant)


def test_types_without_tensor_cores_are_refused() -> None:
    """f32 is not rounded to tf32 unasked, and sums are never narrower than what they add."""
    assert MMA_SYNC.variants(replace(Product("f32", "f32", F32).problem, allow_tf32=False)) == ()
    assert MMA_SYNC.variants(Product("f16", "f64", SMALL).problem) == ()
    assert MMA_SYNC.variants(Product("i8", "f32", I8).problem) == ()
    assert MMA_SYNC.variants(Product("f32", "f32", F32, accumulator="f64").problem) == ()
