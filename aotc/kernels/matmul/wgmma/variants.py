"""The parameters of a `wgmma` kernel, and the variants that are candidates for a problem."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import FLOAT8
from aotc.chips import H100, H200_BLOCKS_IN_CLUSTERS
from aotc.kernels.hopper.cta import WARPGROUP
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Problem

# The largest number of accumulators per thread for variants that promote, by the number of
# consumers. It includes the accumulators of the current stage.
MOST_PROMOTED = {1: 192, 2: 192, 3: 96}


class Variant(Struct, frozen=True):
    """Parameters of a kernel.

    A tile of C has `n` columns (a multiple of 16, at most 256) and 64 rows for each of the
    `m_blocks` of each of the `consumers`, the warpgroups that compute. With `ping_pong`, two
    consumers have a tile each, and one is in its epilogue while the other one is in its mainloop.

    `stages`: the number of pipeline stages. `group`: the number of rows of tiles that are
    rasterized together (see `rasterize`), for reuse in the L2 cache. `blocks`: the number of
    concurrent blocks, one for each multiprocessor. `down` and `across`: the rows and columns of
    tiles that a cluster of blocks computes. `buffers`: the epilogue's buffers in shared memory for
    each warp. `transposes_c`: the kernel computes Cᵀ = Bᵀ · Aᵀ, and tile sizes are those of Cᵀ.

    `promotes`: the accumulators of each stage are promoted, that is, added to the tile's
    accumulators outside of the tensor cores, as tensor cores accumulate f8 with about 14 bits. The
    stage's columns are then computed in `parts` groups, one after the other, which takes fewer
    registers. `cluster_split_k`: the number of blocks of a cluster that split K of one tile.
    `grid_split_k`: the number of parts of K, each with its own blocks, whose accumulators a second
    kernel adds. `small_m`: the largest number of rows of C, and the rows of A that are copied (a
    multiple of 8; 0: the whole tile). The tensor cores also multiply the data behind these rows in
    shared memory, whose results are not stored. `launches_dependents_early`: by programmatic
    dependent launch, the next kernel's blocks may start when this kernel starts; otherwise they may
    start when its mainloops are done.
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
        """The rows of a tile."""
        return 64 * self.m_blocks * (1 if self.ping_pong else self.consumers)

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

    @property
    def cluster(self) -> int:
        """The number of blocks of a cluster."""
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
# Candidates for elements of other than 16 bits; no other shape was measured to be better.
_NON_16_BIT = tuple(shape for shape in _ALONE if shape.consumers < 3 and shape.n not in (224, 160))
# Candidates that compute the transpose of C. Their `n` counts rows of A, which is K-major: any
# multiple of 16. (Columns of B come in slabs of 64.)
_TRANSPOSED_C = (
    *(Variant(n=n, transposes_c=True) for n in (208, 176, 160, 144, 112, 96)),
    *(Variant(n=n, consumers=3, transposes_c=True) for n in (112, 96, 80)),
    *(Variant(n=n, consumers=1, transposes_c=True) for n in (112, 96, 80)),
)
_TRANSPOSED_C_IN_CLUSTERS = (
    Variant(n=160, m_blocks=2, transposes_c=True),
    Variant(n=192, consumers=3, transposes_c=True),
    *(Variant(n=n, transposes_c=True) for n in (208, 176)),
)
# Clusters: blocks down and across. Small tiles gain less than a cluster costs to launch and to end.
_CLUSTERS = ((1, 2), (2, 1), (2, 2))


# Candidates for a C of few tiles: a larger tile, if each block computes at most two; grid split-K;
# and cluster split-K, in pairs of blocks.
_LARGER = Variant(n=176, m_blocks=2)
_MOST_LARGER = 2 * _LARGER.blocks
_GRID_SPLIT_K = (
    *(Variant(n=128, consumers=1, m_blocks=m_blocks) for m_blocks in (1, 2)),
    Variant(n=128, m_blocks=2),
)
_CLUSTER_SPLIT_K = tuple(
    replace(shape, cluster_split_k=2) for shape in (Variant(n=256), *_GRID_SPLIT_K[1:])
)
# The smallest K extent of a part; and the fewest parts for grid split-K of the largest tile: two
# parts are left to cluster split-K.
_LEAST_K = 256
_LEAST_OF_LARGEST = 3


def shapes(problem: Problem) -> tuple[Variant, ...]:
    """The candidates, without their number of stages; those for many tiles come first."""
    if ELEMENT_BYTES[problem.a.element] != 2:
        transposes_c = has_fragments(problem)
        found = tuple(replace(shape, transposes_c=transposes_c) for shape in _NON_16_BIT)
        promotes = problem.exact_accumulation or problem.a.element in FLOAT8
        return tuple(map(_promoting, found)) if promotes else found
    alone, in_clusters = _ALONE, _IN_CLUSTERS
    if not problem.a.transposed and not problem.b.transposed:
        alone += _TRANSPOSED_C
        in_clusters = _TRANSPOSED_C_IN_CLUSTERS + in_clusters
    clustered = (
        replace(shape, down=down, across=across, blocks=H200_BLOCKS_IN_CLUSTERS[down * across])
        for shape in in_clusters
        for down, across in _CLUSTERS
    )
    return (*alone, *clustered, *_of_few_tiles(problem))


def _of_few_tiles(problem: Problem) -> list[Variant]:
    """Further candidates for a C of few tiles, of known sizes and without a batch."""
    m, n, k = problem.m, problem.n, problem.k
    if not (m and n and k) or problem.batched:
        return []
    transposes_c = not problem.a.transposed and not problem.b.transposed
    rows, columns = (n, m) if transposes_c else (m, n)
    found = []
    if -(-rows // _LARGER.m) * -(-columns // _LARGER.n) <= _MOST_LARGER:
        found.append(replace(_LARGER, transposes_c=transposes_c))
    for shape in _GRID_SPLIT_K:
        grid_split_k = min(shape.blocks // (-(-m // shape.m) * -(-n // shape.n)), k // _LEAST_K)
        if grid_split_k >= (_LEAST_OF_LARGEST if shape == _GRID_SPLIT_K[-1] else 2):
            found.append(replace(shape, grid_split_k=grid_split_k))
    for shape in _CLUSTER_SPLIT_K:
        if -(-m // shape.m) * -(-n // shape.n) * shape.cluster_split_k <= shape.blocks:
            found.append(shape)
    return found


def has_fragments(problem: Problem) -> bool:
    """Whether the kernel computes the transpose of C with B as the left operand, in registers:
    wgmma reads elements of other sizes than 16 bits from shared memory only if they are K-major."""
    return ELEMENT_BYTES[problem.a.element] != 2 and not problem.b.transposed


def accumulators_of(variant: Variant) -> int:
    """The number of accumulators that a thread holds at once."""
    each = variant.m_blocks * variant.n // 2
    return each + each // variant.parts if variant.promotes else each


def _promoting(shape: Variant) -> Variant:
    """The shape with `promotes`, in the smallest number of `parts` that fits the registers."""
    parts = 1
    most = max(MOST_PROMOTED[shape.consumers], 16 + shape.m_blocks * shape.n // 2)
    while accumulators_of(replace(shape, promotes=True, parts=parts)) > most:
        parts += 1
    return replace(shape, promotes=True, parts=parts)
