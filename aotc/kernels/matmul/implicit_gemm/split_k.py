"""Split-K of the implicit GEMM families: the K extent of a part, and the cost of adding parts."""

from __future__ import annotations

from typing import Protocol

from aotc.chips import H100
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, likely_count
from aotc.kernels.matmul.problem import Problem

# Clocks of the second launch, and the accumulators that a multiprocessor writes or reads per clock.
_LAUNCH_CLOCKS = 5000
_SUMS_EACH_CLOCK = 8


class SplitKVariant(Protocol):
    """The fields of a variant that split-K reads: the parts of K, the tile's extents, the
    stages."""

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


def split_k_extent(problem: Problem, variant: SplitKVariant) -> int:
    """The K extent of a part, a multiple of the tile's."""
    assert problem.k is not None
    return -(-problem.k // (variant.split_k * variant.k)) * variant.k


def table_length(problem: Problem, variant: SplitKVariant) -> int:
    """The entries of a part's table of offsets along K, with those of tiles fetched ahead."""
    return split_k_extent(problem, variant) + variant.stages * variant.k


def likely_tiles(problem: ImplicitGemm, variant: SplitKVariant) -> tuple[int, int]:
    """The number of blocks, with a guess for unknown sizes, and the K extent of each."""
    loops = (problem.rows, problem.columns, problem.k_loops, problem.batch)
    m, n, k, batches = map(likely_count, loops)
    tiles = batches * -(-m // variant.m) * -(-n // variant.n) * variant.split_k
    return tiles, -(-k // variant.split_k)


def clocks_of_parts(problem: ImplicitGemm, split_k: int) -> float:
    """The expected clocks of the kernel that adds the accumulators of the parts."""
    if split_k == 1:
        return 0
    m, n, batches = (likely_count(one) for one in (problem.rows, problem.columns, problem.batch))
    sums = batches * m * n * (2 * split_k + 1)
    return _LAUNCH_CLOCKS + sums / H100.multiprocessors / _SUMS_EACH_CLOCK
