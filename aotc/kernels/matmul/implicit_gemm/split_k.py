"""Split-K of the implicit GEMM families: the K extent of a part, and what it costs."""

from __future__ import annotations

from typing import Protocol

from aotc.chips import H100
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, likely_count
from aotc.kernels.matmul.problem import Problem

# Clocks of another launch, and how many sums of parts a multiprocessor writes or reads in one.
_LAUNCH_CLOCKS = 5000
_SUMS_EACH_CLOCK = 8


class Divided(Protocol):
    """A variant: in how many parts K is made, how deep a tile is, how many are ahead."""

    @property
    def split_k(self) -> int: ...
    @property
    def k(self) -> int: ...
    @property
    def stages(self) -> int: ...


def depth_of_part(problem: Problem, variant: Divided) -> int:
    """How many k a block has: whole tiles."""
    assert problem.k is not None
    return -(-problem.k // (variant.split_k * variant.k)) * variant.k


def table_length(problem: Problem, variant: Divided) -> int:
    """What is fetched ahead is looked up, too."""
    return depth_of_part(problem, variant) + variant.stages * variant.k


def clocks_of_parts(problem: ImplicitGemm, split_k: int) -> float:
    """What it takes to add their sums."""
    if split_k == 1:
        return 0
    m, n, batches = (likely_count(one) for one in (problem.rows, problem.columns, problem.batch))
    sums = batches * m * n * (2 * split_k + 1)
    return _LAUNCH_CLOCKS + sums / H100.multiprocessors / _SUMS_EACH_CLOCK
