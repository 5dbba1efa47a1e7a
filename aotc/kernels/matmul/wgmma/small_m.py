"""Which kernels small-M GEMMs get on Hopper, which are bound by bandwidth: GEMV for one row, tensor
cores that copy few rows of A for more.

B's columns have so many tiles, and K is divided so, that all multiprocessors have a part of B, and
many stages of it are on their way. Fitted to measurements on an H200.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import H100
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.gemv.family import GEMV, MOST_ROWS_OF_SMALL_M
from aotc.kernels.matmul.problem import Matrix, Problem
from aotc.kernels.matmul.wgmma.cluster_split_k import MOST_SPLITS
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.variants import Variant

# Rows that tensor cores multiply at once.
MOST_ROWS = 64
# With as few rows as this, a multiprocessor has room for two blocks with tiles of 64 columns.
_ROWS_OF_TWO = 16
_STAGES_OF_TWO = 8
# Shared memory of a block for stages, where there is one on a multiprocessor, and the most of them.
_ROOM, _MOST_STAGES = 215040, 10
# Columns of tiles, where there are too many for two parts of K: as few as leave each multiprocessor
# one. Of a B whose rows lie along N they are copied 64 at a time.
_WIDTHS_ALONG, _WIDTHS_ACROSS = (64, 96, 128, 192, 256), (64, 192, 256)
# Of more tiles of 64 columns, those with half of K are no gain.
_MANY_TILES = 100
# What a part of K has at least, in elements.
_LEAST_K = 256
# One pass over a B whose rows lie along N is faster where there are so many columns; where there
# are more, the next kernel's blocks would be in the way of this one's last ones.
_MANY_COLUMNS, _TOO_MANY_COLUMNS = 8448, 16896


class SmallM(Struct, frozen=True):
    """A kernel for `problem`, of so many rows: from the first of `rows` to the second. None: of as
    many as the problem says."""

    family: MatmulFamily[Any]
    variant: Any
    problem: Problem
    rows: tuple[int, int] | None


def small_m_kernels(problem: Problem) -> list[SmallM]:
    """The kernels, for ever more rows, for Hopper alone; none where there are more rows, or where
    other kernels are as good."""
    if problem.n is not None and problem.n <= MOST_ROWS_OF_SMALL_M and problem.m != 1:
        return []
    if problem.m is not None:
        found = _kernel(problem, problem.m)
        return [SmallM(*found, problem, None)] if found and problem.m > 0 else []
    ranges = ((1, 1), (2, _ROWS_OF_TWO), (_ROWS_OF_TWO + 1, MOST_ROWS))
    kernels = []
    for least, most in ranges:
        special = _with_rows(problem, 1) if most == 1 else problem
        if found := _kernel(special, most):
            kernels.append(SmallM(*found, special, (least, most)))
    return kernels


def _kernel(problem: Problem, rows: int) -> tuple[MatmulFamily[Any], Any] | None:
    """The family and the variant for at most so many rows."""
    if rows > MOST_ROWS:
        return None
    tensor_cores = _tensor_cores(problem, rows)
    if rows > 1:
        return (WGMMA, tensor_cores) if tensor_cores else None
    is_wide = problem.n is not None and problem.n >= _MANY_COLUMNS
    if tensor_cores and not problem.b.transposed and not is_wide:
        return WGMMA, tensor_cores
    one_pass = GEMV.variants(problem)
    uses_pdl = problem.b.transposed or (problem.n or 0) < _TOO_MANY_COLUMNS
    return (GEMV, replace(one_pass[0], uses_pdl=uses_pdl)) if one_pass else None


def _tensor_cores(problem: Problem, rows: int) -> Variant | None:
    small_m = -(-rows // 8) * 8
    if small_m == MOST_ROWS or problem.a.transposed:
        small_m = 0
    has_two = 0 < small_m <= _ROWS_OF_TWO
    cluster_split_k, width = _split_k(problem), 64
    if cluster_split_k == 1 and problem.n is not None:
        width = _width(problem, problem.n, has_two=has_two)
    has_two = has_two and width == 64
    room = _ROOM // (((small_m or MOST_ROWS) + width) * 128)
    variant = Variant(
        n=width,
        consumers=1,
        stages=_STAGES_OF_TWO if has_two else min(room, _MOST_STAGES),
        blocks=(2 if has_two else 1) * H100.multiprocessors,
        cluster_split_k=cluster_split_k,
        small_m=small_m,
        # Where some multiprocessors have more tiles than others, the next kernel's blocks would
        # take the places of this one's.
        launches_dependents_early=cluster_split_k > 1,
    )
    return variant if WGMMA.can_take(problem, variant) else None


def _width(problem: Problem, n: int, *, has_two: bool) -> int:
    """Columns of a tile."""
    widths = _WIDTHS_ALONG if problem.b.transposed else _WIDTHS_ACROSS
    width = next((one for one in widths if -(-n // one) <= H100.multiprocessors), widths[-1])
    # Where a multiprocessor has two blocks, only a little wider ones are better.
    return width if not has_two or width < 128 else 64


def _split_k(problem: Problem) -> int:
    """The number of parts of K."""
    if problem.batched:
        return 1
    most = MOST_SPLITS if problem.k is None else max(1, problem.k // _LEAST_K)
    if problem.n is None:
        return min(2, most)
    tiles = max(1, -(-problem.n // 64))
    fitting = max(H100.multiprocessors // tiles, 2 if tiles <= _MANY_TILES else 1)
    return min(fitting, most, MOST_SPLITS)


def _with_rows(problem: Problem, rows: int) -> Problem:
    """The problem with `rows` for M, which the types do not give."""
    a, c = problem.a, problem.c
    a_sizes = (a.sizes[0], rows) if a.transposed else (rows, a.sizes[1])
    return replace(problem, a=_sized(a, a_sizes), c=_sized(c, (rows, c.sizes[1])))


def _sized(matrix: Matrix, sizes: tuple[int | None, int | None]) -> Matrix:
    return replace(matrix, sizes=sizes)
