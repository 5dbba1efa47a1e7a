"""The choice of kernels for small-M GEMMs, which are bandwidth-bound: on Hopper GEMV for one row,
and wgmma kernels that copy few rows of A for more rows; on any GPU GEMV for few unknown rows.

The width of tiles and the split of K are chosen so that all multiprocessors read a part of B, with
many stages in flight. The constants are fitted to measurements on an H200.
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

# The rows that one wgmma multiplies.
MOST_ROWS = 64
# With at most this many rows, two blocks with tiles of 64 columns fit on a multiprocessor.
_ROWS_OF_TWO = 16
_STAGES_OF_TWO = 8
# With one block on a multiprocessor: its shared memory for stages in bytes, and the largest number
# of stages.
_ROOM, _MOST_STAGES = 215040, 10
# The candidate widths of tiles, if there are too many tiles for split-K, for a K-major and an
# N-major B (which is copied 64 columns at a time). The smallest width that leaves each
# multiprocessor at most one tile is used.
_WIDTHS_ALONG, _WIDTHS_ACROSS = (64, 96, 128, 192, 256), (64, 192, 256)
# With more tiles of 64 columns, cluster split-K by 2 is no gain.
_MANY_TILES = 100
# The smallest K extent of a part, in elements.
_LEAST_K = 256
# For an N-major B with at least _MANY_COLUMNS columns, GEMV is faster. With _TOO_MANY_COLUMNS or
# more, programmatic dependent launch is off, as the next kernel's blocks would delay this kernel's
# last ones.
_MANY_COLUMNS, _TOO_MANY_COLUMNS = 8448, 16896
# Few rows of types without a wgmma, such as f32, are multiplied eight at a time: at most so many,
# and by a matrix of at least so many elements.
_ROWS_OF_PASSES, _LARGE_MATRIX = 24, 1 << 18


class SmallM(Struct, frozen=True):
    """A kernel for `problem` if the number of rows is from `rows[0]` to `rows[1]`. `rows` is None
    if the problem has a known number of rows."""

    family: MatmulFamily[Any]
    variant: Any
    problem: Problem
    rows: tuple[int, int] | None


def small_m_kernels(problem: Problem) -> list[SmallM]:
    """The small-M kernels for Hopper, in the order of their numbers of rows. Empty if the problem
    has more rows, or other kernels are as fast."""
    if problem.n is not None and problem.n <= MOST_ROWS_OF_SMALL_M and problem.m != 1:
        return []
    if problem.m is not None:
        found = _kernel(problem, problem.m)
        return [SmallM(*found, problem, None)] if found and problem.m > 0 else []
    few = _ROWS_OF_TWO if _tensor_cores(problem, _ROWS_OF_TWO) else _ROWS_OF_PASSES
    ranges = ((1, 1), (2, few), (few + 1, MOST_ROWS))
    kernels = []
    for least, most in ranges:
        special = _with_rows(problem, 1) if most == 1 else problem
        if found := _kernel(special, most):
            kernels.append(SmallM(*found, special, (least, most)))
    return kernels


def passes(problem: Problem) -> list[SmallM]:
    """Kernels for any GPU that read the other matrix once for a row, or for up to eight, if the
    number of rows is not known."""
    known = problem.n is not None and problem.n <= MOST_ROWS_OF_SMALL_M
    if problem.m is not None or known or (problem.n or 0) * (problem.k or 0) < _LARGE_MATRIX:
        return []
    found = []
    for least, most in ((1, 1), (2, MOST_ROWS_OF_SMALL_M)):
        special = _with_rows(problem, 1) if most == 1 else problem
        variants = GEMV.variants(_with_rows(problem, most))
        if variants and GEMV.can_implement(special, variants[0]):
            found.append(SmallM(GEMV, variants[0], special, (least, most)))
    return found


def _kernel(problem: Problem, rows: int) -> tuple[MatmulFamily[Any], Any] | None:
    """The family and the variant for at most `rows` rows; None if there is none."""
    if rows > MOST_ROWS:
        return None
    tensor_cores = _tensor_cores(problem, rows)
    if rows > 1:
        return (WGMMA, tensor_cores) if tensor_cores else _one_pass(problem, rows)
    is_wide = problem.n is not None and problem.n >= _MANY_COLUMNS
    if tensor_cores and not problem.b.transposed and not is_wide:
        return WGMMA, tensor_cores
    one_pass = GEMV.variants(problem)
    uses_pdl = problem.b.transposed or (problem.n or 0) < _TOO_MANY_COLUMNS
    return (GEMV, replace(one_pass[0], uses_pdl=uses_pdl)) if one_pass else None


def _one_pass(problem: Problem, rows: int) -> tuple[MatmulFamily[Any], Any] | None:
    """The variant for up to so many rows, if their number is not known, of types without a wgmma,
    such as f32; None if there is none, or if the other matrix is small."""
    is_large = (problem.n or 0) * (problem.k or 0) >= _LARGE_MATRIX
    if problem.m is not None or rows > _ROWS_OF_PASSES or not is_large:
        return None
    found = GEMV.variants(_with_rows(problem, MOST_ROWS_OF_SMALL_M))
    return (GEMV, found[0]) if found and GEMV.can_implement(problem, found[0]) else None


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
        # If some multiprocessors have more tiles than others, the next kernel's blocks would take
        # resources from this one's.
        launches_dependents_early=cluster_split_k > 1,
    )
    return variant if WGMMA.can_implement(problem, variant) else None


def _width(problem: Problem, n: int, *, has_two: bool) -> int:
    """The columns of a tile."""
    widths = _WIDTHS_ALONG if problem.b.transposed else _WIDTHS_ACROSS
    width = next((one for one in widths if -(-n // one) <= H100.multiprocessors), widths[-1])
    # With two blocks on a multiprocessor, only slightly wider tiles are better.
    return width if not has_two or width < 128 else 64


def _split_k(problem: Problem) -> int:
    """The number of parts that cluster split-K divides K into."""
    if problem.batched:
        return 1
    most = MOST_SPLITS if problem.k is None else max(1, problem.k // _LEAST_K)
    if problem.n is None:
        return min(2, most)
    tiles = max(1, -(-problem.n // 64))
    fitting = max(H100.multiprocessors // tiles, 2 if tiles <= _MANY_TILES else 1)
    return min(fitting, most, MOST_SPLITS)


def _with_rows(problem: Problem, rows: int) -> Problem:
    """The problem with `rows` as its M, which the buffers' types do not determine."""
    a, c = problem.a, problem.c
    a_sizes = (a.sizes[0], rows) if a.transposed else (rows, a.sizes[1])
    return replace(problem, a=_sized(a, a_sizes), c=_sized(c, (rows, c.sizes[1])))


def _sized(matrix: Matrix, sizes: tuple[int | None, int | None]) -> Matrix:
    return replace(matrix, sizes=sizes)
