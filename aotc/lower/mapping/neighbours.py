"""How many points that follow each other a thread of a GPU takes, so that its accesses are wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.contiguous import (
    VECTOR_BYTES,
    coefficient,
    element_bytes,
    is_unit_stride,
    static_strides,
)
from aotc.analysis.effects import Access, accesses_in
from aotc.chips import LARGE_GPU_THREADS, MAX_BLOCK_THREADS, WARP
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.lower.mapping.rows import MAX_IN_REGISTERS, Kept, RowPlan, block_for_rows
from aotc.rewrites.cloning import body_of

# Bytes of an element of which rows have vectors: those of f32 are read as fast without.
_NARROW = 2
# Columns that a thread keeps where a warp has a row, and rows are many: a warp waits for no other,
# and there are fewer blocks.
_MOST_OF_WARP = 32
# A loop of fewer points is over before wide accesses could make it faster.
_LEAST_POINTS = 1 << 16
# Instructions for a thread's points, about. More take longer than accesses of memory do, have no
# registers for the values of all points, and take long to compile.
_MOST_INSTRUCTIONS = 1024
_OF_MATH = 16  # instructions of an operation of `math`


class Neighbours(Struct, frozen=True):
    """`count` points for each thread, of the `most` that would make a vector of 16 bytes."""

    count: int
    most: int


def plan_neighbours(loop: Any, trips: list[int | None]) -> Neighbours | None:
    """How many neighbours along the last dimension of an scf.parallel make a vector of the widest
    type that the loop accesses; None if that is one, they do not make half of a vector, or a thread
    would have too much to compute.

    All accesses are of neighbours, or of what all points along that dimension have in common. Of
    narrower types there are fewer bytes than a vector could have: with more of the widest one than
    a thread can access at once, neighbouring threads would not access neighbouring bytes.
    """
    total = known_product(trips)
    if total is not None and total < _LEAST_POINTS:
        return None
    variable = loop.regions[0].blocks[0].arguments[len(trips) - 1]
    if ops.known_index(ops.operand_groups(loop)[2][-1]) != 1:
        return None
    moving = _moving(body_of(loop), variable)
    if not moving:
        return None
    sizes, known = _sizes(moving), _distances(moving)
    if len(trips) > 1 and trips[-1] is not None:
        # Rows that are no whole vectors are rarely longer in memory than they are here.
        known.append(trips[-1])
    most = VECTOR_BYTES // max(sizes)
    count = math.gcd(most, *known)
    if count * sum(map(_instructions, body_of(loop))) > _MOST_INSTRUCTIONS:
        return None
    return Neighbours(count, most) if count > 1 and 2 * count >= most else None


def _instructions(operation: Any) -> int:
    return _OF_MATH if operation.name.startswith("math.") else 1


def with_neighbours(plan: RowPlan, loop: Any) -> RowPlan:
    """The plan for the rows of a loop on a GPU, whose threads have neighbouring columns instead of
    those a block's width apart, if elements are narrow, and each thread has as many vectors."""
    kept, *others = plan.forms
    if kept is None or others or kept.least != kept.most:
        return plan
    moving: list[Access] = []
    for columns in plan.columns:
        (_, _, step), *more = columns.bounds
        own = _moving(columns.body, columns.variables[-1])
        if more or own is None or ops.known_index(step) != 1:
            return plan
        moving += own
    sizes = _sizes(moving)
    if not sizes or min(sizes) > _NARROW:
        return plan
    most = VECTOR_BYTES // max(sizes)
    for vector in (most, most // 2):
        if vector == 1 or any(one % vector for one in _distances(moving)):
            continue
        rows = known_product(loop_trips(loop))
        threads = _threads_for(plan, rows, kept.least, vector)
        if threads is not None:
            block = block_for_rows(threads, rows)
            form = Kept(kept.least // threads, kept.least, kept.least)
            return replace(
                plan,
                block=block,
                threads=threads,
                rows=block.threads // threads,
                forms=(form,),
                neighbours=vector,
            )
    return plan


def _threads_for(plan: RowPlan, rows: int | None, columns: int, vector: int) -> int | None:
    """As many threads for a row as have whole vectors of it: about as many as the plan's, but a
    warp, of which several make a block, where there are many rows."""
    whole = [
        threads
        for threads in range(WARP, MAX_BLOCK_THREADS + 1, WARP)
        if columns % (threads * vector) == 0
    ]
    if (
        WARP in whole
        and rows is not None
        and rows * WARP >= LARGE_GPU_THREADS
        and columns <= WARP * _MOST_OF_WARP
    ):
        return WARP
    possible = [threads for threads in whole if columns <= threads * MAX_IN_REGISTERS]
    return min(possible, key=lambda threads: abs(threads - plan.threads), default=None)


def _moving(operations: Sequence[Any], variable: Any) -> list[Access] | None:
    """The accesses of elements that are others where `variable` is; None if those are not all of
    neighbours, or are in loops or branches."""
    moving = [
        access
        for operation in operations
        for access in accesses_in(operation)
        if any(coefficient(value, variable) != 0 for value in (access.memref, *access.indices))
    ]
    inside = [access for access in moving if access.operation not in operations]
    if inside or not all(is_unit_stride(access, [variable]) for access in moving):
        return None
    return moving


def _sizes(accesses: Sequence[Access]) -> list[int]:
    found = [element_bytes(access.memref.type) for access in accesses]
    return [size for size in found if size is not None]


def _distances(accesses: Sequence[Access]) -> list[int]:
    """The known strides of the accesses' rows."""
    strides = [one for access in accesses for one in static_strides(access.memref.type)[:-1]]
    return [one for one in strides if one is not None]
