"""Turns accumulators that are kept in memory into loop-carried values.

`for k { C[i, j] = C[i, j] + ... }` becomes a loop that carries the sum, with one load before it and
one store after it. This is faster, and makes the reduction visible to later steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, access_of, accesses_in, is_understood
from aotc.analysis.same_sizes import is_size_of
from aotc.lower.mapping.nest import known_trips
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of


def carry_accumulators(scope: Any, overlaps: Overlaps) -> None:
    """Changes the scf.for loops under `scope`, innermost first."""
    for loop in reversed(ops.find(scope, "scf.for")):
        current = loop
        while (found := _accumulator(current, overlaps)) is not None:
            current = _carry(current, *found)


def accumulates(loop: Any, overlaps: Overlaps) -> bool:
    """Whether an scf.for has an accumulator in memory."""
    return _accumulator(loop, overlaps, anywhere=True) is not None


def _accumulator(
    loop: Any, overlaps: Overlaps, *, anywhere: bool = False
) -> tuple[list[Access], Access] | None:
    """The loads and the store of an accumulator that the loop may carry; None if there is none.

    With `anywhere`, this includes an accumulator whose address may be invalid if the loop has no
    iterations.
    """
    if not is_understood(loop):
        return None
    inside = body_of(loop)
    everything = [a for op in inside for a in accesses_in(op)]
    for operation in inside:
        store = access_of(operation)
        if store is None or not store.writes or not _is_outside(store, loop):
            continue
        touching = [a for a in everything if overlaps.may_overlap(a.memref, store.memref)]
        loads = [a for a in touching if not a.writes]
        is_alone = len(touching) == len(loads) + 1
        if not loads or not is_alone or any(a.place != store.place for a in loads):
            continue
        at = {op: i for i, op in enumerate(inside)}
        if any(a.operation not in at or at[a.operation] > at[operation] for a in loads):
            continue
        if anywhere or _is_there(store, loop):
            return loads, store
    return None


def _is_outside(access: Access, loop: Any) -> bool:
    """Whether the accessed element is the same in each iteration."""
    return all(ops.is_made_outside(value, loop) for value in access.place)


def _is_there(access: Access, loop: Any) -> bool:
    """Whether the element may be accessed even if the loop has no iterations."""
    trips = known_trips(*list(loop.operands)[:3])
    if trips is not None and trips > 0:
        return True
    if any(earlier.place == access.place for earlier in _accesses_before(loop)):
        return True
    shape = ir.MemRefType(access.memref.type).shape
    return all(
        _is_within(index, size, (access.memref, axis))
        for axis, (index, size) in enumerate(zip(access.indices, shape, strict=True))
    )


def _accesses_before(loop: Any) -> Iterator[Access]:
    """The accesses that are executed before the loop in any case, in the loops around it, too."""
    for around in (loop, *ops.ancestors(loop)):
        if around.name not in ("scf.for", "scf.parallel"):
            return
        for operation in around.block.operations:
            if operation.operation == around:
                break
            access = access_of(operation.operation)
            if access is not None:
                yield access


def _is_within(index: Any, size: int, axis: tuple[Any, int]) -> bool:
    """Whether an index is known to be in bounds. `size` is negative if it is dynamic; `axis` is the
    memref and the dimension."""
    constant = ops.known_index(index)
    if constant is not None:
        return 0 <= constant < size
    if ops.defining(index) is not None:
        return False
    loop = index.owner.owner.operation
    if loop.name != "scf.parallel":
        return False
    lowers, uppers, _, _ = ops.operand_groups(loop)
    lower, upper = lowers[index.arg_number], uppers[index.arg_number]
    low, high = ops.known_index(lower), ops.known_index(upper)
    if low is None or low < 0:
        return False
    if high is not None:
        return 0 <= high <= size
    return is_size_of(upper, *axis)


def _carry(loop: Any, loads: Sequence[Access], store: Access) -> Any:
    """Replaces the loop by one that carries the accumulator, and returns it."""
    old = loop.regions[0].blocks[0]
    with loop.location, ir.InsertionPoint(loop):
        init = ops.create("memref.load", store.place, [loads[0].operation.results[0].type]).result
        types = [*(r.type for r in loop.results), init.type]
        made = ops.create("scf.for", [*loop.operands, init], types, regions=1)
        for name in loop.attributes:
            made.attributes[name] = loop.attributes[name]
        new = made.regions[0].blocks.append(*[a.type for a in old.arguments], init.type)
        ops.create("memref.store", [made.results[len(types) - 1], *store.place])
    for before, after in zip(old.arguments, new.arguments, strict=False):
        before.replace_all_uses_with(after)
    for load in loads:
        ops.replace(load.operation, [new.arguments[len(new.arguments) - 1]])
    end = ops.terminator(old)
    values = [*end.operands, store.operation.operands[0]]
    ops.erase(store.operation)
    ops.erase(end)
    for operation in list(old.operations):
        new.append(operation.operation)
    with loop.location, ir.InsertionPoint(new):
        ops.create("scf.yield", values)
    ops.replace(loop, made.results)
    return made
