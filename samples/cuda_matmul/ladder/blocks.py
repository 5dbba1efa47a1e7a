"""What the steps share: a block of threads, its tile of C, and each thread's part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ladder.expressions import (
    Array,
    Index,
    Scalar,
    barrier,
    ceildiv,
    loop,
    minimum,
    select,
    where,
)
from ladder.launch import launch

_WIDEST_ACCESS = 16  # bytes
_WARP = 32


@dataclass(frozen=True)
class Tile:
    """The sizes of a kernel: a block makes m x n elements of C, each thread thread_m x thread_n of
    them, from k columns of A and k rows of B at a time. All are powers of two.

    Of the steps with warps: a warp makes warp_m x warp_n elements. Of the last: `stages` tiles of A
    and B are in workgroup memory, one in use and the others on their way.
    """

    m: int
    n: int
    k: int
    thread_m: int = 1
    thread_n: int = 1
    blocks_at_once: int = 1
    warp_m: int = 0
    warp_n: int = 0
    stages: int = 1

    @property
    def threads(self) -> int:
        return self.m * self.n // (self.thread_m * self.thread_n)

    def can_be_shared(self, width: int) -> bool:
        """Whether each thread has as many accesses of `width` elements to the tiles of A and B."""
        return all(size * self.k // width % self.threads == 0 for size in (self.m, self.n))


@dataclass(frozen=True)
class Part:
    """The elements that a thread makes: rows and columns of the block's tile, in runs.

    `rows` has the first of `row_run` rows that follow each other, and so on; `columns` likewise.
    """

    rows: Sequence[Scalar]
    columns: Sequence[Scalar]
    row_run: int = 1
    column_run: int = 1

    @property
    def every_row(self) -> list[Scalar]:
        return [row + number for row in self.rows for number in range(self.row_run)]

    @property
    def every_column(self) -> list[Scalar]:
        return [column + number for column in self.columns for number in range(self.column_run)]


@dataclass(frozen=True)
class Block:
    """A block of threads in a kernel that computes C = A · B.

    `row` and `column` are where its tile of C begins; `tiles` are its arrays in workgroup memory.
    """

    a: Array
    b: Array
    c: Array
    tiles: list[Array]
    row: Scalar
    column: Scalar
    thread: Scalar
    tile: Tile

    @property
    def depth(self) -> Scalar:
        return self.a.shape[1]

    @property
    def group(self) -> int:
        """How many elements the widest access has."""
        return _WIDEST_ACCESS // self.c.element_bytes

    def places(self, rows: int, columns: int, width: int = 1) -> Iterator[tuple[Scalar, Scalar]]:
        """This thread's places in a tile that the block copies, `width` elements of a row at each.

        Threads that follow each other have places that do.
        """
        across, threads = columns // width, self.tile.threads
        if rows * across % threads != 0:
            raise ValueError(
                f"{threads} threads cannot share a tile of {rows} x {columns} elements"
            )
        for first in range(0, rows * across, threads):
            place = self.thread + first
            yield place // across, place % across * width

    def load_a(self, m: Scalar, k: Scalar, width: int = 1) -> list[Scalar]:
        """A's elements at row `m` of the block's tile, from column `k` of A on. Behind A's last
        column are zeros, below its last row what must not be used."""
        return _load(self.a, self.row + m, k, k < self.depth, width)

    def load_b(self, k: Scalar, n: Scalar, width: int = 1) -> list[Scalar]:
        """B's elements at its row `k`, from column `n` of the block's tile on; likewise."""
        return _load(self.b, k, self.column + n, k < self.depth, width)

    def multiply(
        self,
        fill: Callable[[Scalar], None],
        read: Callable[[int], tuple[list[Scalar], list[Scalar]]],
    ) -> list[Scalar]:
        """The sums of a thread's part. `fill(k)` writes the tiles of A and B from `k` on, and
        `read(k)` gives this thread's elements of their column and row `k`."""

        @loop(0, self.depth, self.tile.k, carry=self.zeros())
        def totals(k0: Scalar, *carried: Scalar) -> Sequence[Scalar]:
            sums: Sequence[Scalar] = carried
            fill(k0)
            barrier()
            for k in range(self.tile.k):
                sums = add_products(sums, *read(k))
            barrier()
            return sums

        return totals

    def zeros(self) -> list[Scalar]:
        return [self.c.zero] * (self.tile.thread_m * self.tile.thread_n)

    def store(self, part: Part, sums: Sequence[Scalar], width: int = 1) -> None:
        """Writes what is inside of C, `width` elements at once."""
        rows, columns = self.c.shape
        values = iter(sums)
        for m in part.every_row:
            for first in part.columns:
                for n in range(0, part.column_run, width):
                    row, column = self.row + m, self.column + first + n
                    group = [next(values) for _ in range(width)]

                    @where((row < rows) & (column < columns))
                    def _(
                        at: tuple[Index, ...] = (row, column), group: list[Scalar] = group
                    ) -> None:
                        self.c.store(at, group)

    def can_be_wide(self, *arrays: Array) -> Scalar:
        """Whether each row of the arrays begins at a multiple of the widest access."""
        odd = [array.address() % _WIDEST_ACCESS for array in arrays]
        odd += [array.shape[1] % self.group for array in arrays]
        together = odd[0]
        for one in odd[1:]:
            together = together | one
        return together.equals(0)


