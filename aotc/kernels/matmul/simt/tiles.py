"""Sizes of SIMT kernels: tiles of A and B, their copies to shared memory, their layouts there."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import WIDEST_ACCESS
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.scalar import sum_type
from aotc.numbers import Number


class Variant(Struct, frozen=True):
    """Sizes, all powers of two: a block computes m x n elements of C from k columns of A and k rows
    of B at a time, a warp warp_m x warp_n of them, a thread thread_m x thread_n.

    `stages`: the number of tiles of A and of B in shared memory, of which one is used while the
    others are copied. `copy_bytes`: the bytes of an asynchronous copy, 16, 8 or 4, of operands that
    are not K-major (those are copied by elements). 0: loads and stores instead, which convert, with
    two stages. `group`: blocks that follow each other are in this many rows of tiles, so that they
    find each other's A and B in the L2 cache. `split_k`: of K; if it is not 1, another kernel adds
    the parts' accumulators. 0: the program finds the number when it knows the sizes.
    """

    m: int
    n: int
    k: int
    warp_m: int
    warp_n: int
    thread_m: int
    thread_n: int
    stages: int = 3
    copy_bytes: int = 16
    group: int = 8
    split_k: int = 1

    @property
    def threads(self) -> int:
        return self.m * self.n // (self.thread_m * self.thread_n)


class Side(Struct, frozen=True):
    """A or B: its tile is `tile` rows or columns of C long. `is_k_major`: K is contiguous, not the
    tile. `width`: the elements that a thread copies at once."""

    matrix: Matrix
    extent: int | None
    k: int | None
    tile: int
    is_k_major: bool
    width: int

    @property
    def is_whole(self) -> bool:
        """Whether tiles of it never end behind its last row or column."""
        return self.extent is not None and self.extent % self.tile == 0

    def index(self, along: Number, k: Number) -> tuple[Number, Number]:
        """Of an element of the matrix: the rows in memory, and the columns."""
        return (along, k) if self.is_k_major else (k, along)

    def shape(self, variant: Variant, element: str) -> tuple[int, int, int]:
        # A K-major operand is stored by neighbours into rows that follow each other: the padding
        # puts them into different banks.
        padding = WIDEST_ACCESS // ELEMENT_BYTES[element] if self.is_k_major else 0
        return variant.stages, variant.k, self.tile + padding


def sides(
    problem: Problem, variant: Variant, width: Callable[[Side, Variant], int] | None = None
) -> tuple[Side, Side]:
    """A and B. `width` gives the elements that a thread copies at once, of a side that has 1: as
    many as matrices allow, unless another function is given."""

    def side(matrix: Matrix, extent: int | None, tile: int, is_k_major: bool) -> Side:
        single = Side(matrix, extent, problem.k, tile, is_k_major, 1)
        return replace(single, width=(width or _width)(single, variant))

    return (
        side(problem.a, problem.m, variant.m, not problem.a.transposed),
        side(problem.b, problem.n, variant.n, problem.b.transposed),
    )


def _width(side: Side, variant: Variant) -> int:
    matrix, is_k_major = side.matrix, side.is_k_major
    along, bytes_ = side.k if is_k_major else side.extent, ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes:
        # Asynchronous copies can transpose single elements alone.
        return 1 if is_k_major else max(1, variant.copy_bytes // bytes_)
    # Loads are whole: of rows of which it is not known that they are so many elements, single ones.
    width = min(WIDEST_ACCESS, matrix.alignment) // bytes_
    while width > 1 and (
        along is None
        or along % width
        or (is_k_major and variant.k % width)
        or side.tile * variant.k // width % variant.threads
    ):
        width //= 2
    return max(1, width)


def shared_bytes(problem: Problem, variant: Variant, both: tuple[Side, Side] | None = None) -> int:
    """What the tiles of `both` take, which are `sides(problem, variant)` unless they are given."""
    element = sum_type(problem)
    shapes = [side.shape(variant, element) for side in both or sides(problem, variant)]
    return sum(map(prod, shapes)) * ELEMENT_BYTES[element]
