"""Which variants of a kernel attention gets."""

from __future__ import annotations

from msgspec import Struct

from aotc.lower.attention import hopper
from aotc.lower.attention.hopper import Variant
from aotc.lower.attention.problem import Attention
from aotc.request import Chip

CHIP = Chip("sm_90a")
# Of an H100 and H200.
MULTIPROCESSORS = 132
# So many matrices of a batch are gone through at once, where rows see different numbers of keys:
# with fewer, the longest tiles of each group come at its end.
_GROUP = 16
# What a tile of so many warpgroups takes, up to 64 columns and up to 128: 64 rows for each of them,
# by how fast they were seen to be on an H200.
_COSTS = {64: {3: 192, 2: 160, 1: 103}, 128: {2: 128, 1: 91}, 256: {2: 128, 1: 91}}


class Choice(Struct, frozen=True):
    """A variant, and what one tile of it costs."""

    variant: Variant
    cost: int


def choose(problem: Attention) -> list[Choice]:
    """The variants for a problem: one, or, of sizes that are not known, several, of which `cost`
    says the best one. None at all where the kernel takes no such problem."""
    if problem.depth is None:
        return []
    costs = next((of for most, of in _COSTS.items() if problem.depth <= most), {})
    able = [
        Choice(variant, cost)
        for consumers, cost in costs.items()
        if (variant := _variant(problem, consumers)) is not None
    ]
    rows, batch = problem.q.sizes[0], problem.batch
    if rows is None or batch is None or not able:
        return able
    return [min(able, key=lambda one: _cost(one, rows, batch, causal=problem.causal))]


def _variant(problem: Attention, consumers: int) -> Variant | None:
    """With as many keys in a block as there is room for."""
    # Of rows that see different numbers of keys, the GPU itself hands out tiles as blocks end.
    group, blocks = (_GROUP, 0) if problem.causal else (1, MULTIPROCESSORS)
    found = [
        Variant(consumers=consumers, keys=keys, group=group, blocks=blocks)
        for keys in (128, 64, 32)
        # With 128, more of a mask is in registers than the others leave.
        if problem.mask is None or keys < 128
    ]
    return next((one for one in found if hopper.can_take(problem, one)), None)


def _cost(choice: Choice, rows: int, batch: int, *, causal: bool) -> int:
    """As `dispatch` computes it where sizes are not known: of equal tiles, so many turns; of
    causal ones, which take half of that on average, what the longest takes at least."""
    tiles = -(-rows // choice.variant.m) * batch
    if causal:
        return max(tiles, 2 * MULTIPROCESSORS) * choice.cost
    return -(-tiles // MULTIPROCESSORS) * choice.cost
