"""Exchanges and special registers of the nvvm dialect, besides the gpu dialect's exchanges.

The mask of an operation has the lanes that must execute it. Here, the lanes that do execute it take
part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aotc import ops
from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import (
    constant,
    create,
    defining,
    enumerator,
    integer,
    select,
    unary,
    walk,
    with_element_type,
)
from aotc.rewrites.reductions import Clusters, named_combiner
from aotc.targets.cpu import build
from aotc.targets.cpu.expand.addresses import to_i64
from aotc.targets.cpu.expand.reduce import reduce_block, reduce_clusters
from aotc.targets.cpu.expand.shuffles import (
    exchange,
    gather_bits,
    present_lanes,
    select_source,
)
from aotc.targets.cpu.expand.slots import Slots
from aotc.targets.cpu.synchronize import arrive, barrier, named_sync, warp_sync

if TYPE_CHECKING:
    from aotc.targets.cpu.thread_function import Ids

_ALL_LANES = 0xFFFFFFFF
_LOW_BITS = WARP - 1
_SEQUENTIALLY_CONSISTENT = 7  # LLVM's AtomicOrdering
# The position of the segment mask in the last operand of a shuffle: the lane's bits that are kept.
_SEGMENT_SHIFT = 8
INITIALIZATION = "gpu.initialize_named_barrier"
BARRIER_NUMBER = "aotc_barrier"
_MAX_NAMED_BARRIERS = 15


def _kind(operation: Any) -> str:
    """The kind of an operation, such as `bfly` for #nvvm<shfl_kind bfly>."""
    return enumerator(operation.attributes["kind"])


def _extend(value: Any) -> Any:
    return unary("arith.extui", value, integer(64))


def _replace(operation: Any, *values: Any) -> None:
    """Replaces the result, by a struct if there are several values."""
    result = operation.results[0]
    whole = values[0]
    if str(result.type).startswith("!llvm.struct"):
        whole = create("llvm.mlir.undef", results=[result.type]).result
        for number, value in enumerate(values):
            whole = create(
                "llvm.insertvalue",
                [whole, value],
                [result.type],
                {"position": ir.DenseI64ArrayAttr.get([number])},
            ).result
    result.replace_all_uses_with(whole)


def _shuffle(operation: Any, ids: Ids) -> None:
    _, value, offset, packed = operation.operands
    mode = _kind(operation)
    lane = to_i64(ids.lane)
    packed = _extend(packed)
    bits = build.number(_LOW_BITS)
    shifted = build.integer_op("lshr", packed, build.number(_SEGMENT_SHIFT))
    segment = build.integer_op("and", shifted, bits)
    clamped = build.integer_op("and", packed, build.integer_op("xor", segment, bits))
    limit = build.integer_op(
        "or",
        build.integer_op("and", lane, segment),
        build.integer_op("and", clamped, bits),
    )
    source, is_valid = select_source(mode, lane, _extend(offset), limit, segment)
    _replace(operation, exchange(value, source, ids), is_valid)


def _vote(operation: Any, ids: Ids) -> None:
    mask, condition = operation.operands
    kind = _kind(operation)
    zero = constant(mask.type, 0)

    def votes(condition: Any) -> Any:
        return build.integer_op("and", gather_bits(condition, ids), mask)

    if kind == "ballot":
        _replace(operation, votes(condition))
        return
    others = build.integer_op("xor", condition, constant(integer(1), 1))
    if kind == "any":
        _replace(operation, build.compare(build.NE, votes(condition), zero))
        return
    is_all = build.compare(build.EQ, votes(others), zero)
    if kind == "uni":
        is_none = build.compare(build.EQ, votes(condition), zero)
        is_all = build.integer_op("or", is_all, is_none)
    _replace(operation, is_all)


