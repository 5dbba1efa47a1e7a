"""Products on Hopper of which a few columns are left to another kernel."""

from __future__ import annotations

import re

import pytest
from contractions.test_hopper import problem, relu

from aotc.lower.contractions import hopper, hopper_strip
from aotc.lower.contractions.choice import choose
from aotc.lower.contractions.hopper_strip import Strip
from aotc.lower.contractions.problem import Problem
from aotc.mlir import ir
from aotc.request import Chip


def strip_of(p: Problem) -> Strip:
    choice, *_ = choose(p, [Chip("sm_90a")])
    assert choice.family is hopper_strip
    assert isinstance(choice.variant, Strip)
    return choice.variant


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_columns_that_would_be_a_tile_of_their_own_are_left(transposed: str) -> None:
    strip = strip_of(problem(5000, 5000, 5000, transposed=transposed))
    width = strip.tiles.m if strip.tiles.swaps else strip.tiles.n
    assert strip.columns == 4992
    assert strip.columns % width == 0
    assert (strip.rest.small, strip.rest.is_right) == (8, True)


@pytest.mark.parametrize(
    "p",
    [
        problem(4096, 4096, 4096),
        problem(5000, 4992, 5000),
        problem(64, 5000, 5000),
        problem(dynamic=True),
        problem(5000, 5000, 5000, batch=2),
    ],
)
def test_others_are_made_by_one_kernel(p: Problem) -> None:
    assert choose(p, [Chip("sm_90a")])[0].family is not hopper_strip


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("adds", [False, True])
def test_both_kernels_have_parts_of_b_and_c(transposed: str, adds: bool) -> None:
    p = problem(5000, 5000, 5000, transposed=transposed, adds=adds)
    text = hopper_strip.function(p, strip_of(p), "product")
    with ir.Context(), ir.Location.unknown():
        ir.Module.parse(text).operation.verify()
    assert text.count("gpu.launch") == 2
    places = re.findall(r"subview %(\w)\[(\d+), (\d+)\] \[(\d+), (\d+)\]", text)
    along = {"b": "b" not in transposed, "c": True}
    for name, *numbers in places:
        row, column, rows, columns = map(int, numbers)
        first, count = (column, columns) if along[name] else (row, rows)
        assert (first, count) in ((0, 4992), (4992, 8))
    assert [name for name, *_ in places] == ["b", "c", "b", "c"]


def test_what_is_made_of_sums_is_made_by_one_kernel() -> None:
    """It is told the columns of C."""
    p = problem(5000, 5000, 5000)
    strip = strip_of(p)
    expected = hopper.function(p, strip.whole, "product", relu)
    assert hopper_strip.function(p, strip, "product", relu) == expected
