"""What tiles cost: the same where sizes are known, and in programs that are told them."""

from __future__ import annotations

import re

import pytest
from attention.problems import problem
from msgspec.structs import replace

from aotc.kernels.attention.choice import choose, cost
from aotc.kernels.attention.dispatch import _Dispatch
from aotc.request import Chip

OPERATIONS = {
    "muli": int.__mul__,
    "ceildivui": lambda x, y: -(-x // y),
    "maxui": max,
}


def evaluate(lines: list[str], sizes: dict[int, int]) -> dict[str, int]:
    """Of Q's dimensions as `sizes` has them."""
    values: dict[str, int] = {}
    for line in lines:
        name, _, text = line.strip().partition(" = ")
        if found := re.match(r"arith\.constant (\d+)", text):
            values[name] = int(found[1])
        elif found := re.match(r"memref\.dim %q, (%\w+)", text):
            values[name] = sizes[values[found[1]]]
        elif found := re.match(r"arith\.(\w+) (%\w+), (%\w+)", text):
            values[name] = OPERATIONS[found[1]](values[found[2]], values[found[3]])
    return values


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [0, 12])
@pytest.mark.parametrize(("batch", "rows"), [(1, 100), (3, 1024), (64, 5000)])
def test_programs_count_as_builds_do(batch: int, rows: int, heads: int, causal: bool) -> None:
    """Heads that are beside each other in rows are matrices like those of a batch."""
    given = problem(causal=causal)
    given = replace(given, heads=(heads,) * len(given.heads))
    (choice, *_) = choose(problem(causal=causal), [Chip("sm_90a")])
    for one in choice.candidates:
        w = _Dispatch()
        name = w._cost(replace(choice, problem=given), one)
        expected = cost(choice.family, one, rows, batch * (heads or 1), causal=causal)
        assert evaluate(w.lines, {0: batch, 1: rows})[name] == expected
