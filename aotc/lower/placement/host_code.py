"""The buffers that host operations access, and the operations that must wait for the device.

This is computed before anything is changed. Operations remain valid when their operands are
replaced. Each carries a number as an attribute in the meantime, as the bindings' hash of an
operation depends on its operands.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.access import DESCRIBES
from aotc.attributes import NUMBER_ATTRIBUTE
from aotc.lower.placement.alias_classes import (
    AliasClass,
    AliasClasses,
    Use,
    UseKind,
    host_functions,
)
from aotc.lower.placement.decide import Decisions, Placement
from aotc.lower.placement.streams import is_enqueued
from aotc.mlir import ir
from aotc.module_names import QUIET_CALLS


class HostUse(Struct, frozen=True):
    """A use of a mirrored buffer by host code."""

    operation: Any
    operand: int
    is_written: bool
    is_freed: bool

    @property
    def value(self) -> Any:
        return self.operation.operands[self.operand]


_TOUCHES = (
    *(UseKind.HOST_READ, UseKind.HOST_WRITE, UseKind.COPY_FROM, UseKind.COPY_TO),
    UseKind.ESCAPE,
)
# Uses by which the device may access the buffers of an alias class.
_BY_DEVICE = (
    *(UseKind.LAUNCH, UseKind.GPU, UseKind.REGISTER, UseKind.ESCAPE),
    *(UseKind.CALL, UseKind.RETURN, UseKind.TASK, UseKind.DESCRIBE),
)
# Operations that access no memory, or only memory that `AliasClasses` models.
_DIALECTS_WITHOUT_WAIT = (
    "arith",
    "math",
    "index",
    "complex",
    "scf",
    "cf",
    "ub",
    "memref",
    "vector",
)
_WITHOUT_WAIT = (
    "func.return",
    "gpu.alloc",
    "gpu.dealloc",
    "gpu.host_register",
    "affine.apply",
    DESCRIBES,
)
_WITH_WAIT = ("vector.print",)


class HostCode:
    """The host code of a module: which operations are enqueued, which must wait for the device, and
    which use mirrored buffers."""

    def __init__(self, alias_classes: AliasClasses, decisions: Decisions) -> None:
        self._alias_classes, self._decisions = alias_classes, decisions
        self._count = 0
        self._uses: dict[int, list[HostUse]] = {}
        self._waiting: set[int] = set()
        self._copies: set[int] = set()
        for alias_class in alias_classes:
            for use in alias_class.uses:
                self._add(alias_class, use)
        for function in host_functions(alias_classes.module):
            self._waiting |= {self._number(op) for op in ops.walk(function)[1:] if _needs_wait(op)}

    def uses(self, operation: Any) -> list[HostUse]:
        """The operation's uses of mirrored buffers."""
        return self._uses.get(_number_of(operation), [])

    def needs_wait(self, operation: Any) -> bool:
        """Whether all enqueued work must be complete before the operation."""
        return _number_of(operation) in self._waiting

    def is_enqueued(self, operation: Any) -> bool:
        """Whether the device executes the operation."""
        return is_enqueued(operation) or _number_of(operation) in self._copies

    def erase_numbers(self) -> None:
        """Erases the numbers, after which the analysis cannot be used."""
        for function in host_functions(self._alias_classes.module):
            for operation in ops.walk(function):
                if NUMBER_ATTRIBUTE in operation.attributes:
                    del operation.attributes[NUMBER_ATTRIBUTE]

    def _number(self, operation: Any) -> int:
        if NUMBER_ATTRIBUTE not in operation.attributes:
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self._count)
            operation.attributes[NUMBER_ATTRIBUTE] = number
            self._count += 1
        return _number_of(operation)

    def _add(self, alias_class: AliasClass, use: Use) -> None:
        if use.kind in (UseKind.COPY_FROM, UseKind.COPY_TO) and self._decisions.is_enqueued(
            use.operation
        ):
            self._copies.add(self._number(use.operation))
            return
        is_freed = use.kind is UseKind.FREE and use.operation.name == "memref.dealloc"
        if use.kind not in _TOUCHES and not is_freed:
            return
        placement = self._decisions[alias_class].placement
        if placement is Placement.MIRRORED:
            is_written = is_freed or use.kind in (UseKind.HOST_WRITE, UseKind.COPY_TO)
            self._uses.setdefault(self._number(use.operation), []).append(
                HostUse(use.operation, use.operand, is_written, is_freed)
            )
        elif self._is_of_device(alias_class) and not self._decisions.is_constant(alias_class):
            self._waiting.add(self._number(use.operation))

    def _is_of_device(self, alias_class: AliasClass) -> bool:
        return (
            not alias_class.has_only_allocations
            or len(alias_class.of_kind(*_BY_DEVICE)) > 0
            or any(
                self._decisions.is_enqueued(use.operation)
                for use in alias_class.of_kind(UseKind.COPY_FROM, UseKind.COPY_TO)
            )
        )


def _number_of(operation: Any) -> int:
    if NUMBER_ATTRIBUTE not in operation.attributes:
        return -1
    return int(ir.IntegerAttr(operation.attributes[NUMBER_ATTRIBUTE]).value)


def _needs_wait(operation: Any) -> bool:
    name = operation.name
    if name in _WITH_WAIT:
        return True
    if name in _WITHOUT_WAIT or is_enqueued(operation):
        return False
    if name == "func.call" and ops.callee_of(operation) in QUIET_CALLS:
        return False
    return name.split(".")[0] not in _DIALECTS_WITHOUT_WAIT
