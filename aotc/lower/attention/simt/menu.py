"""Which variants of the kernel by multiply-adds attention in f32 gets."""

from __future__ import annotations

from aotc.lower.attention.family import Candidate, Family
from aotc.lower.attention.problem import Attention
from aotc.lower.attention.simt import family
from aotc.lower.attention.simt.tiles import Variant

# On an H200, two blocks a multiprocessor.
_AT_ONCE = 264
# What a tile takes, up to so many columns, beside the others of them.
_COSTS = {
    64: ((Variant(4, 8, 8, 32, 1), 100), (Variant(4, 4, 8, 64, 1), 60)),
    128: ((Variant(4, 8, 16, 32, 1), 100),),
    256: ((Variant(4, 4, 8, 8, 2), 100),),
}


def candidates(problem: Attention) -> list[Candidate]:
    """See `Family`."""
    depth = problem.depth
    if depth is None:
        return []
    able = next((of for most, of in _COSTS.items() if depth <= most), ())
    return [Candidate(variant, cost) for variant, cost in able if family.can_take(problem, variant)]


SIMT = Family(family.NAME, None, _AT_ONCE, candidates, family.function)
