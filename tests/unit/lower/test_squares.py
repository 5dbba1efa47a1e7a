"""Loops that read along one dimension and write along another: on the CPU, squares of elements are
transposed in registers."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.passes import run_passes_on

COPY = """
func.func @NAME(%x: memref<BxMxNxTYPE>, %y: memref<BxNxMxTYPE>) attributes {llvm.emit_c_interface} {
  linalg.transpose ins(%x : memref<BxMxNxTYPE>) outs(%y : memref<BxNxMxTYPE>)
      permutation = [0, 2, 1]
  return
}
"""
# Both operands are transposed, and the column has a factor.
SUM = """
#rows = affine_map<(i, j) -> (j, i)>
#columns = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @sum(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %f: memref<?xf32>, %y: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [#rows, #rows, #column, #columns],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %f : memref<?x?xf32>, memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.mulf %s, %r : f32
    linalg.yield %t : f32
  }
  return
}
"""
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8}


def _copy(name: str, element: str, sizes: str) -> str:
    shape = dict(zip("BMN", sizes.split("x"), strict=True))
    text = (
        COPY.replace("NAME", name).replace("BxMxNx", "{B}x{M}x{N}x").replace("BxNxM", "{B}x{N}x{M}")
    )
    for letter, size in shape.items():
        text = text.replace(f"{{{letter}}}", size)
    return text.replace("TYPE", element)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    copies = [_copy(f"any_{element}", element, "?x?x?") for element in TYPES]
    copies += [_copy("known", "f32", "2x67x150"), _copy("whole", "f32", "1x64x128")]
    return build_library("".join([*copies, SUM]), tmp_path_factory.mktemp("squares"))


def _numbers(element: str, *sizes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-99, 99, sizes).astype(TYPES[element])


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("sizes", [(2, 16, 16), (1, 300, 141), (3, 5, 40), (1, 40, 5), (0, 20, 20)])
def test_copies_of_unknown_sizes(
    library: Library, element: str, sizes: tuple[int, int, int]
) -> None:
    """Of a dimension that is shorter than a square, each element is copied."""
    x = _numbers(element, *sizes)
    y = np.zeros((sizes[0], sizes[2], sizes[1]), x.dtype)
    library.call(f"any_{element}", x, y)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))


@pytest.mark.parametrize(("name", "sizes"), [("known", (2, 67, 150)), ("whole", (1, 64, 128))])
def test_copies_of_known_sizes(library: Library, name: str, sizes: tuple[int, int, int]) -> None:
    x = _numbers("f32", *sizes)
    y = np.zeros((sizes[0], sizes[2], sizes[1]), np.float32)
    library.call(name, x, y)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))


@pytest.mark.parametrize("sizes", [(70, 33), (16, 600), (600, 15)])
def test_two_operands_and_a_factor(library: Library, sizes: tuple[int, int]) -> None:
    a, b = _numbers("f32", *sizes), _numbers("f32", *sizes)[::-1].copy()
    factor = _numbers("f32", sizes[0])
    y = np.zeros(sizes[::-1], np.float32)
    library.call("sum", a, b, factor, y)
    np.testing.assert_array_equal(y, (a + b).T * factor)


@pytest.mark.parametrize(
    ("text", "has_squares"),
    [
        (_copy("f", "f32", "1x64x128"), True),
        (_copy("f", "i1", "1x64x128"), False),
        # Shared memory is no worse for parts of squares.
        (_copy("f", "f32", "1x64x12"), False),
        # An operand may be what the loop writes.
        (_copy("f", "f32", "1x64x64").replace("outs(%y", "outs(%x"), False),
    ],
)
def test_choice(text: str, has_squares: bool) -> None:
    passes = ("convert-linalg-to-parallel-loops", "aotc-map-parallel-loops")
    module = str(run_passes_on(text, *passes).module)
    assert ("vector.shuffle" in module) == has_squares
