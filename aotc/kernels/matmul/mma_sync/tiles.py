"""What tensor cores multiply, and how tiles of A and B, and then of sums, lie in shared memory.

A tile lies there as its matrix does in memory. Where ldmatrix reads it, chunks of 16 bytes are
swizzled: eight rows of one column are in different banks. Otherwise rows are padded for that.
"""

from __future__ import annotations

from math import gcd

from msgspec import Struct

from aotc.chips import WARP
from aotc.kernels.indices import Index
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix, Problem

# What ldmatrix reads of a row, the widest copy, and what a swizzle moves.
CHUNK_BYTES = 16
SWIZZLED_ROWS = 8
WORKGROUP = "#gpu.address_space<workgroup>"
SHARED = f"memref<?xi8, {WORKGROUP}>"
# The least that asynchronous copies take.
LEAST_ASYNC_BYTES = 4
# Sums of more products of i8 than these may leave i32, where tensor cores saturate: no sum of them
# has more, and those are added elsewhere.
MOST_I8_PRODUCTS = (2**31 - 1) // 2**14


# Where sums are to keep their bits: those of so many products of f32 do.
MOST_EXACT_PRODUCTS = 64


class Instruction(Struct, frozen=True):
    """A kind of nvgpu.mma.sync: its sizes, the type it sums in, and how many elements a register
    has."""

    m: int
    n: int
    k: int
    element: str
    sum: str
    width: int

    @property
    def a_registers(self) -> int:
        return self.m * self.k // WARP // self.width

    @property
    def b_registers(self) -> int:
        return self.k * self.n // WARP // self.width

    @property
    def a_type(self) -> str:
        return f"vector<{self.a_registers}x{self.width}x{self.element}>"

    @property
    def b_type(self) -> str:
        return f"vector<{self.b_registers}x{self.width}x{self.element}>"

    @property
    def sum_rows(self) -> int:
        """A lane's rows of the result, 8 apart; of each it has two neighbours."""
        return self.m // 8

    @property
    def sum_type(self) -> str:
        return f"vector<{self.sum_rows}x2x{self.sum}>"


INSTRUCTIONS = {
    "f16": Instruction(16, 8, 16, "f16", "f32", 2),
    "bf16": Instruction(16, 8, 16, "bf16", "f32", 2),
    # As tf32.
    "f32": Instruction(16, 8, 8, "f32", "f32", 1),
    "f64": Instruction(8, 8, 4, "f64", "f64", 1),
    "i8": Instruction(16, 8, 32, "i8", "i32", 4),
}


class Variant(Struct, frozen=True):
    """The parameters of a kernel: tiles are of powers of two, or of such in equal parts.

    A block makes m x n elements of C from k columns of A and k rows of B at a time, by
    warps_m x warps_n warps; `stages` of these are in shared memory, one in use and the others on
    their way. `copy_bytes` are copied at once: 16, 8 or 4, to which rows of A and B must be
    aligned, or 1, where elements are loaded and stored one by one. `group` rows of blocks work
    side by side, so that what they share stays in the L2 cache. K is made in `splits` parts, whose
    sums another kernel adds where they are more than one. `instruction_k`: of f64 on Hopper alone,
    the K of an instruction of 16 rows, 4 or 8; 0 for what every chip has.
    """

    m: int = 128
    n: int = 128
    k: int = 32
    warps_m: int = 2
    warps_n: int = 2
    stages: int = 4
    copy_bytes: int = 16
    group: int = 8
    splits: int = 1
    instruction_k: int = 0

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP


def instruction_of(problem: Problem, variant: Variant) -> Instruction:
    """What the variant multiplies with."""
    if variant.instruction_k:
        return Instruction(16, 8, variant.instruction_k, "f64", "f64", 1)
    return INSTRUCTIONS[problem.a.element]


