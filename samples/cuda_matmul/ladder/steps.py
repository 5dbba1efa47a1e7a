"""The ladder: ten kernels for C = A · B, each with one idea more than the one before.

Each function makes the kernel `name` and its launch, over the memrefs a (m x k), b (k x n) and
c (m x n), which may be of any size, known or not. `STEPS` has them in order, with their tiles.
The ideas and their order are those of a well-known worklog on CUDA; README.md tells the story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ladder.blocks import (
    Block,
    Part,
    Tile,
    add_products,
    blocks,
    by_warps,
    next_to_each_other,
    spread,
)
from ladder.expressions import (
    Array,
    Index,
    Scalar,
    barrier,
    ceildiv,
    copy_async,
    either,
    end_copies,
    loop,
    minimum,
    select,
    wait_copies,
    where,
)
from ladder.generics import generic
from ladder.launch import launch

# Elements behind each row of A's tile: its rows then begin in different banks of workgroup memory.
PADDING = 4


def naive(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """A thread for each element of C. The threads of a warp are in one column of C, each in a row
    of its own: together they read from 32 rows of A, and write to 32 rows of C."""
    rows, columns = c.shape
    grid = ceildiv(rows, tile.m), ceildiv(columns, tile.n)
    with launch(name, grid, (tile.m, tile.n), (a, b, c)) as kernel:
        (x, y), (thread_x, thread_y) = kernel.block, kernel.thread
        a, b, c = kernel.arrays
        _element(a, b, c, x * tile.m + thread_x, y * tile.n + thread_y)


def coalesced(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """The threads of a warp are in one row of C: what they read of B and write to C is side by
    side, and they read the same of A. That is all that differs."""
    rows, columns = c.shape
    grid = ceildiv(columns, tile.n), ceildiv(rows, tile.m)
    with launch(name, grid, (tile.n, tile.m), (a, b, c)) as kernel:
        (x, y), (thread_x, thread_y) = kernel.block, kernel.thread
        a, b, c = kernel.arrays
        _element(a, b, c, y * tile.m + thread_y, x * tile.n + thread_x)


def _element(a: Array, b: Array, c: Array, row: Scalar, column: Scalar) -> None:
    rows, columns = c.shape

    @where((row < rows) & (column < columns))
    def _() -> None:
        @loop(0, a.shape[1], 1, carry=[c.zero])
        def sums(k: Scalar, total: Scalar) -> Sequence[Scalar]:
            return [total + a[row, k] * b[k, column]]

        c[row, column] = sums[0]


def shared_memory(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """The threads of a block bring tiles of A and B to workgroup memory, an element each: what a
    row of C needs of A is read from memory once a block, not once a thread."""
    _scalar_tiles(name, tile, a, b, c)


def block_tile_1d(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """A thread makes some elements of a column of C: what it reads of B's tile it uses for all."""
    _scalar_tiles(name, tile, a, b, c)


