"""The families of attention in f32, and their variants."""

from __future__ import annotations

from aotc.chips import BLOCK_SHARED_BYTES, H100, LIMITS
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.simt.kernel import ELEMENT, Kernel
from aotc.kernels.attention.simt.tiles import Tiles, Variant, is_possible
from aotc.kernels.family import ANY_GPU, SM_90A

_MOST_COLUMNS = 256
# The variants, by the largest number of columns that each is for.
_VARIANTS = {
    64: Variant(4, 4, 8, 64, 1),
    128: Variant(4, 8, 8, 16, 1),
    256: Variant(4, 4, 8, 8, 2),
}
# The costs of tiles on Hopper, whose blocks may have more shared memory, with one block on a
# multiprocessor. These variants are for more than 64 columns.
_HOPPER_COSTS = {Variant(8, 8, 16, 64, 1): 100, Variant(4, 8, 16, 64, 1): 58}


class Simt(AttentionFamily):
    """Attention in f32 on every GPU."""

    name = "multiply-adds"
    mnemonic = "simt"
    target = ANY_GPU
    kernel_type = Kernel
    concurrent_tiles = H100.multiprocessors
    most_shared_bytes = BLOCK_SHARED_BYTES

    def can_implement(self, problem: Attention, variant: Variant) -> bool:
        head_dim = problem.head_dim
        matrices = (problem.q, problem.k, problem.v, problem.o)
        return (
            head_dim is not None
            and 0 < head_dim <= _MOST_COLUMNS
            and is_possible(variant, head_dim)
            and all(matrix.element == ELEMENT for matrix in matrices)
            and not any(matrix.transposed for matrix in matrices)
            and problem.scale > 0
            and self.shared_bytes(problem, variant) <= self.most_shared_bytes
        )

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        head_dim = problem.head_dim or 0
        able = (one for most, one in _VARIANTS.items() if head_dim <= most)
        return tuple(one for one in list(able)[:1] if self.can_implement(problem, one))

    def shared_bytes(self, problem: Attention, variant: Variant) -> int:
        return Tiles.of(variant, problem.head_dim or 0).bytes


class SimtOnHopper(Simt):
    """Attention in f32 on Hopper, with larger tiles, if they are faster than those for every
    GPU."""

    target = SM_90A
    most_shared_bytes = LIMITS[90].block_shared

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        if (problem.head_dim or 0) <= min(_VARIANTS):
            return ()
        return tuple(one for one in _HOPPER_COSTS if self.can_implement(problem, one))

    def tile_cost(self, problem: Attention, variant: Variant) -> int:
        return _HOPPER_COSTS[variant]


SIMT = Simt()
SIMT_ON_HOPPER = SimtOnHopper()
