"""Plans kernels for rows with reductions along them: a block or a warp computes each row.

The threads of a row share its columns: of T threads, thread t has columns t, t + T, ... in each
loop along the row, so that a thread loads what it stored in an earlier loop. Values of all threads
are combined by shuffles, in an order that is the same in each run.

If rows are short enough, each thread keeps its columns in registers: an element is loaded once for
all loops. The number of columns per thread is a constant of the kernel. If only the host knows the
row length, there is a kernel for each of several ranges of it, and the host chooses one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import (
    Overlaps,
    access_of,
    accesses_in,
    is_division,
    is_pure,
    is_understood,
)
from aotc.chips import MAX_BLOCK_THREADS, WARP
from aotc.lower.mapping.blocks import PREFERRED_THREADS, TWO_WAVES, BlockShape
from aotc.lower.mapping.build import ULE, ULT
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.scan_kernel import ELEMENTS
from aotc.lower.mapping.scans import Scan, describe_scan
from aotc.rewrites.cloning import body_of

# The limit of columns that a thread keeps in registers; otherwise each loop reads the row again.
MAX_IN_REGISTERS = 16
# Columns per thread of the kernels among which the host chooses. None of them is for rows of less
# than half its capacity, as more than half of the columns would be computed in vain.
_CHOICES = (MAX_IN_REGISTERS, MAX_IN_REGISTERS // 2)
# A row with fewer columns is computed by one thread. If a row has several loops, which would be
# separate kernels, it may be shorter.
_LEAST_COLUMNS = 16
LEAST_COLUMNS = 4
_DYNAMIC_THREADS = 512
_SCAN_THREADS = 256
_ASSERT = "cf.assert"
# Columns that a thread loads at a time if it does not keep them.
POINTS = 8
LANES_BLOCK = BlockShape(PREFERRED_THREADS)
# The limit of columns that a thread keeps if each warp has a row and there are many rows. Warps do
# not wait for each other, and there are fewer blocks.
MOST_OF_WARP = 32
# The number of rows from which on warps have those of a single reduction.
_MANY_ROWS = 1024
# The limit of rows in a block if each warp has a row.
_MOST_WARPS = 8
# Up to so many columns, a row of unknown length is computed by lanes of a warp: the first number if
# there are fewer than `_MANY_ROWS` rows. A lane has about `COLUMNS_OF_LANE` columns.
_FEW_COLUMNS, _MOST_OF_LANES = 1 << 6, WARP * MOST_OF_WARP
COLUMNS_OF_LANE = 4


class Kept(Struct, frozen=True):
    """Each thread keeps `columns` columns in registers, for rows of `least` to `most` columns."""

    columns: int
    least: int
    most: int


class RowPlan(Struct, frozen=True):
    """`threads` threads for each row, and `rows` rows in a block. `items` is the body: operations,
    and loops along the row.

    `scans` are the items that are scans of the row.

    There is a kernel for each of `forms` (None: each loop reads the row again). The first form
    whose range contains the row's length is used; if none does, the last one.

    Of the columns that a thread keeps, groups of `neighbours` are adjacent.

    With `has_lanes`, there is another kernel for short rows, whose length only the host knows: a
    block of `LANES_BLOCK` has several of them, each of 1 to 32 lanes, as many as the host chooses.
    """

    block: BlockShape
    threads: int
    rows: int
    forms: tuple[Kept | None, ...]
    items: tuple[Any, ...]
    scans: tuple[Scan, ...] = ()
    neighbours: int = 1
    has_lanes: bool = False

    @property
    def columns(self) -> list[Columns]:
        """The loops along the row."""
        return [item for item in self.items if isinstance(item, Columns)]

    def __str__(self) -> str:
        who = "a warp" if self.threads == WARP else "a block"
        if self.scans:
            return (
                f"a kernel with blocks of {self.block}: {who} for each row, whose threads scan it "
                f"together; each loop along the row reads it again"
            )
        count = len(self.forms)
        forms = "" if count == 1 else f" in {count} forms, of which the host chooses one,"
        lanes = f", or 1 to {WARP} lanes for each short row" if self.has_lanes else ""
        return (
            f"a kernel{forms} with blocks of {self.block}: {who} for each row{lanes}, whose "
            f"reductions go through shuffles; {self._how_often_read()}"
        )

    def _how_often_read(self) -> str:
        kept = [form for form in self.forms if form is not None]
        if not kept:
            return "each loop along the row reads it again"
        most = max(form.columns for form in kept)
        if len(self.forms) == 1:
            vectors = f", in vectors of {self.neighbours}" if self.neighbours > 1 else ""
            return f"the row is read once, {most} columns in each thread's registers{vectors}"
        least, longest = min(form.least for form in kept), max(form.most for form in kept)
        return (
            f"a row of {least} to {longest} columns is read once, up to {most} columns in each "
            f"thread's registers; each loop along it reads any other again"
        )


def plan_rows(loop: Any, given: BlockShape | None, overlaps: Overlaps) -> RowPlan | None:
    """The plan that maps the loop's iterations to rows; None if they are not rows."""
    items = row_items(loop, overlaps)
    if items is None:
        return None
    scans = tuple(item for item in items if isinstance(item, Scan))
    columns = [item for item in items if isinstance(item, Columns)]
    are_along = [is_along_rows(item, loop) for item in columns]
    if not any(are_along) and not any(scan.is_along_row() for scan in scans):
        return None
    columns += [scan.columns for scan in scans]
    counts = {item.known_count for item in columns}
    longest = None if None in counts else max(count or 0 for count in counts)
    if longest is not None and longest < (LEAST_COLUMNS if len(columns) > 1 else _LEAST_COLUMNS):
        return None
    rows = known_product(loop_trips(loop))
    block = given or (_choose_scan_block if scans else _choose_block)(longest, rows)
    if given is None and not scans and _is_for_warps(columns, longest, rows):
        block = block_for_rows(WARP, rows)
    # In a requested block with one warp along x, each warp has a row.
    is_by_warps = block.x == WARP and rows is not None and rows % (block.y * block.z) == 0
    threads = WARP if is_by_warps else block.threads
    if scans and threads % WARP != 0:
        return None
    forms = (None,) if scans else _forms(columns, loop, threads)
    has_lanes = longest is None and given is None and not scans
    is_of_host = all(
        isinstance(bound, int) or ops.is_made_outside(bound, loop)
        for item in columns
        for bounds in item.normal_bounds
        for bound in bounds
    )
    return RowPlan(
        block,
        threads,
        block.threads // threads,
        forms,
        tuple(items),
        scans,
        has_lanes=has_lanes and is_of_host,
    )


