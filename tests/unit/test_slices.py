"""Slices through reshapes: the elements are those that NumPy takes."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest

from aotc.lower.tensors import slices
from aotc.lower.tensors.slices import Range, collapsed, expanded

SHAPES = [(6,), (1, 4), (4, 1), (2, 3), (3, 4), (2, 1, 4), (2, 3, 2)]


def ranges(size: int) -> list[Range]:
    """All of a dimension's that are not empty."""
    return [
        Range(offset, count, stride if count > 1 else 1)
        for offset in range(size)
        for count in range(1, size + 1)
        for stride in range(1, size + 1)
        if offset + (count - 1) * stride < size and (stride == 1 or count > 1)
    ]


def places(part: Range) -> list[int]:
    return [part.offset + i * part.stride for i in range(part.size)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_slice_of_several_dimensions_is_one_of_their_product(shape: tuple[int, ...]) -> None:
    """With the same elements, in the same order."""
    numbers = np.arange(prod(shape)).reshape(shape)
    for part in itertools.product(*map(ranges, shape)):
        found = collapsed(part, shape)
        if found is not None:
            assert places(found) == numbers[np.ix_(*map(places, part))].ravel().tolist(), part


@pytest.mark.parametrize("shape", SHAPES)
def test_a_slice_of_a_product_is_one_of_several_dimensions(shape: tuple[int, ...]) -> None:
    """With the same elements, in the same order."""
    numbers = np.arange(prod(shape)).reshape(shape)
    for part in ranges(prod(shape)):
        found = expanded(part, shape)
        if found is not None:
            assert numbers[np.ix_(*map(places, found))].ravel().tolist() == places(part), part


@pytest.mark.parametrize(
    ("part", "shape", "one"),
    [
        # The last row of each sequence, the first sequences, one row, some rows of one sequence.
        ((Range(0, 8, 1), Range(15, 1, 1)), (8, 16), Range(15, 8, 16)),
        ((Range(0, 2, 1), Range(0, 16, 1)), (8, 16), Range(0, 32, 1)),
        ((Range(3, 1, 1), Range(5, 1, 1)), (8, 16), Range(53, 1, 1)),
        ((Range(3, 1, 1), Range(4, 5, 2)), (8, 16), Range(52, 5, 2)),
    ],
)
def test_slices_of_rows_pass_reshapes(part: slices.Slice, shape: list[int], one: Range) -> None:
    assert collapsed(part, shape) == one
    assert expanded(one, shape) == part


def test_some_rows_of_each_sequence_have_no_one_stride() -> None:
    assert collapsed((Range(0, 2, 1), Range(1, 2, 1)), (2, 4)) is None
    assert expanded(Range(1, 4, 3), (4, 4)) is None
