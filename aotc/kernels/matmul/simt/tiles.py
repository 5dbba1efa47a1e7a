"""Sizes of SIMT kernels: tiles of A and B, how they are brought to shared memory and lie there."""

from __future__ import annotations

from math import prod

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.scalar import sum_type

WIDEST_ACCESS = 16  # bytes


class Variant(Struct, frozen=True):
    """Sizes, all powers of two: a block makes m x n elements of C from k columns of A and k rows of
    B at a time, a warp warp_m x warp_n of them, a thread thread_m x thread_n.

    `stages`: how many tiles of A and of B are in shared memory, one in use and the others on their
    way. `copy_bytes`: what an asynchronous copy brings, 16, 8 or 4, of operands whose rows lie
    along the tile (the others come by elements). 0: loads and stores instead, which convert, with
    two stages. `group`: blocks that follow each other are in this many rows of tiles, so that they
    find each other's A and B in the L2 cache. K is made in `splits` parts, whose sums another
    kernel adds where they are more than one; 0: the program says in how many, when it knows sizes.
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
    splits: int = 1

    @property
    def threads(self) -> int:
        return self.m * self.n // (self.thread_m * self.thread_n)


class Side(Struct, frozen=True):
    """A or B: its tile is `tile` rows or columns of C long. `is_turned`: its rows lie along k, not
    along the tile. `width`: the elements that a thread brings at once."""

    matrix: Matrix
    extent: int | None
    depth: int | None
    tile: int
    is_turned: bool
    width: int

    @property
    def is_whole(self) -> bool:
        """Whether tiles of it never end behind its last row or column."""
        return self.extent is not None and self.extent % self.tile == 0

    def shape(self, variant: Variant, element: str) -> tuple[int, int, int]:
        # What is turned is stored by neighbours into rows that follow each other: the padding puts
        # them into different banks.
        padding = WIDEST_ACCESS // ELEMENT_BYTES[element] if self.is_turned else 0
        return variant.stages, variant.k, self.tile + padding


def sides(problem: Problem, variant: Variant) -> tuple[Side, Side]:
    def side(matrix: Matrix, extent: int | None, tile: int, is_turned: bool) -> Side:
        along = problem.k if is_turned else extent
        width = _width(matrix, along, tile, is_turned, variant)
        return Side(matrix, extent, problem.k, tile, is_turned, width)

    return (
        side(problem.a, problem.m, variant.m, not problem.a.transposed),
        side(problem.b, problem.n, variant.n, problem.b.transposed),
    )


def _width(matrix: Matrix, along: int | None, tile: int, is_turned: bool, variant: Variant) -> int:
    bytes_ = ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes:
        # Asynchronous copies cannot turn anything but single elements.
        return 1 if is_turned else max(1, variant.copy_bytes // bytes_)
    # Loads are whole: of rows of which it is not known that they are so many elements, single ones.
    width = min(WIDEST_ACCESS, matrix.alignment) // bytes_
    while width > 1 and (
        along is None
        or along % width
        or (is_turned and variant.k % width)
        or tile * variant.k // width % variant.threads
    ):
        width //= 2
    return max(1, width)


def shared_bytes(problem: Problem, variant: Variant) -> int:
    element = sum_type(problem)
    both = sides(problem, variant)
    return sum(prod(side.shape(variant, element)) for side in both) * ELEMENT_BYTES[element]
