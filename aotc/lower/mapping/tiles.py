"""Kernels with shared-memory tiles for loops that read along one dimension and write along another.

If adjacent threads write adjacent elements, the elements that they read are a row apart, each in
another cache line. So a block copies a tile along its rows to shared memory, and reads it along its
columns there. Rows of the tile are padded by one element, so that the elements of a column are in
different banks.

An index of what is read may be computed, as that of an image that is padded while its channels
become the last dimension. Then the tile has the element of each point of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, access_of, accesses_in, is_pure
from aotc.chips import STATIC_SHARED_BYTES
from aotc.lower.mapping.blocks import BlockShape
from aotc.lower.mapping.build import SLE, SLT, ULT, Launch, create_launch, shared_type
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    loop_trips,
)
from aotc.mlir import ir
from aotc.ops import create_either
from aotc.rewrites.cloning import body_of, copy, copy_interleaved

TILE = 32  # rows and columns of a tile, and threads of a block along x
_ROWS = 8
# With a smaller static extent, tiles would be mostly empty.
LEAST_EXTENT = 8


class TilePlan(Struct, frozen=True):
    """The plan for a loop in tiles.

    `block` has a warp along x. `loads` are contiguous along the loop's `load_dimension`, its stores
    along `store_dimension`. `indices`: the operations that compute the loads' indices, in order.
    """

    block: BlockShape
    store_dimension: int
    load_dimension: int
    loads: tuple[Access, ...]
    indices: tuple[Any, ...]

    def __str__(self) -> str:
        return (
            f"a kernel with blocks of {self.block}: tiles of {TILE}x{TILE} through shared memory, "
            "as it reads along one dimension and writes along another"
        )


def plan_tiles(loop: Any, given: BlockShape | None, overlaps: Overlaps) -> TilePlan | None:
    """The loop's plan; None if loads and stores are contiguous along the same dimension."""
    block = given or BlockShape(TILE, _ROWS)
    body = body_of(loop)
    is_simple = all(is_pure(op) or access_of(op) is not None for op in body)
    if not is_simple or block.x != TILE or TILE % (block.threads // TILE) != 0:
        return None
    variables = list(loop.regions[0].blocks[0].arguments)
    accesses = [a for op in body for a in accesses_in(op)]
    stores = [a for a in accesses if a.writes]
    if not all(a.indices for a in stores):
        return None
    lasts = {a.indices[-1] for a in stores}
    if len(lasts) != 1 or (last := lasts.pop()) not in variables:
        return None
    found = {
        a.operation: (a, along)
        for a in accesses
        if not a.writes and (along := other_dimension(a, last, variables)) is not None
    }
    load_variables = {along for _, along in found.values()}
    if len(load_variables) != 1:
        return None
    transposed = tuple(access for access, _ in found.values())
    plan = TilePlan(
        block,
        variables.index(last),
        variables.index(load_variables.pop()),
        transposed,
        tuple(_index_operations(transposed, body)),
    )
    return plan if _can_read_early(plan, stores, overlaps) and _is_worth_it(plan, loop) else None


def other_dimension(access: Access, last: Any, variables: list[Any]) -> Any | None:
    """The variable of the loop along which a load is contiguous, if it depends on that of the
    stores, `last`, otherwise; else None."""
    *outer, own = access.indices or [None]
    if not outer:
        return None
    along = _counted(own) & set(variables)
    of_own, of_outer = _sources([own]), _sources(outer)
    is_other = len(along) == 1 and last not in of_own and last in of_outer
    loaded = any(
        (owner := ops.defining(value)) is not None and owner.name == "memref.load"
        for value in of_own | of_outer
    )
    return along.pop() if is_other and not loaded else None


def _sources(values: Sequence[Any]) -> set[Any]:
    """The values from which these are computed, with themselves."""
    return _reached(values, lambda owner: list(owner.operands))


def _counted(index: Any) -> set[Any]:
    """The values that grow by 1 where the index does, but at the bounds of an image."""
    first = {"arith.select": 1, "arith.addi": 0, "arith.minsi": 0, "arith.maxsi": 0}

    def counted(owner: Any) -> list[Any]:
        if owner.name == "arith.subi":
            return [owner.operands[0]]
        return list(owner.operands)[first[owner.name] :] if owner.name in first else []

    return {value for value in _reached([index], counted) if ops.defining(value) is None}


def _reached(values: Sequence[Any], following: Callable[[Any], list[Any]]) -> set[Any]:
    """The values that are reached from these by the operands that `following` chooses."""
    waiting, found = list(values), set[Any]()
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            owner = ops.defining(value)
            waiting += [] if owner is None else following(owner)
    return found


def _index_operations(loads: Sequence[Access], body: Sequence[Any]) -> list[Any]:
    """The operations of the body that compute the indices of loads."""
    wanted = {index for load in loads for index in load.indices}
    found = []
    for operation in reversed(body):
        if wanted & set(operation.results):
            found.append(operation)
            wanted |= set(operation.operands)
    return found[::-1]


def _can_read_early(plan: TilePlan, stores: list[Access], overlaps: Overlaps) -> bool:
    """Whether no iteration stores to an element that it loads later."""
    for load in plan.loads:
        before = []
        for operation in load.operation.block.operations:
            if operation.operation == load.operation:
                break
            before.append(operation.operation)
        if any(
            s.operation in before and overlaps.may_overlap(s.memref, load.memref) for s in stores
        ):
            return False
    return True


def _is_worth_it(plan: TilePlan, loop: Any) -> bool:
    trips = loop_trips(loop)
    short = any(
        count is not None and count < LEAST_EXTENT
        for count in (trips[plan.store_dimension], trips[plan.load_dimension])
    )
    return not short and _shared_bytes(plan) <= STATIC_SHARED_BYTES


def _shared_bytes(plan: TilePlan) -> int:
    sizes = [getattr(load.operation.results[0].type, "width", None) for load in plan.loads]
    if any(size is None for size in sizes):
        return STATIC_SHARED_BYTES + 1
    return sum(max(1, int(size or 0) // 8) * TILE * (TILE + 1) for size in sizes)


def launch_tiles(loop: Any, plan: TilePlan) -> None:
    """Replaces the loop by a launch with one block per tile, all along x."""
    with ir.InsertionPoint(loop):
        dimensions = dimensions_of(loop)
        if known_product([d.known_trips for d in dimensions]) == 0:
            ops.erase(loop)
            return
        tiles = [
            _tiles(d) if i in (plan.store_dimension, plan.load_dimension) else d.trips
            for i, d in enumerate(dimensions)
        ]
        # Tiles along the stores vary fastest, so that adjacent blocks write adjacent memory.
        order = [
            i for i in range(len(tiles)) if i not in (plan.store_dimension, plan.load_dimension)
        ]
        order += [plan.load_dimension, plan.store_dimension]
        count = ops.capped_product([tiles[i] for i in order])
        types = [shared_type([TILE, TILE + 1], a.operation.results[0].type) for a in plan.loads]
        if all(d.known_trips is not None for d in dimensions):
            launch = create_launch([count], plan.block, types)
        else:
            # A launch without blocks is an error in CUDA.
            branch = ops.create("scf.if", [_is_some(count)], regions=2)
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                launch = create_launch([count], plan.block, types)
                ops.create("scf.yield")
    with ir.InsertionPoint(launch.end):
        _TileKernel(loop, plan, dimensions).fill(launch, tiles, order)
    ops.erase(loop)


def _tiles(dimension: Dimension) -> Any:
    if dimension.known_trips is not None:
        return ops.constant_index(-(-dimension.known_trips // TILE))
    return ops.index_op("arith.ceildivsi", dimension.trips, ops.constant_index(TILE))


def _is_some(count: Any) -> Any:
    return ops.compare(ULT, ops.constant_index(0), count)


class _TileKernel(Struct, frozen=True):
    loop: Any
    plan: TilePlan
    dimensions: list[Dimension]

    def fill(self, launch: Launch, tiles: list[Any], order: list[int]) -> None:
        """Computes the block's tile, loads it, waits for all threads, and executes the loop's
        body."""
        numbers: dict[int, Any] = {}
        rest = launch.block_ids[0]
        for i in reversed(order[1:]):
            numbers[i] = ops.index_op("arith.remui", rest, tiles[i])
            rest = ops.index_op("arith.divui", rest, tiles[i])
        numbers[order[0]] = rest
        size = ops.constant_index(TILE)
        for i in (self.plan.store_dimension, self.plan.load_dimension):
            numbers[i] = ops.index_op("arith.muli", numbers[i], size)
        x = launch.thread_ids[0]
        y = launch.number(self.plan.block, first_axis=1)
        rows = [self._plus(y, i) for i in range(0, TILE, self.plan.block.threads // TILE)]
        whole = self._is_whole(numbers)
        self._for_each(numbers, (x, rows), whole, launch.shared, reads=True)
        ops.create("gpu.barrier")
        self._for_each(numbers, (x, rows), whole, launch.shared, reads=False)

    def _plus(self, value: Any, offset: int) -> Any:
        if offset == 0:
            return value
        return ops.index_op("arith.addi", value, ops.constant_index(offset))

    def _for_each(
        self,
        numbers: dict[int, Any],
        threads: tuple[Any, list[Any]],
        whole: Any | None,
        shared: list[Any],
        *,
        reads: bool,
    ) -> None:
        """Loads the tile with x along the loads, or executes the loop's body with x along the
        stores."""
        fast, slow = (
            (self.plan.load_dimension, self.plan.store_dimension)
            if reads
            else (self.plan.store_dimension, self.plan.load_dimension)
        )
        x, rows = threads
        column = ops.index_op("arith.addi", numbers[fast], x)
        points = [ops.index_op("arith.addi", numbers[slow], row) for row in rows]

        def run(chosen: list[tuple[Any, Any]]) -> None:
            copies = [self._values(numbers | {fast: column, slow: p}) for _, p in chosen]
            if reads:
                self._read(copies, [(row, x) for row, _ in chosen], shared)
            else:
                # An element that was loaded as row `a`, column `b` of the tile is read as row `b`,
                # column `a`.
                self._run(copies, [(x, row) for row, _ in chosen], shared)

        pairs = list(zip(rows, points, strict=True))

        def one(pair: tuple[Any, Any]) -> None:
            inside = ops.compare(SLT, pair[1], self.dimensions[slow].trips)
            ops.create_if(inside, lambda: run([pair]))

        def each() -> None:
            for pair in pairs:
                one(pair)

        if whole is None:
            run(pairs)
            return
        is_there = ops.compare(SLT, column, self.dimensions[fast].trips)
        create_either(whole, lambda: run(pairs), lambda: ops.create_if(is_there, each))

    def _is_whole(self, numbers: dict[int, Any]) -> Any | None:
        """Whether the whole tile is inside of the loop's bounds; None if each tile is."""
        size = ops.constant_index(TILE)
        checks = [
            ops.compare(SLE, ops.index_op("arith.addi", numbers[i], size), self.dimensions[i].trips)
            for i in (self.plan.store_dimension, self.plan.load_dimension)
            if not self._divides(i)
        ]
        if len(checks) < 2:
            return checks[0] if checks else None
        return ops.binary("arith.andi", *checks)

    def _divides(self, dimension: int) -> bool:
        trips = self.dimensions[dimension].known_trips
        return trips is not None and trips % TILE == 0

    def _values(self, positions: dict[int, Any]) -> dict[Any, Any]:
        arguments = self.loop.regions[0].blocks[0].arguments
        return {
            argument: induction_values([dimension], positions[i])[0]
            for i, (argument, dimension) in enumerate(zip(arguments, self.dimensions, strict=True))
        }

    def _read(
        self, copies: list[dict[Any, Any]], places: list[tuple[Any, Any]], shared: list[Any]
    ) -> None:
        loads = [load.operation for load in self.plan.loads]
        copy_interleaved([*self.plan.indices, *loads], copies)
        for load, tile in zip(self.plan.loads, shared, strict=True):
            for values, place in zip(copies, places, strict=True):
                value = values[load.operation.results[0]]
                ops.create("memref.store", [value, tile, *place])

    def _run(
        self, copies: list[dict[Any, Any]], places: list[tuple[Any, Any]], shared: list[Any]
    ) -> None:
        loads = {load.operation: tile for load, tile in zip(self.plan.loads, shared, strict=True)}
        for operation in body_of(self.loop):
            for values, place in zip(copies, places, strict=True):
                if operation in loads:
                    result = operation.results[0]
                    tile = ops.create("memref.load", [loads[operation], *place], [result.type])
                    values[result] = tile.result
                else:
                    copy(operation, values)
