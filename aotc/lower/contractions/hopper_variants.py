"""Parameters of kernels of `hopper`, and those that are worth a try."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.lower.contractions.problem import Problem

_WARPGROUP = 128  # threads


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    A tile of C has `n` columns (a multiple of 16, at most 256) and 64 rows for each of the
    `m_blocks` of each of the `consumers`, the warpgroups that multiply. In `ping_pong`, two
    consumers have a tile each, and one stores while the other one multiplies.

    `stages`: of the ring. `group`: how many tiles of a column of C follow each other, so that
    the blocks that run at once share rows of A and columns of B in the L2 cache. `blocks`: how
    many run at once, as many as the GPU has multiprocessors. `down` and `across`: how many tiles
    below and beside each other a cluster of blocks makes. `buffers`: of each warp that stores.
    `swaps`: rows and columns are those of C transposed, which is B transposed times A transposed.
    """

    n: int = 256
    consumers: int = 2
    m_blocks: int = 1
    stages: int = 4
    group: int = 16
    ping_pong: bool = False
    blocks: int = 132
    down: int = 1
    across: int = 1
    buffers: int = 2
    swaps: bool = False

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return 64 * self.m_blocks * (1 if self.ping_pong else self.consumers)

    @property
    def threads(self) -> int:
        return _WARPGROUP * (1 + self.consumers)

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return self.down * self.across


_ALONE = (
    Variant(n=256),
    *(Variant(n=n) for n in (224, 192, 160, 128)),
    Variant(n=128, m_blocks=2, ping_pong=True),
    *(Variant(n=n, consumers=3) for n in (128, 96)),
    Variant(n=256, consumers=1),
    Variant(n=64),
    *(Variant(n=n, consumers=1) for n in (128, 96, 64, 32)),
    Variant(n=128, ping_pong=True),
)
_IN_CLUSTERS = (
    *(Variant(n=n, m_blocks=2) for n in (192, 160, 128)),
    Variant(n=192, consumers=3),
    *(Variant(n=n) for n in (256, 224, 192, 128, 64)),
    Variant(n=128, consumers=1),
)
# Of C transposed. Where a tile has columns of B else, in slabs of 64, it has rows of A then, which
# lie along K: any number of them.
_SWAPPED = (
    *(Variant(n=n, swaps=True) for n in (224, 208, 176, 160, 144, 112, 96)),
    *(Variant(n=n, consumers=3, swaps=True) for n in (112, 96, 80)),
    *(Variant(n=n, consumers=1, swaps=True) for n in (112, 96, 80)),
)
_SWAPPED_IN_CLUSTERS = (
    *(Variant(n=n, m_blocks=2, swaps=True) for n in (176, 160, 144)),
    *(Variant(n=n, consumers=3, swaps=True) for n in (176, 160)),
    *(Variant(n=n, swaps=True) for n in (240, 224, 208, 176)),
)
# Clusters: how many blocks down and across, and how many such blocks run at once. What one costs
# at its beginning and at its end is more than small tiles gain.
_CLUSTERS = ((2, 1, 132), (1, 2, 132), (2, 2, 120))


def shapes(problem: Problem) -> tuple[Variant, ...]:
    """Variants that are worth a try, but for their stages; for many tiles first, then for fewer."""
    alone, in_clusters = _ALONE, _IN_CLUSTERS
    if not problem.a.transposed and not problem.b.transposed:
        alone += _SWAPPED
        in_clusters += _SWAPPED_IN_CLUSTERS
    together = (
        replace(shape, down=down, across=across, blocks=blocks)
        for shape in in_clusters
        for down, across, blocks in _CLUSTERS
    )
    return (*alone, *together)
