"""Kernels for CPUs of loops that read along one dimension and write along another.

A block has one thread, which transposes squares of elements in registers: the rows of a square are
loaded as vectors along the dimension of the loads, and the loop's body is executed for vectors
along that of the stores. (GPUs do so through shared memory: see `aotc.lower.mapping.tiles`.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, accesses_in
from aotc.lower.mapping.blocks import BlockShape
from aotc.lower.mapping.build import EQ, ULT, create_launch
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.lane_body import LaneBody, compute, shuffle
from aotc.lower.mapping.lane_kinds import VECTOR, Kinds, is_row_of_elements
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    known_trips,
)
from aotc.lower.mapping.partials import LANES, vector_of
from aotc.lower.mapping.tiles import TilePlan
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy
from aotc.sizes import element_bytes

# Elements of a block along the loads and along the stores. A row of a block along the loads is
# several cache lines, which the processor prefetches.
_ALONG_LOADS, _ALONG_STORES = 64, 256
# The body is repeated for each row of a square.
_MOST_OPERATIONS, _MOST_LOADS = 12, 2
_LANE_BYTES = 16  # x86 interleaves elements within parts of registers of this size


class Squares(Struct, frozen=True):
    """The plan for a loop in squares of `LANES` by `LANES` elements. `body` is that of the loop
    without the loads that are transposed, and its values have the `kinds` along the stores."""

    tiles: TilePlan
    body: tuple[Any, ...]
    kinds: Kinds

    def __str__(self) -> str:
        return f"a thread for some squares of {LANES}x{LANES}, transposed in registers"


def plan_squares(loop: Any, tiles: TilePlan, overlaps: Overlaps) -> Squares | None:
    """The plan for a loop that GPUs compute in tiles; None if the body cannot be vectorized, or if
    a dimension is shorter than a square."""
    bounds = list(zip(*ops.operand_groups(loop)[:3], strict=True))
    along = [bounds[tiles.store_dimension], bounds[tiles.load_dimension]]
    body, loads = body_of(loop), [load.operation for load in tiles.loads]
    trips = [known_trips(*one) for one in along]
    is_short = any(count is not None and count < LANES for count in trips)
    has_steps = any(ops.known_index(step) != 1 for *_, step in along)
    if tiles.indices or is_short or has_steps or not _is_small(body, loads):
        return None
    variables = loop.regions[0].blocks[0].arguments
    written = any(
        overlaps.is_written(access.memref, body)
        for access in accesses_in(loop)
        if not access.writes
    )
    if written or not all(is_row_of_elements(load.memref) for load in tiles.loads):
        return None
    rest = tuple(operation for operation in body if operation not in loads)
    kinds = Kinds()
    kinds.of |= {load.results[0]: VECTOR for load in loads}
    column = variables[tiles.store_dimension]
    is_vectorized = kinds.add(Columns(loop, (along[0],), (column,), rest, ()))
    return Squares(tiles, rest, kinds) if is_vectorized else None


def _is_small(body: Sequence[Any], loads: Sequence[Any]) -> bool:
    has_loops = any(operation.regions for operation in body)
    return not has_loops and len(body) <= _MOST_OPERATIONS and len(loads) <= _MOST_LOADS


def create_squares(loop: Any, plan: Squares) -> None:
    """Launches blocks of one thread for the loop, which is not changed."""
    dimensions = dimensions_of(loop)
    parts = [
        _parts(dimension, size) if size is not None else dimension.trips
        for dimension, size in zip(dimensions, _block_sizes(plan, len(dimensions)), strict=True)
    ]

    def launch() -> None:
        count = ops.capped_product(parts)
        made = create_launch([count], BlockShape(1))
        with ir.InsertionPoint(made.end):
            _SquareKernel(loop, plan, dimensions).fill(made.block_ids[0], parts)

    known = known_product([dimension.known_trips for dimension in dimensions])
    if known is None:
        # A launch without blocks is an error.
        total = ops.capped_product([dimension.trips for dimension in dimensions])
        ops.create_if(ops.compare(ULT, ops.constant_index(0), total), launch)
    elif known > 0:
        launch()


def _block_sizes(plan: Squares, rank: int) -> list[int | None]:
    """The size of a block along each dimension; None: 1."""
    sizes: list[int | None] = [None] * rank
    sizes[plan.tiles.load_dimension] = _ALONG_LOADS
    sizes[plan.tiles.store_dimension] = _ALONG_STORES
    return sizes


def _parts(dimension: Dimension, size: int) -> Any:
    """The number of blocks along a dimension. The last one also has what is left, so that no two
    blocks write the same elements."""
    if dimension.known_trips is not None:
        return ops.constant_index(max(1, dimension.known_trips // size))
    whole = ops.index_op("arith.divui", dimension.trips, ops.constant_index(size))
    return ops.index_op("arith.maxui", whole, ops.constant_index(1))


class _SquareKernel(Struct, frozen=True):
    loop: Any
    plan: Squares
    dimensions: list[Dimension]

    def fill(self, block: Any, parts: Sequence[Any]) -> None:
        zero, one = ops.constant_index(0), ops.constant_index(1)
        tiles = self.plan.tiles
        along = (tiles.store_dimension, tiles.load_dimension)
        blocks = [
            Dimension(zero, one, count, None) if i in along else dimension
            for i, (dimension, count) in enumerate(zip(self.dimensions, parts, strict=True))
        ]
        numbers = induction_values(blocks, block)
        sizes = (_ALONG_STORES, _ALONG_LOADS)
        stores, loads = (
            self._range(numbers[i], parts[i], size, self.dimensions[i].trips)
            for i, size in zip(along, sizes, strict=True)
        )

        def run(body: Callable[[list[Any], Any, Any], None], step: int) -> None:
            by = ops.constant_index(step)

            def row(store: Any) -> None:
                ops.create_for(*loads, by, lambda load: body(numbers, store, load))

            ops.create_for(*stores, by, row)

        dynamic = [
            d.trips for d in map(self.dimensions.__getitem__, along) if d.known_trips is None
        ]
        if not dynamic:
            run(self._square, LANES)
            return
        shortest = functools.reduce(functools.partial(ops.index_op, "arith.minui"), dynamic)
        is_short = ops.compare(ULT, shortest, ops.constant_index(LANES))
        ops.create_either(is_short, lambda: run(self._point, 1), lambda: run(self._square, LANES))

    def _range(self, number: Any, parts: Any, size: int, trips: Any) -> tuple[Any, Any]:
        """The positions of a block along a dimension."""
        first = ops.index_op("arith.muli", number, ops.constant_index(size))
        after = ops.index_op("arith.addi", number, ops.constant_index(1))
        end = ops.index_op("arith.addi", first, ops.constant_index(size))
        is_last = ops.compare(EQ, after, parts)
        return first, ops.select(is_last, trips, end)

    def _point(self, numbers: list[Any], store: Any, load: Any) -> None:
        values = self._values(numbers, store, load)
        for operation in body_of(self.loop):
            copy(operation, values)

    def _square(self, numbers: list[Any], store: Any, load: Any) -> None:
        """The square at a position. The last one along a dimension ends with it, and computes some
        elements again."""
        tiles = self.plan.tiles
        store, load = (
            self._within(position, self.dimensions[i])
            for position, i in ((store, tiles.store_dimension), (load, tiles.load_dimension))
        )
        columns = [self._columns(one, numbers, store, load) for one in tiles.loads]
        for i in range(LANES):
            values = self._values(numbers, store, _plus(load, i))
            for one, vectors in zip(tiles.loads, columns, strict=True):
                values[one.operation.results[0]] = vectors[i]
            compute([LaneBody(self.plan.kinds, values, None)], self.plan.body)

    def _within(self, position: Any, dimension: Dimension) -> Any:
        if dimension.known_trips is not None and dimension.known_trips % LANES == 0:
            return position
        last = ops.index_op("arith.subi", dimension.trips, ops.constant_index(LANES))
        return ops.index_op("arith.minui", position, last)

    def _columns(self, access: Access, numbers: list[Any], store: Any, load: Any) -> list[Any]:
        """The vectors along the stores of the elements that are loaded along another dimension."""
        type_ = vector_of(access.operation.results[0].type)
        rows = []
        for i in range(LANES):
            values = self._values(numbers, _plus(store, i), load)
            indices = [values.get(index, index) for index in access.indices]
            made = ops.create("vector.load", [access.memref, *indices], [type_])
            rows.append(made.result)
        return _transposed(rows)

    def _values(self, numbers: list[Any], store: Any, load: Any) -> dict[Any, Any]:
        """The loop's variables at a position."""
        tiles, values = self.plan.tiles, list(numbers)
        for position, i in ((store, tiles.store_dimension), (load, tiles.load_dimension)):
            (values[i],) = induction_values([self.dimensions[i]], position)
        return dict(zip(self.loop.regions[0].blocks[0].arguments, values, strict=True))


