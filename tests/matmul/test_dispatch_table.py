"""The choice among Hopper's kernels of a program that knows the sizes when it runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from matmul.test_wgmma import problem
from matmul.traced import Values, traced

from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.cost import Sizes
from aotc.kernels.matmul.wgmma.dispatch_table import WGMMA_TABLE, launch_fastest
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.kernel import operands
from aotc.mlir import ir


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_programs_compute_what_the_model_says(transposed: str) -> None:
    p = problem(dynamic=True, transposed=transposed)
    variants = WGMMA.variants(p)
    squares = Sizes(4096, 4096, 4096, 4096, 4096), Sizes(1, 1, 0, 8, 8)
    names = ("m", "n", "k", "a_pitch", "b_pitch")
    with traced(**dict.fromkeys(names, "index")) as trace:
        unknown = Sizes(*(trace[name] for name in names))
        clocks = [cost.clocks(*operands(p, variant), variant, unknown) for variant in variants]
        for sizes in (*squares, Sizes(3000, 1000, 777, 3000, 1008)):
            values = trace.evaluate(**{name: getattr(sizes, name) for name in names})
            for variant, one in zip(variants, clocks, strict=True):
                expected = cost.clocks(*operands(p, variant), variant, sizes)
                assert values[one] == expected


@pytest.mark.parametrize("batch", [None, 3])
def test_text_is_a_module(batch: int | None) -> None:
    p = problem(dynamic=True, batch=batch)
    table = WGMMA_TABLE.table(p, WGMMA.variants(p))
    assert len(table.variants) > 1
    text = WGMMA_TABLE.function(p, table, "product")
    assert text.count("gpu.launch") == len(table.variants)
    with ir.Context(), ir.Location.unknown():
        ir.Module.parse(text).operation.verify()


@pytest.mark.parametrize("best", [1, 2, 3, 4])
def test_the_fastest_is_launched(best: int) -> None:
    """The conditions lead to the kernel with the fewest clocks."""
    numbers = range(1, 5)
    with traced(**{f"clocks{number}": "index" for number in numbers}) as trace:
        b = trace.b
        launches = [partial(b.op, "test.launch", [b.constant(number)]) for number in numbers]
        launch_fastest(b, launches, [trace[f"clocks{number}"] for number in numbers])
        values = trace.evaluate(**{f"clocks{n}": 7 if n == best else 9 for n in numbers})
        launched = [
            values[one.operands[0]]
            for one in trace.operations("test.launch")
            if is_reached(one, values)
        ]
    assert launched == [best]


def is_reached(operation: Any, values: Values) -> bool:
    """Whether it is done, by the conditions of the branches around it."""
    block = operation.block
    around = block.owner.operation
    if around.name != "scf.if":
        return True
    yes, _ = around.regions
    is_taken = bool(values[around.operands[0]]) == (block == yes.blocks[0])
    return is_taken and is_reached(around, values)
