"""Iteration of the threads of a row or block over a loop's points, in strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.lower.mapping.build import create_loop
from aotc.lower.mapping.columns import Columns
from aotc.lower.mapping.nest import induction_values, product
from aotc.mlir import ir
from aotc.rewrites.cloning import copy_interleaved


class Team(Struct, frozen=True):
    """Groups of `width` adjacent threads; there are `teams` groups. This is thread `thread` of
    group `team`.

    With a single group, `team` and `teams` are None. Each thread computes `points` points at a
    time. `width` is a value if the host chooses it. Unless `has_points` (None: always) holds, there
    are no points.
    """

    width: Any
    points: int
    thread: Any
    team: Any = None
    teams: Any = None
    has_points: Any = None


def reduce_in_strides(columns: Columns, team: Team, values: dict[Any, Any]) -> list[Any]:
    """Creates the thread's share of a loop's points, and returns the thread's partial results.

    Each group of threads processes `points` times its width at once, and then skips the points of
    the other groups. The remainder is processed one point per thread at a time. So point p always
    belongs to thread p % width.
    """
    dimensions = columns.dimensions(values)
    count, known = product(dimensions), columns.known_count
    if team.has_points is not None:
        count, known = ops.select(team.has_points, count, ops.constant_index(0)), None
    is_fixed = isinstance(team.width, int)
    chunk = team.width * team.points if is_fixed else _times(team.width, team.points)
    neutral = [a.neutral() for a in columns.accumulators]
    number = len(neutral)

    def run(positions: Sequence[Any], carried: Sequence[Any]) -> list[Any]:
        copies = []
        for position in positions:
            variables = induction_values(dimensions, position)
            copies.append(values | dict(zip(columns.variables, variables, strict=True)))
        copy_interleaved(columns.body, copies)
        return [
            accumulator.combine(
                carried[p * number + i], copy.get(accumulator.value, accumulator.value)
            )
            for p, copy in enumerate(copies)
            for i, accumulator in enumerate(columns.accumulators)
        ]

    partial = neutral
    whole = ops.constant_index(0)
    if known is None or known >= chunk:
        width = ops.constant_index(chunk) if is_fixed else chunk
        whole = _rounded_down(count, known, width)
        start, stride = ops.constant_index(0), width
        if team.team is not None:
            start = ops.index_op("arith.muli", team.team, width)
            stride = ops.index_op("arith.muli", team.teams, width)

        def several(base: Any, carried: list[Any]) -> list[Any]:
            first = ops.index_op("arith.addi", base, team.thread)
            return run(_apart(first, team.width, team.points), carried)

        partials = create_loop(start, whole, stride, neutral * team.points, several)
        partial = [
            combine_all(accumulator, partials[i::number])
            for i, accumulator in enumerate(columns.accumulators)
        ]
    if known is None or known % chunk != 0:
        start = team.thread
        stride = ops.constant_index(team.width) if is_fixed else team.width
        if team.team is not None:
            start = ops.index_op("arith.addi", ops.index_op("arith.muli", team.team, stride), start)
            stride = ops.index_op("arith.muli", team.teams, stride)
        start = ops.index_op("arith.addi", whole, start)
        partial = create_loop(start, count, stride, partial, lambda at, c: run([at], c))
    return partial


def combine_all(accumulator: Any, values: Sequence[Any]) -> Any:
    """The combination of several partial results, as a balanced tree."""
    level = list(values)
    while len(level) > 1:
        pairs = [accumulator.combine(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def combine_lanes(
    accumulators: Sequence[Any], values: Sequence[Any], log_lanes: Any, width: int
) -> list[Any]:
    """Combines the values of 2**`log_lanes` adjacent lanes of a warp of `width` lanes by a
    butterfly; each lane gets the results."""
    i32, bit, lanes = ops.integer(32), ops.integer(1), ops.constant(ops.integer(32), width)
    zero, one = ops.constant_index(0), ops.constant_index(1)
    # Shuffles exchange words.
    words = [ops.unary("arith.extui", v, i32) if v.type == bit else v for v in values]

    def step(number: Any, carried: list[Any]) -> list[Any]:
        distance = ops.unary("arith.index_cast", ops.index_op("arith.shli", one, number), i32)
        return [
            accumulator.combine(value, _from_lane(value, distance, lanes))
            for accumulator, value in zip(accumulators, carried, strict=True)
        ]

    found = create_loop(zero, log_lanes, one, words, step)
    return [
        ops.unary("arith.trunci", word, bit) if value.type == bit else word
        for word, value in zip(found, values, strict=True)
    ]


def _from_lane(value: Any, distance: Any, width: Any) -> Any:
    attributes = {"mode": ir.Attribute.parse("#gpu<shuffle_mode xor>")}
    results = [value.type, ops.integer(1)]
    return ops.create("gpu.shuffle", [value, distance, width], results, attributes).results[0]


def _rounded_down(count: Any, known: int | None, unit: Any) -> Any:
    size = ops.known_index(unit)
    if known is not None and size is not None:
        return ops.constant_index(known // size * size)
    # `unit` need not be a power of two, as the block size may be requested.
    return ops.index_op("arith.subi", count, ops.index_op("arith.remui", count, unit))


def _apart(first: Any, size: Any, points: int) -> list[Any]:
    """`first` and the next positions, `size` apart."""
    return [
        first if i == 0 else ops.index_op("arith.addi", first, _times(size, i))
        for i in range(points)
    ]


def _times(size: Any, count: int) -> Any:
    if isinstance(size, int):
        return ops.constant_index(size * count)
    return ops.index_op("arith.muli", size, ops.constant_index(count))
