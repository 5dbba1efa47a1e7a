"""How long a kernel of `wgmma` is expected to take: a model of the chip, fitted on an H200.

A stage takes as long as the tensor cores need for it, or as its lines need to come: TMA fetches
rows of 128 bytes, each as one line of the L2 cache or, where it does not begin at a multiple of
128 bytes, as parts of two. What blocks of a cluster share is copied once.

It is computed here for sizes that are known, and by the program for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.chips import H200_BLOCKS_IN_CLUSTERS
from aotc.kernels.hopper.operand import OperandTile
from aotc.kernels.hopper.smem import SWIZZLE_BYTES
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.numbers import Number, divide_up, signed_maximum

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.variants import Variant

_PARTS = 16  # what fractions are counted in


class Rates(Struct, frozen=True):
    """Clocks of a multiprocessor.

    `bytes_multiplied`: how many bytes of K the tensor cores multiply for elements of C in a clock,
    two for each multiply-add of 16 bits. `line`: for a line of L2. `latency`: until the first stage
    of the pipeline is there. `both`: the part of the sum of what tensor cores and lines take that a
    stage takes at least. `together`: for each other block of a cluster, which a stage waits for.
    `power`: the part of what lines take that slows a stage down in any case. `stored`: elements of
    C that are stored in a clock. `launch` and `cluster`: for the launch, and for one of clusters
    besides. Where blocks of a cluster divide K: `apart`, how much longer a stage takes, as
    neighbours on the chip have nothing in common, and `exchanged`, bytes of accumulators. With grid
    split-K: `sliced`, the part of a stage (all blocks compute one tile, at the same time); `added`,
    bytes of accumulators, and `second`, for the kernel that adds them.
    """

    bytes_multiplied: float = 2 * 1780
    line: float = 1.744
    latency: float = 400
    both: float = 0.6
    together: float = 55
    power: float = 0.15
    stored: float = 80
    launch: float = 1700
    cluster: float = 2170
    apart: float = 1.05
    exchanged: float = 50
    sliced: float = 0.9
    added: float = 11
    second: float = 4700


H200 = Rates()


class Sizes(Struct, frozen=True):
    """Of a product, in elements: ints, or values of type index. The pitches are those
    of A and of B, 0 for one that is not known."""

    m: Number
    n: Number
    k: Number
    a_pitch: Number
    b_pitch: Number


def clocks(
    a: OperandTile, b: OperandTile, variant: Variant, sizes: Sizes, rates: Rates = H200
) -> Number:
    """How long a multiprocessor is busy. `a` and `b`: the operands' tiles in a stage."""
    if variant.transposes_c:
        sizes = Sizes(sizes.n, sizes.m, sizes.k, sizes.b_pitch, sizes.a_pitch)
    a_lines = _lines(a, variant.m, sizes.a_pitch, rates)
    lines = a_lines + _lines(b, variant.n, sizes.b_pitch, rates)
    fetch = lines // (SWIZZLE_BYTES * _PARTS) + round(rates.latency / variant.stages)
    mma = round(variant.m * variant.n * SWIZZLE_BYTES / rates.bytes_multiplied)
    both = (fetch + mma) * round(rates.both * 256) // 256
    cluster = round(rates.together * (variant.cluster - 1))
    longest = signed_maximum(signed_maximum(fetch, mma), both)
    power = fetch * round(rates.power * 256) // 256
    stage = longest + power + cluster
    stage = stage * round(_of_stage(variant, rates) * 256) // 256
    k_tiles = divide_up(sizes.k, a.k_extent * variant.cluster_split_k * variant.grid_split_k)
    stored = round(variant.m * variant.n / rates.stored)
    once = _once(variant, rates) + _adding(variant, sizes, rates)
    waves = _waves(variant, sizes)
    if variant.ping_pong:
        # One tile is computed while the one before is stored.
        return waves * (k_tiles * stage) + (once + stored)
    return waves * (k_tiles * stage + stored) + once


def _of_stage(variant: Variant, rates: Rates) -> float:
    """What a stage takes where K is divided, of what it takes else."""
    if variant.grid_split_k > 1:
        return rates.sliced
    return rates.apart if variant.cluster_split_k > 1 else 1.0


def _once(variant: Variant, rates: Rates) -> int:
    """What a block takes at its beginning and at its end."""
    clusters = rates.cluster if variant.cluster * variant.cluster_split_k > 1 else 0.0
    exchange = 4 * variant.m * variant.n / rates.exchanged if variant.cluster_split_k > 1 else 0.0
    return round(rates.launch + clusters + exchange)


def _adding(variant: Variant, sizes: Sizes, rates: Rates) -> Number:
    """For the accumulators of grid split-K, which one kernel writes and another one reads."""
    if variant.grid_split_k == 1:
        return 0
    written = sizes.m * sizes.n * (4 * variant.grid_split_k)
    return written // round(rates.added * variant.blocks) + round(rates.second)


def _lines(operand: OperandTile, extent: int, pitch: Number, rates: Rates) -> Number:
    """The clocks for those that a block copies for a stage, in parts."""
    size = ELEMENT_BYTES[operand.matrix.element]
    rows = operand.extent if operand.is_k_major else operand.slabs * operand.k_extent
    # Rows begin at multiples of this. (Stages along K begin at multiples of a line.)
    step = SWIZZLE_BYTES if operand.is_k_major else extent * size
    start = _lowest_bit(pitch * size | (step | SWIZZLE_BYTES))
    clocks = round(rows / operand.sharers * rates.line * _PARTS)
    return (2 * SWIZZLE_BYTES - start) * clocks


def _lowest_bit(number: Number) -> Number:
    """The largest power of two that divides a number, which is not 0."""
    return number & (0 - number)


def _waves(variant: Variant, sizes: Sizes) -> Number:
    """How many tiles a block computes, at most."""
    down = divide_up(sizes.m, variant.m * variant.down)
    across = divide_up(sizes.n, variant.n * variant.across)
    blocks = H200_BLOCKS_IN_CLUSTERS.get(variant.cluster_split_k, variant.blocks)
    tiles = down * across * variant.grid_split_k
    return divide_up(tiles, blocks // (variant.cluster * variant.cluster_split_k))