class Side(Struct, frozen=True):
    """A or B, and its tiles: `outer` (of M or N) by `k`, as the matrix lies.

    `is_deep`: K is contiguous. `reads_two`: lanes read two elements of f64 at once; what is K = t
    and t + 4 of an instruction is 2t and 2t + 1 of the tile then.
    """

    name: str
    matrix: Matrix
    outer: int
    k: int
    stages: int
    is_deep: bool
    copy_bytes: int
    reads_two: bool = False

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.matrix.element]

    @property
    def rows(self) -> int:
        return self.outer if self.is_deep else self.k

    @property
    def columns(self) -> int:
        return self.k if self.is_deep else self.outer

    @property
    def has_ldmatrix(self) -> bool:
        if self.matrix.element == "f64":
            return False
        return self.is_deep or self.element_bytes < 4

    @property
    def has_pairs(self) -> bool:
        """Whether ldmatrix transposes pairs of neighbours in M or N, as one of 16 bits."""
        return self.element_bytes == 1 and not self.is_deep

    @property
    def are_neighbours_together(self) -> bool:
        """Whether a lane has neighbours in M or N, where the instruction has two rows of A 8 apart,
        or two tiles of B."""
        return self.has_pairs or (self.reads_two and not self.is_deep)

    @property
    def pairs_type(self) -> str:
        shape = f"{self.stages}x{self.rows}x{self.pitch // 2}xf16"
        return f"memref<{shape}, {WORKGROUP}>"

    @property
    def chunk(self) -> int:
        """How many elements 16 bytes are."""
        return CHUNK_BYTES // self.element_bytes

    @property
    def copied(self) -> int:
        """How many elements a thread copies at once."""
        return self.copy_bytes // self.element_bytes if self.is_async else self.chunk

    @property
    def ends_with_copies(self) -> bool:
        """Whether rows are known to be of whole copies: they are as long as they lie apart."""
        is_aligned = self.is_async and self.matrix.alignment % self.copy_bytes == 0
        return is_aligned and "," not in self.matrix.type

    @property
    def is_async(self) -> bool:
        return self.copy_bytes >= LEAST_ASYNC_BYTES

    @property
    def pitch(self) -> int:
        """Of rows in shared memory. Lanes that load one by one are 4 (in K) by 8: behind rows of 4
        they stand in 32 banks where a row begins 8 banks after the one before, f64 likewise."""
        if self.has_ldmatrix:
            return self.columns
        if self.reads_two:
            # 8 lanes read 128 bytes: of 2 rows, or of each second one of 8.
            return self.columns + (self.columns + 8) % 16 if self.is_deep else self.columns + 2
        return self.columns + {8: 4, 4: 8}[self.element_bytes]

    @property
    def type(self) -> str:
        """Of the ring."""
        shape = f"{self.stages}x{self.rows}x{self.pitch}x{self.matrix.element}"
        return f"memref<{shape}, {WORKGROUP}>"

    @property
    def bytes(self) -> int:
        return self.stages * self.rows * self.pitch * self.element_bytes

    def is_shared_evenly(self, variant: Variant) -> bool:
        across, chunks = self.columns // self.copied, self.columns // self.chunk
        return (
            self.columns % self.chunk == 0
            # Swizzled chunks stay among those of their row.
            and (chunks in (1, 2, 4) or chunks % SWIZZLED_ROWS == 0)
            and across > 0
            and variant.threads % across == 0
            and self.rows * across % variant.threads == 0
        )


def sides(problem: Problem, variant: Variant) -> tuple[Side, Side]:
    # Of a B whose N is contiguous, two elements are of two tiles: to part them costs more.
    reads_two = variant.instruction_k > 4 and problem.b.transposed
    return (
        Side(
            *("%a", problem.a, variant.m, variant.k, variant.stages),
            *(not problem.a.transposed, variant.copy_bytes, reads_two),
        ),
        Side(
            *("%b", problem.b, variant.n, variant.k, variant.stages),
            *(problem.b.transposed, variant.copy_bytes, reads_two),
        ),
    )


def shared_bytes(problem: Problem, variant: Variant) -> int:
    """How much shared memory a block has."""
    tiles = sum(side.bytes for side in sides(problem, variant))
    return max(tiles, Staging.of(problem, variant).bytes)


class Staging(Struct, frozen=True):
    """Where sums lie before they are stored, in the place of A's and B's tiles: for each warp
    `tiles` rows of its tiles, whose elements are stored `width` at once."""

    tiles: int
    rows: int
    columns: int
    width: int
    warps: int
    element: str

    @classmethod
    def of(cls, problem: Problem, variant: Variant) -> Staging:
        instruction, c = instruction_of(problem, variant), problem.c
        tiles = variant.m // variant.warps_m // instruction.m
        columns = variant.n // variant.warps_n
        size = ELEMENT_BYTES[c.element]
        known = gcd(CHUNK_BYTES, c.alignment, 0 if c.pitch is None else c.pitch * size)
        width = max(1, known // size)
        warps = variant.warps_m * variant.warps_n

        def staging(tiles: int) -> Staging:
            rows = tiles * instruction.m
            # Each lane has a part of them.
            part = min(width, rows * columns // WARP)
            return cls(tiles, rows, columns, part, warps, instruction.sum)

        room = sum(side.bytes for side in sides(problem, variant))
        while tiles > 1 and (tiles % 2 == 0 and staging(tiles).bytes > room):
            tiles //= 2
        return staging(tiles)

    @property
    def is_shared_evenly(self) -> bool:
        """Whether lanes store as many pieces each."""
        across = self.columns // self.width
        return self.columns % self.width == 0 and self.rows * across % WARP == 0

    @property
    def pitch(self) -> int:
        """Rows begin 8 (of f64, 16) banks after each other."""
        return self.columns + 8

    @property
    def bytes(self) -> int:
        return self.warps * self.rows * self.pitch * ELEMENT_BYTES[self.element]

    @property
    def type(self) -> str:
        return f"memref<{self.warps}x{self.rows}x{self.pitch}x{self.element}, {WORKGROUP}>"


def has_totals(problem: Problem) -> bool:
    """Whether sums could leave their type on the way, or lose bits that are asked for."""
    if problem.exact_sums:
        return True
    return problem.a.element == "i8" and (problem.k is None or problem.k > MOST_I8_PRODUCTS)


class Sizes(Struct, frozen=True):
    """Of the product; numbers where they are known."""

    m: Index
    n: Index
    k: Index
    batches: Index


class Place(Struct, frozen=True):
    """Where a block's tile of C begins, and what a thread is: its number, its lane's group of 4 and
    its place there, its warp, and where that one's part of the tile begins."""

    batch: tuple[str, ...]
    row: Index
    column: Index
    thread: str
    lane: Index
    group: Index
    member: Index
    warp: Index
    warp_row: Index
    warp_column: Index
