"""Consecutive points of one GPU thread: their elements are accessed as vectors.

The kernel has a loop over points that are a block's width apart (`points`). The assignment of a
block's points to its threads is free. So thread t of a row of T threads may have the points t * n
to t * n + n - 1 instead of t, t + T, ... A GPU accesses 16 bytes at once, but only at addresses
that are multiples of 16. Where the alignment is not known at compile time, the kernel tests it. All
threads of a row get the same answer; if it is no, the points stay a block's width apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.contiguous import is_unit_stride
from aotc.analysis.effects import Access, accesses_in, is_pure
from aotc.rewrites.cloning import body_of, copy
from aotc.rewrites.wide_accesses import (
    are_aligned,
    elements_of,
    load_vector,
    may_be_aligned,
    store_vector,
)


def create_vectors(loop: Any, count: int, apart: Callable[[], None]) -> bool:
    """Builds the loop over `count` points at the insertion point, with vector accesses if all
    addresses are aligned, else by `apart()`. Returns False, and builds nothing, if no access of the
    loop can be a vector access."""
    kernel = ops.enclosing(loop, "gpu.func")
    threads = [op for op in ops.find(kernel, "gpu.thread_id") if is_along_x(op)]
    (offset,) = loop.regions[0].blocks[0].arguments
    variables = [offset, *(thread.results[0] for thread in threads)]
    body = _Body(loop, count, variables)
    wide = [access for access in accesses_in(loop) if body.can_be_vector(access)]
    if not wide:
        return False
    body.accesses = {access.operation: access for access in wide}
    body.first = {offset: ops.constant_index(0)}
    # In a row of one thread, there is no thread id.
    for thread in variables[1:]:
        body.first[thread] = ops.index_op("arith.muli", thread, ops.constant_index(count))
    ops.create_either(body.is_aligned(), lambda: body.build(body_of(loop)), apart)
    return True


def is_along_x(thread: Any) -> bool:
    return str(thread.attributes["dimension"]) == "#gpu<dim x>"


class _Body(Struct):
    """The body of a loop over points.

    `variables` are the offset of the points, and the thread ids. `first` maps these to their values
    for the first of a thread's `count` points. `accesses` are those that become vector accesses."""

    loop: Any
    count: int
    variables: list[Any]
    first: dict[Any, Any] = {}
    accesses: dict[Any, Access] = {}

    def can_be_vector(self, access: Access) -> bool:
        """Whether the points' elements are contiguous, and their address may be aligned."""
        if not is_unit_stride(access, self.variables):
            return False
        if not ops.is_made_outside(access.memref, self.loop):
            return False
        if not all(is_pure(op) for op in self._slice(access.indices[-1])):
            return False
        return may_be_aligned(access.memref.type, self.count)

    def _slice(self, value: Any) -> list[Any]:
        """The operations of the body that compute a value (its backward slice), in order."""
        found: dict[Any, None] = {}

        def visit(inner: Any) -> None:
            owner = ops.defining(inner)
            if owner is None or owner in found or ops.is_made_outside(inner, self.loop):
                return
            for operand in owner.operands:
                visit(operand)
            found[owner] = None

        visit(value)
        return list(found)

    def is_aligned(self) -> Any:
        """A condition: the address of each vector access of this thread is aligned."""
        places = []
        for access in self.accesses.values():
            last = access.indices[-1]
            values = dict(self.first)
            for operation in self._slice(last):
                copy(operation, values)
            places.append(values.get(last, last))
        memrefs = [access.memref for access in self.accesses.values()]
        return are_aligned(memrefs, places, self.count)

    def build(self, operations: Sequence[Any]) -> None:
        """Builds the points of this thread for aligned addresses: as vectors if all points are in
        bounds, else one by one."""
        *before, last = operations
        offset = self.variables[0]
        if last.name != "scf.if":
            self._create(operations, self._copies())
            return
        # If the last point is in bounds, all are.
        values = self.first | {offset: ops.constant_index(self.count - 1)}
        for operation in before:
            copy(operation, values)
        condition = last.operands[0]

        def together() -> None:
            copies = self._copies()
            for operation in before:
                for each in copies:
                    copy(operation, each)
            self._create(body_of(last), copies)

        def one_by_one() -> None:
            zero, one = ops.constant_index(0), ops.constant_index(1)

            def point(number: Any) -> None:
                each = self.first | {offset: number}
                for operation in operations:
                    copy(operation, each)

            ops.create_for(zero, ops.constant_index(self.count), one, point)

        ops.create_either(values.get(condition, condition), together, one_by_one)

    def _copies(self) -> list[dict[Any, Any]]:
        offset = self.variables[0]
        return [self.first | {offset: ops.constant_index(at)} for at in range(self.count)]

    def _create(self, operations: Sequence[Any], copies: Sequence[dict[Any, Any]]) -> None:
        """Builds each operation for all points, then the next operation."""
        for operation in operations:
            access = self.accesses.get(operation)
            if access is None:
                for values in copies:
                    copy(operation, values)
            elif access.writes:
                self._store(access, copies)
            else:
                self._load(access, copies)

    def _load(self, access: Access, copies: Sequence[dict[Any, Any]]) -> None:
        (result,) = access.operation.results
        vector = load_vector(access.memref, _indices(access, copies[0]), self.count)
        for values, element in zip(copies, elements_of(vector), strict=True):
            values[result] = element

    def _store(self, access: Access, copies: Sequence[dict[Any, Any]]) -> None:
        stored = access.operation.operands[0]
        elements = [values.get(stored, stored) for values in copies]
        store_vector(elements, access.memref, _indices(access, copies[0]))


def _indices(access: Access, values: dict[Any, Any]) -> list[Any]:
    return [values.get(index, index) for index in access.indices]
