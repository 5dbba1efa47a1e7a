"""A matrix with one row or column, for the CPU device, against NumPy in double precision."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import shared_folder
from matmul.scalar_products import CLAMPED, Product, build, call, check_clamped

import aotc
from aotc.kernels.matmul.cpu.streamed import CPU_STREAMED

# N and K: none, less than a vector and than a group of rows, just over them, several blocks.
SIZES = [(1, 1), (3, 7), (70, 133), (5, 0), (0, 5), (300, 16), (1030, 37)]


def _products() -> list[Product]:
    found = []
    for turned in (False, True):
        word = "turned" if turned else "straight"
        one = Product(word, 1, 1, 1, dynamic="nk", transposed_b=turned)
        f16, bf16 = (
            replace(one, name=f"{word}_{e}", n=70, k=133, element=e, result=e)
            for e in ("f16", "bf16")
        )
        f64 = {"element": "f64", "accumulator": "f64", "result": "f64"}
        i8 = {"element": "i8", "accumulator": "i32", "result": "i32"}
        wide = replace(one, n=70, k=133)
        pitches = {"a": 140, "b": 144, "c": 77}
        found += [
            one,
            f16,
            bf16,
            replace(wide, name=f"{word}_f64", **f64),
            replace(wide, name=f"{word}_i8", **i8),
            replace(wide, name=f"{word}_adds", adds=True),
            replace(wide, name=f"{word}_batched", batches=3, adds=True),
            replace(wide, name=f"{word}_strided", dynamic="", pitches=pitches),
            replace(wide, name=f"{word}_upright", transposed_a=True),
        ]
        column = Product(f"column_{word}", 70, 1, 133, dynamic="mk", transposed_a=turned)
        found += [
            column,
            replace(column, name=f"{column.name}_lying", transposed_b=True),
            replace(column, name=f"{column.name}_batched", batches=3, adds=True),
            replace(column, name=f"{column.name}_strided", dynamic="", pitches={"a": 144}),
            replace(column, name=f"{column.name}_i8", **i8),
        ]
    return found


PRODUCTS = _products()


def _text(product: Product) -> str:
    [variant] = CPU_STREAMED.variants(product.problem)
    return CPU_STREAMED.function(product.problem, variant, product.name)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_folder(tmp_path_factory) / "streamed"
    return build(PRODUCTS, _text, folder, "--chip", "sm_80")


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_products_are_right(program: Path, product: Product, tmp_path: Path) -> None:
    """As f64 has it, in a C of NaN, and every time the same."""
    assert call(program, product, tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "size"), [*itertools.product(("straight", "turned"), SIZES)], ids=str
)
def test_any_sizes_are_right(
    program: Path, name: str, size: tuple[int, int], tmp_path: Path
) -> None:
    n, k = size
    product = Product(name, 1, n, k, dynamic="nk", transposed_b=name == "turned")
    assert call(program, product, tmp_path) == ""


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [(1, 34, 3), (34, 1, 3)], ids=["row", "column"])
def test_what_is_stored_is_finished(
    size: tuple[int, int, int], turned: bool, tmp_path: Path
) -> None:
    """Of a row and of a column: the epilogue is given the accumulator, its row and its column."""
    is_row = size[0] == 1
    transposed = {"transposed_b" if is_row else "transposed_a": turned}
    product = Product("finished", *size, dynamic="nk" if is_row else "mk", **transposed)
    [variant] = CPU_STREAMED.variants(product.problem)
    text = CPU_STREAMED.function(product.problem, variant, product.name, CLAMPED)
    check_clamped(product, text, tmp_path)


def test_other_products_are_refused() -> None:
    one = Product("one", 2, 64, 64, dynamic="")
    apart = {"transposed_a": True, "pitches": {"a": 2}}
    for other in (one, replace(one, m=1, **apart), replace(one, n=1, pitches={"c": 2})):
        assert CPU_STREAMED.variants(other.problem) == ()


def test_rows_of_one_buffer_are_read_at_their_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products that differ in the offsets of their rows, such as the steps of a recurrent network,
    have one launch function."""
    steps, n, k = 5, 256, 64
    lines = []
    for i in range(steps):
        row, result = (f"memref<1x{m}xf32, strided<[{m}, 1], offset: {i * m}>>" for m in (k, n))
        lines += [
            f"%a{i} = memref.subview %a[{i}, 0] [1, {k}] [1, 1] : memref<{steps}x{k}xf32> to {row}",
            f"%c{i} = memref.subview %c[{i}, 0] [1, {n}] [1, 1]"
            f" : memref<{steps}x{n}xf32> to {result}",
            f"linalg.matmul ins(%a{i}, %b : {row}, memref<{k}x{n}xf32>) outs(%c{i} : {result})",
        ]
    body = "\n  ".join(lines)
    text = f"""
func.func @rows(%a: memref<{steps}x{k}xf32>, %b: memref<{k}x{n}xf32>, %c: memref<{steps}x{n}xf32>)
    attributes {{llvm.emit_c_interface}} {{
  {body}
  return
}}"""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    built = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="rows", chips=("sm_80",))
    random = np.random.default_rng(0)
    sizes = (steps, k), (k, n), (steps, n)
    a, b, c = (random.standard_normal(size).astype(np.float32) for size in sizes)
    expected = c + a.astype(np.float64) @ b
    aotc.load(built).rows(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
def test_one_row_of_an_unknown_number_has_its_kernel(
    transposed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is fused to the product, which reads rows of C's size as well."""
    n, k = 256, 64
    of_b, shape = ("(m, n, k) -> (n, k)", (n, k)) if transposed else ("(m, n, k) -> (k, n)", (k, n))
    whole, matrix = "tensor<?x256xf32>", f"tensor<{shape[0]}x{shape[1]}xf32>"
    text = f"""
func.func @rows(%a: tensor<?x{k}xf32>, %b: {matrix}, %more: {whole}) -> {whole}
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x{k}xf32>
  %empty = tensor.empty(%m) : {whole}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {whole}) -> {whole}
  %c = linalg.generic {{
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<{of_b}>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<?x{k}xf32>, {matrix}) outs(%zeros : {whole}) {{
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> {whole}
  %d = linalg.add ins(%c, %more : {whole}, {whole}) outs(%empty : {whole}) -> {whole}
  return %d : {whole}
}}"""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    options = {"emit": "shared,mlir", "out": f"{tmp_path}/", "name": "rows", "chips": ("sm_80",)}
    built = aotc.build(text, **options)
    assert "_cpu_gemv_" in built.paths["mlir"].read_text()
    library, random = aotc.load(built), np.random.default_rng(0)
    b = random.standard_normal(shape).astype(np.float32)
    for m in (0, 1, 2, 9):
        a, more = (random.standard_normal((m, size)).astype(np.float32) for size in (k, n))
        expected = a.astype(np.float64) @ (b.T if transposed else b) + more
        np.testing.assert_allclose(library.rows(a, b, more), expected, rtol=0, atol=1e-4)
