"""Matmul of f64 on Hopper's tensor cores, by instructions of 16 rows, which have twice the rate.

The kernel is that of `kernel`, with other tiles. PTX has these instructions for later chips, too,
but ptxas expands them there to instructions of 8 rows.
"""

from __future__ import annotations

from msgspec.structs import replace

from aotc.kernels.family import SM_90A
from aotc.kernels.matmul.family import FewTiles
from aotc.kernels.matmul.mma_sync.family import MmaSync
from aotc.kernels.matmul.mma_sync.tiles import Variant
from aotc.kernels.matmul.problem import Problem

# The measured cost model of a multiprocessor: the multiply-adds per clock, and the fraction of this
# rate that a single block of 4 warps reaches; the multiply-adds that take as long as fetching a
# column of A and a row of B; the clocks until the first tile has arrived, and further clocks per
# block.
_MULTIPLY_ADDS = 122
_ALONE = 0.7
_FETCHED = 512
_ENOUGH_THREADS = 256
_START_CLOCKS, _BLOCK_CLOCKS = 3000, 500
# The tile for matmuls with few tiles, and the largest number of tiles for which it is used.
_SMALL_TILE, _FEW_TILES = (32, 64), 400


class MmaSyncF64(MmaSync):
    """See the module's docstring."""

    name = "mma.sync of 16 rows"
    mnemonic = "mma_sync_m16"
    target = SM_90A
    variant_type = Variant

    def can_implement(self, problem: Problem, variant: Variant) -> bool:
        return problem.a.element == "f64" and super().can_implement(problem, variant)

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        """See `KernelFamily`. The best guess for large square matrices is first."""
        if problem.a.element != "f64":
            return ()
        large = [
            Variant(128, 128, 8, 2, 4, 4, instruction_k=4),
            Variant(128, 128, 16, 2, 4, 4, instruction_k=8),
        ]
        middle = [
            Variant(128, 64, 16, 4, 2, 4, instruction_k=8),
            Variant(64, 128, 16, 2, 4, 4, instruction_k=8),
        ]
        # With an M-major A, addresses take fewer registers, so that a larger K extent is best.
        tiles = (
            *(reversed(large) if problem.a.transposed else large),
            *(reversed(middle) if problem.b.transposed else middle),
            Variant(64, 64, 16, 2, 2, 4, instruction_k=8),
            Variant(32, 64, 16, 2, 2, 4, instruction_k=8),
            Variant(64, 32, 16, 2, 2, 4, instruction_k=8),
        )
        # Rows of f64 begin at multiples of 8 bytes.
        width = 16 if self.can_implement(problem, tiles[0]) else 8
        widened = (replace(tile, copy_bytes=width) for tile in tiles)
        return tuple(variant for variant in widened if self.can_implement(problem, variant))

    def tile_clocks(self, problem: Problem, variant: Variant, k: int) -> tuple[float, float]:
        """See `MatmulFamily`."""
        each = k * (variant.m * variant.n + _FETCHED) / _MULTIPLY_ADDS + _BLOCK_CLOCKS
        # The last block on a multiprocessor runs alone.
        is_enough = variant.threads >= _ENOUGH_THREADS
        return each, _START_CLOCKS + (0 if is_enough else each * (1 / _ALONE - 1))

    def few_tiles(self, problem: Problem) -> FewTiles | None:
        small = (one for one in self.variants(problem) if (one.m, one.n) == _SMALL_TILE)
        return next((FewTiles(one, _FEW_TILES, 0) for one in small), None)


MMA_SYNC_F64 = MmaSyncF64()
