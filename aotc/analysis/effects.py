"""The memory effects of code: loads, stores, or unknown effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.aliasing import Roots

_PURE_DIALECTS = ("arith", "math", "index", "complex")
_PURE_VIEWS = (
    *("memref.dim", "memref.cast", "memref.subview", "memref.expand_shape"),
    *("memref.collapse_shape", "affine.apply"),
)
_CONTROL = ("scf.for", "scf.if", "scf.parallel", "scf.yield", "scf.reduce", "scf.reduce.return")
# On the CPU, these trap if their divisor is 0.
_DIVISIONS = (
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.floordivsi",
    "index.divs",
    "index.divu",
    "index.rems",
    "index.remu",
    "index.ceildivs",
    "index.ceildivu",
    "index.floordivs",
)


class Access(Struct, frozen=True):
    """A memref.load or memref.store."""

    operation: Any
    memref: Any
    indices: tuple[Any, ...]
    writes: bool

    @property
    def place(self) -> tuple[Any, ...]:
        """A key that is equal for two accesses of one element. Accesses with different keys may
        still be of one element."""
        return (self.memref, *self.indices)


def access_of(operation: Any) -> Access | None:
    """The operation as an access; None if it is neither load nor store."""
    if operation.name == "memref.load":
        memref, *indices = operation.operands
        return Access(operation, memref, tuple(indices), writes=False)
    if operation.name == "memref.store":
        _, memref, *indices = operation.operands
        return Access(operation, memref, tuple(indices), writes=True)
    return None


def accesses_in(operation: Any) -> list[Access]:
    """The accesses under an operation, including itself."""
    return [a for op in ops.walk(operation) if (a := access_of(op)) is not None]


def is_pure(operation: Any) -> bool:
    """Whether an operation's results depend on its operands alone, so that it may be erased, moved
    or repeated."""
    return (
        operation.name.split(".")[0] in _PURE_DIALECTS or operation.name in _PURE_VIEWS
    ) and len(operation.regions) == 0


def is_division(operation: Any) -> bool:
    """Whether an operation may trap, so that it must not be run speculatively."""
    return operation.name in _DIVISIONS


def is_understood(operation: Any, *, may_store: bool = True) -> bool:
    """Whether an operation and all under it are loads, stores, pure operations, loops and
    branches."""
    return all(
        is_pure(op)
        or op.name in _CONTROL
        or op.name == "memref.load"
        or (may_store and op.name == "memref.store")
        for op in ops.walk(operation)
    )


class Overlaps:
    """Whether two memrefs may be views of one buffer. The answer for each pair is cached.

    Call `renew` after values are erased: a new value may be equal to the key of an erased one.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._found: dict[tuple[Any, Any], bool] = {}

    def renew(self) -> None:
        """Clears the cache."""
        self._found.clear()

    def may_overlap(self, one: Any, other: Any) -> bool:
        if one == other:
            return True
        key = (one, other)
        if key not in self._found:
            self._found[key] = self._roots.may_overlap(one, other)
        return self._found[key]

    def is_written(self, memref: Any, operations: Sequence[Any]) -> bool:
        """Whether one of the operations, or an operation nested in it, may write to the memref."""
        for operation in (op for outer in operations for op in ops.walk(outer)):
            access = access_of(operation)
            if access is not None:
                if access.writes and self.may_overlap(access.memref, memref):
                    return True
            elif not is_pure(operation) and operation.name not in _CONTROL:
                return True
        return False
