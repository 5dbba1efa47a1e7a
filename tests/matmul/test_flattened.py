"""Products behind views: several dimensions that follow each other are one of a matrix."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.contracted import Contraction

import aotc
from aotc.kernels.matmul.implicit_gemm.flattened import flattened
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm

# A linear layer of a batch of sequences.
LINEAR = Contraction(
    *("linear", {"b": 3, "s": 35, "n": 80, "k": 72}),
    *(("b", "s", "k"), ("k", "n"), ("b", "s", "n")),
)
CASES = {
    "rows": (LINEAR, "105x72 72x80 105x80"),
    "turned": (replace(LINEAR, name="turned", b=("n", "k")), "105x72 80x72 105x80"),
    "a batch of any size": (
        replace(LINEAR, name="any", dynamic=(("a", 0), ("c", 0))),
        "?x72 72x80 ?x80",
    ),
    "two dimensions of a batch": (
        Contraction(
            *("heads", {"b": 2, "h": 3, "i": 40, "j": 36, "d": 64}),
            *(("b", "h", "i", "d"), ("b", "h", "d", "j"), ("b", "h", "i", "j")),
        ),
        "6x40x64 6x64x36 6x40x36",
    ),
    "two dimensions of K": (
        Contraction(
            *("deep", {"i": 40, "j": 72, "h": 4, "d": 64}),
            *(("i", "h", "d"), ("h", "d", "j"), ("i", "j")),
        ),
        "40x256 256x72 40x72",
    ),
    "rows and K of two": (
        Contraction(
            *("both", {"b": 3, "s": 35, "h": 4, "d": 18, "n": 80}),
            *(("b", "s", "h", "d"), ("h", "d", "n"), ("b", "s", "n")),
        ),
        "105x72 72x80 105x80",
    ),
    "columns": (
        Contraction(
            *("image", {"f": 40, "h": 6, "w": 7, "c": 24}),
            *(("f", "c"), ("c", "h", "w"), ("f", "h", "w")),
        ),
        "40x24 24x42 40x42",
    ),
    "columns of any size": (
        Contraction(
            *("any_image", {"f": 40, "h": 6, "w": 7, "c": 24}),
            *(("f", "c"), ("c", "h", "w"), ("f", "h", "w")),
            dynamic=(("b", 1), ("b", 2), ("c", 1), ("c", 2)),
        ),
        "40x24 24x? 40x?",
    ),
    "rows of any size": (
        Contraction(
            *("any_rows", {"h": 6, "w": 7, "c": 24, "f": 40}),
            *(("h", "w", "c"), ("c", "f"), ("h", "w", "f")),
            dynamic=(("a", 0), ("a", 1), ("c", 0), ("c", 1)),
        ),
        "?x24 24x40 ?x40",
    ),
    "rows and columns of a batch": (
        Contraction(
            *("images", {"n": 3, "f": 5, "g": 8, "h": 6, "w": 7, "c": 24}),
            *(("n", "f", "g", "c"), ("n", "c", "h", "w"), ("n", "f", "g", "h", "w")),
        ),
        "3x40x24 3x24x42 3x40x42",
    ),
    "dimensions of one": (
        Contraction(
            *("ones", {"n": 1, "i": 64, "o": 1, "j": 72, "k": 64}),
            *(("n", "i", "k"), ("k", "o", "j"), ("n", "i", "o", "j")),
        ),
        "64x64 64x72 64x72",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_become_one(name: str) -> None:
    case, shapes = CASES[name]
    found = case.found(flattened)
    assert found is not None
    problem = found.problem
    assert not isinstance(problem, ImplicitGemm)
    types = [matrix.type for matrix in (problem.a, problem.b, problem.c)]
    assert types == [f"memref<{shape}xf32>" for shape in shapes.split()]


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("rows", [[0, 1], [2]]),
        ("a batch of any size", [[0, 1], [2]]),
        ("rows and K of two", [[0, 1], [2]]),
        ("columns", [[0], [1, 2]]),
        ("columns of any size", [[0], [1, 2]]),
        ("rows of any size", [[0, 1], [2]]),
        ("rows and columns of a batch", [[0], [1, 2], [3, 4]]),
    ],
)
def test_the_result_stays_the_buffer_that_it_is(name: str, groups: list[list[int]]) -> None:
    """So that what is done with it is found, and done in the product's kernel. `groups`: its
    dimensions that are the batch, rows, and columns."""
    case, _ = CASES[name]
    found = case.found(flattened)
    assert found is not None
    assert found.c_groups == groups


@pytest.mark.parametrize(
    "case",
    [
        # Images lie between their channels.
        Contraction(
            *("pointwise", {"n": 2, "f": 64, "p": 49, "c": 64}),
            *(("n", "c", "p"), ("f", "c"), ("n", "f", "p")),
        ),
        # The heads of a sequence lie between its positions.
        Contraction(
            *("between", {"b": 2, "h": 3, "i": 40, "j": 36, "d": 64}),
            *(("b", "i", "h", "d"), ("b", "j", "h", "d"), ("b", "h", "i", "j")),
        ),
        # Every other column of an image of unknown size.
        Contraction(
            *("strided", {"f": 40, "h": 6, "w": 7, "c": 24}),
            *(("f", "c"), ("c", "h", "w*2"), ("f", "h", "w")),
            dynamic=(("b", 1), ("b", 2), ("c", 1), ("c", 2)),
        ),
        # Windows of images of unknown size, whose columns are part of the image's.
        Contraction(
            *("windows", {"f": 40, "h": 6, "w": 7, "c": 24, "i": 3, "j": 3}),
            *(("f", "c", "i", "j"), ("c", "h + i", "w + j"), ("f", "h", "w")),
            dynamic=(("b", 1), ("b", 2), ("c", 1), ("c", 2)),
        ),
        # The same, with outputs of known size, and of images of known size.
        Contraction(
            *("known_outputs", {"f": 40, "h": 6, "w": 7, "c": 24, "i": 3, "j": 3}),
            *(("f", "c", "i", "j"), ("c", "h + i", "w + j"), ("f", "h", "w")),
            dynamic=(("b", 1), ("b", 2)),
        ),
        Contraction(
            *("known_windows", {"f": 40, "h": 6, "w": 7, "c": 24, "i": 3, "j": 3}),
            *(("f", "c", "i", "j"), ("c", "h + i", "w + j"), ("f", "h", "w")),
        ),
        # No row of A, no column of it is contiguous.
        Contraction(*("apart", {"i": 8, "j": 16, "k": 8}), ("i*2", "k*2"), ("k", "j"), ("i", "j")),
    ],
    ids=lambda case: case.name,
)
def test_what_is_no_matrix_is_an_implicit_gemm(case: Contraction) -> None:
    assert case.problem is not None
    assert case.found(flattened) is None


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    def make(folder: Path) -> None:
        text = "\n".join(case.module for case, _ in CASES.values())
        build_library(text, folder, name="flattened")

    folder = made_once(shared_folder(tmp_path_factory) / "flattened", make)
    return Library(folder / "lib" / "libflattened.so", folder / "flattened.json")


@pytest.mark.parametrize("name", CASES)
def test_whole_modules_are_right(library: Library, name: str) -> None:
    case, _ = CASES[name]
    os.environ["AOTC_DEVICE"] = "cpu"
    a, b, c = case.operands()
    expected, size = case.expected(a, b, c)
    library.call(case.name, a, b, c)
    assert np.all(np.abs(c - expected) <= size * 1e-6)


CONVOLUTION = """
func.func @layer(%x: tensor<1x64x14x15xf32>, %w: tensor<96x64x1x1xf32>, %bias: tensor<96xf32>,
    %residual: tensor<1x96x14x15xf32>) -> tensor<1x96x14x15xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x96x14x15xf32>
  %begun = linalg.broadcast ins(%bias : tensor<96xf32>) outs(%empty : tensor<1x96x14x15xf32>)
      dimensions = [0, 2, 3]
  %sums = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x64x14x15xf32>, tensor<96x64x1x1xf32>)
      outs(%begun : tensor<1x96x14x15xf32>) -> tensor<1x96x14x15xf32>
  %added = linalg.add ins(%sums, %residual : tensor<1x96x14x15xf32>, tensor<1x96x14x15xf32>)
      outs(%empty : tensor<1x96x14x15xf32>) -> tensor<1x96x14x15xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x96x14x15xf32>)
      -> tensor<1x96x14x15xf32>
  %result = linalg.max ins(%added, %zeros : tensor<1x96x14x15xf32>, tensor<1x96x14x15xf32>)
      outs(%empty : tensor<1x96x14x15xf32>) -> tensor<1x96x14x15xf32>
  return %result : tensor<1x96x14x15xf32>
}"""


def test_a_convolution_of_single_places_is_one_kernel(tmp_path: Path) -> None:
    """With its bias, a residual and a relu, which are along the rows and columns of images."""
    aotc.build(CONVOLUTION, emit="mlir", out=str(tmp_path / "out.mlir"), chips=("sm_90a",))
    lowered = (tmp_path / "out.mlir").read_text()
    names = set(re.findall(r"gpu\.launch_func +@\w+::@(\w+)", lowered))
    assert names
    assert all(name.startswith("matmul_") and name.endswith("_epilogue") for name in names)
    built = aotc.build(
        CONVOLUTION, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_90a",)
    )
    random = np.random.default_rng(5)
    shapes = ((1, 64, 14, 15), (96, 64, 1, 1), (96,), (1, 96, 14, 15))
    x, w, bias, residual = (random.standard_normal(one).astype(np.float32) for one in shapes)
    result = np.full((1, 96, 14, 15), np.nan, np.float32)
    aotc.load(built.path).layer(x, w, bias, residual, result)
    sums = np.einsum("nchw,fc->nfhw", x.astype(np.float64), w[:, :, 0, 0].astype(np.float64))
    expected = np.maximum(sums + bias[None, :, None, None] + residual, 0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)
