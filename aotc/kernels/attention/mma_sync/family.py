"""The family of attention kernels by mma.sync, and its variants."""

from __future__ import annotations

from msgspec.structs import replace

from aotc.chips import A100, BLOCK_SHARED_BYTES
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.mma_sync.kernel import Kernel
from aotc.kernels.attention.mma_sync.operands import CHUNK, HALF_CHUNK, chunk_of, operands_of
from aotc.kernels.attention.mma_sync.tiles import TILE, Variant
from aotc.kernels.attention.problem import Attention
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.problem import ELEMENT_BYTES

_MOST_COLUMNS = 256
# With causality, the number of matrices of the batch that are rasterized together.
_GROUP = 16
# The cost of a tile, by its tiles of 16 rows for each warp, measured on an H200.
_COSTS = {2: 100, 1: 56}


class MmaSync(AttentionFamily):
    """Attention in f16 and bf16 on every GPU."""

    name = "mma.sync"
    mnemonic = "mma_sync"
    target = ANY_GPU
    kernel_type = Kernel
    # Two blocks on each multiprocessor of an A100.
    concurrent_tiles = 2 * A100.multiprocessors

    def can_implement(self, problem: Attention, variant: Variant) -> bool:
        return (
            problem.is_of_16_bits(head_dims=range(CHUNK, _MOST_COLUMNS + 1, HALF_CHUNK))
            and problem.scale > 0
            and variant.keys % TILE == 0
            and all(one.is_shared_evenly for one in operands_of(problem, variant))
            and self.shared_bytes(problem, variant) <= BLOCK_SHARED_BYTES
        )

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        able = (_variant(problem, tiles) for tiles in _COSTS)
        return tuple(one for one in able if one is not None and self.can_implement(problem, one))

    def tile_cost(self, problem: Attention, variant: Variant) -> int:
        return _COSTS[variant.tiles]

    def shared_bytes(self, problem: Attention, variant: Variant) -> int:
        return sum(one.bytes for one in operands_of(problem, variant))


def _variant(problem: Attention, tiles: int) -> Variant | None:
    """The best variant with `tiles` tiles of 16 rows for each warp, whose scores and O fit the
    registers; None if there is none."""
    head_dim = problem.head_dim or 0
    bytes_ = chunk_of(head_dim) * ELEMENT_BYTES[problem.q.element]
    is_aligned = all(one.alignment % bytes_ == 0 for one in (problem.q, problem.k, problem.v))
    if tiles > 1 and (head_dim > 128 or not is_aligned or problem.mask is not None):
        return None
    if tiles > 1:
        best = Variant(keys=32, holds_q=head_dim <= 64)
    else:
        holds_q = is_aligned and head_dim <= 128
        keys = 64 if holds_q and problem.mask is None else 32
        best = Variant(tiles=1, keys=keys, holds_q=holds_q)
    return replace(best, group=_GROUP) if problem.causal else best


MMA_SYNC = MmaSync()
