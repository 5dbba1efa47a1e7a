"""Parallel loops → `gpu.launch` with full blocks.

An outermost `scf.parallel` that carries no mapping of its own becomes a launch: its last
dimension runs along x, so that neighbouring threads touch neighbouring elements, the one
before along y, and all others together along z. Blocks hold 128 to 1024 threads. A shape that
does not divide is guarded; more blocks than a grid's y and z can have are walked in strides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aotc import ops
from aotc.load.entries import functions_of
from aotc.lower.remarks import Remarks
from aotc.mlir import ir
from aotc.ops import symbol_of

STEP = "aotc-map-parallel-loops"
MIN_THREADS = 128
PREFERRED_THREADS = 256
WARP = 32
# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
MAX_GRID_YZ = 65535
MAX_BLOCK_Z = 64

_SLT = 2  # arith.cmpi's number for a signed "less than"


@dataclass(frozen=True)
class BlockShape:
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
    """A block for a loop nest with the given extents along x, y, z (None: not known).

    One dimension: all threads along x. More: a warp along x, the rest along y, then z, each
    no wider than the loop is; where the loops are too small for a full block, x grows.
    """
    if len(extents) == 1:
        return BlockShape(PREFERRED_THREADS, 1, 1)
    useful = [PREFERRED_THREADS if e is None else _power_of_two_from(e) for e in extents]
    sizes = [min(useful[0], WARP), 1, 1]
    for dimension in range(1, len(extents)):
        room = PREFERRED_THREADS // math.prod(sizes)
        limit = MAX_BLOCK_Z if dimension == 2 else room
        sizes[dimension] = max(1, min(useful[dimension], room, limit))
    while math.prod(sizes) < PREFERRED_THREADS and sizes[0] < useful[0]:
        sizes[0] *= 2
    while math.prod(sizes) < MIN_THREADS:
        sizes[0] *= 2
    return BlockShape(*sizes)


def _power_of_two_from(extent: int) -> int:
    """The least power of two that is at least `extent`."""
    return 1 << max(0, (extent - 1).bit_length())


def map_parallel_loops(
    module: Any,
    device_functions: frozenset[str] = frozenset(),
    *,
    block: tuple[int, ...] | None = None,
    remarks: Remarks | None = None,
) -> int:
    """Turns each parallel loop of the host functions that is not mapped by hand into a launch.

    `device_functions` are those that run in kernels, and keep their loops; `block` is the size
    of all blocks, where it is given. Returns how many launches there are now for loops.
    """
    with module.context:
        loops = [
            op
            for function in functions_of(module)
            if symbol_of(function) not in device_functions
            for op in ops.find(function, "scf.parallel")
            if _is_ours(op)
        ]
        for loop in loops:
            location = loop.location
            with location:
                shape = _launch(loop, None if block is None else BlockShape(*block))
            if remarks is not None:
                remarks.add(STEP, location, f"a kernel with blocks of {shape}")
    return len(loops)


def _is_ours(loop: Any) -> bool:
    if len(loop.results) > 0:
        return False  # a reduction: the host runs it
    if any(op.name in ("scf.parallel", "gpu.launch", "gpu.module") for op in ops.ancestors(loop)):
        return False
    inside = list(ops.walk(loop))
    if any(op.name in ("gpu.launch", "gpu.launch_func") for op in inside):
        return False
    return not any("mapping" in op.attributes for op in inside if op.name == "scf.parallel")


@dataclass(frozen=True)
class _Dimension:
    """One loop: where it starts, its step, and how often it runs (as a value, and if known)."""

    lower: Any
    step: Any
    trips: Any
    known_trips: int | None


def _launch(loop: Any, given: BlockShape | None) -> BlockShape:
    lowers, uppers, steps, _ = ops.operand_groups(loop)
    with ir.InsertionPoint(loop):
        dimensions = [_dimension(*bounds) for bounds in zip(lowers, uppers, steps, strict=True)]
        # Axes x, y, z: the last dimension, the one before, the product of all others.
        axes = [[d] for d in reversed(dimensions[-2:])]
        if len(dimensions) > 2:
            axes.append(dimensions[:-2])
        extents = [_product(axis) for axis in axes]
        known = tuple(_known_product(axis) for axis in axes)
        extents = _without_work(extents, known)
        block = given or choose_block(known)
        sizes = (block.x, block.y, block.z)
        one = ops.constant_index(1)
        threads = [ops.constant_index(size) for size in sizes]
        grid = [
            _blocks(extent, trips, size, axis=axis)
            for axis, (extent, trips, size) in enumerate(zip(extents, known, sizes, strict=False))
        ]
        grid += [one] * (3 - len(grid))
        launch = _create_launch(grid, threads)
    body = launch.regions[0].blocks[0]
    terminator = body.operations[0]
    # gpu.launch's block arguments: block ids, thread ids, grid sizes, block sizes.
    block_ids, thread_ids, grid_sizes = (body.arguments[i : i + 3] for i in (0, 3, 6))
    with ir.InsertionPoint(terminator):
        _fill(
            loop,
            axes,
            extents,
            known,
            sizes,
            [list(block_ids), list(thread_ids), list(grid_sizes)],
        )
    loop.erase()
    return block


def _without_work(extents: list[Any], known: tuple[int | None, ...]) -> list[Any]:
    """The extents, all 0 where one of them turns out to be: nobody goes along the others for
    nothing."""
    unknown = [axis for axis, trips in enumerate(known) if trips is None]
    one = ops.constant_index(1)
    result = list(extents)
    for axis in unknown:
        for other in unknown:
            if other != axis:
                is_there = ops.index_op("arith.minsi", extents[other], one)
                result[axis] = ops.index_op("arith.muli", result[axis], is_there)
    return result


def _create_launch(grid: list[Any], threads: list[Any]) -> Any:
    launch = ir.Operation.create(
        "gpu.launch",
        results=[],
        operands=[*grid, *threads],
        regions=1,
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, *[1] * 6, 0, 0, 0, 0, 0])},
    )
    block = launch.regions[0].blocks.append(*[ir.IndexType.get()] * 12)
    with ir.InsertionPoint(block):
        ir.Operation.create("gpu.terminator")
    return launch


def _dimension(lower: Any, upper: Any, step: Any) -> _Dimension:
    bounds = [ops.known_index(value) for value in (lower, upper, step)]
    if all(bound is not None for bound in bounds):
        low, high, by = (bound for bound in bounds if bound is not None)
        trips = max(0, -(-(high - low) // by))
        return _Dimension(lower, step, ops.constant_index(trips), trips)
    # An empty range must not become a negative count.
    distance = ops.index_op("arith.subi", upper, lower)
    count = ops.index_op("arith.ceildivsi", distance, step)
    return _Dimension(lower, step, ops.index_op("arith.maxsi", count, ops.constant_index(0)), None)


def _product(axis: list[_Dimension]) -> Any:
    total = axis[0].trips
    for dimension in axis[1:]:
        total = ops.index_op("arith.muli", total, dimension.trips)
    return total


def _known_product(axis: list[_Dimension]) -> int | None:
    product = 1
    for dimension in axis:
        if dimension.known_trips is None:
            return None
        product *= dimension.known_trips
    return product


def _blocks(extent: Any, known: int | None, size: int, *, axis: int) -> Any:
    """How many blocks of `size` cover `extent`: at least one, and no more than a grid can have."""
    limit = MAX_GRID_YZ if axis > 0 else None
    if known is not None:
        blocks = max(1, -(-known // size))
        return ops.constant_index(min(blocks, limit) if limit else blocks)
    blocks = ops.index_op("arith.ceildivsi", extent, ops.constant_index(size))
    # A launch without blocks is an error in CUDA: an empty loop launches one, which does nothing.
    blocks = ops.index_op("arith.maxsi", blocks, ops.constant_index(1))
    return ops.index_op("arith.minsi", blocks, ops.constant_index(limit)) if limit else blocks


def _fill(
    loop: Any,
    axes: list[list[_Dimension]],
    extents: list[Any],
    known: tuple[int | None, ...],
    sizes: tuple[int, int, int],
    ids: list[list[Any]],
) -> None:
    """Fills the launch at the insertion point: positions, guards, then the loop's body."""
    block_ids, thread_ids, grid_sizes = ids
    positions: list[Any] = []

    def body() -> None:
        _move_body(loop, _induction_values(axes, positions))

    def along(axis: int) -> None:
        if axis < 0:
            body()
            return
        size = ops.constant_index(sizes[axis])
        first = ops.index_op(
            "arith.addi", ops.index_op("arith.muli", block_ids[axis], size), thread_ids[axis]
        )
        trips = known[axis]
        if axis > 0 and (trips is None or -(-trips // sizes[axis]) > MAX_GRID_YZ):
            stride = ops.index_op("arith.muli", grid_sizes[axis], size)
            ops.create_for(first, extents[axis], stride, lambda at: step(axis, at))
        elif trips is not None and trips % sizes[axis] == 0:
            step(axis, first)
        else:
            ops.create_if(ops.compare(_SLT, first, extents[axis]), lambda: step(axis, first))

    def step(axis: int, position: Any) -> None:
        positions.insert(0, position)
        along(axis - 1)
        positions.pop(0)

    along(len(axes) - 1)


def _induction_values(axes: list[list[_Dimension]], positions: list[Any]) -> list[Any]:
    """The loop's induction variables, outermost first, for a position on each axis."""
    values: list[Any] = []
    for axis, position in zip(axes, positions, strict=True):
        rest = position
        own: list[Any] = []
        for i, dimension in enumerate(reversed(axis)):
            count = rest
            if i < len(axis) - 1:
                count = ops.index_op("arith.remui", rest, dimension.trips)
                rest = ops.index_op("arith.divui", rest, dimension.trips)
            scaled = ops.index_op("arith.muli", count, dimension.step)
            own.insert(0, ops.index_op("arith.addi", dimension.lower, scaled))
        values = own + values
    return values


def _move_body(loop: Any, values: list[Any]) -> None:
    source = loop.regions[0].blocks[0]
    anchor = ir.Operation.create("gpu.terminator")  # a mark to move the body in front of
    for argument, value in zip(source.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    for operation in list(source.operations):
        if operation.operation.name != "scf.reduce":
            operation.operation.move_before(anchor)
    anchor.erase()
