"""Split-K of the implicit GEMM families: the K extent of a part, and the cost of adding parts."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from aotc.chips import H100
from aotc.kernels.matmul.family import FewTiles
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, likely_count
from aotc.kernels.matmul.problem import LIKELY_SIZE, Problem
from aotc.kernels.matmul.waves import LEAST_PART

# Clocks of the second launch, and the accumulators that a multiprocessor writes or reads per clock.
_LAUNCH_CLOCKS = 5000
_SUMS_EACH_CLOCK = 8
# The assumed height and width of an image of unknown sizes.
_LIKELY_IMAGE_SIZE = 64
# The numbers of parts of K among which kernels are chosen. The sums of parts take memory, of which
# images of unknown sizes could need any amount.
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


class SplitKVariant(Protocol):
    """The fields of a variant that split-K reads: the parts of K (0: the program chooses them),
    the tile's extents, the stages."""

    @property
    def m(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def split_k(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def stages(self) -> int: ...


def parts_of(problem: ImplicitGemm, most: int) -> tuple[int, ...]:
    """The numbers of parts of K that a kernel for the problem may have, up to `most`."""
    return tuple(one for one in _PARTS if one <= most) if problem.is_near else (1,)


def split_k_extent(problem: Problem, variant: SplitKVariant) -> int:
    """The largest K extent of a part, a multiple of the tile's."""
    assert problem.k is not None
    return -(-problem.k // (max(1, variant.split_k) * variant.k)) * variant.k


def few_tiles_of(problem: ImplicitGemm, small: Any) -> FewTiles:
    """The kernel of a small tile for C of few tiles: in parts of K, as many as the program
    chooses, if K is long enough."""
    assert problem.k is not None
    split_k = 0 if problem.k >= 2 * LEAST_PART else 1
    return FewTiles(replace(small, split_k=split_k), H100.multiprocessors, 0)


def table_length(problem: Problem, variant: SplitKVariant) -> int:
    """The entries of a part's table of offsets along K, with those of tiles fetched ahead."""
    return split_k_extent(problem, variant) + variant.stages * variant.k


def likely_tiles(problem: ImplicitGemm, variant: SplitKVariant) -> tuple[int, int]:
    """The number of blocks, with a guess for unknown sizes, and the K extent of each."""
    loops = (problem.rows, problem.columns, problem.k_loops, problem.batch)
    unknown = LIKELY_SIZE if problem.is_near else _LIKELY_IMAGE_SIZE
    m, n, k, batches = (likely_count(one, unknown) for one in loops)
    tiles = batches * -(-m // variant.m) * -(-n // variant.n) * variant.split_k
    return tiles, -(-k // variant.split_k)


def clocks_of_parts(problem: ImplicitGemm, split_k: int) -> float:
    """The expected clocks of the kernel that adds the accumulators of the parts."""
    if split_k == 1:
        return 0
    m, n, batches = (likely_count(one) for one in (problem.rows, problem.columns, problem.batch))
    sums = batches * m * n * (2 * split_k + 1)
    return _LAUNCH_CLOCKS + sums / H100.multiprocessors / _SUMS_EACH_CLOCK
