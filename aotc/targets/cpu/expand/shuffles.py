"""The primitives of all exchanges between the lanes of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aotc.chips import WARP
from aotc.ops import constant, integer, select, unary
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.expand.slots import Slots, join, lane_count, split
from aotc.targets.cpu.synchronize import warp_sync

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def exchange(value: Any, source: Any, ids: Ids) -> Any:
    """The value of lane `source` (an i64); this lane's own value if there is no such lane."""
    lane = to_i64(ids.lane)
    exists = build.compare(build.ULT, source, lane_count(ids))
    source = select(exists, source, lane)
    pieces = []
    for piece in split(value):
        slots = Slots(ids.slots, piece.type)
        warp_sync()
        slots.store(piece, lane)
        warp_sync()
        pieces.append(slots.load(source))
    return join(pieces, value.type)


def select_source(
    mode: str, lane: Any, offset: Any, limit: Any, segment: Any = None
) -> tuple[Any, Any]:
    """The lane that `shfl.sync` reads, and whether it is in range, by the formulas of the PTX
    manual.

    All values are i64. `limit` is the last lane that may be read (the first one for `up`).
    `segment` are the bits of the lane's number that are kept. An out-of-range source becomes the
    lane itself.
    """
    five_bits = build.number(WARP - 1)
    offset = build.integer_op("and", offset, five_bits)
    if mode == "up":
        source = build.integer_op("sub", lane, offset)
        is_valid = build.compare(build.SGE, source, limit)
    else:
        if mode == "idx":
            source = offset
            if segment is not None:
                others = build.integer_op("xor", segment, five_bits)
                own = build.integer_op("and", lane, segment)
                source = build.integer_op("or", own, build.integer_op("and", offset, others))
        else:
            source = build.integer_op("add" if mode == "down" else "xor", lane, offset)
        is_valid = build.compare(build.SLE, source, limit)
    return select(is_valid, source, lane), is_valid


def gather_bits(condition: Any, ids: Ids) -> Any:
    """An i32 whose bit i is lane i's `condition` (an i1); 0 for lanes that do not execute it."""
    slots = Slots(ids.slots, condition.type)
    warp_sync()
    slots.fill(0)
    warp_sync()
    slots.store(condition, to_i64(ids.lane))
    warp_sync()
    flags = slots.load_row(build.number(0), WARP, 1)
    return unary("llvm.bitcast", flags, integer(32))


def present_lanes(ids: Ids) -> Any:
    """An i32 with a bit for each lane that executes it."""
    return gather_bits(constant(integer(1), 1), ids)
