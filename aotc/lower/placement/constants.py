"""Replaces constants that kernels use by their device copies.

For `memref.global constant @w`, the device copy is a declaration `@aotc_device_w`. Uses by the
device refer to the declaration. `aotc.host.constants` implements it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.access import DESCRIBES
from aotc.lower.placement.alias_classes import AliasClass, Use, UseKind
from aotc.mlir import ir
from aotc.module_names import DEVICE_COPY
from aotc.ops import symbol_of
from aotc.rewrites.constant_copies import declare_copy


class DeviceCopies:
    """The declarations of a module's device copies, created on demand."""

    def __init__(self, module: Any) -> None:
        self._variables = {symbol_of(op): op for op in ops.find(module.operation, "memref.global")}

    def use(self, alias_class: AliasClass, enqueued: Sequence[Use]) -> None:
        """Replaces a constant's alias class by the device copy in kernels, TMA descriptors and
        enqueued copies."""
        made: dict[Any, Any] = {}
        for use in [*alias_class.of_kind(UseKind.LAUNCH, UseKind.DESCRIBE), *enqueued]:
            owner = ops.defining(use.value)
            if owner is not None and owner.name == DESCRIBES:
                continue  # the descriptor already refers to the device copy
            use.operation.operands[use.operand] = self._on_device(use.value, made)

    def _on_device(self, value: Any, made: dict[Any, Any]) -> Any:
        """The device's form of a value of the alias class: the copy, or a view of it."""
        if value not in made:
            owner = ops.defining(value)
            assert owner is not None
            with owner.location, ir.InsertionPoint.after(owner):
                mirror = owner.clone().operation
            if owner.name == "memref.get_global":
                mirror.attributes["name"] = ir.FlatSymbolRefAttr.get(self._declare(owner))
            else:
                mirror.operands[0] = self._on_device(owner.operands[0], made)
            made[value] = mirror.results[0]
        return made[value]

    def _declare(self, use: Any) -> str:
        source = ops.global_of(use)
        name = f"{DEVICE_COPY}{source}"
        if name not in self._variables:
            variable = self._variables[source]
            type_ = ir.TypeAttr(variable.attributes["type"]).value
            self._variables[name] = declare_copy(variable, DEVICE_COPY, type_)
        return name
