"""gpu.subgroup_reduce, gpu.all_reduce → butterfly shuffles, in the same order for all of them.

Lanes combine in pairs: each with the lane at distance 1, then 2, 4, 8 and 16. So floats are summed
as a balanced tree over the lanes, in their own type: narrow ones are rounded at each step. A block
is reduced by each warp first, and then by the first warp over the warps' results, in the same way.
The CPU device uses this order, so that both give the same bits.

The last warp of a block may have fewer lanes. A step is skipped if the partner does not exist. The
first lane's result is correct, as it only lacks values that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aotc import ops
from aotc.attributes import WITHOUT_REDUX
from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import binary, compare, create, integer, symbol_of, unary
from aotc.rewrites.reductions import (
    Clusters,
    Combine,
    clusters_of,
    combiner,
    kind_of,
    named_combiner,
)
from aotc.targets.cuda.lanes import (
    ALL_LANES,
    can_move,
    i32,
    lane_id,
    move,
    shuffle,
)
from aotc.targets.cuda.threads import (
    as_index,
    known_threads,
    linear_id,
    thread_count,
    warp_count,
    warp_of,
)

# Predicates of arith.cmpi.
_EQ, _ULT = 0, 6

# Whether the lane at an offset (by exclusive or) exists. None: all lanes exist.
HasPartner = Callable[[int], Any] | None

# Kind → the kind of `redux.sync`, which reduces 32 bits in one instruction. It has no products.
_REDUX_KINDS = {
    "add": "add",
    "minui": "umin",
    "minsi": "min",
    "maxui": "umax",
    "maxsi": "max",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_REDUX_WIDTH = 32

_SLOTS = "aotc_all_reduce"
_MOST_WARPS = 32
_RESULT = _MOST_WARPS


def expand_subgroup_reduce(operation: Any) -> Sequence[Any] | None:
    """Expands the reduction of a warp, or of each cluster of its lanes. Every lane gets the
    result."""
    (value,) = operation.operands
    if not can_move(value.type):
        return None
    clusters, kind = clusters_of(operation, WARP), kind_of(operation)
    module = ops.enclosing(operation, "gpu.module")
    has_redux = module is None or WITHOUT_REDUX not in module.attributes
    if has_redux and clusters.size == WARP and kind in _REDUX_KINDS and _fits_redux(value.type):
        return [_redux(kind, value)]
    has_partner = _in_block(operation)
    combine = named_combiner(kind, value.type)
    reduced = _butterfly(value, combine, clusters, has_partner)
    if has_partner is None:
        return [reduced]
    first = binary("arith.andi", lane_id(), i32(~clusters.member_bits))
    return [move(reduced, lambda word: shuffle("idx", word, first))]


def _fits_redux(type_: Any) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width <= _REDUX_WIDTH


def _redux(kind: str, value: Any) -> Any:
    """Reduces among the lanes that have not ended, so that a partial warp needs no other code."""
    type_, word = value.type, integer(_REDUX_WIDTH)
    if type_ != word:
        extension = "arith.extsi" if kind in ("minsi", "maxsi") else "arith.extui"
        value = unary(extension, value, word)
    attributes = {"kind": ir.Attribute.parse(f"#nvvm<reduction_kind {_REDUX_KINDS[kind]}>")}
    reduced = create("nvvm.redux.sync", [value, i32(ALL_LANES)], [word], attributes).result
    return reduced if type_ == word else unary("arith.trunci", reduced, type_)


def expand_all_reduce(operation: Any) -> Sequence[Any] | None:
    """Expands the reduction of a block, through a slot of workgroup memory for each warp.

    The result has its own slot, so that two barriers are enough even in a loop. The slots are
    written again after the first warp has read them, which is before the second barrier. The result
    is written again after all have read it, which is before the next first barrier.
    """
    (value,) = operation.operands
    if not can_move(value.type):
        return None
    combine = combiner(operation)
    known = known_threads(operation)
    lane, warp = lane_id(), warp_of(linear_id())
    warps = warp_count(thread_count() if known is None else i32(known))
    slots = _get_slots(operation, value.type)
    is_first_lane = compare(_EQ, lane, i32(0))

    reduced = _butterfly(value, combine, Clusters(WARP, 1), _in_block(operation))
    ops.create_if(is_first_lane, lambda: _store(reduced, slots, warp))
    create("gpu.barrier")

    def reduce_slots() -> None:
        # The first warp has at least as many lanes as the block has warps. Lanes without a slot of
        # their own read the last one; their results are not used.
        last = binary("arith.subi", warps, i32(1))
        own = _load(slots, binary("arith.minui", lane, last))
        most = _MOST_WARPS if known is None else -(-known // WARP)
        result = _butterfly(
            own,
            combine,
            Clusters(most, 1),
            lambda offset: compare(_ULT, binary("arith.xori", lane, i32(offset)), warps),
        )
        ops.create_if(is_first_lane, lambda: _store(result, slots, i32(_RESULT)))

    ops.create_if(compare(_EQ, warp, i32(0)), reduce_slots)
    create("gpu.barrier")
    return [_load(slots, i32(_RESULT))]


def _in_block(operation: Any) -> HasPartner:
    """A function: whether the partner's thread is in the block; None if all warps are full."""
    known = known_threads(operation)
    if known is not None and known % WARP == 0:
        return None
    linear = linear_id()
    count = thread_count() if known is None else i32(known)
    return lambda offset: compare(_ULT, binary("arith.xori", linear, i32(offset)), count)


