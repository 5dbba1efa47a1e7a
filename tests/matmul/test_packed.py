"""Products with a constant B, which the runtime packs once, against NumPy in double precision."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import made_once, shared_folder

import aotc

# M, K and N: columns that are whole vectors, and not; several tiles and steps along K.
SIZES = ((37, 70, 130), (5, 300, 64), (200, 40, 401), (9, 530, 16))


def matrices(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(m)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    return a, b


def text_of(m: int, k: int, n: int) -> str:
    """A product of A, whose rows are not known, and of a constant, plus 1."""
    _, b = matrices(m, k, n)
    return f"""
func.func @product_{m}(%a: tensor<?x{k}xf32>) -> tensor<?x{n}xf32>
    attributes {{llvm.emit_c_interface}} {{
  %b = arith.constant dense<"0x{b.tobytes().hex().upper()}"> : tensor<{k}x{n}xf32>
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %a, %c0 : tensor<?x{k}xf32>
  %empty = tensor.empty(%m) : tensor<?x{n}xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%ones : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  return %c : tensor<?x{n}xf32>
}}"""


def lowered(text: str, folder: Path) -> str:
    out = folder / "built.mlir"
    aotc.build(text, emit="mlir", out=str(out), chips=("sm_90a",))
    return out.read_text()


def check(library: aotc.Library, size: tuple[int, int, int]) -> None:
    a, b = matrices(*size)
    result = np.asarray(getattr(library, f"product_{size[0]}")(a))
    expected = a.astype(np.float64) @ b.astype(np.float64) + 1
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6 * size[1])


@pytest.fixture(scope="module", params=["in the library", "in a file"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library, whose constants are in it or in a file of weights."""

    def build(folder: Path) -> None:
        text = "\n".join(text_of(*size) for size in SIZES)
        weights = folder / "weights" if request.param == "in a file" else None
        out = f"{folder}/"
        aotc.build(text, emit="shared", out=out, name="built", chips=("sm_90a",), weights=weights)

    name = f"packed_{'_'.join(request.param.split())}"
    return made_once(shared_folder(tmp_path_factory) / name, build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_products_are_right(
    built: Path, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each level of x86-64, which a library asks for once; and in each call."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    for size in (*SIZES, *SIZES):
        check(library, size)


def test_threads_may_ask_first_at_once(built: Path, tmp_path: Path) -> None:
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(check, library, size) for size in SIZES * 4]:
            done.result()


def test_a_constant_of_other_dimensions_is_packed(tmp_path: Path) -> None:
    k, heads, n = 70, 5, 26
    a, b = matrices(37, k, heads * n)
    text = f"""
func.func @product(%a: tensor<37x{k}xf32>) -> tensor<37x{heads}x{n}xf32>
    attributes {{llvm.emit_c_interface}} {{
  %b = arith.constant dense<"0x{b.tobytes().hex().upper()}"> : tensor<{k}x{heads}x{n}xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<37x{heads}x{n}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<37x{heads}x{n}xf32>)
      -> tensor<37x{heads}x{n}xf32>
  %c = linalg.generic {{
      indexing_maps = [affine_map<(i, h, j, k) -> (i, k)>, affine_map<(i, h, j, k) -> (k, h, j)>,
        affine_map<(i, h, j, k) -> (i, h, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<37x{k}xf32>, tensor<{k}x{heads}x{n}xf32>)
      outs(%zeros : tensor<37x{heads}x{n}xf32>) {{
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> tensor<37x{heads}x{n}xf32>
  return %c : tensor<37x{heads}x{n}xf32>
}}"""
    assert "aotc_packed_" in lowered(text, tmp_path)
    built = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_90a",))
    result = np.full((37, heads, n), np.nan, np.float32)
    aotc.load(built.path).product(a, result)
    expected = (a.astype(np.float64) @ b.astype(np.float64)).reshape(result.shape)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)


