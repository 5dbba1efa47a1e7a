"""The choice among Hopper's kernels of a program that knows the sizes when it runs."""

from __future__ import annotations

import re

import pytest
from matmul.test_wgmma import problem

from aotc.kernels.matmul.problem import Finish, Problem
from aotc.kernels.matmul.wgmma import cost, dispatch_table
from aotc.kernels.matmul.wgmma.cost import Sizes
from aotc.kernels.matmul.wgmma.dispatch_table import WGMMA_TABLE
from aotc.kernels.matmul.wgmma.family import WGMMA, operands
from aotc.kernels.matmul.wgmma.variants import Variant
from aotc.kernels.writer import Writer
from aotc.mlir import ir

OPERATIONS = {
    "addi": int.__add__,
    "subi": lambda x, y: (x - y) % 2**64,
    "muli": int.__mul__,
    "divui": int.__floordiv__,
    "ori": int.__or__,
    "andi": int.__and__,
    "minui": min,
    "maxsi": max,
}


def evaluate(lines: list[str], given: dict[str, int]) -> dict[str, int]:
    values = dict(given)
    for line in lines:
        if found := re.match(r" *(%\w+) = arith\.constant (\d+) : index", line):
            values[found[1]] = int(found[2])
        elif found := re.match(r" *(%\w+) = arith\.(\w+) ([%#\w]+), ([%#\w]+) : index", line):
            values[found[1]] = OPERATIONS[found[2]](values[found[3]], values[found[4]])
    return values


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_programs_compute_what_the_model_says(transposed: str) -> None:
    p = problem(dynamic=True, transposed=transposed)
    variants = WGMMA.variants(p)
    w = dispatch_table._Chooser(p)
    names = Sizes("%m", "%n", "%k", "%a", "%b")
    clocks = [cost.clocks(w, *operands(p, variant), variant, names) for variant in variants]
    for sizes in (Sizes(4096, 4096, 4096, 4096, 4096), Sizes(1, 1, 0, 8, 8)):
        check(p, variants, w.lines, clocks, sizes)
    check(p, variants, w.lines, clocks, Sizes(3000, 1000, 777, 3000, 1008))


def check(
    p: Problem,
    variants: tuple[Variant, ...],
    lines: list[str],
    clocks: list[str | int],
    sizes: Sizes,
) -> None:
    given = {
        "%m": sizes.m,
        "%n": sizes.n,
        "%k": sizes.k,
        "%a": sizes.a_pitch,
        "%b": sizes.b_pitch,
    }
    values = evaluate(lines, {name: int(value) for name, value in given.items()})
    for variant, name in zip(variants, clocks, strict=True):
        tiles = operands(p, variant)
        assert values[str(name)] == cost.clocks(Writer(), *tiles, variant, sizes)


@pytest.mark.parametrize("batch", [None, 3])
def test_text_is_a_module(batch: int | None) -> None:
    p = problem(dynamic=True, batch=batch)
    menu = WGMMA_TABLE.table(p, WGMMA.variants(p))
    assert len(menu.variants) > 1
    text = WGMMA_TABLE.function(p, menu, "product")
    assert text.count("gpu.launch") == len(menu.variants)
    with ir.Context(), ir.Location.unknown():
        ir.Module.parse(text).operation.verify()


class Named(dispatch_table._Chooser):
    """Writes which kernel it would launch."""

    def _kernel(self, variant: Variant, finish: Finish | None) -> None:
        self.line(f"launch {variant.n}")


@pytest.mark.parametrize("best", [1, 2, 3, 4])
def test_the_fastest_is_launched(best: int) -> None:
    """The conditions lead to the kernel with the fewest clocks."""
    w = Named(problem(dynamic=True))
    numbers = range(1, 5)
    variants = [Variant(n=number) for number in numbers]
    w.launch_fastest(variants, [f"%clocks{number}" for number in numbers], None)
    values = {f"%clocks{number}": 7 if number == best else 9 for number in numbers}
    values = evaluate(w.lines, values)
    for line in w.lines:
        if found := re.match(r" *(%\w+) = arith\.cmpi ult, (%\w+), (%\w+) : index", line):
            values[found[1]] = values[found[2]] < values[found[3]]
    # Whether what stands here is done, outermost first.
    inside = [True]
    done = []
    for line in w.lines:
        if found := re.match(r" *scf\.if (%\w+) {", line):
            inside.append(bool(values[found[1]]))
        elif "} else {" in line:
            inside[-1] = not inside[-1]
        elif line.strip() == "}":
            inside.pop()
        elif "launch" in line and all(inside):
            done.append(int(line.split()[1]))
    assert done == [best]