def are_for_lanes(length: Any, rows: Any) -> Any:
    """Whether lanes compute the rows of this length, as an i1 at the insertion point."""
    most, few = ops.constant_index(_MOST_OF_LANES), ops.constant_index(_FEW_COLUMNS)
    are_many = ops.compare(ULT, ops.constant_index(_MANY_ROWS - 1), rows)
    return ops.compare(ULE, length, ops.select(are_many, most, few))


def _is_for_warps(columns: Sequence[Columns], longest: int | None, rows: int | None) -> bool:
    """Whether rows are reduced and nothing else, such as the pixels of each channel: a block for
    each would take longer to start than to reduce its row."""
    return (
        len(columns) == 1
        and longest is not None
        and longest <= WARP * MOST_OF_WARP
        and rows is not None
        and rows >= _MANY_ROWS
    )


def row_items(loop: Any, overlaps: Overlaps) -> list[Any] | None:
    """The body as operations of the row, loops along it (Columns) and scans of it (Scan); None if
    it contains anything else."""
    items: list[Any] = []
    for operation in body_of(loop):
        if is_pure(operation) or access_of(operation) is not None or operation.name == _ASSERT:
            items.append(operation)
            continue
        item = describe_columns(operation) or describe_scan(operation, overlaps)
        if item is None:
            return None
        items.append(item)
    return items


def is_along_rows(columns: Columns, loop: Any) -> bool:
    """Whether it is a reduction along the rows of a matrix, in which each row is read by one
    iteration of the loop: then adjacent threads should be in the same row."""
    variables = loop.regions[0].blocks[0].arguments
    # The variable of a loop with one iteration does not appear in indices.
    rows = [row for row, trips in zip(variables, loop_trips(loop), strict=True) if trips != 1]
    loads = [a for op in columns.body for a in accesses_in(op) if not a.writes and a.indices]
    own = [row for row in rows if not any(_is_of_row(lower, row) for lower, _, _ in columns.bounds)]
    return (
        len(columns.accumulators) > 0
        and any(
            load.indices[-1] == columns.variables[-1] and all(row in load.indices for row in own)
            for load in loads
        )
        and not any(
            load.indices[-1] in rows and set(columns.variables) & set(load.indices)
            for load in loads
        )
    )


