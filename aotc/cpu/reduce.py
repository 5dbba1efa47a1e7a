"""Reductions over a warp, parts of it, or a block → trees of combinations.

Every lane finds its warp's result from all the lanes' values; the threads' values of a block
are combined by its first thread. The order is that of `aotc.lower.reductions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.cpu import build
from aotc.cpu.addresses import to_i64
from aotc.cpu.shuffles import select
from aotc.cpu.slots import (
    WARP_BYTES,
    Slots,
    join,
    lane_count,
    shuffle,
    split,
    thread_count,
    warp_count,
)
from aotc.cpu.synchronize import WARP_SIZE, barrier, warp_sync
from aotc.lower.reductions import (
    Clusters,
    Combine,
    clusters_of,
    combiner,
    is_named,
    kind_of,
    named_combiner,
)
from aotc.mlir import ir
from aotc.ops import (
    compare,
    constant_index,
    create,
    create_for,
    create_if,
    element_type,
    index,
    integer,
    unary,
    with_element_type,
)

if TYPE_CHECKING:
    from aotc.cpu.thread_function import Ids

_EQ = 0


def _subgroup_reduce(operation: Any, ids: Ids) -> None:
    value = operation.operands[0]
    clusters = clusters_of(operation, WARP_SIZE)
    combine = named_combiner(kind_of(operation), value.type)
    operation.results[0].replace_all_uses_with(reduce_clusters(value, clusters, combine, ids))


def reduce_clusters(value: Any, clusters: Clusters, combine: Combine, ids: Ids) -> Any:
    """Combines the values of this lane's cluster; `combine` takes vectors, too."""
    if clusters.size == 1:
        return value
    lane = to_i64(ids.lane)
    first = build.number(0)
    if clusters.span < WARP_SIZE or clusters.stride > 1:
        first = build.integer_op("and", lane, build.number(~clusters.member_bits))
    count = build.integer_op("sub", lane_count(ids), first)
    pieces = []
    for piece in split(value):
        slots = Slots(ids.slots, piece.type)
        slots.store(piece, lane)
        warp_sync()
        pieces.append(_combine_row(slots, first, clusters, combine, count))
        # Another lane must not overwrite what this one reads.
        warp_sync()
    return join(pieces, value.type)


def _combine_row(slots: Slots, first: Any, clusters: Clusters, combine: Combine, count: Any) -> Any:
    """The combination of a cluster's elements, as a tree; those from `first + count` on are none.

    All pairs of one level at once: as vectors.
    """
    type_ = slots.type
    width = type_.shape[0] if isinstance(type_, ir.VectorType) else 1
    row = slots.load_row(first, clusters.size, clusters.stride)
    narrow = unary("arith.trunci", count, integer(32))
    remaining, distance = clusters.size, clusters.stride
    while remaining > 1:
        remaining //= 2
        left, right = (
            shuffle(
                row, [(2 * n + side) * width + e for n in range(remaining) for e in range(width)]
            )
            for side in range(2)
        )
        places = [(2 * n + 1) * distance for n in range(remaining) for _ in range(width)]
        row = select(_smaller_than(places, narrow), combine(left, right), left)
        distance *= 2
    if width > 1:
        return row
    scalar = _extract_first(row)
    return scalar if scalar.type == type_ else unary("vector.broadcast", scalar, type_)


def _smaller_than(places: list[int], limit: Any) -> Any:
    """Which of some numbers are smaller than `limit`, as a vector of i1."""
    type_ = ir.VectorType.get([len(places)], limit.type)
    numbers = ir.DenseElementsAttr.get(
        [ir.IntegerAttr.get(limit.type, place) for place in places], type=type_
    )
    left = create("arith.constant", results=[type_], attributes={"value": numbers}).result
    right = unary("vector.broadcast", limit, type_)
    return create(
        "arith.cmpi",
        [left, right],
        [with_element_type(type_, integer(1))],
        {"predicate": ir.IntegerAttr.get(integer(64), build.SLT)},
    ).result


def _extract_first(vector: Any) -> Any:
    return create(
        "vector.extract",
        [vector],
        [element_type(vector.type)],
        {"static_position": ir.DenseI64ArrayAttr.get([0])},
    ).result


def _all_reduce(operation: Any, ids: Ids) -> None:
    value = operation.operands[0]
    combine = combiner(operation)
    Slots(ids.slots, value.type).store(value, to_i64(ids.lane))
    barrier()
    is_first = _and(*(compare(_EQ, number, constant_index(0)) for number in ids.thread_id))
    create_if(is_first, lambda: _combine_block(value.type, combine, ids, is_named(operation)))
    barrier()
    result = Slots(ids.block_slots, value.type).load(build.number(0))
    # Another thread must not overwrite what this one reads.
    barrier()
    operation.results[0].replace_all_uses_with(result)


def _and(first: Any, *others: Any) -> Any:
    for other in others:
        first = create("arith.andi", [first, other], [first.type]).result
    return first


def _combine_block(type_: Any, combine: Combine, ids: Ids, takes_vectors: bool) -> None:
    """Combines the values of each warp into an element of the first one's slots, then those."""
    warps, threads = warp_count(ids), thread_count(ids)
    results = Slots(ids.block_slots, type_)

    def combine_warp(number: Any) -> None:
        # By the time that a result overwrites a value of the first warp, that one is done.
        warp = to_i64(number)
        is_last = build.compare(build.EQ, warp, warps)
        own = build.at(ids.block_slots, build.multiply(warp, build.number(WARP_BYTES)))
        slots = Slots(select(is_last, ids.block_slots, own), type_)
        before = build.multiply(warp, build.number(WARP_SIZE))
        lanes = build.smaller(build.integer_op("sub", threads, before), build.number(WARP_SIZE))
        count = select(is_last, warps, lanes)
        if takes_vectors:
            whole = Clusters(WARP_SIZE, 1)
            total = _combine_row(slots, build.number(0), whole, combine, count)
        else:
            _combine_in_place(slots, combine, count)
            total = slots.load(build.number(0))
        results.store(total, select(is_last, build.number(0), warp))

    end = unary("arith.index_cast", build.add(warps, build.number(1)), index())
    create_for(constant_index(0), end, constant_index(1), combine_warp)


def _combine_in_place(slots: Slots, combine: Combine, count: Any) -> None:
    """Leaves the combination of the first `count` elements in the first one, as a tree."""

    def level(number: Any) -> None:
        distance = build.integer_op("shl", build.number(1), to_i64(number))
        end = unary("arith.index_cast", build.integer_op("sub", count, distance), index())
        step = unary("arith.index_cast", build.add(distance, distance), index())

        def pair(place: Any) -> None:
            left = to_i64(place)
            value = combine(slots.load(left), slots.load(build.add(left, distance)))
            slots.store(value, left)

        create_for(constant_index(0), end, step, pair)

    levels = WARP_SIZE.bit_length() - 1
    create_for(constant_index(0), constant_index(levels), constant_index(1), level)


REDUCTIONS: dict[str, Callable[[Any, Ids], None]] = {
    "gpu.subgroup_reduce": _subgroup_reduce,
    "gpu.all_reduce": _all_reduce,
}
