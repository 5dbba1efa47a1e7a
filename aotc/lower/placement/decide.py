"""Decides where the buffers of each alias class are placed, with the reason.

All decisions are conservative: a buffer that is not proved correct in device memory, or with a
mirror, becomes managed memory, which both sides can access.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.access import ModuleAccess, first_kernel_operand
from aotc.analysis.views import VIEWS
from aotc.input.entries import ENTRY_ATTRIBUTE
from aotc.lower.placement.alias_classes import (
    FUNCTIONS,
    AliasClass,
    AliasClasses,
    Merge,
    Use,
    UseKind,
    host_functions,
)
from aotc.lower.placement.streams import has_structured_flow
from aotc.mlir import ir
from aotc.ops import symbol_of

Where = Callable[[Any], str]


class Placement(Enum):
    """The possible placements of a buffer. The values are the texts of `--explain`."""

    LEFT = "as it is"
    DEVICE = "device memory"
    MIRRORED = "host memory with a mirror on the device"
    CONSTANT = "copied to the device once for each load of the module"
    RESULT = "the memory of the caller's arguments, on the device or managed"
    MANAGED = "managed memory"


class Decision(Struct, frozen=True):
    """A placement and its reason, which may be empty for a buffer that is left as it is."""

    placement: Placement
    reason: str = ""


# Views of a whole buffer in the same order, so that copying the view copies the buffer.
_WHOLE_VIEWS = (
    "memref.cast",
    "memref.expand_shape",
    "memref.collapse_shape",
    "memref.assume_alignment",
)
_HOST_USES = (UseKind.HOST_READ, UseKind.HOST_WRITE)
# Uses that require memory that all sides can access.
_KEPT = (UseKind.RETURN, UseKind.ESCAPE, UseKind.TASK, UseKind.GPU)
_COPY_USES = (UseKind.COPY_FROM, UseKind.COPY_TO)


def is_whole_type(type_: Any) -> bool:
    """Whether memrefs of this type start at their buffer's first element, with contiguous elements
    in order."""
    return isinstance(type_, ir.MemRefType) and type_.affine_map == ir.AffineMap.get_identity(
        type_.rank
    )


class Decisions:
    """The decisions for the alias classes of a module, in order.

    `structured` are the names of the functions in which mirrors are possible.
    """

    def __init__(self, alias_classes: AliasClasses, access: ModuleAccess, where: Where) -> None:
        self._alias_classes, self._access, self._where = alias_classes, access, where
        self._constants = _constant_globals(alias_classes)
        self.structured = frozenset(
            symbol_of(function)
            for function in host_functions(alias_classes.module)
            if has_structured_flow(function)
        )
        self._on_device = {
            alias_class for alias_class in alias_classes if alias_class.reaches_launch
        }
        self._spread_by_copies()
        self._decided = {
            alias_class: self._decide(alias_class)
            for alias_class in alias_classes
            if alias_class in self._on_device
        }

    def __getitem__(self, alias_class: AliasClass) -> Decision:
        return self._decided.get(alias_class, Decision(Placement.LEFT))

    def having(self, placement: Placement) -> list[AliasClass]:
        """The alias classes with this placement."""
        return [
            alias_class
            for alias_class, decision in self._decided.items()
            if decision.placement is placement
        ]

    def is_enqueued(self, copy: Any) -> bool:
        """Whether a `memref.copy` is executed by the device."""
        return _can_be_enqueued(copy) and any(
            self._alias_classes.get(operand) in self._on_device for operand in copy.operands
        )

    def _spread_by_copies(self) -> None:
        # A buffer that is only copied to and from device buffers is best placed on the device as
        # well.
        while True:
            more = {
                alias_class
                for alias_class in self._alias_classes
                if alias_class not in self._on_device
                and (alias_class.has_only_allocations or self.is_constant(alias_class))
                and not alias_class.of_kind(*_HOST_USES, *_KEPT)
                and any(self.is_enqueued(use.operation) for use in alias_class.of_kind(*_COPY_USES))
            }
            if not more:
                return
            self._on_device |= more

    def is_constant(self, alias_class: AliasClass) -> bool:
        """Whether all roots of the alias class are constants with initial values."""
        owners = [ops.defining(root) for root in alias_class.roots]
        return all(
            owner is not None
            and owner.name == "memref.get_global"
            and ops.global_of(owner) in self._constants
            for owner in owners
        )

    def _decide(self, alias_class: AliasClass) -> Decision:
        if not alias_class.allocations:
            return self._decide_constant(alias_class) if self.is_constant(alias_class) else _LEFT
        if alias_class.of_kind(UseKind.REGISTER):
            return Decision(Placement.LEFT, "the module registers it itself")
        touches = self._host_touches(alias_class)
        returned = alias_class.of_kind(UseKind.RETURN)
        if returned and not touches and self._follows_caller(alias_class):
            return Decision(Placement.RESULT, self._place(returned[0], UseKind.RETURN.value))
        why_managed = self._why_managed(alias_class)
        if why_managed is not None:
            return Decision(Placement.MANAGED, why_managed)
        if not touches:
            return Decision(Placement.DEVICE, "only kernels use it")
        why_no_mirror = self._why_no_mirror(alias_class)
        if why_no_mirror is not None:
            return Decision(Placement.MANAGED, why_no_mirror)
        return Decision(Placement.MIRRORED, self._place(touches[0], "the host also accesses it"))

    def _place(self, use: Use, text: str) -> str:
        where = self._where(use.operation.location)
        return f"{text} ({use.operation.name}{where and f' at {where}'})"

    def _host_touches(self, alias_class: AliasClass) -> list[Use]:
        return [
            use
            for use in alias_class.uses
            if use.kind in _HOST_USES
            or (use.kind in _COPY_USES and not self.is_enqueued(use.operation))
        ]

    def _follows_caller(self, alias_class: AliasClass) -> bool:
        """Whether a returned buffer may be on the device: only kernels and the caller use it."""
        others = (kind for kind in _KEPT if kind is not UseKind.RETURN)
        functions = [
            ops.enclosing(use.operation, "func.func") for use in alias_class.of_kind(UseKind.RETURN)
        ]
        addressed = self._alias_classes.functions.addressed
        return (
            all(
                function is not None
                and ENTRY_ATTRIBUTE in function.attributes
                and symbol_of(function) not in addressed
                for function in functions
            )
            and alias_class.has_only_allocations
            and not alias_class.of_kind(*others, UseKind.CALL)
            and all(is_whole_type(root.type) for root in alias_class.roots)
            and all(is_whole_type(value.type) for value in _returned_values(alias_class))
            and all(a.name == "memref.alloc" for a in alias_class.allocations)
        )

    def _why_managed(self, alias_class: AliasClass) -> str | None:
        """The reason why an alias class with allocations must be managed memory; None if there is
        none."""
        if not alias_class.has_only_allocations:
            return "it may be memory of another kind as well (an argument, a global)"
        for kind in _KEPT:
            for use in alias_class.of_kind(kind):
                return self._place(use, kind.value)
        if not all(is_whole_type(root.type) for root in alias_class.roots):
            return "its layout is not the identity"
        if any(_is_alloca_of_a_block(allocation) for allocation in alias_class.allocations):
            return "its lifetime ends with its block"
        return None

    def _why_no_mirror(self, alias_class: AliasClass) -> str | None:
        for use in alias_class.of_kind(UseKind.CALL, UseKind.DESCRIBE):
            return self._place(use, "the host accesses it, and it is " + use.kind.value)
        function = symbol_of(ops.enclosing(alias_class.allocations[0], *FUNCTIONS))
        if function not in self.structured:
            return f"the host accesses it, and @{function} has branches between blocks, or tokens"
        if any(merge is Merge.OTHER for merge, _ in alias_class.merges):
            return "the host accesses it, and it is carried by a loop other than scf.for"
        if alias_class.merges and not _merges_whole_buffers(alias_class):
            return "the host accesses it, and a loop or branch carries a part of it"
        if any(
            _outlives_its_iteration(alias_class, allocation)
            for allocation in alias_class.allocations
        ):
            return "the host accesses it, and an iteration of the loop passes it to the next one"
        return None

    def _decide_constant(self, alias_class: AliasClass) -> Decision:
        if alias_class.merges or alias_class.of_kind(
            *(UseKind.HOST_WRITE, UseKind.COPY_TO, UseKind.GPU, UseKind.REGISTER),
            *(UseKind.RETURN, UseKind.CALL, UseKind.ESCAPE, UseKind.TASK),
        ):
            return _LEFT
        for use in alias_class.of_kind(UseKind.LAUNCH):
            index = use.operand - first_kernel_operand(use.operation)
            if self._access.kernel_flow(use.operation, index).writes:
                return _LEFT
        return Decision(Placement.CONSTANT, "nothing writes it")


_LEFT = Decision(Placement.LEFT)


def _can_be_enqueued(copy: Any) -> bool:
    return all(is_whole_type(operand.type) for operand in copy.operands)


def _constant_globals(alias_classes: AliasClasses) -> set[str]:
    return {
        name
        for name, variable in ops.globals_of(alias_classes.module).items()
        if "constant" in variable.attributes and "initial_value" in variable.attributes
    }


def _returned_values(alias_class: AliasClass) -> list[Any]:
    returns = [use.operation for use in alias_class.of_kind(UseKind.RETURN)]
    return [one for op in returns for one in op.operands if one in alias_class.values]


def _is_alloca_of_a_block(allocation: Any) -> bool:
    """Whether it is a memref.alloca that cannot be moved to its function's first block."""
    return (
        allocation.name == "memref.alloca"
        and len(allocation.operands) > 0
        and allocation.parent.operation.name != "func.func"
    )


def _merges_whole_buffers(alias_class: AliasClass) -> bool:
    return all(_is_whole(value) for value in alias_class.values if _is_merged(value))


def _is_merged(value: Any) -> bool:
    return any(
        use.owner.operation.name in ("scf.yield", "scf.for", "arith.select") for use in value.uses
    )


def _is_whole(value: Any) -> bool:
    while True:
        if not is_whole_type(value.type):
            return False
        owner = ops.defining(value)
        if owner is None or owner.name not in VIEWS:
            return True
        if owner.name not in _WHOLE_VIEWS:
            return False
        value = owner.operands[0]


def _outlives_its_iteration(alias_class: AliasClass, allocation: Any) -> bool:
    if allocation.name == "memref.alloca":
        return False  # it is moved to the function's first block
    around = list(ops.ancestors(allocation))
    loops = [operation for merge, operation in alias_class.merges if merge is Merge.FOR]
    carrying = [op if op.name == "scf.for" else op.parent.operation for op in loops]
    return any(loop in around for loop in carrying)
