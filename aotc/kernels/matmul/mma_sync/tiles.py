"""The mma.sync instructions, and the layouts of tiles and staged accumulators in shared memory.

A tile has the layout of its matrix in memory. If ldmatrix reads it, chunks of 16 bytes are
swizzled, so that eight rows of one column are in different banks. Otherwise rows are padded for
this purpose.
"""

from __future__ import annotations

from math import gcd, prod

from msgspec import Struct

from aotc.builder.numbers import Number
from aotc.chips import WARP
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem
from aotc.kernels.tensor_core import LDMATRIX_ROW_BYTES, LEAST_ASYNC_BYTES, Mma

# The size of ldmatrix's rows, of the widest copy, and of the unit that the swizzle permutes.
CHUNK_BYTES = LDMATRIX_ROW_BYTES
SWIZZLED_ROWS = 8
# Sums of more products of i8 may overflow i32. Tensor cores saturate, so their accumulators have at
# most this number of products, and are added by other instructions, which wrap.
MOST_I8_PRODUCTS = (2**31 - 1) // 2**14
# The largest number of products that f32 accumulators of tensor cores have with
# `exact_accumulation`.
MOST_EXACT_PRODUCTS = 64

MMAS = {
    "f16": Mma(16, 8, 16, "f16", "f32", 2),
    "bf16": Mma(16, 8, 16, "bf16", "f32", 2),
    "f32": Mma(16, 8, 8, "f32", "f32", 1),
    "f64": Mma(8, 8, 4, "f64", "f64", 1),
    "i8": Mma(16, 8, 32, "i8", "i32", 4),
}


class Variant(Struct, frozen=True):
    """The parameters of a kernel.

    A block computes m x n elements of C from k columns of A and k rows of B at a time, by
    warps_m x warps_n warps. `stages`: the number of tiles in shared memory, of which one is in use
    and the others are in flight. `copy_bytes`: the size of a copy. It is 16, 8 or 4, and rows of A
    and B must be aligned to it; or 1, and elements are loaded and stored one by one. `group`: the
    number of rows of tiles that are rasterized together, for reuse in the L2 cache. `split_k`: the
    number of parts of K, or 0 if the program chooses it; another kernel adds their accumulators.
    `instruction_k`: for f64 on Hopper only, the K extent of an instruction of 16 rows, 4 or 8; 0
    for the instructions that every chip has.
    """

    m: int = 128
    n: int = 128
    k: int = 32
    warps_m: int = 2
    warps_n: int = 2
    stages: int = 4
    copy_bytes: int = 16
    group: int = 8
    split_k: int = 1
    instruction_k: int = 0

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP


def mma_of(problem: Problem, variant: Variant) -> Mma:
    """The instruction that the variant multiplies with."""
    if variant.instruction_k:
        return Mma(16, 8, variant.instruction_k, "f64", "f64", 1)
    return MMAS[problem.a.element]


