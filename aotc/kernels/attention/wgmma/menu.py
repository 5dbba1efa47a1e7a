"""Which variants of Hopper's kernel attention gets."""

from __future__ import annotations

from aotc.chips import H100
from aotc.kernels.attention.family import Candidate, Family
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.wgmma import kernel as hopper
from aotc.kernels.attention.wgmma.kernel import Variant
from aotc.kernels.attention.wgmma.mask_tiles import has_tiles
from aotc.request import Chip

# So many matrices of a batch are gone through at once, where rows see different numbers of keys:
# with fewer, the longest tiles of each group come at its end.
_GROUP = 16
# What a tile of so many warpgroups takes, up to 64 columns and up to 128: 64 rows for each of them,
# by how fast they were seen to be on an H200.
_COSTS = {64: {3: 192, 2: 160, 1: 103}, 128: {2: 128, 1: 91}, 256: {2: 128, 1: 91}}
# With a mask; three have no room for large blocks of keys.
_COSTS_WITH_MASK = {2: 160, 1: 105}


def candidates(problem: Attention) -> list[Candidate]:
    """See `Family`."""
    if problem.depth is None:
        return []
    costs = next((of for most, of in _COSTS.items() if problem.depth <= most), {})
    if problem.mask is not None and costs:
        costs = _COSTS_WITH_MASK
    return [
        Candidate(variant, cost)
        for consumers, cost in costs.items()
        if (variant := _variant(problem, consumers)) is not None
    ]


def _variant(problem: Attention, consumers: int) -> Variant | None:
    """With as many keys in a block as there is room for."""
    # Of rows that see different numbers of keys, the GPU itself hands out tiles as blocks end.
    group, blocks = (_GROUP, 0) if problem.causal else (1, H100.multiprocessors)
    # What threads read of a mask themselves is in registers, of which 128 keys leave too few.
    is_read = problem.mask is not None and not has_tiles(problem.mask)
    found = [
        Variant(consumers=consumers, keys=keys, group=group, blocks=blocks)
        for keys in (128, 96, 64, 32)
        if keys < 96 or not is_read
    ]
    return next((one for one in found if hopper.can_take(problem, one)), None)


HOPPER = Family(hopper.NAME, Chip("sm_90a"), H100.multiprocessors, candidates, hopper.function)
