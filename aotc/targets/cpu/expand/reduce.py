"""Reductions over a warp, a cluster of its lanes, or a block → tree reductions.

One lane combines the values of its warp or cluster; the first thread combines those of a block.
Neighbours are combined first, then the results of neighbouring pairs, and so on, with the lower
lane's value on the left. This is the order of a GPU, so that float sums are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import (
    binary,
    compare,
    constant_from,
    constant_index,
    create_for,
    create_if,
    element_type,
    extract,
    index,
    integer,
    select,
    unary,
)
from aotc.rewrites.reductions import (
    Clusters,
    Combine,
    clusters_of,
    combiner,
    is_named,
    kind_of,
    named_combiner,
    neutral_bits,
)
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.expand.slots import (
    WARP_BYTES,
    Slots,
    join,
    lane_count,
    leaders,
    shuffle,
    split,
    thread_count,
    warp_count,
)
from aotc.targets.cpu.synchronize import barrier, warp_sync

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids

_EQ = 0


def _subgroup_reduce(operation: Any, ids: Ids) -> None:
    clusters = clusters_of(operation, WARP)
    result = reduce_clusters(operation.operands[0], clusters, kind_of(operation), ids)
    operation.results[0].replace_all_uses_with(result)


def reduce_clusters(value: Any, clusters: Clusters, kind: str, ids: Ids) -> Any:
    """The combination of the values of this lane's cluster."""
    if clusters.size == 1:
        return value
    combine = named_combiner(kind, value.type)
    pieces = [_reduce_piece(piece, clusters, kind, combine, ids) for piece in split(value)]
    return join(pieces, value.type)


def _reduce_piece(value: Any, clusters: Clusters, kind: str, combine: Combine, ids: Ids) -> Any:
    """One lane of each cluster combines its values, and stores the result to the cluster's slots.

    For integers, lanes that do not execute the operation contribute the neutral element, as
    `redux.sync` leaves them out. Floats have no neutral element (-0, NaN): all lanes of the block's
    threads must execute it.
    """
    lane = to_i64(ids.lane)
    first = build.number(0)
    if clusters.span < WARP or clusters.stride > 1:
        first = build.integer_op("and", lane, build.number(~clusters.member_bits))
    slots = Slots(ids.slots, value.type)
    element = element_type(value.type)
    warp_sync()
    count = None
    if isinstance(element, ir.IntegerType):
        slots.fill(neutral_bits(kind, element.width))
        warp_sync()
        # The leader is any of the executing lanes: the last one that stores its number.
        leaders(ids).store(unary("arith.trunci", lane, integer(8)), first)
        slots.store(value, lane)
        warp_sync()
        leader = unary("arith.extui", leaders(ids).load(first), integer(64))
    else:
        slots.store(value, lane)
        warp_sync()
        leader = first
        count = build.integer_op("sub", lane_count(ids), first)
    create_if(
        build.compare(build.EQ, lane, leader),
        lambda: slots.store(_combine_row(slots, first, clusters, combine, count), first),
    )
    warp_sync()
    return slots.load(first)


def _combine_row(
    slots: Slots, first: Any, clusters: Clusters, combine: Combine, count: Any | None
) -> Any:
    """The combination of a cluster's elements, as a tree: all pairs of a level in one vector.

    If there is a `count`, elements from `first + count` on do not exist.
    """
    type_ = slots.type
    width = type_.shape[0] if isinstance(type_, ir.VectorType) else 1
    row = slots.load_row(first, clusters.size, clusters.stride)
    limit = None if count is None else unary("arith.trunci", count, integer(32))
    remaining, distance = clusters.size, clusters.stride
    while remaining > 1:
        remaining //= 2
        left, right = (
            shuffle(
                row, [(2 * n + side) * width + e for n in range(remaining) for e in range(width)]
            )
            for side in range(2)
        )
        row = combine(left, right)
        if limit is not None:
            places = [(2 * n + 1) * distance for n in range(remaining) for _ in range(width)]
            row = select(_smaller_than(places, limit), row, left)
        distance *= 2
    if width > 1:
        return row
    scalar = extract(row, 0)
    return scalar if scalar.type == type_ else unary("vector.broadcast", scalar, type_)


