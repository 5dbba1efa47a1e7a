"""Sizes of SIMT kernels: tiles of A and B, their copies to shared memory, their layouts there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import WIDEST_ACCESS
from aotc.builder.numbers import Number
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.matmul.scalar import accumulator_type_of

# The number of elements along K that consecutive threads copy of a row of a K-major operand: 32
# bytes of f32 are the smallest transaction of memory, and the transposed stores are in different
# banks.
_RUN = 8


class Variant(Struct, frozen=True):
    """Parameters of a kernel. A block computes m x n elements of C from k columns of A and k rows
    of B at a time, a warp warp_m x warp_n of them, and a thread thread_m x thread_n. k is a power
    of two.

    `stages`: the number of tiles of A and of B in shared memory; one is used while the others are
    copied. `copy_bytes`: the bytes of an asynchronous copy, 16, 8 or 4, of an operand that is not
    K-major (K-major ones are copied by elements); 0: loads and stores instead, which convert, with
    two stages. `group`: consecutive blocks compute tiles in this many rows of tiles, so that they
    share A and B in the L2 cache. `split_k`: the number of parts of K; if it is not 1, another
    kernel adds their accumulators. 0: the program computes the number from the sizes. `sliced_k`:
    the number of slices of each tile of K, which have warps of their own, so that a small tile of C
    has many warps; the block adds their accumulators in shared memory.
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
    sliced_k: int = 1

    @property
    def slice_threads(self) -> int:
        """The threads that share a slice of K, and have the whole tile of C."""
        return self.m * self.n // (self.thread_m * self.thread_n)

    @property
    def threads(self) -> int:
        return self.slice_threads * self.sliced_k


class OperandTile(Struct, frozen=True):
    """The tile of A or B that a block copies at once: `tile` elements along M or N, and the
    variant's `k` along K.

    `matrix` has `extent` elements along M or N, and `k` along K, None for unknown ones.
    `is_k_major`: K is contiguous. `width`: the number of elements that a thread copies at once.
    """

    matrix: Matrix
    extent: int | None
    k: int | None
    tile: int
    is_k_major: bool
    width: int

    @property
    def is_whole(self) -> bool:
        """Whether no tile reaches beyond the matrix's last row or column."""
        return self.extent is not None and self.extent % self.tile == 0

    def index(self, along: Number, k: Number) -> tuple[Number, Number]:
        """(row, column), in the matrix as stored, of the element at `along` (M or N) and `k`. A
        transposed A is stored K x M, a transposed B N x K."""
        return (along, k) if self.is_k_major else (k, along)

    def shape(self, variant: Variant, element: str) -> tuple[int, int, int]:
        # Consecutive threads store a K-major operand to consecutive rows: the padding puts these
        # stores into different banks.
        padding = WIDEST_ACCESS // ELEMENT_BYTES[element] if self.is_k_major else 0
        return variant.stages, variant.k, self.tile + padding


def operand_tiles(
    problem: Problem, variant: Variant, width: Callable[[OperandTile, Variant], int] | None = None
) -> tuple[OperandTile, OperandTile]:
    """The tiles of A and B. `width`, given a tile whose width is 1, returns the number of elements
    that a thread copies at once; by default as many as the matrices allow."""

    def operand(matrix: Matrix, extent: int | None, tile: int, is_k_major: bool) -> OperandTile:
        single = OperandTile(matrix, extent, problem.k, tile, is_k_major, 1)
        return replace(single, width=(width or _width)(single, variant))

    return (
        operand(problem.a, problem.m, variant.m, not problem.a.transposed),
        operand(problem.b, problem.n, variant.n, problem.b.transposed),
    )


def _width(operand: OperandTile, variant: Variant) -> int:
    matrix, is_k_major = operand.matrix, operand.is_k_major
    along, bytes_ = operand.k if is_k_major else operand.extent, ELEMENT_BYTES[matrix.element]
    if variant.copy_bytes:
        # Asynchronous copies can only transpose single elements.
        return 1 if is_k_major else max(1, variant.copy_bytes // bytes_)
    # Loads are not masked: if rows are not known to consist of whole vectors, single elements are
    # loaded.
    width = min(WIDEST_ACCESS, matrix.alignment) // bytes_
    while width > 1 and (
        along is None
        or along % width
        or (is_k_major and variant.k % width)
        or operand.tile * variant.k // width % variant.threads
    ):
        width //= 2
    return max(1, width)


def shared_bytes(
    problem: Problem, variant: Variant, both: tuple[OperandTile, OperandTile] | None = None
) -> int:
    """The dynamic shared memory in bytes. It has the tiles of A and B (`both`, by default
    `operand_tiles`), and after the mainloop the accumulators of slices of K."""
    element = accumulator_type_of(problem)
    shapes = [
        operand.shape(variant, element) for operand in both or operand_tiles(problem, variant)
    ]
    sums = variant.m * variant.n * (variant.sliced_k - 1)
    return max(sum(map(prod, shapes)), sums) * ELEMENT_BYTES[element]


def copy_counts(operand_tile: OperandTile, variant: Variant) -> list[int]:
    """The extents of the indices of a tile's copy vectors; the last one varies fastest. They are
    (K, M or N, in a run along K) if the operand is K-major, else (K, M or N)."""
    width, tile = operand_tile.width, operand_tile.tile
    if operand_tile.is_k_major:
        run = min(variant.k, max(_RUN, width)) // width
        return [variant.k // width // run, tile, run]
    return [variant.k, tile // width]


def divides_digits(threads: int, counts: Sequence[int]) -> bool:
    """Whether `threads` is the product of some last `counts` and a divisor of the count before
    them."""
    for count in reversed(counts):
        if threads <= count:
            return count % threads == 0
        if threads % count:
            return False
        threads //= count
    return threads == 1


def can_copy(side: OperandTile, variant: Variant) -> bool:
    """Whether all threads copy the same number of vectors of the tile, at offsets from the first
    one that are known at compile time."""
    vectors = side.tile * variant.k // side.width
    if side.tile * variant.k % side.width or vectors % variant.threads:
        return False
    return not side.is_k_major or divides_digits(variant.threads, copy_counts(side, variant))
