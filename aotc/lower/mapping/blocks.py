"""Block sizes: chosen by the shape of a loop, or requested by an attribute."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from aotc.attributes import BLOCK_ATTRIBUTE
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID, WARP
from aotc.errors import InputError
from aotc.mlir import ir

MIN_THREADS = 128
PREFERRED_THREADS = 256
MAX_GRID_YZ = MAX_GRID[1]
# The threads of two waves of blocks. With less work than that, no thread gets more than one point
# or column.
TWO_WAVES = 2 * LARGE_GPU_THREADS
_LONG_ROW, _FEW_ROWS = 2048, 64


class BlockShape(Struct, frozen=True):
    """Threads of a block along x, y and z."""

    x: int
    y: int = 1
    z: int = 1

    def __str__(self) -> str:
        return f"{self.x}x{self.y}x{self.z}"

    @property
    def threads(self) -> int:
        return self.x * self.y * self.z


def choose_block(extents: tuple[int | None, ...]) -> BlockShape:
    """A block for a loop nest with the given extents along x, y, z (None if unknown).

    For one dimension, or few long rows, all threads are along x. Otherwise, a warp is along x and
    the rest along y, then z, each no wider than the loop. If the loops are too small for a full
    block, x grows.
    """
    if len(extents) == 1 or _has_few_long_rows(extents):
        return BlockShape(PREFERRED_THREADS, 1, 1)
    useful = [PREFERRED_THREADS if e is None else power_of_two_from(e) for e in extents]
    sizes = [min(useful[0], WARP), 1, 1]
    for dimension in range(1, len(extents)):
        room = PREFERRED_THREADS // math.prod(sizes)
        limit = MAX_BLOCK[2] if dimension == 2 else room
        sizes[dimension] = max(1, min(useful[dimension], room, limit))
    while math.prod(sizes) < PREFERRED_THREADS and sizes[0] < useful[0]:
        sizes[0] *= 2
    while math.prod(sizes) < MIN_THREADS:
        sizes[0] *= 2
    return BlockShape(*sizes)


def choose_full_block(extents: tuple[int | None, ...]) -> BlockShape:
    """As `choose_block`, but avoids idle threads beyond the ends of rows.

    If a row divided into equal parts gives a block width with a larger fraction of active lanes
    than a power of two, that width is used.
    """
    block = choose_block(extents)
    columns = extents[0]
    if columns is None or len(extents) == 1:
        return block
    best, most = block, _working(block, columns)
    for parts in range(1, -(-columns // WARP) + 1):
        width = -(-columns // parts)
        if width > PREFERRED_THREADS:
            continue
        height = min(PREFERRED_THREADS // width, extents[1] or PREFERRED_THREADS)
        wide = BlockShape(width, height)
        if wide.threads >= MIN_THREADS and _working(wide, columns) > most:
            best, most = wide, _working(wide, columns)
    return best


def _working(block: BlockShape, columns: int) -> float:
    """The fraction of the lanes of a block's warps that have a column of a row."""
    lanes = -(-block.threads // WARP) * WARP
    return columns / (-(-columns // block.x) * block.x) * block.threads / lanes


def _has_few_long_rows(extents: tuple[int | None, ...]) -> bool:
    """Whether there are few long rows, such as consecutive images: a block over several rows would
    access distant memory."""
    columns, rows, *others = extents
    is_long = columns is not None and columns >= _LONG_ROW
    return is_long and rows is not None and rows <= _FEW_ROWS and not others


def power_of_two_from(extent: int) -> int:
    """The smallest power of two that is at least `extent`."""
    return 1 << max(0, (extent - 1).bit_length())


def block_of(operation: Any, place: object) -> BlockShape | None:
    """The block size in the operation's attribute; None if it has none.

    Raises InputError, prefixed by the place (if not None), if the attribute is not a valid block
    size.
    """
    if BLOCK_ATTRIBUTE not in operation.attributes:
        return None
    attribute = operation.attributes[BLOCK_ATTRIBUTE]
    where = f"{place}: " if place else ""
    sizes = tuple(attribute) if isinstance(attribute, ir.DenseI32ArrayAttr) else ()
    if not 1 <= len(sizes) <= len(MAX_BLOCK):
        raise InputError(
            f"{where}{BLOCK_ATTRIBUTE} is {attribute}: write array<i32: 256>, array<i32: 32, 8> or "
            "array<i32: 8, 8, 4>."
        )
    for axis, size, limit in zip("xyz", sizes, MAX_BLOCK, strict=False):
        if not 0 < size <= limit:
            raise InputError(
                f"{where}{BLOCK_ATTRIBUTE} is {attribute}: along {axis} a block has 1 to {limit} "
                "threads."
            )
    if math.prod(sizes) > MAX_BLOCK_THREADS:
        raise InputError(
            f"{where}{BLOCK_ATTRIBUTE} is {attribute}, {math.prod(sizes)} threads: GPUs take "
            f"{MAX_BLOCK_THREADS}."
        )
    return BlockShape(*sizes)