def _butterfly(value: Any, combine: Combine, clusters: Clusters, has_partner: HasPartner) -> Any:
    """The combination of the values of a cluster's lanes.

    If partners may not exist, only the first lane's result is correct.
    """
    offset = clusters.stride
    while offset < clusters.span:
        partner = move(value, partial(shuffle, "bfly", operand=i32(offset)))
        if has_partner is None:
            value = combine(value, partner)
        else:
            value = _combine_if(has_partner(offset), combine, value, partner)
        offset *= 2
    return value


def _combine_if(condition: Any, combine: Combine, value: Any, partner: Any) -> Any:
    """The combination if the condition holds, else `value`. (The combiner's region must not run on
    values that no lane has.)"""
    branch = create("scf.if", [condition], [value.type], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        create("scf.yield", [combine(value, partner)])
    with ir.InsertionPoint(branch.regions[1].blocks.append()):
        create("scf.yield", [value])
    return branch.result


def _get_slots(operation: Any, element: Any) -> Any:
    """Workgroup memory for a value of each warp and for the result. All uses share it."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    type_ = ir.MemRefType.get([_MOST_WARPS + 1], element, memory_space=space)
    name = ir.FlatSymbolRefAttr.get(_slots_name(operation, type_))
    return create("memref.get_global", results=[type_], attributes={"name": name}).result


def _slots_name(operation: Any, type_: Any) -> str:
    """The name of the global of this type in the operation's gpu.module; adds it if necessary."""
    gpu_module = ops.enclosing(operation, "gpu.module")
    assert gpu_module is not None, "kernels are in a gpu.module"
    body = gpu_module.regions[0].blocks[0]
    symbols = {symbol_of(op.operation): op.operation for op in body.operations}
    name = f"{_SLOTS}_{type_.element_type}"
    while name in symbols:
        if _SLOTS in symbols[name].attributes:
            return name
        name += "_"
    with ir.InsertionPoint.at_block_begin(body):
        create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(type_),
                "initial_value": ir.UnitAttr.get(),
                # Distinguishes it from a symbol of the input with this name.
                _SLOTS: ir.UnitAttr.get(),
            },
        )
    return name


def _store(value: Any, slots: Any, number: Any) -> None:
    create("memref.store", [value, slots, as_index(number)])


def _load(slots: Any, number: Any) -> Any:
    return ops.load(slots, [as_index(number)])
