"""Recomputes cheap intermediate results of a row in later loops instead of keeping them in a
buffer.

For example, the conversion of a row to another type is less work than memory traffic for its
result.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.effects import Access, Overlaps, access_of, accesses_in, is_division, is_pure
from aotc.lower.mapping.columns import Columns, describe_columns
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of, copy

# The limit of operations, including loads, that are repeated in each loop that reads their result.
_MOST_OPERATIONS = 4
_DEAR = ("arith.divf", "arith.remf")


class _Made(Struct, frozen=True):
    """An element that a loop along the row stores: the store, and the operations that compute its
    value."""

    columns: Columns
    store: Access
    operations: tuple[Any, ...]


def recompute_in_rows(loop: Any, overlaps: Overlaps) -> None:
    """Changes the loops in the body of `loop`, a parallel loop over rows. Stores to buffers that
    are no longer read remain."""
    inner = [op for op in body_of(loop) if op.name in ("scf.parallel", "scf.for")]
    for number, one in enumerate(inner):
        columns = describe_columns(one)
        if columns is None:
            continue
        stores = [a for op in columns.body if (a := access_of(op)) is not None and a.writes]
        for store in stores:
            made = _describe(columns, store, loop, overlaps)
            if made is not None:
                for other in inner[number + 1 :]:
                    _recompute(made, other)


def _describe(columns: Columns, store: Access, loop: Any, overlaps: Overlaps) -> _Made | None:
    """The stored element, if it can be recomputed after the loop, and there is no other store to
    its buffer."""
    allocation = ops.defining(store.memref)
    if allocation is None or allocation.name != "memref.alloc":
        return None
    users = [use.owner.operation for use in store.memref.uses]
    if any(user.name not in ("memref.load", "memref.store", "memref.dealloc") for user in users):
        return None
    if [user for user in users if user.name == "memref.store"] != [store.operation]:
        return None
    operations = _slice(store.operation.operands[0], columns)
    if operations is None or any(op.name in _DEAR or is_division(op) for op in operations):
        return None
    loaded = [access.memref for op in operations for access in accesses_in(op)]
    written = [a.memref for op in body_of(loop) for a in accesses_in(op) if a.writes]
    if any(overlaps.may_overlap(one, other) for one in loaded for other in written):
        return None
    return _Made(columns, store, operations)


def _slice(value: Any, columns: Columns) -> tuple[Any, ...] | None:
    """The operations of the body that compute a value, in order; None if they are expensive or too
    many."""
    found: set[Any] = set()
    pending = [value]
    while pending:
        made = ops.defining(pending.pop())
        if made is None or made not in columns.body or made in found:
            continue
        if not (_is_cheap(made) or made.name == "memref.load") or len(found) == _MOST_OPERATIONS:
            return None
        found.add(made)
        pending += made.operands
    return tuple(op for op in columns.body if op in found)


def _is_cheap(operation: Any) -> bool:
    return is_pure(operation) and not operation.name.startswith("math.")


def _recompute(made: _Made, loop: Any) -> None:
    """Replaces the loads of the element in a loop over the same columns."""
    columns = describe_columns(loop)
    if columns is None or columns.normal_bounds != made.columns.normal_bounds:
        return
    moved = dict(zip(made.columns.variables, columns.variables, strict=True))
    place = tuple(moved.get(value, value) for value in made.store.place)
    for operation in columns.body:
        access = access_of(operation)
        if access is None or access.writes or access.place != place:
            continue
        with ir.InsertionPoint(operation), operation.location:
            values = dict(moved)
            for one in made.operations:
                copy(one, values)
        stored = made.store.operation.operands[0]
        ops.replace(operation, [values.get(stored, stored)])
