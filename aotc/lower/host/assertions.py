"""Replaces cf.assert in host code by calls that survive all lowerings until `aotc.host.embed`.

Upstream's lowering aborts the process. Generated libraries are called by other programs: a failed
assertion is an error as others are, and the entry returns (`aotc.host.assertions`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotc import llvm_ops, ops
from aotc.analysis.assertions import compared_by
from aotc.attributes import FOR_MEMORY, MESSAGE_ATTRIBUTE
from aotc.input.source import find_node, find_place
from aotc.mlir import ir
from aotc.module_names import CHECK, CHECK_NUMBERS


def mark_assertions(host: Any, name: str) -> None:
    """Replaces the assertions of a host module. `name` is the input's name in locations."""
    assertions = ops.find(host.operation, "cf.assert")
    if not assertions:
        return
    body = host.operation.regions[0].blocks[0]
    body.append(ir.Operation.parse(f"llvm.func @{CHECK}(i1)"))
    if any(compared_by(assertion) is not None for assertion in assertions):
        body.append(ir.Operation.parse(f"llvm.func @{CHECK_NUMBERS}(i1, i64, i64)"))
    for assertion in assertions:
        message = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode(errors="replace")
        compared = compared_by(assertion)
        where = _place(assertion, name)
        if compared is not None:
            message, where = compared.format, where.replace("%", "%%")
        with assertion.location, ir.InsertionPoint(assertion):
            numbers = []
            if compared is not None:
                i64 = ops.integer(64)
                numbers = [ops.unary("arith.index_cast", one, i64) for one in compared.numbers]
            attributes = {MESSAGE_ATTRIBUTE: ir.StringAttr.get(message + where)}
            if FOR_MEMORY in assertion.attributes:
                attributes[FOR_MEMORY] = ir.UnitAttr.get()
            check = CHECK_NUMBERS if numbers else CHECK
            llvm_ops.call_llvm(check, [assertion.operands[0], *numbers], **attributes)
        ops.erase(assertion)


def _place(assertion: Any, name: str) -> str:
    """The location in the input or in the model with a leading space; empty if unknown."""
    place = find_place(str(assertion.location), name)
    if place is not None:
        # This becomes a part of the artifact, hence without the folder.
        return f" ({Path(place.file).name}:{place.line}:{place.column})"
    node = find_node(str(assertion.location))
    return "" if node is None else f" ({node})"