def _match(operation: Any, ids: Ids) -> None:
    mask, value = operation.operands
    present = build.integer_op("and", present_lanes(ids), mask)
    slots = Slots(ids.slots, value.type)
    warp_sync()
    slots.store(value, to_i64(ids.lane))
    warp_sync()
    row = slots.load_row(build.number(0), WARP, 1)
    flags = create(
        "llvm.icmp",
        [row, unary("vector.broadcast", value, row.type)],
        [with_element_type(row.type, integer(1))],
        {"predicate": ir.IntegerAttr.get(integer(64), build.EQ)},
    ).result
    same = ops.unary("llvm.bitcast", flags, integer(32))
    same = build.integer_op("and", same, present)
    if _kind(operation) == "any":
        _replace(operation, same)
        return
    all_same = build.compare(build.EQ, same, present)
    _replace(operation, select(all_same, same, constant(same.type, 0)), all_same)


_REDUCTIONS = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "min": "minsi",
    "max": "maxsi",
    "umin": "minui",
    "umax": "maxui",
}


def _reduce(operation: Any, ids: Ids) -> None:
    kind = _REDUCTIONS[_kind(operation)]
    whole = Clusters(WARP, 1)
    _replace(operation, reduce_clusters(operation.operands[0], whole, kind, ids))


# Reductions of the number 1 or 0 that says whether a thread's predicate is not 0.
_BARRIER_REDUCTIONS = {"and": "minui", "or": "maxui", "popc": "add"}


def _reduce_at_barrier(operation: Any, ids: Ids) -> None:
    kind = str(operation.attributes["reductionOp"]).rstrip(">").split("<")[-1].split()[-1]
    # The predicate follows the barrier's number, if there is one.
    predicate = operation.operands[len(operation.operands) - 1]
    holds = build.compare(build.NE, predicate, constant(predicate.type, 0))
    number = unary("arith.extui", holds, integer(32))
    combine = named_combiner(_BARRIER_REDUCTIONS[kind], number.type)
    _replace(operation, reduce_block(number, combine, True, ids))


def _barrier(operation: Any, ids: Ids) -> None:
    number, count = ops.operand_groups(operation)
    if not count:
        barrier()
        return
    _arrive(number, count[0], ids)
    named_sync()


def _arrive_alone(operation: Any, ids: Ids) -> None:
    *number, count = operation.operands
    _arrive(number, count, ids)


def _arrive(number: list[Any], count: Any, ids: Ids) -> None:
    """Arrives at the barrier with a number, by default barrier 0."""
    which = number[0] if number else constant(integer(32), 0)
    arrive([ids.block, to_i64(ids.linear), which, count])


def expand_gpu_barrier(operation: Any, ids: Ids) -> None:
    """Expands a gpu.barrier of a subgroup, of a named barrier's subgroups, or of the block."""
    if "scope" in operation.attributes and "subgroup" in str(operation.attributes["scope"]):
        warp_sync()
    elif len(operation.operands) > 0:
        initialization = operation.operands[0].owner
        number = constant(integer(32), initialization.attributes[BARRIER_NUMBER].value)
        warps = initialization.operands[0]
        count = build.integer_op("mul", warps, constant(integer(32), WARP))
        _arrive([number], count, ids)
        named_sync()
    else:
        barrier()


def number_barriers(function: Any) -> None:
    """Numbers the named barriers of a kernel, from 1 on, as on a GPU."""
    found = [op for op in walk(function) if op.name == INITIALIZATION]
    for number, operation in enumerate(found, 1):
        operation.attributes[BARRIER_NUMBER] = ir.IntegerAttr.get(integer(32), number)


def _elect(operation: Any, ids: Ids) -> None:
    """Elects the first lane of those that execute it."""
    lanes = present_lanes(ids)
    for mask in operation.operands:
        lanes = build.integer_op("and", lanes, mask)
    first = unary("math.cttz", lanes, integer(32))
    _replace(operation, build.compare(build.EQ, first, _narrow(ids.lane)))


def _narrow(value: Any) -> Any:
    return unary("arith.index_cast", value, integer(32))


def _register(find: Callable[[Ids], Any]) -> Callable[[Any, Ids], None]:
    """The expansion of a special register whose value `find` returns, as an index or an i32."""

    def expand(operation: Any, ids: Ids) -> None:
        value = find(ids)
        _replace(operation, _narrow(value) if isinstance(value.type, ir.IndexType) else value)

    return expand


def _id_register(name: str, dimension: int) -> Callable[[Any, Ids], None]:
    return _register(lambda ids: getattr(ids, name)[dimension])


