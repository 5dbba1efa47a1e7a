"""Recognition of inclusive scans along a row: `for j { s = s + x[i, j]; y[i, j] = s }`.

The loop carries one value. Each iteration combines it with a new value by an associative operation,
and uses the result. The threads of a row compute the scan together: floats are combined in a fixed
order, which is not that of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, accesses_in, is_division, is_understood
from aotc.lower.mapping.columns import KINDS, Accumulator, Columns, can_reduce
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of


class Scan(Struct, frozen=True):
    """A loop that scans a row.

    `columns` describes the loop with the operations that compute the new value, and its one
    accumulator. `combined` is the result of the combination in the loop, and `after` the operations
    that depend on it.
    """

    columns: Columns
    combined: Any
    after: tuple[Any, ...]

    def is_along_row(self) -> bool:
        """Whether consecutive iterations read adjacent elements."""
        (variable,) = self.columns.variables
        loads = [a for op in self.columns.body for a in accesses_in(op) if a.indices]
        return any(is_unit_stride(a.indices[-1], variable, self.columns.loop) for a in loads)


def describe_scan(loop: Any, overlaps: Overlaps) -> Scan | None:
    """The loop as a scan; None if it is not one, or if its iterations cannot be executed in
    parallel because of their stores."""
    if loop.name != "scf.for" or "unsignedCmp" in loop.attributes or len(loop.results) != 1:
        return None
    if not isinstance(loop.operands[0].type, ir.IndexType) or not is_understood(loop):
        return None
    variable, old = loop.regions[0].blocks[0].arguments
    body = body_of(loop)
    (yielded,) = ops.terminator(loop.regions[0].blocks[0]).operands
    combination = ops.defining(yielded)
    if combination is None or combination not in body or combination.name not in KINDS:
        return None
    uses = list(old.uses)
    # Shuffles do not exchange i1.
    is_bit = yielded.type == ops.integer(1)
    if len(uses) != 1 or uses[0].owner.operation != combination or is_bit:
        return None
    kind = KINDS[combination.name]
    if not can_reduce(yielded.type, kind):
        return None
    value = combination.operands[1 - uses[0].operand_number]
    after = _dependents(body, combination)
    before = tuple(op for op in body if op != combination and op not in after)
    if not _may_run_in_parallel(body, before, variable, loop, overlaps):
        return None
    accumulator = Accumulator(kind, list(loop.operands)[3], value)
    bounds = (tuple(list(loop.operands)[:3]),)
    return Scan(Columns(loop, bounds, (variable,), before, (accumulator,)), yielded, after)


def _dependents(body: Sequence[Any], combination: Any) -> tuple[Any, ...]:
    """The operations that depend on the combination's result, and all stores."""
    made = set(combination.results)
    found = []
    for operation in body:
        if operation == combination:
            continue
        inside = ops.walk(operation)
        uses = any(operand in made for inner in inside for operand in inner.operands)
        if uses or any(access.writes for access in accesses_in(operation)):
            found.append(operation)
            made |= set(operation.results)
    return tuple(found)


def _may_run_in_parallel(
    body: Sequence[Any], before: Sequence[Any], variable: Any, loop: Any, overlaps: Overlaps
) -> bool:
    """Whether no iteration reads what another one stores, and the operations before the combination
    may be executed for a column that does not exist."""
    if any(is_division(inner) for op in before for inner in ops.walk(op)):
        return False
    accesses = [access for op in body for access in accesses_in(op)]
    for at, store in enumerate(accesses):
        if not store.writes:
            continue
        if not _is_own(store, variable, loop):
            return False
        for number, other in enumerate(accesses):
            if number == at or not overlaps.may_overlap(store.memref, other.memref):
                continue
            # A load after a store would be moved before it.
            if other.place != store.place or (not other.writes and number > at):
                return False
    loaded = {access.operation.results[0] for access in accesses if not access.writes}
    return not any(loaded & set(access.indices) for access in accesses)


def _is_own(store: Access, variable: Any, loop: Any) -> bool:
    """Whether no two iterations store to the same element."""
    own = [index for index in store.indices if is_unit_stride(index, variable, loop)]
    return len(own) > 0 and all(
        index in own or ops.is_made_outside(index, loop) for index in store.indices
    )


def is_unit_stride(index: Any, variable: Any, loop: Any) -> bool:
    """Whether an index is the loop's variable plus a loop-invariant value."""
    if index == variable:
        return True
    addition = ops.defining(index)
    if addition is None or addition.name != "arith.addi":
        return False
    first, second = addition.operands
    return (is_unit_stride(first, variable, loop) and ops.is_made_outside(second, loop)) or (
        is_unit_stride(second, variable, loop) and ops.is_made_outside(first, loop)
    )
