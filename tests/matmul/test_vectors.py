"""Products of a matrix with a vector in whole modules: which are found, what they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.kernel_targets import kernel_targets

import aotc

HEAD = """
func.func @product(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
"""
FILL = "  linalg.fill ins(%zero : f32) outs(%C : memref<{c}>)\n"
END = """
  {operation} ins(%A, %B : memref<{a}>, memref<{b}>) outs(%C : memref<{c}>){body}
  return
}}
"""
# y[i] += x[k] * M[k, i], of a matrix as the first operand.
GENERIC = """linalg.generic {{
      indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (k)>,
                       affine_map<(k, i) -> (i)>],
      iterator_types = ["reduction", "parallel"]}}"""
BODY = """ {{
  ^bb0(%m: f32, %x: f32, %y: f32):
    %0 = arith.mulf %m, %x : f32
    %1 = arith.addf %y, %0 : f32
    linalg.yield %1 : f32
  }}"""


def built(
    operation: str, a: str, b: str, c: str, folder: Path, *, fills: bool = True, body: str = ""
) -> aotc.Artifact:
    text = HEAD + (FILL if fills else "") + END
    text = text.replace("{operation}", operation).replace("{body}", body)
    text = text.format(a=a, b=b, c=c)
    return aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))


CASES = {
    "matvec": ("linalg.matvec", "?x?xf32", "?xf32", "?xf32", "mk,k->m", ""),
    "vecmat": ("linalg.vecmat", "?xf32", "?x?xf32", "?xf32", "k,kn->n", ""),
    "batch_matvec": ("linalg.batch_matvec", "?x?x?xf32", "?x?xf32", "?x?xf32", "bmk,bk->bm", ""),
    "batch_vecmat": ("linalg.batch_vecmat", "?x?xf32", "?x?x?xf32", "?x?xf32", "bk,bkn->bn", ""),
    "generic": (GENERIC, "?x?xf32", "?xf32", "?xf32", "kn,k->n", BODY),
}


@pytest.mark.parametrize("fills", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_matrix_with_a_vector_is_a_product(name: str, fills: bool, tmp_path: Path) -> None:
    *texts, subscripts, body = CASES[name]
    artifact = built(*texts, tmp_path, fills=fills, body=body)
    assert set(kernel_targets(artifact)) == {
        "gpu",
        "cpu",
    }
    library = aotc.load(artifact.path)
    random = np.random.default_rng(3)
    for sizes in ({"m": 70, "n": 50, "k": 133, "b": 3}, {"m": 1, "n": 1, "k": 1, "b": 1},
                  {"m": 5, "n": 7, "k": 0, "b": 2}):  # fmt: skip
        first, second, result = subscripts.replace("->", ",").split(",")
        a, b = (
            random.random([sizes[axis] for axis in axes]).astype(np.float32) - np.float32(0.5)
            for axes in (first, second)
        )
        c = np.full([sizes[axis] for axis in result], np.nan if fills else 2.0, np.float32)
        library.product(a, b, c)
        exact = np.einsum(subscripts, a.astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(c, exact + (0 if fills else 2), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        # Rows of a larger matrix, and vectors in the middle of others.
        (
            "64x96xf32, strided<[128, 1], offset: 5>",
            "96xf32, strided<[1], offset: 3>",
            "64xf32, strided<[1], offset: ?>",
        ),
        ("?x?xf32, strided<[?, 1], offset: ?>", "?xf32, strided<[1], offset: ?>", "?xf32"),
    ],
)
def test_strided_vectors_are_found(a: str, b: str, c: str, tmp_path: Path) -> None:
    artifact = built("linalg.matvec", a, b, c, tmp_path)
    assert "gpu" in kernel_targets(artifact)


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        # Elements do not follow each other.
        ("64x96xf32", "96xf32, strided<[2]>", "64xf32"),
        ("64x96xf32", "96xf32", "64xf32, strided<[4]>"),
    ],
)
def test_other_vectors_stay_loops(a: str, b: str, c: str, tmp_path: Path) -> None:
    artifact = built("linalg.matvec", a, b, c, tmp_path)
    # A library's kernel would be for GPUs.
    assert "gpu" not in kernel_targets(artifact)


@pytest.mark.parametrize(("m", "n"), [(1, 512), (512, 1)])
def test_one_row_or_column_is_a_vector(m: int, n: int, tmp_path: Path) -> None:
    """Upstream's folding takes the dimension of one away."""
    a, b, c = f"{m}x512xf32", f"512x{n}xf32", f"{m}x{n}xf32"
    text = f"""
func.func @product(%A: tensor<{a}>, %B: tensor<{b}>) -> tensor<{c}>
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{c}>
  %C = linalg.fill ins(%zero : f32) outs(%empty : tensor<{c}>) -> tensor<{c}>
  %D = linalg.matmul ins(%A, %B : tensor<{a}>, tensor<{b}>) outs(%C : tensor<{c}>) -> tensor<{c}>
  return %D : tensor<{c}>
}}
"""
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",))
    assert "gpu" in kernel_targets(artifact)


# A layer behind an attention: heads and their columns are the vector; then it is rounded, and added
# to what the layer began from.
BEHIND_HEADS = """
func.func @layer(%heads: memref<8x64xf16>, %W: memref<512x8x64xf16>, %before: memref<512xf16>,
                 %after: memref<512xf16>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<512xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<512xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, h, d) -> (h, d)>,
      affine_map<(n, h, d) -> (n, h, d)>, affine_map<(n, h, d) -> (n)>],
      iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%heads, %W : memref<8x64xf16>, memref<512x8x64xf16>) outs(%sums : memref<512xf32>) {
  ^bb0(%x: f16, %w: f16, %y: f32):
    %wide_x = arith.extf %x : f16 to f32
    %wide_w = arith.extf %w : f16 to f32
    %product = arith.mulf %wide_x, %wide_w : f32
    %sum = arith.addf %y, %product : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>,
      affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
      ins(%sums, %before : memref<512xf32>, memref<512xf16>) outs(%after : memref<512xf16>) {
  ^bb0(%sum: f32, %x: f16, %y: f16):
    %rounded = arith.truncf %sum : f32 to f16
    %added = arith.addf %rounded, %x : f16
    linalg.yield %added : f16
  }
  memref.dealloc %sums : memref<512xf32>
  return
}
"""


def test_a_layer_behind_heads_is_one_kernel(tmp_path: Path) -> None:
    """Dimensions that it sums over are one, and what is done with the result is its epilogue."""
    artifact = aotc.build(
        BEHIND_HEADS, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_80",)
    )
    assert set(kernel_targets(artifact)) == {"gpu", "cpu"}
    random = np.random.default_rng(5)
    heads, w = (random.standard_normal(shape).astype(np.float16) for shape in ((8, 64), (512, 512)))
    before = random.standard_normal(512).astype(np.float16)
    after = np.full(512, np.nan, np.float16)
    aotc.load(artifact.path).layer(heads, w.reshape(512, 8, 64), before, after)
    sums = w.astype(np.float64) @ heads.reshape(-1).astype(np.float64)
    expected = sums.astype(np.float16) + before
    np.testing.assert_allclose(after, expected, rtol=2e-3, atol=2e-2)
