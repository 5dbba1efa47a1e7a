"""What tiles cost: the same where sizes are known, and in programs that are told them."""

from __future__ import annotations

import pytest
from attention.evaluation import arguments, evaluate
from attention.problems import problem
from msgspec.structs import replace

from aotc.kernels.attention.choice import choose
from aotc.kernels.attention.dispatch import Dispatch
from aotc.request import Chip


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [0, 12])
@pytest.mark.parametrize(("batch", "rows"), [(1, 100), (3, 1024), (64, 5000)])
def test_programs_count_as_builds_do(batch: int, rows: int, heads: int, causal: bool) -> None:
    """Heads that are beside each other in rows are matrices like those of a batch."""
    wide = problem(head_dim=64 * max(heads, 1), causal=causal)
    given = replace(wide, heads=(heads,) * 4)
    (choice, *_) = choose(given, [Chip("sm_90a")])
    expected = [choice.cost(one, rows, batch * (heads or 1)) for one in choice.variants]
    assert len(set(expected)) > 1

    with arguments(list(given.arguments.values())) as (b, buffers):
        costs = Dispatch(b, given, buffers, []).costs(choice)
        sizes = {(buffers[0], 0): batch, (buffers[0], 1): rows}
        assert [evaluate(one, sizes) for one in costs] == expected
