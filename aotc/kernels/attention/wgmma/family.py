"""The family of attention kernels by wgmma and TMA, and its variants."""

from __future__ import annotations

from aotc.chips import H100
from aotc.kernels.attention.family import AttentionFamily
from aotc.kernels.attention.problem import Attention
from aotc.kernels.attention.wgmma.kernel import REGISTERS, Kernel, SharedMemory, Variant
from aotc.kernels.attention.wgmma.mask_tiles import has_tiles
from aotc.kernels.attention.wgmma.mma import K_OF_MMA, N_OF_MMA
from aotc.kernels.family import SM_90A
from aotc.kernels.hopper.cta import SHARED_BYTES
from aotc.kernels.hopper.tma import is_aligned

_MOST_COLUMNS = 256
# With causality, the number of matrices of the batch that are rasterized together. With fewer, the
# longest tiles of each group come at its end.
_GROUP = 16
# The cost of a tile, measured on an H200, by the largest number of columns and by the number of
# consumer warpgroups, which have 64 rows each.
_COSTS = {
    48: {4: 252, 3: 192, 2: 155, 1: 115},
    64: {4: 260, 3: 192, 2: 160, 1: 103},
    80: {3: 166, 2: 128, 1: 91},
    96: {3: 175, 2: 128, 1: 91},
    256: {2: 128, 1: 91},
}
# The costs with a mask. Three warpgroups have no registers for large tiles of keys.
_COSTS_WITH_MASK = {2: 160, 1: 105}
# The largest number of keys of a tile whose scores and P fit the registers, by the number of
# warpgroups and by the largest number of columns.
_MOST_KEYS = {4: {48: 80, 64: 64}, 3: {64: 128, 96: 96}, 2: {256: 128}, 1: {256: 128}}
# The same if threads load the mask to registers themselves.
_MOST_KEYS_WITH_MASK = 64
# The overhead of a tile, in units of the cost of a key.
_TILE_OVERHEAD = 24


class Wgmma(AttentionFamily):
    """Attention in f16 and bf16 on Hopper."""

    name = "wgmma"
    mnemonic = "wgmma"
    target = SM_90A
    kernel_type = Kernel
    concurrent_tiles = H100.multiprocessors

    def can_implement(self, problem: Attention, variant: Variant) -> bool:
        return (
            problem.is_of_16_bits(head_dims=range(N_OF_MMA, _MOST_COLUMNS + 1, N_OF_MMA))
            and all(map(is_aligned, (problem.q, problem.k, problem.v)))
            and problem.scale > 0
            and _is_possible(variant)
            and self.shared_bytes(problem, variant) <= SHARED_BYTES
        )

    def variants(self, problem: Attention) -> tuple[Variant, ...]:
        found = (self._variant(problem, consumers) for consumers in _costs(problem))
        return tuple(one for one in found if one is not None)

    def tile_cost(self, problem: Attention, variant: Variant) -> int:
        cost, total = _costs(problem)[variant.consumers], _keys_of_all(problem)
        return cost if total is None else cost * -(-total // variant.keys) * variant.keys

    def shared_bytes(self, problem: Attention, variant: Variant) -> int:
        return SharedMemory.of(problem, variant).bytes

    def _variant(self, problem: Attention, consumers: int) -> Variant | None:
        """The variant with the largest tile of keys that fits registers and shared memory. If all
        rows attend to a known number of keys, it is the tile size of least cost for this number."""
        # With causality, tiles take different times: each tile is a block, which the GPU schedules.
        group, blocks = (_GROUP, 0) if problem.causal else (1, H100.multiprocessors)
        total, most = _keys_of_all(problem), _most_keys(problem, consumers)
        variants = (
            Variant(consumers=consumers, keys=keys, group=group, blocks=blocks)
            for keys in range(most, 0, -K_OF_MMA if total else -2 * K_OF_MMA)
        )
        able = [one for one in variants if self.can_implement(problem, one)]
        if not able:
            return None
        return min(able, key=lambda one: _keys_cost(total, one.keys)) if total else able[0]


def _is_possible(variant: Variant) -> bool:
    return (
        variant.consumers in REGISTERS
        and variant.keys in range(16, 257, 16)
        and variant.stages >= 2
        and variant.group >= 1
        and variant.blocks >= 0
    )


def _keys_of_all(problem: Attention) -> int | None:
    """The number of keys that all rows attend to; None if it is unknown, or differs by row."""
    return None if problem.causal else problem.keys


def _most_keys(problem: Attention, consumers: int) -> int:
    """The largest number of keys of a tile. `_costs` must have an entry for the problem's
    columns."""
    head_dim = problem.head_dim or 0
    most = next(keys for columns, keys in _MOST_KEYS[consumers].items() if head_dim <= columns)
    is_read = problem.mask is not None and not has_tiles(problem.mask)
    return min(most, _MOST_KEYS_WITH_MASK) if is_read else most


def _keys_cost(total: int, keys: int) -> int:
    """The cost of a row with tiles of `keys` keys."""
    return -(-total // keys) * (keys + _TILE_OVERHEAD)


def _costs(problem: Attention) -> dict[int, int]:
    """The costs of tiles, by the number of consumers."""
    head_dim = problem.head_dim
    if head_dim is None or head_dim > max(_COSTS):
        return {}
    if problem.mask is not None:
        return _COSTS_WITH_MASK
    costs = next(costs for most, costs in _COSTS.items() if head_dim <= most)
    # With causality, four consumers are not faster.
    return {number: cost for number, cost in costs.items() if number < 4 or not problem.causal}


WGMMA = Wgmma()
