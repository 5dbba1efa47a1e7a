"""Chooses the kernel of a matmul for the CPU device."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from aotc.kernels.family import CPU
from aotc.kernels.matmul.chosen import Choice, without_alignment
from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.cpu.grouped import CPU_GROUPED
from aotc.kernels.matmul.cpu.streamed import CPU_STREAMED
from aotc.kernels.matmul.depthwise.channels_first import CHANNELS_FIRST
from aotc.kernels.matmul.depthwise.channels_last import CHANNELS_LAST
from aotc.kernels.matmul.depthwise.small_planes import SMALL_PLANES
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.cpu.family import IMPLICIT_CPU
from aotc.kernels.matmul.least_work import LEAST_WORK
from aotc.kernels.matmul.problem import Problem

_FAMILIES: tuple[MatmulFamily[Any], ...] = (
    *(CPU_STREAMED, CPU_GROUPED, CPU_BLOCKED, IMPLICIT_CPU),
    *(SMALL_PLANES, CHANNELS_FIRST, CHANNELS_LAST),
)
# With fewer multiply-adds in each matmul of a batch, loops are as fast.
_LEAST_OF_BATCHED = 1000
# The same for matmuls whose rows are no multiple of a vector.
_LEAST_OF_ODD_ROWS = 2048


def is_worth_on_cpu(problem: Problem) -> bool:
    """Whether the CPU's kernel beats loops for a problem that is too small for kernels on GPUs,
    such as a batch of many small matmuls."""
    m, n, k = problem.m, problem.n, problem.k
    if not (m and n and k) or 1 in (m, n) or m * n * k < _LEAST_OF_BATCHED:
        return False
    # Rows of such lengths are no vectors in loops.
    least = _LEAST_OF_ODD_ROWS if n % 4 else LEAST_WORK
    return problem.likely_batch * m * n * k >= least


def choose_for_cpu(problem: Problem) -> Choice | None:
    """The kernel for the CPU device, which supports matrices at any address; None if no kernel
    supports the problem."""
    problem = without_alignment(problem).without_padding("a")
    for family in _FAMILIES:
        for variant in family.legal_variants(problem):
            return Choice(family, variant, problem, CPU)
    return None


def choose_for_one_row(choice: Choice) -> Choice | None:
    """The CPU's kernel for a matrix of one row, instead of the choice for a matrix of an unknown
    number of rows; None if there is none."""
    problem = choice.problem
    if choice.family is not CPU_BLOCKED or problem.m is not None or problem.a.transposed:
        return None
    if problem.batched:
        return None
    a, c = (replace(one, sizes=(1, one.sizes[1])) for one in (problem.a, problem.c))
    problem = replace(problem, a=a, c=c)
    variants = CPU_STREAMED.legal_variants(problem)
    return next((Choice(CPU_STREAMED, one, problem, CPU) for one in variants), None)