def _smaller_than(places: list[int], limit: Any) -> Any:
    """A vector of i1: whether each of `places` is smaller than `limit`."""
    type_ = ir.VectorType.get([len(places)], limit.type)
    numbers = ir.DenseElementsAttr.get(
        [ir.IntegerAttr.get(limit.type, place) for place in places], type=type_
    )
    left = constant_from(numbers)
    right = unary("vector.broadcast", limit, type_)
    return compare(build.SLT, left, right)


def _all_reduce(operation: Any, ids: Ids) -> None:
    result = reduce_block(operation.operands[0], combiner(operation), is_named(operation), ids)
    operation.results[0].replace_all_uses_with(result)


def reduce_block(value: Any, combine: Combine, takes_vectors: bool, ids: Ids) -> Any:
    """The combination of the values of all threads of the block."""
    slots = Slots(ids.slots, value.type)
    warp_sync()
    slots.store(value, to_i64(ids.lane))
    barrier()
    is_first = _and(*(compare(_EQ, number, constant_index(0)) for number in ids.thread_id))
    create_if(is_first, lambda: _combine_block(value.type, combine, ids, takes_vectors))
    barrier()
    return slots.load(build.number(0))


def _and(first: Any, *others: Any) -> Any:
    for other in others:
        first = binary("arith.andi", first, other)
    return first


def _combine_block(type_: Any, combine: Combine, ids: Ids, takes_vectors: bool) -> None:
    """Combines the values of each warp into an element of the first warp's slots, and then these.

    The result is stored to the slots of each warp, so that no barrier is needed after it is read.
    """
    warps, threads = warp_count(ids), thread_count(ids)
    results = Slots(ids.block_slots, type_)

    def combine_warp(number: Any) -> None:
        # A result overwrites a value of the first warp only after that warp is combined.
        warp = to_i64(number)
        is_last = build.compare(build.EQ, warp, warps)
        own = build.at(ids.block_slots, build.multiply(warp, build.number(WARP_BYTES)))
        slots = Slots(select(is_last, ids.block_slots, own), type_)
        before = build.multiply(warp, build.number(WARP))
        lanes = build.smaller(build.integer_op("sub", threads, before), build.number(WARP))
        count = select(is_last, warps, lanes)
        if takes_vectors:
            whole = Clusters(WARP, 1)
            total = _combine_row(slots, build.number(0), whole, combine, count)
        else:
            _combine_in_place(slots, combine, count)
            total = slots.load(build.number(0))
        results.store(total, select(is_last, build.number(0), warp))

    end = unary("arith.index_cast", build.add(warps, build.number(1)), index())
    create_for(constant_index(0), end, constant_index(1), combine_warp)
    result = results.load(build.number(0))

    def tell_warp(number: Any) -> None:
        place = build.multiply(to_i64(number), build.number(WARP_BYTES))
        Slots(build.at(ids.block_slots, place), type_).store(result, build.number(0))

    end = unary("arith.index_cast", warps, index())
    create_for(constant_index(1), end, constant_index(1), tell_warp)


def _combine_in_place(slots: Slots, combine: Combine, count: Any) -> None:
    """Combines the first `count` elements in place, as a tree; the result is the first element."""

    def level(number: Any) -> None:
        distance = build.integer_op("shl", build.number(1), to_i64(number))
        end = unary("arith.index_cast", build.integer_op("sub", count, distance), index())
        step = unary("arith.index_cast", build.add(distance, distance), index())

        def pair(place: Any) -> None:
            left = to_i64(place)
            value = combine(slots.load(left), slots.load(build.add(left, distance)))
            slots.store(value, left)

        create_for(constant_index(0), end, step, pair)

    levels = WARP.bit_length() - 1
    create_for(constant_index(0), constant_index(levels), constant_index(1), level)


REDUCTIONS: dict[str, Callable[[Any, Ids], None]] = {
    "gpu.subgroup_reduce": _subgroup_reduce,
    "gpu.all_reduce": _all_reduce,
}
