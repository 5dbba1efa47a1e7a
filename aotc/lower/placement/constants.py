"""Constants that kernels are given → the device's copy of them.

Beside `memref.global constant @w` stands a declaration `@aotc_device_w`, which those uses name that
go to the device. `aotc.host.constants` has it mean the copy.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.lower.placement.webs import Use, UseKind, Web
from aotc.lower.placement_names import COPY_OF, DEVICE_COPY
from aotc.mlir import ir


def use_device_copies(module: Any, web: Web, enqueued: list[Use]) -> None:
    """Gives the kernels and enqueued copies of a constant's web the device's copy."""
    made: dict[Any, Any] = {}
    for use in [*web.of_kind(UseKind.LAUNCH), *enqueued]:
        use.operation.operands[use.operand] = _on_device(module, use.value, made)


def _on_device(module: Any, value: Any, made: dict[Any, Any]) -> Any:
    """The device's form of a value of the web: the copy, or a view of it."""
    if value not in made:
        owner = ops.defining(value)
        assert owner is not None
        with owner.location, ir.InsertionPoint.after(owner):
            twin = owner.clone().operation
        if owner.name == "memref.get_global":
            symbol = ir.FlatSymbolRefAttr.get(_declare(module, owner))
            twin.attributes["name"] = symbol
        else:
            twin.operands[0] = _on_device(module, owner.operands[0], made)
        made[value] = twin.results[0]
    return made[value]


def _declare(module: Any, use: Any) -> str:
    source = str(ir.FlatSymbolRefAttr(use.attributes["name"]).value)
    name = f"{DEVICE_COPY}{source}"
    variables = {
        str(ir.StringAttr(op.operation.attributes["sym_name"]).value): op.operation
        for op in module.body.operations
        if op.operation.name == "memref.global"
    }
    if name not in variables:
        variable = variables[source]
        with variable.location, ir.InsertionPoint(variable):
            ops.create(
                "memref.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": variable.attributes["type"],
                    "constant": ir.UnitAttr.get(),
                    # A use: the constant is not dead.
                    COPY_OF: ir.FlatSymbolRefAttr.get(source),
                },
            )
    return name
