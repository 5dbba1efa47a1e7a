"""A loop over rows, each with reductions along it → a block, or a warp, for each row.

The threads of a row share its columns: thread t has columns t, t + T, ... in every loop along the
row, so that what one loop stores and the next one loads is the thread's own. What all of them
combine goes through shuffles, in an order that does not change from run to run.

Where the row's length is known and short enough, each thread keeps its columns in registers: an
element is loaded once, however many loops read it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aotc import ops
from aotc.lower.mapping.accesses import (
    access_of,
    accesses_in,
    is_division,
    is_pure,
    is_understood,
)
from aotc.lower.mapping.blocks import TWO_WAVES, WARP, BlockShape
from aotc.lower.mapping.build import body_of
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.lower.mapping.nest import known_product, loop_trips

# Columns that a thread keeps in registers, at most; beyond that they are read again.
MAX_IN_REGISTERS = 16
# A row of fewer columns is one thread's.
LEAST_COLUMNS = 16
_MOST_THREADS = 1024
_DYNAMIC_THREADS = 512
# Columns that a thread has under way at a time, where it does not keep them.
POINTS = 8
# Rows in a block, where each is a warp's.
_MOST_WARPS = 8


@dataclass(frozen=True)
class RowPlan:
    """`threads` for each row, `rows` rows in a block; `in_registers` columns for each thread, or
    None where rows are read again. `items` is the body: operations, and loops along the row."""

    block: BlockShape
    threads: int
    rows: int
    in_registers: int | None
    items: tuple[Any, ...]

    def __str__(self) -> str:
        who = "a warp" if self.threads == WARP else "a block"
        kept = (
            f"the row is read once, {self.in_registers} columns in each thread's registers"
            if self.in_registers
            else "each loop along the row reads it again"
        )
        return (
            f"a kernel with blocks of {self.block}: {who} for each row, whose reductions go "
            f"through shuffles; {kept}"
        )


def plan_rows(loop: Any, given: BlockShape | None) -> RowPlan | None:
    """How the loop's iterations become rows; None where they are not such."""
    items = row_items(loop)
    if items is None:
        return None
    columns = [item for item in items if isinstance(item, Columns)]
    if not any(_is_along_rows(item, loop) for item in columns):
        return None
    counts = {item.known_count for item in columns}
    longest = None if None in counts else max(count or 0 for count in counts)
    if longest is not None and longest < LEAST_COLUMNS:
        return None
    rows = known_product(loop_trips(loop))
    block = given or _choose_block(longest, rows)
    # Given blocks of one warp along x have a row for each warp.
    is_by_warps = block.x == WARP and rows is not None and rows % (block.y * block.z) == 0
    threads = WARP if is_by_warps else block.threads
    kept = None if longest is None else -(-longest // threads)
    may_keep = len(counts) == 1 and all(_may_speculate(item) for item in columns)
    in_registers = kept if kept and may_keep and kept <= MAX_IN_REGISTERS else None
    return RowPlan(block, threads, block.threads // threads, in_registers, tuple(items))


def row_items(loop: Any) -> list[Any] | None:
    """The body as operations of the row and loops along it (Columns); None if there is more."""
    items: list[Any] = []
    for operation in body_of(loop):
        if is_pure(operation) or access_of(operation) is not None:
            items.append(operation)
            continue
        columns = describe_columns(operation)
        if columns is None:
            return None
        items.append(columns)
    return items


def _is_along_rows(columns: Columns, loop: Any) -> bool:
    """Whether it is a reduction along the rows of a matrix, each of which is read for one row of
    the loop alone: there, neighbouring threads had better be in the same row."""
    rows = list(loop.regions[0].blocks[0].arguments)
    loads = [a for op in columns.body for a in accesses_in(op) if not a.writes and a.indices]
    return (
        len(columns.accumulators) > 0
        and any(
            load.indices[-1] == columns.variables[-1] and all(row in load.indices for row in rows)
            for load in loads
        )
        and not any(
            load.indices[-1] in rows and set(columns.variables) & set(load.indices)
            for load in loads
        )
    )


def _may_speculate(columns: Columns) -> bool:
    """Whether its body may run for a column that is not there, but for its stores.

    Not where what it loads says where to load from: another thread may be about to change it.
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
    """Threads for each row so that they keep it in registers, more of them where rows are few."""
    if longest is None:
        return BlockShape(_DYNAMIC_THREADS)
    threads = WARP
    while threads < _MOST_THREADS and longest > threads * MAX_IN_REGISTERS:
        threads *= 2
    while threads < _MOST_THREADS and threads * 4 <= longest and (rows or 0) * threads < TWO_WAVES:
        threads *= 2
    if threads > WARP:
        return BlockShape(threads)
    return BlockShape(WARP, math.gcd(_MOST_WARPS, rows or 1))