# By name: the sizes of A, B, and C, the maps from the loops to them, and the reductions.
TRANSPOSED = {
    "a matmul": (
        ((75, 300), (130, 300), (75, 130)),
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, "
        "affine_map<(i, j, k) -> (i, j)>",
        "ik,jk->ij",
    ),
    "several rows of tiles": (
        ((230, 70), (401, 70), (230, 401)),
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, "
        "affine_map<(i, j, k) -> (i, j)>",
        "ik,jk->ij",
    ),
    "few columns": (
        ((9, 70), (19, 70), (9, 19)),
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, "
        "affine_map<(i, j, k) -> (i, j)>",
        "ik,jk->ij",
    ),
    "a convolution": (
        ((2, 9, 11, 24), (50, 3, 3, 24), (2, 7, 9, 50)),
        "affine_map<(n, y, x, j, u, v, c) -> (n, y + u, x + v, c)>, "
        "affine_map<(n, y, x, j, u, v, c) -> (j, u, v, c)>, "
        "affine_map<(n, y, x, j, u, v, c) -> (n, y, x, j)>",
        "nyxuvc,juvc->nyxj",
    ),
}


def transposed_text(name: str, filters: np.ndarray) -> str:
    sizes, maps, _ = TRANSPOSED[name]
    a, b, c = ("x".join(map(str, shape)) for shape in sizes)
    parallel = len(sizes[2])
    count = len(maps.partition("(")[2].partition(")")[0].split(","))
    kinds = ", ".join(['"parallel"'] * parallel + ['"reduction"'] * (count - parallel))
    return f"""
func.func @product(%a: tensor<{a}xf16>) -> tensor<{c}xf32> attributes {{llvm.emit_c_interface}} {{
  %b = arith.constant dense<"0x{filters.tobytes().hex().upper()}"> : tensor<{b}xf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{c}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{c}xf32>) -> tensor<{c}xf32>
  %c = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%a, %b : tensor<{a}xf16>, tensor<{b}xf16>) outs(%zeros : tensor<{c}xf32>) {{
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %wide = arith.extf %x : f16 to f32
    %other = arith.extf %y : f16 to f32
    %product = arith.mulf %wide, %other : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> tensor<{c}xf32>
  return %c : tensor<{c}xf32>
}}"""


@pytest.mark.parametrize("place", ["library", "file"])
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_constants_of_f16_are_packed(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The constant is in the library or in a file of weights. Results at each level of x86-64 are
    those in double precision."""
    sizes, _, einsum = TRANSPOSED[name]
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in sizes[:2])
    text = transposed_text(name, b)
    assert "@aotc_transposed_" in lowered(text, tmp_path)
    weights = tmp_path / "weights" if place == "file" else None
    out = f"{tmp_path}/built/"
    aotc.build(text, emit="shared", out=out, name="built", chips=("sm_90a",), weights=weights)
    seen = a.astype(np.float64)
    if name == "a convolution":
        seen = np.lib.stride_tricks.sliding_window_view(seen, (3, 3), (1, 2))
        seen = np.moveaxis(seen, 3, -1)
    expected = np.einsum(einsum, seen, b.astype(np.float64))
    for level in ("1", "3", "4"):
        monkeypatch.setenv("AOTC_CPU_LEVEL", level)
        library = aotc.load(shutil.copytree(tmp_path / "built", tmp_path / level))
        result = np.full(sizes[2], np.nan, np.float32)
        library.product(a, result)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-3)


def test_only_large_constants_of_few_rows_are_packed(tmp_path: Path) -> None:
    assert "aotc_packed_" in lowered(text_of(37, 70, 130), tmp_path)
    assert "aotc_packed_" not in lowered(text_of(37, 7, 130), tmp_path)
    many = text_of(37, 70, 130).replace("?", "600").replace("(%m)", "()")
    assert "aotc_packed_" not in lowered(many, tmp_path)


def test_no_more_are_packed_than_memory_is_granted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = SIZES[:2]
    text = "\n".join(text_of(*size) for size in sizes)
    packed = [-(-n // 16) * (k + 1) * 64 for _, k, n in sizes]
    monkeypatch.setattr("aotc.kernels.cpu.constant_copies._MOST_BYTES", sum(packed) - 1)
    found = re.findall(r"memref\.global \S+ constant @aotc_packed_", lowered(text, tmp_path))
    assert len(found) == 1
