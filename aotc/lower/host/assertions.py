"""cf.assert on the host → a call that every lowering leaves alone, until `aotc.host.embed`.

Upstream's lowering ends the process. What aotc makes is called by others: a failed assertion is
a failure like others there, and the entry returns (`aotc.host.assertions`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aotc import ops
from aotc.input.source import find_node, find_place
from aotc.mlir import ir
from aotc.module_names import CHECK, MESSAGE
from aotc.rewrites.allocations import FOR_MEMORY


def mark_assertions(host: Any, name: str) -> None:
    """Replaces the assertions of a host module; `name` is what places call the input."""
    assertions = ops.find(host.operation, "cf.assert")
    if not assertions:
        return
    body = host.operation.regions[0].blocks[0]
    body.append(ir.Operation.parse(f"llvm.func @{CHECK}(i1)"))
    for assertion in assertions:
        message = ir.StringAttr(assertion.attributes["msg"]).value_bytes.decode(errors="replace")
        place = find_place(str(assertion.location), name)
        node = find_node(str(assertion.location))
        if place is None and node is not None:
            message += f" ({node})"
        if place is not None:
            # Into the artifact, hence without its folder.
            message += f" ({Path(place.file).name}:{place.line}:{place.column})"
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(CHECK),
            MESSAGE: ir.StringAttr.get(message),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
        }
        if FOR_MEMORY in assertion.attributes:
            attributes[FOR_MEMORY] = ir.UnitAttr.get()
        with assertion.location, ir.InsertionPoint(assertion):
            ir.Operation.create(
                "llvm.call", operands=list(assertion.operands), attributes=attributes
            )
        ops.erase(assertion)
