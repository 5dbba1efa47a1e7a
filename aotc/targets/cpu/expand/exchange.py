"""Operations through which the lanes of a warp exchange values → stores, synchronizations, loads.

`EXCHANGES` is the table. In a branch that only some lanes take, these exchange among themselves, as
do the lanes that are left if others have ended. Where a GPU defines the result in such cases, it is
the same here: ballots, the first active lane, integer reductions, and shuffles from active lanes.
Lanes that do not exist (in a block's last warp) have no value: a lane that reads one gets its own
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import enumerator, index, integer, unary
from aotc.rewrites.reductions import check_clusters
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.expand.nvvm import NVVM, NVVM_CHECKS
from aotc.targets.cpu.expand.reduce import REDUCTIONS
from aotc.targets.cpu.expand.shuffles import exchange, gather_bits, present_lanes, select_source
from aotc.targets.cpu.expand.slots import check_type, warp_count

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids


def _shuffle(operation: Any, ids: Ids) -> None:
    """Like shfl.sync among the first `width` lanes. The result is not valid in other lanes."""
    value, offset, width = operation.operands
    mode = enumerator(operation.attributes["mode"])
    lane = to_i64(ids.lane)
    width, offset = (unary("arith.extui", number, integer(64)) for number in (width, offset))
    last = build.integer_op("sub", width, build.number(1))
    limit = build.number(0) if mode == "up" else last
    source, is_valid = select_source(mode, lane, offset, limit)
    takes_part = build.compare(build.ULT, lane, width)
    is_valid = build.integer_op("and", is_valid, takes_part)
    _replace(operation, exchange(value, source, ids), is_valid)


def _rotate(operation: Any, ids: Ids) -> None:
    offset, width = (
        ir.IntegerAttr(operation.attributes[name]).value for name in ("offset", "width")
    )
    lane = to_i64(ids.lane)
    moved = build.add(lane, build.number(offset))
    inside = build.integer_op("and", moved, build.number(width - 1))
    segment = build.integer_op("and", lane, build.number(-width))
    is_valid = build.compare(build.SLT, lane, build.number(width))
    value = exchange(operation.operands[0], build.add(inside, segment), ids)
    _replace(operation, value, is_valid)


def _broadcast(operation: Any, ids: Ids) -> None:
    value, *lane = operation.operands
    number = lane[0] if lane else unary("math.cttz", present_lanes(ids), integer(32))
    source = build.integer_op(
        "and", unary("arith.extui", number, integer(64)), build.number(WARP - 1)
    )
    _replace(operation, exchange(value, source, ids))


def _ballot(operation: Any, ids: Ids) -> None:
    bits, type_ = gather_bits(operation.operands[0], ids), operation.results[0].type
    if type_ != bits.type:
        name = "arith.extui" if type_.width > WARP else "arith.trunci"
        bits = unary(name, bits, type_)
    _replace(operation, bits)


def _lane_id(operation: Any, ids: Ids) -> None:
    _replace(operation, ids.lane)


def _subgroup_id(operation: Any, ids: Ids) -> None:
    _replace(operation, ids.warp)


def _subgroup_size(operation: Any, _: Ids) -> None:
    _replace(operation, unary("arith.index_cast", build.number(WARP), index()))


def _num_subgroups(operation: Any, ids: Ids) -> None:
    _replace(operation, unary("arith.index_cast", warp_count(ids), index()))


def _replace(operation: Any, *values: Any) -> None:
    for result, value in zip(operation.results, values, strict=True):
        result.replace_all_uses_with(value)


def _check_value(operation: Any, _: dict[str, Any]) -> str | None:
    return check_type(operation.operands[0].type)


def _check_reduction(operation: Any, reached: dict[str, Any]) -> str | None:
    return _check_value(operation, reached) or check_clusters(operation, WARP)


EXCHANGES: dict[str, Callable[[Any, Ids], None]] = {
    "gpu.shuffle": _shuffle,
    "gpu.rotate": _rotate,
    "gpu.subgroup_broadcast": _broadcast,
    "gpu.ballot": _ballot,
    "gpu.lane_id": _lane_id,
    "gpu.subgroup_id": _subgroup_id,
    "gpu.subgroup_size": _subgroup_size,
    "gpu.num_subgroups": _num_subgroups,
    **REDUCTIONS,
    **NVVM,
}

# Operation → its check, as in `support`.
EXCHANGE_CHECKS: dict[str, Callable[[Any, dict[str, Any]], str | None]] = {
    "gpu.shuffle": _check_value,
    "gpu.rotate": _check_value,
    "gpu.subgroup_broadcast": _check_value,
    "gpu.all_reduce": _check_value,
    "gpu.subgroup_reduce": _check_reduction,
    **NVVM_CHECKS,
}
