"""Kernels for loops whose points are independent: one thread has one or a few points.

They are used for elementwise work, and for parallel loops without a better kernel. The last
dimension is along x, so that adjacent threads access adjacent elements; the one before is along y,
and all others together along z. Sizes that do not divide evenly are guarded. If y or z needs more
blocks than a grid can have, blocks loop with a stride.

If there is enough work, a thread has several points, a block's width apart: it loads for all of
them before it stores. If the elements of adjacent points are adjacent in memory, and a thread's
access of one would be narrow, the points are along x, and a GPU thread has those that make a
vector.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import OF_BLOCK
from aotc.lower.mapping.blocks import MAX_GRID_YZ, BlockShape, choose_block, choose_full_block
from aotc.lower.mapping.build import SLT, Launch, create_launch
from aotc.lower.mapping.neighbours import Neighbours, plan_neighbours
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    loop_trips,
)
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy_interleaved
from aotc.rewrites.points import create_points

MAX_POINTS = 4
# The number of threads that hides the memory latency of a GPU. Beyond it, each thread has several
# points: a block takes about a nanosecond to start.
_ENOUGH_THREADS = 1 << 16
_MEMORY = ("memref.load", "memref.store", "memref.collapse_shape")
_PURE_DIALECTS = ("arith", "math", "index", "complex")


class PointsPlan(Struct, frozen=True):
    """A block, and the number of points of each thread: `points` along y, if there is a y, and
    `neighbours` along x, which a GPU accesses as vectors."""

    block: BlockShape
    points: int
    why: str
    neighbours: int = 1

    def __str__(self) -> str:
        count = self.points * self.neighbours
        several = f", {count} points for each thread" if count > 1 else ""
        return f"a kernel with blocks of {self.block}{several}: {self.why}"


def plan_points(loop: Any, given: BlockShape | None) -> PointsPlan:
    """The plan for `launch_points`. `given` is the requested block; None if there is none."""
    trips = loop_trips(loop)
    is_simple = all(_is_simple(op) for op in body_of(loop))
    neighbours = plan_neighbours(loop, trips) if is_simple and given is None else None
    if neighbours is not None:
        return _plan_vectors(trips, neighbours)
    extents = _by_axes(trips)
    known = tuple(known_product(axis) for axis in extents)
    block = given or choose_block(known)
    points = _points(loop, trips)
    # The points are along y, whose size may be smaller.
    rows = known[1] if len(known) > 1 else None
    while points > 1 and rows is not None and rows <= block.y * points // 2:
        points //= 2
    why = "as requested" if given else "a thread for each point, adjacent points along x"
    if points > 1:
        why += ", with their loads in flight together"
    return PointsPlan(block, points, why)


def _plan_vectors(trips: list[int | None], neighbours: Neighbours) -> PointsPlan:
    """The plan with adjacent points along x. If these are few, or a block's rows are short, each
    thread has several such vectors along y, as the number of blocks determines the time."""
    row, count = trips[-1], neighbours.count
    vectors = None if row is None else -(-row // count)
    known = tuple(known_product(axis) for axis in _by_axes([*trips[:-1], vectors]))
    block = choose_full_block(known)
    points = 1
    if vectors is not None and len(trips) > 1:
        along_row = -(-vectors // block.x)
        of_block = block.y * block.z * vectors * count // along_row
        while points < MAX_POINTS and of_block * points * 2 <= block.threads * neighbours.most:
            points *= 2
    return PointsPlan(block, points, f"vectors of {count} adjacent points along x", count)


def _by_axes(outermost_first: list[Any]) -> list[list[Any]]:
    """The dimensions of axes x, y, z: the last one, the one before, and all others together."""
    axes = [[d] for d in reversed(outermost_first[-2:])]
    if len(outermost_first) > 2:
        axes.append(outermost_first[:-2])
    return axes


def _points(loop: Any, trips: list[int | None]) -> int:
    """The number of points for a thread, such that enough threads remain."""
    if not all(_is_simple(op) for op in body_of(loop)):
        return 1
    total = known_product(trips)
    points = MAX_POINTS
    while total is not None and points > 1 and total // points < _ENOUGH_THREADS:
        points //= 2
    return points


def _is_simple(operation: Any) -> bool:
    if operation.name in _MEMORY:
        return True
    return operation.name.split(".")[0] in _PURE_DIALECTS and len(operation.regions) == 0


def launch_points(loop: Any, plan: PointsPlan) -> None:
    """Replaces the loop by a launch."""
    with ir.InsertionPoint(loop):
        axes = _by_axes(dimensions_of(loop))
        extents = [ops.capped_product([d.trips for d in axis]) for axis in axes]
        known = tuple(known_product([d.known_trips for d in axis]) for axis in axes)
        extents = _without_work(extents, known)
        kernel = _Kernel(loop, axes, extents, known, plan)
        grid = [kernel.blocks(axis) for axis in range(len(axes))]
        launch = create_launch(grid, plan.block)
    with ir.InsertionPoint(launch.end):
        kernel.fill(launch)
    ops.erase(loop)


def _without_work(extents: list[Any], known: tuple[int | None, ...]) -> list[Any]:
    """The extents, where all dynamic ones become 0 if one of them is 0, so that no thread iterates
    over the others in vain."""
    unknown = [axis for axis, trips in enumerate(known) if trips is None]
    one = ops.constant_index(1)
    result = list(extents)
    for axis in unknown:
        for other in unknown:
            if other != axis:
                is_there = ops.index_op("arith.minsi", extents[other], one)
                result[axis] = ops.index_op("arith.muli", result[axis], is_there)
    return result


class _Kernel(Struct, frozen=True):
    loop: Any
    axes: list[list[Dimension]]
    extents: list[Any]
    known: tuple[int | None, ...]
    plan: PointsPlan

    @property
    def last(self) -> int:
        return len(self.axes) - 1

    def size(self, axis: int) -> int:
        """Threads along an axis. The last axis has the threads of the block's other axes as
        well."""
        sizes = (self.plan.block.x, self.plan.block.y, self.plan.block.z)
        threads = sizes[axis]
        for more in sizes[axis + 1 :] if axis == self.last else ():
            threads *= more
        return threads

    def points(self, axis: int) -> int:
        """Points per thread along an axis. Several are along y, if there is a y, so that x keeps
        its width for short rows."""
        if axis == 0 and self.plan.neighbours > 1:
            return self.plan.neighbours
        return self.plan.points if axis == min(1, self.last) else 1

    def blocks(self, axis: int) -> Any:
        """The number of blocks along the axis: at least one, and at most what a grid can have."""
        size = self.size(axis) * self.points(axis)
        limit = MAX_GRID_YZ if axis > 0 else None
        known = self.known[axis]
        if known is not None:
            blocks = max(1, -(-known // size))
            return ops.constant_index(min(blocks, limit) if limit else blocks)
        blocks = ops.index_op("arith.ceildivsi", self.extents[axis], ops.constant_index(size))
        # A launch without blocks is an error in CUDA: an empty loop launches one, which does
        # nothing.
        blocks = ops.index_op("arith.maxsi", blocks, ops.constant_index(1))
        return ops.index_op("arith.minsi", blocks, ops.constant_index(limit)) if limit else blocks

    def fill(self, launch: Launch) -> None:
        """Creates positions, guards, and the loop's body."""
        self._along(self.last, launch, [])

    def _along(self, axis: int, launch: Launch, outer: list[Any]) -> None:
        """Creates the code for an axis. `outer`: the positions on the axes after this one."""
        if axis < 0:
            self._copy_body(outer)
            return
        size, points = self.size(axis), self.points(axis)
        width = ops.constant_index(size * points)
        start = ops.index_op("arith.muli", launch.block_ids[axis], width)
        is_last = axis == self.last
        thread = launch.number(self.plan.block, axis) if is_last else launch.thread_ids[axis]
        trips = self.known[axis]

        def step(position: Any) -> None:
            self._along(axis - 1, launch, [position, *outer])

        has_loop = axis > 0 and (trips is None or -(-trips // (size * points)) > MAX_GRID_YZ)
        # With one position, the loop's bounds are its guard.
        is_one = has_loop and size * points == 1
        divides = is_one or (trips is not None and trips % (size * points) == 0)

        def from_start(start: Any) -> None:
            if points > 1:
                create_points(
                    size,
                    points,
                    lambda offset: one_from(ops.index_op("arith.addi", start, offset)),
                    are_neighbours=axis == 0 and self.plan.neighbours > 1,
                )
                return
            if has_loop:
                one_from(start)
                return
            first = ops.index_op("arith.addi", start, thread)
            if divides:
                step(first)
            else:
                is_there = ops.compare(SLT, first, self.extents[axis])
                ops.create_if(is_there, lambda: step(first))

        def one_from(base: Any) -> None:
            position = ops.index_op("arith.addi", base, thread)
            if divides:
                step(position)
                return
            # Written as a bound of the thread's number, as the CPU uses it as a loop bound.
            room = ops.index_op("arith.subi", self.extents[axis], base)
            ops.create_if(ops.compare(SLT, thread, room), lambda: step(position))

        if has_loop:
            stride = ops.index_op("arith.muli", launch.grid_sizes[axis], width)
            loop = ops.create_for(start, self.extents[axis], stride, from_start)
            loop.attributes[OF_BLOCK] = ir.UnitAttr.get()
        else:
            from_start(start)

    def _copy_body(self, positions: list[Any]) -> None:
        """Clones the body for the positions on x, y, z."""
        values: list[Any] = []
        for axis, position in zip(self.axes, positions, strict=True):
            values = induction_values(axis, position) + values
        variables = self.loop.regions[0].blocks[0].arguments
        copy_interleaved(body_of(self.loop), [dict(zip(variables, values, strict=True))])
