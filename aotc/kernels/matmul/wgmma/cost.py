"""How long a kernel of `hopper` is expected to take: a model of the chip, fitted on an H200.

A stage takes as long as the tensor cores need for it, or as its lines need to come: TMA fetches
rows of 128 bytes, each as one line of the L2 cache or, where it does not begin at a multiple of
128 bytes, as parts of two. What blocks of a cluster share is fetched once.

Written over `Writer`, it is computed here for sizes that are known, and by the program for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.chips import H200_BLOCKS_IN_CLUSTERS
from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.kernels.matmul.wgmma.tiles import SWIZZLED, Operand
from aotc.kernels.writer import Writer

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.variants import Variant

_PARTS = 16  # what fractions are counted in


class Rates(Struct, frozen=True):
    """Clocks of a multiprocessor.

    `bytes_multiplied`: how many bytes of K the tensor cores multiply for elements of C in a clock,
    two for a product of 16 bits. `line`: for a line of L2. `latency`:
    until the first of a ring's stages is there. `both`: the part of what tensor cores and lines
    take together that a stage takes at least. `together`: for each other block of a cluster, which
    a stage waits for. `power`: the part of what lines take that slows a stage down in any case.
    `stored`: elements of C that are stored in a clock. `launch` and `cluster`: for the launch, and
    for one of clusters besides. Where blocks of a cluster divide K: `apart`, how much longer a
    stage takes, as neighbours on the chip have nothing in common, and `exchanged`, bytes of sums.
    Of slices: `sliced`, the part of a stage (all blocks make one tile, at the same time); `added`,
    bytes of sums, and `second`, for the kernel that adds them.
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
    """Of a product, in elements: numbers, or names of values of type index. The pitches are those
    of A and of B, 0 for one that is not known."""

    m: Index
    n: Index
    k: Index
    a_pitch: Index
    b_pitch: Index


def clocks(
    w: Writer, a: Operand, b: Operand, variant: Variant, sizes: Sizes, rates: Rates = H200
) -> Index:
    """How long a multiprocessor is busy. `a` and `b`: the operands' tiles in a stage."""
    if variant.swaps:
        sizes = Sizes(sizes.n, sizes.m, sizes.k, sizes.b_pitch, sizes.a_pitch)
    lines = w.add(
        _lines(w, a, variant.m, sizes.a_pitch, rates), _lines(w, b, variant.n, sizes.b_pitch, rates)
    )
    fetch = w.add(w.divide(lines, SWIZZLED * _PARTS), round(rates.latency / variant.stages))
    products = round(variant.m * variant.n * SWIZZLED / rates.bytes_multiplied)
    both = w.divide(w.multiply(w.add(fetch, products), round(rates.both * 256)), 256)
    together = round(rates.together * (variant.cluster - 1))
    longest = w.maximum(w.maximum(fetch, products), both)
    power = w.divide(w.multiply(fetch, round(rates.power * 256)), 256)
    stage = w.add(w.add(longest, power), together)
    stage = w.divide(w.multiply(stage, round(_of_stage(variant, rates) * 256)), 256)
    depth = w.divide_up(sizes.k, a.depth * variant.splits * variant.slices)
    stored = round(variant.m * variant.n / rates.stored)
    once = w.add(_once(variant, rates), _adding(w, variant, sizes, rates))
    turns = _turns(w, variant, sizes)
    if variant.ping_pong:
        # One tile is multiplied while the one before is stored.
        return w.add(w.multiply(turns, w.multiply(depth, stage)), w.add(once, stored))
    return w.add(w.multiply(turns, w.add(w.multiply(depth, stage), stored)), once)


def _of_stage(variant: Variant, rates: Rates) -> float:
    """What a stage takes where K is divided, of what it takes else."""
    if variant.slices > 1:
        return rates.sliced
    return rates.apart if variant.splits > 1 else 1.0


def _once(variant: Variant, rates: Rates) -> int:
    """What a block takes at its beginning and at its end."""
    clusters = rates.cluster if variant.cluster * variant.splits > 1 else 0.0
    exchange = 4 * variant.m * variant.n / rates.exchanged if variant.splits > 1 else 0.0
    return round(rates.launch + clusters + exchange)


def _adding(w: Writer, variant: Variant, sizes: Sizes, rates: Rates) -> Index:
    """For slices' sums, which one kernel writes and another one reads."""
    if variant.slices == 1:
        return 0
    written = w.multiply(w.multiply(sizes.m, sizes.n), 4 * variant.slices)
    return w.add(w.divide(written, round(rates.added * variant.blocks)), round(rates.second))


def _lines(w: Writer, operand: Operand, extent: int, pitch: Index, rates: Rates) -> Index:
    """The clocks for those that a block fetches for a stage, in parts."""
    size = ELEMENT_BYTES[operand.matrix.element]
    rows = operand.extent if operand.is_deep else operand.slabs * operand.depth
    # Rows begin at multiples of this. (Stages along K begin at multiples of a line.)
    step = SWIZZLED if operand.is_deep else extent * size
    start = w.lowest_bit(w.either(w.multiply(pitch, size), step | SWIZZLED))
    clocks = round(rows / operand.sharers * rates.line * _PARTS)
    return w.multiply(w.subtract(2 * SWIZZLED, start), clocks)


def _turns(w: Writer, variant: Variant, sizes: Sizes) -> Index:
    """How many tiles a block makes, at most."""
    down = w.divide_up(sizes.m, variant.m * variant.down)
    across = w.divide_up(sizes.n, variant.n * variant.across)
    blocks = H200_BLOCKS_IN_CLUSTERS.get(variant.splits, variant.blocks)
    tiles = w.multiply(w.multiply(down, across), variant.slices)
    return w.divide_up(tiles, blocks // (variant.cluster * variant.splits))
