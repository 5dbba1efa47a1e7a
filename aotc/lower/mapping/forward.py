"""Forwards values that a row's loop stores and loads again, and erases buffers that are never read.

An intermediate result of each row (its maximum, its sum) has a buffer with one element per row.
Once the loops over the rows are fused, the buffer is not needed.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.effects import Overlaps, access_of, accesses_in, is_understood
from aotc.rewrites.cloning import body_of

# Operations that do not access the content of a live buffer.
_NEUTRAL = ("memref.alloc", "memref.alloca", "memref.dealloc", "memref.get_global")


def forward_row_values(operations: list[Any], overlaps: Overlaps) -> None:
    """Replaces loads of elements that an earlier one of the consecutive `operations` stored or
    loaded."""
    known: dict[tuple[Any, ...], Any] = {}

    def forget(memref: Any) -> None:
        for place in [p for p in known if overlaps.may_overlap(p[0], memref)]:
            del known[place]

    for operation in operations:
        access = access_of(operation)
        if operation.name in _NEUTRAL:
            continue
        if access is None:
            if not is_understood(operation):
                known.clear()
                continue
            inside = accesses_in(operation)
            written = [a.memref for a in inside if a.writes]
            for load in (a for a in inside if not a.writes and a.place in known):
                if not any(overlaps.may_overlap(load.memref, memref) for memref in written):
                    ops.replace(load.operation, [known[load.place]])
            for memref in written:
                forget(memref)
        elif access.writes:
            forget(access.memref)
            known[access.place] = operation.operands[0]
        elif access.place in known:
            ops.replace(operation, [known[access.place]])
        else:
            known[access.place] = operation.results[0]


def forward_in_rows(loop: Any, overlaps: Overlaps) -> None:
    """Applies `forward_row_values` to the body of a parallel loop."""
    forward_row_values(body_of(loop), overlaps)


def drop_overwritten(operations: list[Any], overlaps: Overlaps) -> None:
    """Erases stores that a later one of `operations` overwrites before they are read."""
    unseen: dict[tuple[Any, ...], Any] = {}
    for operation in operations:
        access = access_of(operation)
        if operation.name in _NEUTRAL:
            continue
        if access is not None and access.writes:
            useless = unseen.pop(access.place, None)
            if useless is not None:
                ops.erase(useless)
            unseen[access.place] = operation
        elif is_understood(operation):
            for load in (a for a in accesses_in(operation) if not a.writes):
                for place in [p for p in unseen if overlaps.may_overlap(p[0], load.memref)]:
                    del unseen[place]
        else:
            unseen.clear()


def drop_unread(function: Any) -> None:
    """Erases allocations that are only stored to, with their stores."""
    for allocation in ops.find(function, "memref.alloc"):
        uses = [use.owner.operation for use in allocation.results[0].uses]
        stores = [op for op in uses if op.name == "memref.store"]
        frees = [op for op in uses if op.name == "memref.dealloc"]
        is_value = any(op.operands[0] == allocation.results[0] for op in stores)
        if len(stores) + len(frees) == len(uses) and not is_value:
            for operation in (*stores, *frees, allocation):
                ops.erase(operation)
