"""How long a kernel of `hopper` is expected to take: a model of the chip, fitted on an H200.

A stage takes as long as the tensor cores need for it, or as its lines need to come: TMA fetches
rows of 128 bytes, each as one line of the L2 cache or, where it does not begin at a multiple of
128 bytes, as parts of two. What blocks of a cluster share is fetched once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from aotc.lower.contractions.hopper_tiles import DEPTH, SWIZZLED, Operand
from aotc.lower.contractions.problem import ELEMENT_BYTES

if TYPE_CHECKING:
    from aotc.lower.contractions.hopper import Variant


class Rates(Struct, frozen=True):
    """Clocks of a multiprocessor.

    `multiply_adds`: how many the tensor cores make a clock. `line`: for one line of L2. `hidden`:
    what part of the shorter one of both is not hidden behind the longer one. `stored`: elements of
    C that are stored in a clock. `tile`: besides, for each tile. `launch` and `cluster`: once, for
    the launch, and for a launch of clusters besides.
    """

    multiply_adds: float = 2048
    line: float = 2.4
    seen: float = 0.2
    stored: float = 32
    tile: float = 500
    launch: float = 1500
    cluster: float = 1000


H200 = Rates()


def clocks(
    a: Operand, b: Operand, variant: Variant, sizes: tuple[int, int, int], rates: Rates = H200
) -> float:
    """How long a multiprocessor is busy. `a` and `b`: the operands' tiles in a stage; `sizes`: M, N
    and K."""
    fetch = rates.line * (_lines(a, variant.m) + _lines(b, variant.n))
    products = variant.m * variant.n * DEPTH / rates.multiply_adds
    stage = max(fetch, products) + rates.seen * min(fetch, products)
    stored = rates.tile + variant.m * variant.n / rates.stored
    turns, depth = _turns(variant, *sizes[:2]), -(-sizes[2] // DEPTH)
    # With two tiles at once one is multiplied while the other one is stored.
    waits = 1 if variant.ping_pong else turns
    once = rates.launch + (rates.cluster if variant.cluster > 1 else 0.0)
    return turns * depth * stage + waits * stored + once


def _turns(variant: Variant, m: int, n: int) -> int:
    """How many tiles a block makes, at most."""
    down, across = -(-m // (variant.m * variant.down)), -(-n // (variant.n * variant.across))
    return -(-down * across // (variant.blocks // variant.cluster))


def _lines(operand: Operand, extent: int) -> float:
    """Those that a block fetches for a stage; a pitch that is not known is taken for a good one."""
    matrix = operand.matrix
    size = ELEMENT_BYTES[matrix.element]
    rows = operand.extent if operand.is_deep else operand.slabs * DEPTH
    # Rows begin at multiples of this. (K's stages do at multiples of a line.)
    step = SWIZZLED if operand.is_deep else extent * size
    start = math.gcd(step, SWIZZLED, (matrix.pitch or 0) * size)
    return rows / operand.sharers * (2 - start / SWIZZLED)
