"""Chooses how many consecutive points a GPU thread computes, so that its accesses are wide."""

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
from aotc.lower.mapping.rows import MAX_IN_REGISTERS, MOST_OF_WARP, Kept, RowPlan, block_for_rows
from aotc.rewrites.cloning import body_of

# The largest element in bytes for which row kernels use vectors. Elements of f32 are read as fast
# without them.
_NARROW = 2
# The smallest number of points for which wide accesses make a loop faster.
_LEAST_POINTS = 1 << 16
# The approximate limit of instructions for a thread's points. More take longer than the memory
# accesses, exceed the registers, and take long to compile.
_MOST_INSTRUCTIONS = 1024
_OF_MATH = 16  # the approximate number of instructions of a `math` operation


class Neighbours(Struct, frozen=True):
    """`count` consecutive points for each thread. `most` would make a vector of 16 bytes."""

    count: int
    most: int


def plan_neighbours(loop: Any, trips: list[int | None]) -> Neighbours | None:
    """The number of consecutive points along the last dimension of an scf.parallel that make a
    vector.

    The widest element type that the loop accesses determines it. None if the number is one, if the
    points do not make half of a vector, or if a thread would compute too much.

    All accesses are to adjacent elements, or to elements that all points along that dimension
    share. For narrower element types, a thread accesses fewer bytes than a full vector: with more
    points, the widest type would take several accesses per thread, and adjacent threads would not
    access adjacent bytes.
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
        # Rows whose length is not a multiple of the vector are rarely padded in memory.
        known.append(trips[-1])
    most = VECTOR_BYTES // max(sizes)
    count = math.gcd(most, *known)
    if count * sum(map(_instructions, body_of(loop))) > _MOST_INSTRUCTIONS:
        return None
    return Neighbours(count, most) if count > 1 and 2 * count >= most else None


def _instructions(operation: Any) -> int:
    return _OF_MATH if operation.name.startswith("math.") else 1


def with_neighbours(plan: RowPlan, loop: Any) -> RowPlan:
    """The plan with adjacent columns per thread on a GPU, instead of columns a block's width apart,
    if elements are narrow and the columns divide evenly into vectors."""
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
    """The number of threads per row, such that each has whole vectors; None if there is none.

    It is close to that of the plan. With many rows it is a warp, and a block has several warps.
    """
    whole = [
        threads
        for threads in range(WARP, MAX_BLOCK_THREADS + 1, WARP)
        if columns % (threads * vector) == 0
    ]
    if (
        WARP in whole
        and rows is not None
        and rows * WARP >= LARGE_GPU_THREADS
        and columns <= WARP * MOST_OF_WARP
    ):
        return WARP
    possible = [threads for threads in whole if columns <= threads * MAX_IN_REGISTERS]
    return min(possible, key=lambda threads: abs(threads - plan.threads), default=None)


def _moving(operations: Sequence[Any], variable: Any) -> list[Access] | None:
    """The accesses to elements that depend on `variable`; None if some are not to adjacent
    elements, or are in nested regions."""
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
    """The static strides of the accesses' outer dimensions."""
    strides = [one for access in accesses for one in static_strides(access.memref.type)[:-1]]
    return [one for one in strides if one is not None]