def block_tile_2d(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """A thread makes a rectangle of C: 8 elements of A and 8 of B are enough for 64 products."""
    _scalar_tiles(name, tile, a, b, c)


def _scalar_tiles(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    with blocks(name, tile, (a, b, c), [(tile.m, tile.k), (tile.k, tile.n)]) as block:
        a_tile, b_tile = block.tiles
        part = next_to_each_other(block)

        def fill(k0: Scalar) -> None:
            for m, k in block.places(tile.m, tile.k):
                [a_tile[m, k]] = block.load_a(m, k0 + k)
            for k, n in block.places(tile.k, tile.n):
                [b_tile[k, n]] = block.load_b(k0 + k, n)

        def read(k: int) -> tuple[list[Scalar], list[Scalar]]:
            column = [a_tile[m, k] for m in part.every_row]
            return column, [b_tile[k, n] for n in part.every_column]

        block.store(part, block.multiply(fill, read))


def vectorized(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """16 bytes at an access, to and from both memories. A's tile is turned on the way to workgroup
    memory, so that a thread's elements of a column follow each other."""
    _vector_tiles(name, tile, a, b, c, next_to_each_other, padding=0)


def padded(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """A thread's rectangle is taken apart, and rows of A's tile have a padding: what a warp reads
    or writes at once is in different banks of workgroup memory."""
    _vector_tiles(name, tile, a, b, c, spread, PADDING)


def autotuned(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """The same with the sizes of tiles that were the fastest on an H200 (`candidate`)."""
    _vector_tiles(name, tile, a, b, c, spread, PADDING)


def warp_tile(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """Between the block and its threads is the warp: it makes a rectangle of its own, so that its
    threads read less of the tiles, and more of that together."""
    _vector_tiles(name, tile, a, b, c, by_warps, PADDING)


def _vector_tiles(
    name: str,
    tile: Tile,
    a: Array,
    b: Array,
    c: Array,
    divide: Callable[[Block], Part],
    padding: int,
) -> None:
    shapes = [(tile.k, tile.m + padding), (tile.k, tile.n)]
    with blocks(name, tile, (a, b, c), shapes) as block:
        a_tile, b_tile = block.tiles
        part = divide(block)

        def read(k: int) -> tuple[list[Scalar], list[Scalar]]:
            return read_part(block, part, a_tile, b_tile, (k,))

        def body(width: int) -> None:
            def fill(k0: Scalar) -> None:
                for m, k in block.places(tile.m, tile.k, width):
                    for number, value in enumerate(block.load_a(m, k0 + k, width)):
                        a_tile[k + number, m] = value
                for k, n in block.places(tile.k, tile.n, width):
                    b_tile.store((k, n), block.load_b(k0 + k, n, width))

            block.store(part, block.multiply(fill, read), width)

        wide = block.can_be_wide(block.a, block.b, block.c)
        either(wide, lambda: body(block.group), lambda: body(1))


def read_part(
    block: Block, part: Part, a_tile: Array, b_tile: Array, at: tuple[Index, ...]
) -> tuple[list[Scalar], list[Scalar]]:
    """A part's elements of a row of A's tile, which is a column of A, and of a row of B's, in the
    widest accesses."""
    column, row = part.every_row[:: block.group], part.every_column[:: block.group]
    return (
        [value for m in column for value in a_tile.load((*at, m), block.group)],
        [value for n in row for value in b_tile.load((*at, n), block.group)],
    )


def async_copies(name: str, tile: Tile, a: Array, b: Array, c: Array) -> None:
    """The next tiles come while this one is used: async_copies copies write to workgroup memory by
    themselves. A thread reads a column and row ahead of its products, too, over the end of a tile:
    no product waits for a read that has just begun."""
    stages = tile.stages
    shapes = [(stages, tile.k, tile.m + PADDING), (stages, tile.k, tile.n)]
    with blocks(name, tile, (a, b, c), shapes) as block:
        a_tiles, b_tiles = block.tiles
        part = by_warps(block)

        def body(width: int) -> None:
            def fetch(k0: Scalar, stage: Index) -> object:
                copies = []
                for m, k in block.places(tile.m, tile.k):
                    at = minimum(block.row + m, block.a.shape[0] - 1), k0 + k
                    there = select(k0 + k < block.depth, 1, 0)
                    copies += [copy_async(block.a, at, a_tiles, (stage, k, m), 1, there)]
                for k, n in block.places(tile.k, tile.n, width):
                    at = k0 + k, minimum(block.column + n, block.b.shape[1] - width)
                    there = select(k0 + k < block.depth, width, 0)
                    copies += [copy_async(block.b, at, b_tiles, (stage, k, n), width, there)]
                return end_copies(copies)

            def read(stage: Index, k: int) -> tuple[list[Scalar], list[Scalar]]:
                return read_part(block, part, a_tiles, b_tiles, (stage, k))

            def after(stage: Scalar) -> Scalar:
                return select((stage + 1).equals(stages), 0, stage + 1)

            first = Scalar.index(0)
            for stage in range(stages - 1):
                group = fetch(first + stage * tile.k, stage)
            wait_copies(group, stages - 2)
            barrier()
            column, row = read(0, 0)

            @loop(
                *(0, block.depth, tile.k),
                carry=[first, Scalar.index(stages - 1), *column, *row, *block.zeros()],
            )
            def carried(k0: Scalar, used: Scalar, free: Scalar, *given: Scalar) -> Sequence[Scalar]:
                rest = list(given)
                column, row = rest[: tile.thread_m], rest[tile.thread_m :][: tile.thread_n]
                sums = rest[tile.thread_m + tile.thread_n :]
                for k in range(tile.k):
                    if k == tile.k - 1:
                        wait_copies(group, stages - 2)
                        # All have read the whole of this tile, and all parts of the next are there.
                        barrier()
                        used = after(used)
                    next_column, next_row = read(used, (k + 1) % tile.k)
                    if k == 0:
                        fetch(k0 + (stages - 1) * tile.k, free)
                    sums = add_products(sums, column, row)
                    column, row = next_column, next_row
                return [used, after(free), *column, *row, *sums]

            block.store(part, carried[2 + tile.thread_m + tile.thread_n :], width)

        either(block.can_be_wide(block.b, block.c), lambda: body(block.group), lambda: body(1))


def _candidate_tile(m: int, n: int, k: int, t: int, **_: str) -> Tile:
    return Tile(m, n, k, t, 8, blocks_at_once=1 if m * n > 128 * 128 else 2)


@generic(
    m=(256, 128, 64),
    n=(128, 64),
    k=(8, 16),
    t=(8, 16),
    element=("f32",),
    where=lambda parameters: _candidate_tile(**parameters).can_be_shared(4),
)
def candidate(name: str, a: Array, b: Array, c: Array, **parameters: Any) -> None:
    """One of the kernels that `autotuned` is the fastest of: a thread makes t x 8 elements."""
    autotuned(name, _candidate_tile(**parameters), a, b, c)


@dataclass(frozen=True)
class Step:
    """A kernel: what makes it, and its tile; another for f64 where that is too large for workgroup
    memory."""

    name: str
    make: Callable[[str, Tile, Array, Array, Array], None]
    tile: Tile
    tile_f64: Tile | None = None

    def tile_for(self, element: str) -> Tile:
        return self.tile_f64 if self.tile_f64 and element == "f64" else self.tile


STEPS = (
    Step("naive", naive, Tile(32, 32, 1)),
    Step("coalesced", coalesced, Tile(32, 32, 1)),
    Step("shared_memory", shared_memory, Tile(32, 32, 32)),
    Step("block_tile_1d", block_tile_1d, Tile(64, 64, 8, thread_m=8)),
    Step("block_tile_2d", block_tile_2d, Tile(128, 128, 8, 8, 8, 2)),
    Step("vectorized", vectorized, Tile(128, 128, 8, 8, 8, 2)),
    Step("padded", padded, Tile(128, 128, 8, 8, 8, 2)),
    Step("autotuned", autotuned, Tile(128, 128, 8, 16, 8, 2)),
    Step("warp_tile", warp_tile, Tile(128, 128, 16, 8, 8, 2, 64, 32)),
    Step(
        *("async_copies", async_copies, Tile(256, 128, 8, 16, 8, 1, 64, 64, 3)),
        tile_f64=Tile(128, 64, 8, 8, 8, 1, 64, 32, 3),
    ),
)
