"""What a piece of code does to memory: loads and stores, or something else."""

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
# They trap on the CPU where their operand is 0.
_DIVISIONS = (
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.floordivsi",
)


class Access(Struct, frozen=True):
    """A memref.load or memref.store."""

    operation: Any
    memref: Any
    indices: tuple[Any, ...]
    writes: bool

    @property
    def place(self) -> tuple[Any, ...]:
        """A key that is equal for two accesses of one element, if nothing else is known about
        them."""
        return (self.memref, *self.indices)


def access_of(operation: Any) -> Access | None:
    """The operation as an access, if it is one."""
    if operation.name == "memref.load":
        memref, *indices = operation.operands
        return Access(operation, memref, tuple(indices), writes=False)
    if operation.name == "memref.store":
        _, memref, *indices = operation.operands
        return Access(operation, memref, tuple(indices), writes=True)
    return None


def accesses_in(operation: Any) -> list[Access]:
    """The accesses under an operation, itself included."""
    return [a for op in ops.walk(operation) if (a := access_of(op)) is not None]


def is_pure(operation: Any) -> bool:
    """Whether it computes from its operands alone, and may be left out, moved or repeated."""
    return (
        operation.name.split(".")[0] in _PURE_DIALECTS or operation.name in _PURE_VIEWS
    ) and len(operation.regions) == 0


def is_division(operation: Any) -> bool:
    """Whether it must not be run on numbers that mean nothing."""
    return operation.name in _DIVISIONS


def is_understood(operation: Any, *, may_store: bool = True) -> bool:
    """Whether all under it are loads, stores, pure operations, and loops and branches of these."""
    return all(
        is_pure(op)
        or op.name in _CONTROL
        or op.name == "memref.load"
        or (may_store and op.name == "memref.store")
        for op in ops.walk(operation)
    )


class Overlaps:
    """Whether two memrefs may be views of one buffer, each pair found once.

    What was found is to be forgotten (`renew`) when values were erased: new ones may be taken for
    them.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._found: dict[tuple[Any, Any], bool] = {}

    def renew(self) -> None:
        """Forgets what was found."""
        self._found.clear()

    def may_overlap(self, one: Any, other: Any) -> bool:
        if one == other:
            return True
        key = (one, other)
        if key not in self._found:
            self._found[key] = self._roots.may_overlap(one, other)
        return self._found[key]

    def is_written(self, memref: Any, operations: Sequence[Any]) -> bool:
        """Whether one of the operations, or what is in it, may write to the memref."""
        for operation in (op for outer in operations for op in ops.walk(outer)):
            access = access_of(operation)
            if access is not None:
                if access.writes and self.may_overlap(access.memref, memref):
                    return True
            elif not is_pure(operation) and operation.name not in _CONTROL:
                return True
        return False
