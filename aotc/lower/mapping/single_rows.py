"""Fuses a full reduction and the loops that use its result into one loop over a single row.

For example, the norm of a vector is a sum, and a loop that reads it. As separate kernels, the host
would wait for the sum and pass it on. As a row, they are one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.effects import access_of, is_pure
from aotc.attributes import BLOCK_ATTRIBUTE
from aotc.lower.mapping.build import create_parallel
from aotc.lower.mapping.columns import describe_columns
from aotc.lower.mapping.nest import known_product, loop_trips
from aotc.mlir import ir
from aotc.rewrites.cloning import body_of

# The limit of points for one block, as in a full reduction by one block.
_MOST_POINTS = 16384
_EARLY = ("memref.alloc", "memref.alloca", "memref.get_global")
_LATE = ("memref.dealloc",)


def fuse_single_rows(
    totals: Iterable[Any], is_mappable: Callable[[Any], bool]
) -> list[tuple[Any, str]]:
    """Fuses each reduction of host code with the loops after it that use its result, if the host
    does not use it.

    Returns each fused loop with a description.
    """
    fused: list[tuple[Any, str]] = []
    inside: set[Any] = set()
    for total in totals:
        if total in inside:
            continue
        run = _Run(total, is_mappable)
        if run.is_one_row():
            inside |= set(run.members)
            text = f"{run.count_loops()} loops over one row are one kernel"
            fused.append((run.fuse(), text))
    return fused


def wrap_in_row(members: Sequence[Any]) -> Any:
    """Puts operations of host code into a loop over a single row, in place of the first
    operation."""
    first = members[0]
    with first.location, ir.InsertionPoint(first):
        zero, one = ops.constant_index(0), ops.constant_index(1)
        row = create_parallel([zero], [one], [one])
    end = ops.terminator(row.regions[0].blocks[0])
    for member in members:
        member.move_before(end)
    return row


class _Run:
    """A full reduction and the operations after it, up to the last loop that uses their results."""

    def __init__(self, total: Any, is_mappable: Callable[[Any], bool]) -> None:
        self._is_mappable = is_mappable
        self.members: list[Any] = []
        self._early: list[Any] = []
        self._late: list[Any] = []
        if _is_short_full_reduction(total):
            self._collect(total)

    def _collect(self, total: Any) -> None:
        operations = ops.operations_in(total.block)
        members, made = [total], set(total.results)
        early: list[Any] = []
        late: list[Any] = []
        for operation in operations[operations.index(total) + 1 :]:
            uses = any(_uses(operation, value) for value in made)
            if operation.name in _LATE:
                late.append(operation)
                continue
            if not uses and (is_pure(operation) or operation.name in _EARLY):
                early.append(operation)
                continue
            if not self._may_be_of_row(operation):
                break
            members.append(operation)
            made |= set(operation.results)
            if uses and operation.name == "scf.parallel":
                self.members = list(members)
                self._early, self._late = list(early), list(late)

    def _may_be_of_row(self, operation: Any) -> bool:
        if operation.name == "scf.parallel" and self._is_mappable(operation):
            return _is_short(loop_trips(operation)) and _is_elementwise(operation)
        return (
            is_pure(operation)
            or access_of(operation) is not None
            or _is_short_full_reduction(operation)
        )

    def is_one_row(self) -> bool:
        """Whether a loop uses the result, and nothing outside does."""
        inside = set(self.members)
        return len(inside) > 0 and all(
            _is_within(use.owner.operation, inside)
            for member in self.members
            for result in member.results
            for use in result.uses
        )

    def count_loops(self) -> int:
        return sum(len(member.regions) > 0 for member in self.members)

    def fuse(self) -> Any:
        first = self.members[0]
        for operation in self._early:
            operation.move_before(first)
        fused = wrap_in_row(self.members)
        for operation in reversed(self._late):
            operation.move_after(fused)
        return fused


def _is_short_full_reduction(operation: Any) -> bool:
    if operation.name not in ("scf.for", "scf.parallel") or len(operation.results) == 0:
        return False
    if BLOCK_ATTRIBUTE in operation.attributes or "mapping" in operation.attributes:
        return False
    columns = describe_columns(operation)
    return (
        columns is not None
        and len(columns.accumulators) > 0
        and columns.loads_along()
        and _is_short([columns.known_count])
    )


def _is_short(trips: list[int | None]) -> bool:
    count = known_product(trips)
    return count is not None and count <= _MOST_POINTS


def _is_elementwise(loop: Any) -> bool:
    return BLOCK_ATTRIBUTE not in loop.attributes and all(
        len(operation.regions) == 0 for operation in body_of(loop)
    )


def _uses(operation: Any, value: Any) -> bool:
    return any(_is_within(use.owner.operation, {operation}) for use in value.uses)


def _is_within(operation: Any, outer: set[Any]) -> bool:
    return operation in outer or any(parent in outer for parent in ops.ancestors(operation))
