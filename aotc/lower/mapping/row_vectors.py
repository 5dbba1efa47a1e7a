"""Kernels for rows on the CPU: one thread computes each row, in vectors of columns.

The threads of a GPU block that share a row would be vectorized on the CPU as well, but they
exchange data through memory for each row. A single thread needs no exchange: it accumulates vectors
of partial results, and combines their lanes at the end of the row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.effects import Overlaps, accesses_in
from aotc.chips import WARP
from aotc.lower.mapping.blocks import BlockShape
from aotc.lower.mapping.build import ULT, create_launch, create_loop
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.guards import guards_of
from aotc.lower.mapping.lane_body import LaneBody, compute
from aotc.lower.mapping.lane_kinds import UNIFORM, Kinds
from aotc.lower.mapping.nest import (
    Dimension,
    dimensions_of,
    induction_values,
    known_product,
    known_trips,
    least_trips,
    loop_trips,
)
from aotc.lower.mapping.partials import LANES, Partials, vector_of
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy

# Vectors of columns that are computed at a time, with separate partial results, so that they do not
# wait for each other. There are fewer in loops with math functions, which have much work for each,
# and in loops without partial results.
_MOST_VECTORS, _FEW_VECTORS = 4, 2
# The approximate number of columns per block, unless there would be too few blocks.
_COLUMNS_OF_BLOCK = 8192
_LEAST_BLOCKS = 64
_LEAST_WHOLE_ROWS, _MOST_WHOLE_COLUMNS = 16, 4096
# Of rows of unknown length, a block has as many as leave this number of blocks, up to a limit.
_BLOCKS_OF_UNKNOWN, _MOST_ROWS_OF_UNKNOWN = 128, 64


class RowVectors(Struct, frozen=True):
    """Blocks of one thread, each with `rows` rows, or None if that depends on their number.

    `items` is the body: operations, and loops along the row, whose values have the `kinds`. The
    rows are the first `rank` dimensions of the loop. Columns `may_repeat` if computing them twice
    has the same results.
    """

    rows: int | None
    rank: int
    items: tuple[Any, ...]
    kinds: Kinds
    may_repeat: bool = False

    def __str__(self) -> str:
        rows = {None: "some rows", 1: "a row"}.get(self.rows, f"{self.rows} rows")
        return f"a thread for {rows}, with vectors of {LANES} columns"


def plan_row_vectors(loop: Any, items: Sequence[Any]) -> RowVectors | None:
    """The plan for a loop over rows, whose body is operations and `Columns`; None if a loop along
    the row cannot be vectorized."""
    kinds = Kinds(gathers=True)
    columns = [item for item in items if isinstance(item, Columns)]
    if not all(kinds.add(one) for one in columns):
        return None
    counts = [one.known_count for one in columns]
    return _plan(loop_trips(loop), counts, tuple(items), kinds)


def plan_window_vectors(loop: Any, overlaps: Overlaps) -> RowVectors | None:
    """The plan for a loop over points, whose last dimension becomes the columns.

    None unless LLVM would not vectorize it: it loads padded data, or has an inner loop with strided
    loads or with padding along rows. Also planned are loops whose rows are better not divided among
    blocks.
    """
    *rows, bounds = zip(*ops.operand_groups(loop)[:3], strict=True)
    *_, column = loop.regions[0].blocks[0].arguments
    columns = Columns(loop, (bounds,), (column,), tuple(body_of(loop)), ())
    kinds = Kinds()
    if not rows or not kinds.add(columns):
        return None
    trips = [known_trips(*one) for one in rows]
    is_hard = kinds.has_guards or kinds.strides - {1}
    is_of_windows = kinds.padded or (is_hard and ops.find(loop, "scf.for"))
    least_rows = math.prod(least_trips(*one) for one in rows)
    if not is_of_windows and not _are_whole(columns, least_rows, kinds):
        return None
    plan = _plan(trips, [columns.known_count], (columns,), kinds)
    may_repeat = bool(is_of_windows) and not any(
        overlaps.is_written(access.memref, columns.body)
        for access in accesses_in(loop)
        if not access.writes
    )
    return replace(plan, may_repeat=may_repeat)


def _are_whole(columns: Columns, rows: int, kinds: Kinds) -> bool:
    """Whether rows of elementwise work, such as a scale of each channel, are better computed as a
    whole.

    There must be enough rows for all cores. Parts of rows would not be whole warps, would compute a
    function of the row again, or would load the row's index again. (LLVM, without alias
    information, loads it for each element.)
    """
    count = columns.known_count
    if count is None or rows < _LEAST_WHOLE_ROWS:
        return False
    if not LANES <= count <= _MOST_WHOLE_COLUMNS or any(op.regions for op in columns.body):
        return False
    return count % WARP != 0 or any(
        op.name.startswith("math.")
        or op.name in ("arith.divf", "arith.index_cast", "arith.index_castui")
        for op in columns.body
        if op.results and kinds[op.results[0]] == UNIFORM
    )


def _plan(
    rows: Sequence[int | None],
    columns: Sequence[int | None],
    items: tuple[Any, ...],
    kinds: Kinds,
) -> RowVectors:
    longest, total = max(count or 0 for count in columns), known_product(list(rows))
    of_block: int | None = None
    if longest > 0 and None not in columns:
        of_block = max(1, _COLUMNS_OF_BLOCK // longest)
        if total is not None:
            of_block = max(1, min(of_block, total // _LEAST_BLOCKS))
    elif total is not None:
        of_block = min(max(1, total // _BLOCKS_OF_UNKNOWN), _MOST_ROWS_OF_UNKNOWN)
    return RowVectors(of_block, len(rows), items, kinds)


# --- The kernel ---


def create_row_vectors(loop: Any, plan: RowVectors) -> None:
    """Launches blocks of one thread for the loop over rows. The loop itself is not changed."""
    rows = dimensions_of(loop)[: plan.rank]
    count = ops.capped_product([d.trips for d in rows])
    known = known_product([d.known_trips for d in rows])

    def launch() -> None:
        size = _rows_of_block(plan, count)
        made = create_launch([ops.index_op("arith.ceildivui", count, size)], BlockShape(1))
        with ir.InsertionPoint(made.end):
            _iterate_rows(loop, plan, rows, count, size, made.block_ids[0])

    if known is None:
        # A launch without blocks is an error.
        ops.create_if(ops.compare(ULT, ops.constant_index(0), count), launch)
    elif known > 0:
        launch()


def _rows_of_block(plan: RowVectors, count: Any) -> Any:
    if plan.rows is not None:
        return ops.constant_index(plan.rows)
    whole = ops.index_op("arith.divui", count, ops.constant_index(_BLOCKS_OF_UNKNOWN))
    some = ops.index_op("arith.maxui", whole, ops.constant_index(1))
    return ops.index_op("arith.minui", some, ops.constant_index(_MOST_ROWS_OF_UNKNOWN))


def _iterate_rows(
    loop: Any, plan: RowVectors, rows: list[Dimension], count: Any, size: Any, block: Any
) -> None:
    one = ops.constant_index(1)
    first = ops.index_op("arith.muli", block, size)
    end = ops.index_op("arith.minui", ops.index_op("arith.addi", first, size), count)

    def row(number: Any) -> None:
        variables = induction_values(rows, number)
        # The columns' variable, if it is an argument of the loop, has no value here.
        values = dict(zip(loop.regions[0].blocks[0].arguments, variables, strict=False))
        for item in plan.items:
            if isinstance(item, Columns):
                _RowLoop(item, plan, values).build()
            else:
                copy(item, values)

    if plan.rows == 1:
        row(block)
    else:
        ops.create_for(first, end, one, row)


class _RowLoop:
    """Builds a loop along a row at the insertion point, and adds its results to `values`."""

    def __init__(self, columns: Columns, plan: RowVectors, values: dict[Any, Any]) -> None:
        self._columns, self._kinds, self._values = columns, plan.kinds, values
        self._may_repeat = plan.may_repeat
        *self._outer, self._inner = columns.dimensions(values)
        self._partials = [Partials.of(accumulator) for accumulator in columns.accumulators]
        # Of rows that are reduced, the number of vectors at a time determines the result.
        self._guards = [] if self._partials else guards_of(columns, plan.kinds)

    def build(self) -> None:
        vectors = self._count_vectors()
        neutral = [value for partials in self._partials for value in partials.neutral()]
        found = self._nest(self._outer, [], neutral * vectors, vectors)
        own = [self._by_accumulator(part) for part in _parts(found, vectors)]
        for number, accumulator in enumerate(self._columns.accumulators):
            total = self._partials[number].total([values[number] for values in own])
            init = self._values.get(accumulator.init, accumulator.init)
            self._values[self._columns.loop.results[number]] = accumulator.combine(init, total)

    def _by_accumulator(self, carried: Sequence[Any]) -> list[list[Any]]:
        """The partial results of one vector, for each accumulator."""
        values = iter(carried)
        return [[next(values) for _ in partials.kinds] for partials in self._partials]

    def _count_vectors(self) -> int:
        """The number of vectors at a time. It is the same for static and dynamic row lengths, and
        so are the bits of a sum."""
        if self._guards:
            return 1
        has_functions = any(op.name.startswith("math.") for op in self._columns.body)
        is_deep = has_functions or not self._partials
        wanted = _FEW_VECTORS if is_deep else _MOST_VECTORS
        known = self._inner.known_trips
        # Vectors that accumulate nothing do not change the result.
        return wanted if known is None or known >= wanted * LANES else 1

    def _nest(
        self, outer: Sequence[Dimension], variables: list[Any], carried: list[Any], vectors: int
    ) -> list[Any]:
        """The loops over all dimensions but the last, which is vectorized."""
        if not outer:
            return self._along(variables, carried, vectors)
        zero, one = ops.constant_index(0), ops.constant_index(1)

        def inside(position: Any, values: list[Any]) -> list[Any]:
            found = induction_values([outer[0]], position)
            return self._nest(outer[1:], [*variables, *found], values, vectors)

        return create_loop(zero, outer[0].trips, one, carried, inside)

    def _along(self, variables: list[Any], carried: list[Any], vectors: int) -> list[Any]:
        """Several vectors at a time, then single vectors, then a masked rest. If columns may be
        computed twice, the last vector of a row of unknown length ends with it, if it fits."""
        zero, trips = ops.constant_index(0), self._inner.trips
        several, one = ops.constant_index(vectors * LANES), ops.constant_index(LANES)
        own = sum(len(partials.kinds) for partials in self._partials)

        def inside_or_not(position: Any, values: list[Any]) -> list[Any]:
            ops.create_either(
                self._is_inside(position),
                lambda: self._vectors(variables, [position], [], None, inside=True),
                lambda: self._vectors(variables, [position], [], None),
            )
            return values

        def whole(count: int) -> Callable[[Any, list[Any]], list[Any]]:
            if self._guards:
                return inside_or_not

            def body(position: Any, values: list[Any]) -> list[Any]:
                starts = [_add(position, number * LANES) for number in range(count)]
                found = self._vectors(variables, starts, values[: own * count], None)
                return [*found, *values[own * count :]]

            return body

        def rest(position: Any, values: list[Any]) -> list[Any]:
            left = ops.index_op("arith.subi", trips, position)
            mask = ops.unary("vector.create_mask", left, vector_of(ops.integer(1)))
            found = self._vectors(variables, [position], values[:own], mask)
            return [*found, *values[own:]]

        known = self._inner.known_trips
        if self._may_repeat and known is None:

            def all_vectors() -> None:
                end, last = zero, ops.index_op("arith.subi", trips, one)
                if vectors > 1:
                    end = _round_down(trips, vectors * LANES)
                    create_loop(zero, end, several, [], whole(vectors))

                def repeated(position: Any, _: list[Any]) -> list[Any]:
                    return whole(1)(ops.index_op("arith.minui", position, last), [])

                create_loop(end, trips, one, [], repeated)

            is_short = ops.compare(ULT, trips, one)
            short = functools.partial(create_loop, zero, trips, one, [], rest)
            ops.create_either(is_short, short, all_vectors)
            return []

        end = _round_down(trips, vectors * LANES)
        carried = create_loop(zero, end, several, carried, whole(vectors))
        last = _round_down(trips, LANES)
        if vectors > 1:
            carried = create_loop(end, last, one, carried, whole(1))
        if known is not None and known % LANES == 0:
            return carried
        # It has at most one iteration.
        return create_loop(last, trips, one, carried, rest)

    def _is_inside(self, position: Any) -> Any:
        """Whether all guards hold for the vector of columns at a position."""
        first, last = (
            induction_values([self._inner], _add(position, number))[0] for number in (0, LANES - 1)
        )
        found = [
            guard.holds(first, last, lambda value: self._values.get(value, value))
            for guard in self._guards
        ]
        return functools.reduce(functools.partial(ops.binary, "arith.andi"), found)

    def _vectors(
        self,
        variables: list[Any],
        starts: Sequence[Any],
        carried: Sequence[Any],
        mask: Any | None,
        *,
        inside: bool = False,
    ) -> list[Any]:
        """The body for the vectors of columns that begin at `starts`, each operation for all of
        them. `inside`: all guards hold."""
        columns = self._columns
        copies = []
        for start in starts:
            (column,) = induction_values([self._inner], start)
            named = zip(columns.variables, [*variables, column], strict=True)
            known = [guard.condition for guard in self._guards] if inside else []
            copies.append(LaneBody(self._kinds, self._values | dict(named), mask, known))
        compute(copies, columns.body)
        return [
            value
            for one, old in zip(copies, _parts(carried, len(starts)), strict=True)
            for partials, before in zip(self._partials, self._by_accumulator(old), strict=True)
            for value in partials.add(before, one.vector(partials.accumulator.value), mask)
        ]


def _parts(values: Sequence[Any], count: int) -> list[Sequence[Any]]:
    """Splits the values into `count` parts of equal length."""
    size = len(values) // count
    return [values[i * size : (i + 1) * size] for i in range(count)]


# --- Indices ---


def _add(index: Any, offset: int) -> Any:
    return ops.index_op("arith.addi", index, ops.constant_index(offset)) if offset else index


def _round_down(count: Any, step: int) -> Any:
    """The largest multiple of `step` that is at most `count`."""
    known = ops.known_index(count)
    if known is not None:
        return ops.constant_index(known - known % step)
    rest = ops.index_op("arith.remui", count, ops.constant_index(step))
    return ops.index_op("arith.subi", count, rest)