class OperandTile(Struct, frozen=True):
    """The tile of A or B that a block copies to shared memory, in a ring of `stages`: `outer` (M or
    N) by `k` elements, stored as in the matrix.

    `is_k_major`: K is contiguous. `reads_two`: a lane reads two f64 elements at once; the
    instruction's k = t and t + 4 are then the tile's k = 2t and 2t + 1.
    """

    matrix: Matrix
    outer: int
    k: int
    stages: int
    is_k_major: bool
    copy_bytes: int
    reads_two: bool = False

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.matrix.element]

    @property
    def rows(self) -> int:
        return self.outer if self.is_k_major else self.k

    @property
    def columns(self) -> int:
        return self.k if self.is_k_major else self.outer

    @property
    def uses_ldmatrix(self) -> bool:
        if self.matrix.element == "f64":
            return False
        return self.is_k_major or self.element_bytes < 4

    @property
    def transposes_pairs(self) -> bool:
        """Whether ldmatrix transposes pairs of adjacent elements in M or N, as 16-bit elements."""
        return self.element_bytes == 1 and not self.is_k_major

    @property
    def holds_neighbours(self) -> bool:
        """Whether a lane holds adjacent elements along M or N, in place of two rows of A that are 8
        apart, or of two tiles of B."""
        return self.transposes_pairs or (self.reads_two and not self.is_k_major)

    @property
    def chunk(self) -> int:
        """The number of elements in 16 bytes."""
        return CHUNK_BYTES // self.element_bytes

    @property
    def copy_width(self) -> int:
        """The number of elements of a copy vector."""
        return self.copy_bytes // self.element_bytes if self.is_async else self.chunk

    @property
    def copies_per_row(self) -> int:
        return self.columns // self.copy_width

    @property
    def has_whole_copies(self) -> bool:
        """Whether rows are known to consist of whole copy vectors: the pitch is aligned, and equals
        the length of rows."""
        is_aligned = self.is_async and self.matrix.alignment % self.copy_bytes == 0
        return is_aligned and "," not in self.matrix.type

    @property
    def is_async(self) -> bool:
        return self.copy_bytes >= LEAST_ASYNC_BYTES

    @property
    def pitch(self) -> int:
        """The pitch of rows in shared memory, in elements. The 32 lanes that load single elements
        are arranged as 4 (along K) x 8. With 4 rows along K, they access 32 different banks if each
        row begins 8 banks after the previous one. The same holds for f64."""
        if self.uses_ldmatrix:
            return self.columns
        if self.reads_two:
            # 8 lanes read 128 bytes: of 2 rows, or of every second row of 8.
            return self.columns + ((self.columns + 8) % 16 if self.is_k_major else 2)
        return self.columns + {8: 4, 4: 8}[self.element_bytes]

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the ring: stages, rows, pitch."""
        return self.stages, self.rows, self.pitch

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.element_bytes

    def swizzled(self, row: Number, column: Number) -> Number:
        """The column in shared memory. Chunks of 16 bytes are permuted depending on their row."""
        chunks = self.columns // self.chunk
        if not self.uses_ldmatrix or chunks == 1:
            return column
        if self.transposes_pairs:
            # ldmatrix reads rows 0, 1, 4, 5, 8, ... together: see `LdmatrixOfPairs`.
            moved = row // 4 % min(chunks, 4)
            if chunks >= SWIZZLED_ROWS:
                moved = moved * 2 + row % 2
        else:
            # Rows that share 128 bytes have the same order.
            moved = row // max(1, SWIZZLED_ROWS // chunks) % min(chunks, SWIZZLED_ROWS)
        return column ^ moved * self.chunk

    def is_copied_evenly(self, variant: Variant) -> bool:
        """Whether all threads copy the same number of vectors."""
        across, chunks = self.copies_per_row, self.columns // self.chunk
        return (
            self.columns % self.chunk == 0
            # The swizzle permutes chunks within their row.
            and (chunks in (1, 2, 4) or chunks % SWIZZLED_ROWS == 0)
            and across > 0
            and variant.threads % across == 0
            and self.rows * across % variant.threads == 0
        )


def tiles_of(problem: Problem, variant: Variant) -> tuple[OperandTile, OperandTile]:
    """The tiles of A and of B."""
    # With an N-major B, two adjacent elements belong to two tiles, and separating them costs more.
    reads_two = variant.instruction_k > 4 and problem.b.transposed
    k, stages, bytes_ = variant.k, variant.stages, variant.copy_bytes
    return (
        OperandTile(problem.a, variant.m, k, stages, not problem.a.transposed, bytes_, reads_two),
        OperandTile(problem.b, variant.n, k, stages, problem.b.transposed, bytes_, reads_two),
    )


def shared_bytes(problem: Problem, variant: Variant) -> int:
    """The dynamic shared memory of a block, in bytes."""
    mainloop = sum(tiles.bytes for tiles in tiles_of(problem, variant))
    return max(mainloop, Staging.of(problem, variant).bytes)


class Staging(Struct, frozen=True):
    """The layout of the staging buffer of accumulators, which reuses the memory of A's and B's
    tiles. It has `tiles` rows of the instruction's tiles for each warp. `width` elements are stored
    at once."""

    tiles: int
    rows: int
    columns: int
    width: int
    warps: int
    element: str

    @classmethod
    def of(cls, problem: Problem, variant: Variant) -> Staging:
        mma, c = mma_of(problem, variant), problem.c
        tiles = variant.m // variant.warps_m // mma.m
        columns = variant.n // variant.warps_n
        size = ELEMENT_BYTES[c.element]
        known = gcd(CHUNK_BYTES, c.alignment, 0 if c.pitch is None else c.pitch * size)
        width = max(1, known // size)
        warps = variant.warps_m * variant.warps_n

        def staging(tiles: int) -> Staging:
            rows = tiles * mma.m
            # Each lane stores a part of them.
            part = min(width, rows * columns // WARP)
            return cls(tiles, rows, columns, part, warps, mma.accumulator)

        room = sum(ring.bytes for ring in tiles_of(problem, variant))
        while tiles > 1 and (tiles % 2 == 0 and staging(tiles).bytes > room):
            tiles //= 2
        return staging(tiles)

    @property
    def is_shared_evenly(self) -> bool:
        """Whether all lanes store the same number of vectors."""
        across = self.columns // self.width
        return self.columns % self.width == 0 and self.rows * across % WARP == 0

    @property
    def pitch(self) -> int:
        """The pitch of rows, in elements. The padding shifts each row by 8 (for f64, 16) banks."""
        return self.columns + 8

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.warps, self.rows, self.pitch

    @property
    def bytes(self) -> int:
        return prod(self.shape) * ELEMENT_BYTES[self.element]


def has_second_accumulators(problem: Problem) -> bool:
    """Whether a second set of accumulators is needed: those of the tensor cores could overflow
    before the end of K, or lose bits of an exact accumulation."""
    if problem.exact_accumulation:
        return True
    return problem.a.element == "i8" and (problem.k is None or problem.k > MOST_I8_PRODUCTS)


class ProblemShape(Struct, frozen=True):
    """The extents of a matmul, which are ints if they are known."""

    m: Number
    n: Number
    k: Number
    batches: Number


class Coordinates(Struct, frozen=True):
    """The coordinates of a thread. `batch`, `row` and `column`: the block's batch, and the first
    row and column of its tile in C. `thread`, `lane` and `warp`: its ids. `group` and `in_group`:
    its group of 4 lanes, and its index in the group. `warp_row` and `warp_column`: the first row
    and column of the warp's tile in the block's tile."""

    batch: Number
    row: Number
    column: Number
    thread: Number
    lane: Number
    group: Number
    in_group: Number
    warp: Number
    warp_row: Number
    warp_column: Number
