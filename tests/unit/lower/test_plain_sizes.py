"""Sizes that are the same as others, and what is recognised then: in text, by the plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library
from helpers.passes import run_passes_on

from aotc import ops
from aotc.lower.tensors.size_polynomials import (
    FLOOR_DIVIDED,
    ArgumentSize,
    Facts,
    Other,
    Polynomial,
)

E = "attributes {llvm.emit_c_interface}"


def settled(text: str) -> list[str]:
    """The names of the operations that are left."""
    source = run_passes_on(text, "canonicalize", "cse", "aotc-simplify-sizes", "canonicalize")
    return [operation.name for operation in ops.walk(source.module.operation)]


@pytest.mark.parametrize(
    ("why", "product", "divisor", "is_undone"),
    [
        ("(x * 12) / 12", "s0 * 12", 12, True),
        ("(x * 12) / 4 is x * 3", "s0 * 12", 4, True),
        ("(x * 12) / 5 has a remainder", "s0 * 12", 5, False),
        ("(x * 12 + 1) / 12 has one, too", "s0 * 12 + 1", 12, False),
    ],
)
def test_divisions_that_undo_a_product(
    why: str, product: str, divisor: int, is_undone: bool
) -> None:
    text = f"""
func.func @f(%x: tensor<?xf32>) -> index {{
  %c0 = arith.constant 0 : index
  %n = arith.constant {divisor} : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %product = affine.apply affine_map<()[s0] -> ({product})>()[%size]
  %quotient = arith.divsi %product, %n : index
  return %quotient : index
}}"""
    assert ("arith.divsi" not in settled(text)) == is_undone, why


def broadcast(size: str = "%size", one: int = 1, index: int = 0) -> str:
    """Each element of a new tensor of as many rows as %x is %y's in its row; `size`: %y's."""
    return f"""
func.func @f(%x: tensor<?x3xf32>, %other: tensor<?x3xf32>) -> tensor<?x3xf32> {E} {{
  %c0 = arith.constant 0 : index
  %asked = arith.constant {one} : index
  %size = tensor.dim %x, %c0 : tensor<?x3xf32>
  %else = tensor.dim %other, %c0 : tensor<?x3xf32>
  %empty = tensor.empty({size}) : tensor<?x3xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} outs(%empty : tensor<?x3xf32>) {{
  ^bb0(%unused: f32):
    %i = linalg.index 0 : index
    %number = arith.index_cast %i : index to i32
    %value = arith.sitofp %number : i32 to f32
    linalg.yield %value : f32
  }} -> tensor<?x3xf32>
  %wide = tensor.empty(%size) : tensor<?x3xf32>
  %z = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} outs(%wide : tensor<?x3xf32>) {{
  ^bb0(%unused: f32):
    %i = linalg.index {index} : index
    %j = linalg.index 1 : index
    %is_one = arith.cmpi eq, {size}, %asked : index
    %row = arith.select %is_one, %c0, %i : index
    %read = tensor.extract %y[%row, %j] : tensor<?x3xf32>
    linalg.yield %read : f32
  }} -> tensor<?x3xf32>
  return %z : tensor<?x3xf32>
}}"""


@pytest.mark.parametrize(
    ("why", "text", "generics"),
    [
        ("to its own size", broadcast(), 1),
        ("to another one", broadcast(size="%else"), 2),
        ("row 0 where there are two rows", broadcast(one=2), 2),
        ("another loop's row", broadcast(index=1), 2),
    ],
)
def test_broadcasts(why: str, text: str, generics: int) -> None:
    assert settled(text).count("linalg.generic") == generics, why


@pytest.mark.parametrize(("rows", "others"), [(4, 4), (4, 1), (0, 0)])
def test_what_a_broadcast_reads(rows: int, others: int, tmp_path: Path) -> None:
    """A tensor of one row is in all rows, whether it is known that there is one or not."""
    library = build_library(broadcast(size="%else"), tmp_path)
    x, other = np.zeros((rows, 3), np.float32), np.zeros((others, 3), np.float32)
    got = library.call("f", x, other)
    numbers = np.arange(rows) if others != 1 else np.zeros(rows)
    np.testing.assert_array_equal(got, np.repeat(numbers[:, None], 3, 1))


def test_quotients_of_quotients_are_quotients() -> None:
    """As the sizes of convolutions with strides of 2: (n - 1) / 2 + 1, each, are (n - 1) / 8 + 1
    together. A number that may be negative, or half of a sum of quotients, stays as it is."""
    facts, one = Facts(), Polynomial.number(1)
    size = Polynomial.atom(ArgumentSize(0, 2))
    other = Polynomial.atom(Other(0, None))

    def strided(size: Polynomial, stride: int) -> Polynomial:
        steps = size.minus(one)
        return facts.computed(FLOOR_DIVIDED, steps, Polynomial.number(stride)).plus(one)

    thrice = strided(strided(strided(size, 2), 2), 2)
    assert strided(size, 8) == thrice
    assert strided(size, 6) != thrice
    assert strided(other, 4) != strided(strided(other, 2), 2)
    halves = strided(size, 2).plus(strided(size, 3))
    assert len(facts.computed(FLOOR_DIVIDED, halves, Polynomial.number(2)).atoms()) > 3
