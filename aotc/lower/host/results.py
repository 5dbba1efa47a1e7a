"""Announces each allocation of a result to the runtime, by a call before it.

The runtime decides for each call of the entry whether a result is in device or managed memory.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import RESULT_ATTRIBUTE
from aotc.mlir import ir
from aotc.module_names import PREPARE_RESULT
from aotc.ops import symbol_of


def announce_results(host: Any) -> None:
    """Changes `host`, the operation of a module, in place."""
    results = [op for op in ops.find(host, "gpu.alloc") if RESULT_ATTRIBUTE in op.attributes]
    if not results:
        return
    if PREPARE_RESULT not in [symbol_of(op) for op in ops.find(host, "func.func")]:
        with ir.Location.unknown():
            parsed = ir.Module.parse(f"func.func private @{PREPARE_RESULT}()")
        (declaration,) = parsed.body.operations
        host.regions[0].blocks[0].append(declaration.operation)
    for allocation in results:
        with allocation.location, ir.InsertionPoint(allocation):
            ops.call(PREPARE_RESULT)
        del allocation.attributes[RESULT_ATTRIBUTE]
