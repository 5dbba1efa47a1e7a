"""A cost model of the `wgmma` kernels, fitted on an H200: the expected clocks of a multiprocessor.

A pipeline stage takes about as long as the slower of its multiply-adds and its copies. TMA fetches
rows of 128 bytes: one line of the L2 cache each, or parts of two lines if the row does not begin at
a multiple of 128 bytes. A tile that blocks of a cluster share is fetched once.

The model is evaluated here for known sizes, and by the compiled program for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.builder.numbers import Number, divide_up, signed_maximum
from aotc.chips import H200_BLOCKS_IN_CLUSTERS
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.matmul.problem import ELEMENT_BYTES

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.variants import Variant

_PARTS = 16  # fixed point: clocks are counted in sixteenths


class Rates(Struct, frozen=True):
    """Rates of one multiprocessor, per clock or in clocks."""

    # Bytes along K multiplied per clock: 2 for each multiply-add of 16-bit elements.
    bytes_multiplied: float = 2 * 1780
    clocks_per_l2_line: float = 1.744
    # Clocks from the request of a stage until it arrives, shared by the stages in flight.
    latency: float = 400
    # A stage takes at least this fraction of the clocks of its copies plus its multiply-adds.
    overlap_fraction: float = 0.6
    # Clocks per stage, waiting for each other block of the cluster.
    clocks_per_cluster_peer: float = 55
    # This fraction of the clocks of the copies is added to every stage: they draw power.
    fetch_power_fraction: float = 0.15
    # Elements of C stored per clock.
    stored: float = 80
    # Clocks of a launch, and additional clocks of a launch with clusters.
    launch: float = 1700
    cluster: float = 2170
    # Factor of a stage's clocks with cluster split-K: neighbouring blocks share no operand tiles.
    cluster_split_k_factor: float = 1.05
    # Bytes of accumulators exchanged per clock with cluster split-K.
    exchanged: float = 50
    # Factor of a stage's clocks with grid split-K: each block computes one tile, all at once.
    grid_split_k_factor: float = 0.9
    # Bytes of partial accumulators per clock with grid split-K, stored and reduced.
    added_bytes_per_clock: float = 11
    # Clocks of launching the kernel that reduces them.
    reduction_launch_clocks: float = 4700


H200 = Rates()


class Sizes(Struct, frozen=True):
    """The sizes of a matmul and the pitches of A and B, in elements: ints, or values of type index.
    An unknown pitch is 0."""

    m: Number
    n: Number
    k: Number
    a_pitch: Number
    b_pitch: Number


def clocks(
    a: OperandTile, b: OperandTile, variant: Variant, sizes: Sizes, rates: Rates = H200
) -> Number:
    """The clocks for which a multiprocessor is busy. `a` and `b`: the operand tiles of a stage."""
    if variant.transposes_c:
        sizes = Sizes(sizes.n, sizes.m, sizes.k, sizes.b_pitch, sizes.a_pitch)
    a_lines = _lines(a, variant.m, sizes.a_pitch, rates)
    lines = a_lines + _lines(b, variant.n, sizes.b_pitch, rates)
    fetch = lines // (SWIZZLE_BYTES * _PARTS) + round(rates.latency / variant.stages)
    mma = round(variant.m * variant.n * SWIZZLE_BYTES / rates.bytes_multiplied)
    both = (fetch + mma) * round(rates.overlap_fraction * 256) // 256
    cluster = round(rates.clocks_per_cluster_peer * (variant.cluster - 1))
    longest = signed_maximum(signed_maximum(fetch, mma), both)
    power = fetch * round(rates.fetch_power_fraction * 256) // 256
    stage = longest + power + cluster
    stage = stage * round(_split_k_factor(variant, rates) * 256) // 256
    k_tiles = divide_up(sizes.k, a.k_extent * variant.cluster_split_k * variant.grid_split_k)
    stored = round(variant.m * variant.n / rates.stored)
    once = _once(variant, rates) + _reduction_clocks(variant, sizes, rates)
    waves = _waves(variant, sizes)
    if variant.ping_pong:
        # One tile is computed while the previous one is stored.
        return waves * (k_tiles * stage) + (once + stored)
    return waves * (k_tiles * stage + stored) + once


def _split_k_factor(variant: Variant, rates: Rates) -> float:
    """The factor of a stage's clocks due to split-K; 1 without split-K."""
    if variant.grid_split_k > 1:
        return rates.grid_split_k_factor
    return rates.cluster_split_k_factor if variant.cluster_split_k > 1 else 1.0


def _once(variant: Variant, rates: Rates) -> int:
    """Clocks of a block besides its tiles: the launch, and the exchange of cluster split-K."""
    clusters = rates.cluster if variant.cluster * variant.cluster_split_k > 1 else 0.0
    exchange = 4 * variant.m * variant.n / rates.exchanged if variant.cluster_split_k > 1 else 0.0
    return round(rates.launch + clusters + exchange)


def _reduction_clocks(variant: Variant, sizes: Sizes, rates: Rates) -> Number:
    """Clocks of grid split-K's accumulators, which one kernel writes and another one reads."""
    if variant.grid_split_k == 1:
        return 0
    written = sizes.m * sizes.n * (4 * variant.grid_split_k)
    return written // round(rates.added_bytes_per_clock * variant.blocks) + round(
        rates.reduction_launch_clocks
    )


def _lines(operand: OperandTile, extent: int, pitch: Number, rates: Rates) -> Number:
    """The clocks of the L2 lines that a block copies for a stage, in units of 1 / (128 * _PARTS).

    `extent`: rows or columns of C in a tile. `pitch`: the pitch of the matrix, in elements."""
    size = ELEMENT_BYTES[operand.matrix.element]
    rows = operand.extent if operand.is_k_major else operand.slabs * operand.k_extent
    # Rows begin at multiples of `start`. (Stages along K begin at multiples of a line.)
    step = SWIZZLE_BYTES if operand.is_k_major else extent * size
    start = _lowest_bit(pitch * size | (step | SWIZZLE_BYTES))
    clocks = round(rows / operand.sharers * rates.clocks_per_l2_line * _PARTS)
    return (2 * SWIZZLE_BYTES - start) * clocks


def _lowest_bit(number: Number) -> Number:
    """The largest power of two that divides `number`, which is not 0."""
    return number & (0 - number)


def _waves(variant: Variant, sizes: Sizes) -> Number:
    """The largest number of tiles that a block computes."""
    down = divide_up(sizes.m, variant.m * variant.down)
    across = divide_up(sizes.n, variant.n * variant.across)
    blocks = H200_BLOCKS_IN_CLUSTERS.get(variant.cluster_split_k, variant.blocks)
    tiles = down * across * variant.grid_split_k
    return divide_up(tiles, blocks // (variant.cluster * variant.cluster_split_k))