def reduces_columns(loop: Any, overlaps: Overlaps) -> bool:
    """Whether the body has reductions, and none along the rows of a matrix."""
    items = row_items(loop, overlaps) or []
    reductions = [item for item in items if isinstance(item, Columns) and item.accumulators]
    return bool(reductions) and not any(is_along_rows(item, loop) for item in reductions)


def _is_of_row(index: Any, row: Any) -> bool:
    """Whether an index is computed from the row's number."""
    if index == row:
        return True
    made = ops.defining(index)
    return made is not None and is_pure(made) and any(_is_of_row(o, row) for o in made.operands)


def _forms(columns: Sequence[Columns], loop: Any, threads: int) -> tuple[Kept | None, ...]:
    """The forms of the kernel, as in `RowPlan`."""
    counts = {item.known_count for item in columns}
    if not all(_may_speculate(item) for item in columns):
        return (None,)
    if None in counts:
        if not (_is_length_of_host(columns, loop) and _is_read_again(columns)):
            return (None,)
        most = [(kept, threads * kept) for kept in _CHOICES]
        return (*(Kept(kept, room // 2 + 1, room) for kept, room in most), None)
    count = max(count or 0 for count in counts)
    kept = -(-count // threads)
    limit = MOST_OF_WARP if threads == WARP and len(columns) == 1 else MAX_IN_REGISTERS
    may_keep = len(counts) == 1 and kept <= limit
    return (Kept(kept, count, count) if may_keep else None,)


def _is_length_of_host(columns: Sequence[Columns], loop: Any) -> bool:
    """Whether all loops along the row have the same columns, in one dimension, and their number is
    the same for each row, so that the host knows it."""
    (bounds, *more), *others = (item.normal_bounds for item in columns)
    return (
        not more
        and all(other == (bounds,) for other in others)
        and all(isinstance(v, int) or ops.is_made_outside(v, loop) for v in bounds)
    )


def _is_read_again(columns: Sequence[Columns]) -> bool:
    """Whether a loop along the row loads an element that an earlier one loads or stores. All loops
    have one dimension."""
    had: set[tuple[Any, ...]] = set()
    for item in columns:
        accesses = [access for op in item.body if (access := access_of(op)) is not None]
        # Each loop has a different value as its variable.
        places = [tuple("column" if v in item.variables else v for v in a.place) for a in accesses]
        if any(p in had for p, a in zip(places, accesses, strict=True) if not a.writes):
            return True
        had.update(places)
    return False


def _may_speculate(columns: Columns) -> bool:
    """Whether the body, without its stores, may be executed for a column that does not exist.

    Not if loaded values are used as indices: another thread may be about to change them.
    """
    loaded: set[Any] = set()
    for operation in columns.body:
        access = access_of(operation)
        if (
            access is None
            and not is_pure(operation)
            and not is_understood(operation, may_store=False)
        ):
            return False
        inside = ops.walk(operation)
        if any(is_division(inner) for inner in inside):
            return False
        if any(loaded & set(a.indices) for a in accesses_in(operation)):
            return False
        if any(inner.name == "memref.load" or loaded & set(inner.operands) for inner in inside):
            loaded |= {result for inner in inside for result in inner.results}
    return True


def _choose_block(longest: int | None, rows: int | None) -> BlockShape:
    """The threads per row, such that they keep the row in registers; more if there are few rows."""
    if longest is None:
        return BlockShape(_DYNAMIC_THREADS)
    threads = WARP
    while threads < MAX_BLOCK_THREADS and longest > threads * MAX_IN_REGISTERS:
        threads *= 2
    while (
        threads < MAX_BLOCK_THREADS and threads * 4 <= longest and (rows or 0) * threads < TWO_WAVES
    ):
        threads *= 2
    return block_for_rows(threads, rows)


def _choose_scan_block(longest: int | None, rows: int | None) -> BlockShape:
    """The threads per row of a scan: enough for one step per row, up to a few warps, as a step with
    more takes longer. With few rows, more threads."""
    if longest is None:
        return BlockShape(_SCAN_THREADS)
    threads = WARP
    while threads * ELEMENTS < longest and (
        threads < _SCAN_THREADS
        or (threads < MAX_BLOCK_THREADS and (rows or TWO_WAVES) * threads < TWO_WAVES)
    ):
        threads *= 2
    return block_for_rows(threads, rows)


def block_for_rows(threads: int, rows: int | None) -> BlockShape:
    """A block with one row, or with several rows if a warp has a row."""
    if threads > WARP:
        return BlockShape(threads)
    return BlockShape(WARP, math.gcd(_MOST_WARPS, rows or 1))