@contextmanager
def blocks(
    name: str, tile: Tile, arrays: Sequence[Array], tiles: Sequence[tuple[int, ...]]
) -> Iterator[Block]:
    """Launches a kernel with a block for each tile of C, whose threads count in x. `tiles`: the
    shapes of those in workgroup memory."""
    rows, columns = arrays[2].shape
    grid = ceildiv(columns, tile.n), ceildiv(rows, tile.m)
    with launch(name, grid, (tile.threads,), arrays, tiles, tile.blocks_at_once) as kernel:
        (x, y), thread = kernel.block, kernel.thread[0]
        a, b, c = kernel.arrays
        yield Block(a, b, c, kernel.tiles, y * tile.m, x * tile.n, thread, tile)


def add_products(
    sums: Sequence[Scalar], column: Sequence[Scalar], row: Sequence[Scalar]
) -> list[Scalar]:
    """The sums, in the order of rows, with the product of a column of A and a row of B."""
    added = list(sums)
    for m, x in enumerate(column):
        # There and back: each product has an operand of the last one, whose register is read once.
        for n in range(len(row))[:: -1 if m % 2 else 1]:
            added[m * len(row) + n] += x * row[n]
    return added


def next_to_each_other(block: Block) -> Part:
    """Each thread has a rectangle; threads that follow each other have those side by side."""
    tile = block.tile
    across = tile.n // tile.thread_n
    m, n = block.thread // across * tile.thread_m, block.thread % across * tile.thread_n
    return Part([m], [n], tile.thread_m, tile.thread_n)


def spread(block: Block) -> Part:
    """Each thread has groups of the widest access; the groups of threads that follow each other are
    side by side, so that together they read from all banks of workgroup memory."""
    tile, group = block.tile, block.group
    across, down = tile.n // tile.thread_n, tile.m // tile.thread_m
    m, n = block.thread // across * group, block.thread % across * group
    return Part(
        [m + group * down * number for number in range(tile.thread_m // group)],
        [n + group * across * number for number in range(tile.thread_n // group)],
        *(group, group),
    )


def by_warps(block: Block) -> Part:
    """The same within a warp's part of the tile, which its lanes divide."""
    tile, group = block.tile, block.group
    warp, lane = block.thread // _WARP, block.thread % _WARP
    warps_across = tile.n // tile.warp_n
    m, n = warp // warps_across * tile.warp_m, warp % warps_across * tile.warp_n
    down, across = tile.warp_m // tile.thread_m, tile.warp_n // tile.thread_n
    lane_m, lane_n = _lane_places(lane, across)
    return Part(
        [m + lane_m * group + group * down * number for number in range(tile.thread_m // group)],
        [n + lane_n * group + group * across * number for number in range(tile.thread_n // group)],
        *(group, group),
    )


def _lane_places(lane: Scalar, across: int) -> tuple[Scalar, Scalar]:
    """A lane's row and column among `across` columns, 4 or 8.

    Workgroup memory serves 16 lanes at once where each two lanes that differ in the lowest bit read
    the same, or each two that differ in the next one: so the lowest bit is of the column, whose
    neighbours then read the same of A, and the next one of the row.
    """
    down_bits, across_bits = {4: ((1, 2, 4), (0, 3)), 8: ((1, 4), (0, 2, 3))}[across]

    def pick(bits: tuple[int, ...]) -> Scalar:
        picked = [lane // (1 << bit) % 2 * (1 << number) for number, bit in enumerate(bits)]
        total = picked[0]
        for one in picked[1:]:
            total = total + one
        return total

    return pick(down_bits), pick(across_bits)


def _load(array: Array, row: Scalar, column: Scalar, used: Scalar, width: int) -> list[Scalar]:
    """What the array has there, or zeros where it is not `used`. Outside, what the edge has."""
    rows, columns = array.shape
    at = minimum(row, rows - 1), minimum(column, columns - width)
    return [select(used, value, array.zero) for value in array.load(at, width)]
