"""Which variants of the kernel attention gets."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.chips import A100
from aotc.kernels.attention.family import Candidate, Family
from aotc.kernels.attention.mma_sync import kernel
from aotc.kernels.attention.mma_sync.tiles import Variant
from aotc.kernels.attention.problem import Attention

NAME = "mma.sync"
# Two blocks on each multiprocessor of an A100.
_AT_ONCE = 2 * A100.multiprocessors
# So many matrices of a batch are gone through at once, where rows see different numbers of keys.
_GROUP = 16
# What a tile of 64 rows takes, where one of 128 takes 100: as it was seen on an H200.
_COSTS = {2: 100, 1: 56}


def candidates(problem: Attention) -> list[Candidate]:
    """See `Family`."""
    able = [variant for tiles in _COSTS if (variant := _variant(problem, tiles)) is not None]
    return [Candidate(variant, _COSTS[variant.tiles]) for variant in able]


def _variant(problem: Attention, tiles: int) -> Variant | None:
    """The best one with so many tiles of 16 rows for each warp, of which the scores and sums are to
    stay in registers."""
    depth = problem.depth or 0
    is_aligned = all(one.alignment % 16 == 0 for one in (problem.q, problem.k, problem.v))
    if tiles > 1 and (depth > 128 or not is_aligned or problem.mask is not None):
        return None
    if tiles > 1:
        best = Variant(keys=32, holds_q=depth <= 64)
    else:
        holds_q = is_aligned and depth <= 128
        keys = 64 if holds_q and problem.mask is None else 32
        best = Variant(tiles=1, keys=keys, holds_q=holds_q)
    if problem.causal:
        best = replace(best, group=_GROUP)
    return best if kernel.can_take(problem, best) else None


TENSOR_CORES = Family(NAME, None, _AT_ONCE, candidates, kernel.function)
