"""Which variants of the kernel by multiply-adds attention in f32 gets."""

from __future__ import annotations

from aotc.chips import H100, LIMITS
from aotc.kernels.attention.family import Candidate, Family
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.simt import kernel
from aotc.kernels.attention.simt.tiles import Variant
from aotc.request import Chip

# Up to so many columns.
_ANYWHERE = {
    64: Variant(4, 4, 8, 64, 1),
    128: Variant(4, 8, 8, 16, 1),
    256: Variant(4, 4, 8, 8, 2),
}
# On Hopper, whose blocks may have more shared memory: what tiles take there, one block a
# multiprocessor.
_MORE_COLUMNS = ((Variant(8, 8, 16, 64, 1), 100), (Variant(4, 8, 16, 64, 1), 58))


def candidates(problem: Attention) -> list[Candidate]:
    """See `Family`."""
    depth = problem.depth
    variant = next((one for most, one in _ANYWHERE.items() if depth and depth <= most), None)
    if variant is None or not kernel.can_take(problem, variant):
        return []
    return [Candidate(variant, 1)]


def _candidates_on_hopper(problem: Attention) -> list[Candidate]:
    """Where they are better than those of all GPUs."""
    if problem.depth is None or problem.depth <= 64:
        return []
    return [
        Candidate(variant, cost)
        for variant, cost in _MORE_COLUMNS
        if kernel.can_take(problem, variant, LIMITS[90].block_shared)
    ]


SIMT = Family(kernel.NAME, None, H100.multiprocessors, candidates, kernel.function)
SIMT_ON_HOPPER = Family(
    kernel.NAME, Chip("sm_90a"), H100.multiprocessors, _candidates_on_hopper, kernel.function
)