def _mask_register(base: int, past: int, *, others: bool = False) -> Callable[[Any, Ids], None]:
    """The expansion of a lane mask register: `base`, shifted left by the lane's number + `past`.

    With `others`, the bits are inverted.
    """

    def find(ids: Ids) -> Any:
        count = build.add(to_i64(ids.lane), build.number(past))
        moved = build.integer_op("shl", build.number(base), count)
        bits = unary("arith.trunci", moved, integer(32))
        return build.integer_op("xor", bits, constant(bits.type, _ALL_LANES)) if others else bits

    return _register(find)


def _fence() -> None:
    """A sequentially consistent fence, for any scope: the blocks of a grid run on several cores."""
    ordering = ir.IntegerAttr.get(integer(64), _SEQUENTIALLY_CONSISTENT)
    create("llvm.fence", attributes={"ordering": ordering})


_SREG = "nvvm.read.ptx.sreg."
_ID_REGISTERS = {
    "tid": "thread_id",
    "ctaid": "block_id",
    "ntid": "block_dim",
    "nctaid": "grid_dim",
}

NVVM: dict[str, Callable[[Any, Ids], None]] = {
    **{
        f"{_SREG}{register}.{letter}": _id_register(name, dimension)
        for register, name in _ID_REGISTERS.items()
        for dimension, letter in enumerate("xyz")
    },
    f"{_SREG}laneid": _register(lambda ids: ids.lane),
    f"{_SREG}warpsize": _register(lambda ids: constant(integer(32), WARP)),
    f"{_SREG}lanemask.eq": _mask_register(1, 0),
    f"{_SREG}lanemask.ge": _mask_register(_ALL_LANES, 0),
    f"{_SREG}lanemask.gt": _mask_register(_ALL_LANES, 1),
    f"{_SREG}lanemask.lt": _mask_register(_ALL_LANES, 0, others=True),
    f"{_SREG}lanemask.le": _mask_register(_ALL_LANES, 1, others=True),
    "nvvm.shfl.sync": _shuffle,
    "nvvm.vote.sync": _vote,
    "nvvm.match.sync": _match,
    "nvvm.redux.sync": _reduce,
    "nvvm.bar.warp.sync": lambda operation, ids: warp_sync(),
    "nvvm.barrier": _barrier,
    "nvvm.barrier.arrive": _arrive_alone,
    # The operation that waits at the barrier has its number.
    INITIALIZATION: lambda operation, ids: None,
    "nvvm.barrier.reduction": _reduce_at_barrier,
    "nvvm.elect.sync": _elect,
    "nvvm.memory.barrier": lambda operation, ids: _fence(),
}


def _check_gpu_barrier(operation: Any, _: dict[str, Any]) -> str | None:
    for named in operation.operands:
        owner = defining(named)
        if owner is None or owner.name != INITIALIZATION:
            return "it does not say by itself which barrier it is"
    return None


def _check_initialization(operation: Any, _: dict[str, Any]) -> str | None:
    if operation.parent.name != "gpu.func":
        return "named barriers are initialized by the kernel itself"
    count = sum(op.name == INITIALIZATION for op in walk(operation.parent))
    if count > _MAX_NAMED_BARRIERS:
        return f"a block has at most {_MAX_NAMED_BARRIERS} named barriers"
    return None


def _check_redux(operation: Any, _: dict[str, Any]) -> str | None:
    if _kind(operation) not in _REDUCTIONS:
        return "reductions of floats by redux have no CPU form; use gpu.subgroup_reduce"
    if not _is_all_lanes(operation.operands[1]):
        return "a mask other than the constant -1 has no CPU form here"
    return None


def _is_all_lanes(mask: Any) -> bool:
    owner = defining(mask)
    if owner is None or owner.name not in ("arith.constant", "llvm.mlir.constant"):
        return False
    value = owner.attributes["value"]
    return isinstance(value, ir.IntegerAttr) and value.value & _ALL_LANES == _ALL_LANES


NVVM_CHECKS: dict[str, Callable[[Any, dict[str, Any]], str | None]] = {
    "nvvm.redux.sync": _check_redux,
    "gpu.barrier": _check_gpu_barrier,
    INITIALIZATION: _check_initialization,
}