def _plus(position: Any, offset: int) -> Any:
    return ops.index_op("arith.addi", position, ops.constant_index(offset)) if offset else position


def _transposed(rows: list[Any]) -> list[Any]:
    """The transpose of a square of which `rows` are the vectors: first within parts of registers,
    then of these parts."""
    width = max(1, _LANE_BYTES // (element_bytes(ops.element_type(rows[0].type)) or 1))
    parts = [_interleaved(rows[i : i + width], 1) for i in range(0, LANES, width)]
    columns = [_interleaved(list(column), width) for column in zip(*parts, strict=True)]
    return [vector for row in zip(*columns, strict=True) for vector in row]


def _interleaved(vectors: list[Any], unit: int) -> list[Any]:
    """The transposes of square matrices of units of so many elements, which lie next to each other
    in `vectors`, their rows. Each of the log2 steps interleaves pairs of vectors."""
    count = len(vectors)
    for _ in range(count.bit_length() - 1):
        vectors = [
            shuffle(*pair, _interleaving(unit, count, is_upper=is_upper), pair[0].type)
            for pair in zip(vectors[: count // 2], vectors[count // 2 :], strict=True)
            for is_upper in (False, True)
        ]
    return vectors


def _interleaving(unit: int, count: int, *, is_upper: bool) -> list[int]:
    """The places of elements in two vectors: of one half of each matrix, units by turns."""
    half = count * unit // 2
    return [
        matrix + first + vector + i
        for matrix in range(half * is_upper, LANES, count * unit)
        for first in range(0, half, unit)
        for vector in (0, LANES)
        for i in range(unit)
    ]
