"""The parameters of a kernel, and the variants that are worth a try."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import FLOAT8
from aotc.chips import H100, H200_BLOCKS_IN_CLUSTERS
from aotc.kernels.hopper.cta import WARPGROUP
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem

# By the number of consumers: for how many accumulators each of their threads has registers, where
# those of a stage are apart from the others.
MOST_PROMOTED = {1: 192, 2: 192, 3: 96}


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    A tile of C has `n` columns (a multiple of 16, at most 256) and 64 rows for each of the
    `m_blocks` of each of the `consumers`, the warpgroups that compute. With `ping_pong`, two
    consumers have a tile each, and one is in its epilogue while the other one is in its mainloop.

    `stages`: of the pipeline. `group`: how many tiles of a column of C follow each other, so that
    the blocks that run at once share rows of A and columns of B in the L2 cache. `blocks`: how many
    run at once, as many as the GPU has multiprocessors. `down` and `across`: how many tiles below
    and beside each other a cluster of blocks computes. `buffers`: of each warp, for the epilogue.
    `transposes_c`: rows and columns are those of C transposed, which is B transposed times A
    transposed.

    `promotes`: each stage has accumulators of its own, which threads add to the tile's, as tensor
    cores keep about 14 bits of sums of f8; `parts` of the columns one after the other, which take
    fewer registers. `cluster_split_k`: so many blocks of a cluster divide K. `grid_split_k`: K has
    so many parts, each with blocks of its own, whose accumulators a second kernel adds. `small_m`:
    C has no more rows, and only they are copied of A (a multiple of 8, 0 for all); tensor cores
    multiply what lies behind them, too, and nobody stores that. `launches_dependents_early`: by
    programmatic dependent launch, the next kernel's blocks may start when this kernel starts;
    otherwise they may start when its mainloops are done.
    """

    n: int = 256
    consumers: int = 2
    m_blocks: int = 1
    stages: int = 4
    group: int = 16
    ping_pong: bool = False
    blocks: int = H100.multiprocessors
    down: int = 1
    across: int = 1
    buffers: int = 2
    transposes_c: bool = False
    promotes: bool = False
    parts: int = 1
    cluster_split_k: int = 1
    grid_split_k: int = 1
    small_m: int = 0
    launches_dependents_early: bool = True

    @property
    def m(self) -> int:
        """Rows of a tile."""
        return 64 * self.m_blocks * (1 if self.ping_pong else self.consumers)

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

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
    *(Variant(n=n, m_blocks=2) for n in (192, 160)),
    Variant(n=192, consumers=3),
    *(Variant(n=n) for n in (256, 224, 192, 128, 64)),
    Variant(n=128, consumers=1),
)
# Of these those for other elements than such of 16 bits, which are brought by as many bytes but
# multiplied faster: others were not seen to be better.
_OTHERS = tuple(shape for shape in _ALONE if shape.consumers < 3 and shape.n not in (224, 160))
# Of C transposed. Where a tile has columns of B else, in slabs of 64, it has rows of A then, which
# lie along K: any number of them.
_SWAPPED = (
    *(Variant(n=n, transposes_c=True) for n in (208, 176, 160, 144, 112, 96)),
    *(Variant(n=n, consumers=3, transposes_c=True) for n in (112, 96, 80)),
    *(Variant(n=n, consumers=1, transposes_c=True) for n in (112, 96, 80)),
)
_SWAPPED_IN_CLUSTERS = (
    Variant(n=160, m_blocks=2, transposes_c=True),
    Variant(n=192, consumers=3, transposes_c=True),
    *(Variant(n=n, transposes_c=True) for n in (208, 176)),
)
# Clusters: how many blocks down and across. What one costs at its beginning and at its end is more
# than small tiles gain.
_CLUSTERS = ((1, 2), (2, 1), (2, 2))


# Of few tiles. Larger ones than else, which two turns at most make; and such as divide K, by the
# grid and by pairs of blocks.
_LARGER = Variant(n=176, m_blocks=2)
_MOST_LARGER = 2 * _LARGER.blocks
_SLICED = (
    *(Variant(n=128, consumers=1, m_blocks=m_blocks) for m_blocks in (1, 2)),
    Variant(n=128, m_blocks=2),
)
_IN_PAIRS = tuple(replace(shape, cluster_split_k=2) for shape in (Variant(n=256), *_SLICED[1:]))
# What a part has of K at least, in elements; and so many parts of the largest tiles: two are for
# a pair.
_LEAST_K = 256
_LEAST_OF_LARGEST = 3


def shapes(problem: Problem) -> tuple[Variant, ...]:
    """Variants that are worth a try, but for their stages; for many tiles first, then for fewer."""
    if ELEMENT_BYTES[problem.a.element] != 2:
        others = tuple(replace(shape, transposes_c=has_fragments(problem)) for shape in _OTHERS)
        promotes = problem.exact_accumulation or problem.a.element in FLOAT8
        return tuple(map(_promoting, others)) if promotes else others
    alone, in_clusters = _ALONE, _IN_CLUSTERS
    if not problem.a.transposed and not problem.b.transposed:
        alone += _SWAPPED
        in_clusters = _SWAPPED_IN_CLUSTERS + in_clusters
    together = (
        replace(shape, down=down, across=across, blocks=H200_BLOCKS_IN_CLUSTERS[down * across])
        for shape in in_clusters
        for down, across in _CLUSTERS
    )
    return (*alone, *together, *_of_few_tiles(problem))


def _of_few_tiles(problem: Problem) -> list[Variant]:
    """Those that are worth a try where there are few of their tiles."""
    m, n, k = problem.m, problem.n, problem.k
    if not (m and n and k) or problem.batched:
        return []
    swapped = not problem.a.transposed and not problem.b.transposed
    rows, columns = (n, m) if swapped else (m, n)
    found = []
    if -(-rows // _LARGER.m) * -(-columns // _LARGER.n) <= _MOST_LARGER:
        found.append(replace(_LARGER, transposes_c=swapped))
    for shape in _SLICED:
        grid_split_k = min(shape.blocks // (-(-m // shape.m) * -(-n // shape.n)), k // _LEAST_K)
        if grid_split_k >= (_LEAST_OF_LARGEST if shape == _SLICED[-1] else 2):
            found.append(replace(shape, grid_split_k=grid_split_k))
    for shape in _IN_PAIRS:
        if -(-m // shape.m) * -(-n // shape.n) * shape.cluster_split_k <= shape.blocks:
            found.append(shape)
    return found


def has_fragments(problem: Problem) -> bool:
    """Whether B is the left operand, from registers: of elements of other than 16 bits, wgmma reads
    from shared memory those alone that lie along K."""
    return ELEMENT_BYTES[problem.a.element] != 2 and not problem.b.transposed


def accumulators_of(variant: Variant) -> int:
    """How many a thread has at once."""
    each = variant.m_blocks * variant.n // 2
    return each + each // variant.parts if variant.promotes else each


def _promoting(shape: Variant) -> Variant:
    """With as few parts as leave registers for the accumulators of one."""
    parts = 1
    most = max(MOST_PROMOTED[shape.consumers], 16 + shape.m_blocks * shape.n // 2)
    while accumulators_of(replace(shape, promotes=True, parts=parts)) > most:
        parts += 1
    return replace(shape, promotes=True, parts=parts)
