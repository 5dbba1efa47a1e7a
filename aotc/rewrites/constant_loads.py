"""`ml_program.global_load_const` → `ml_program.global_load`, which bufferization supports. IREE and
others write the first for tensors that nothing stores to."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir


def load_constant_globals(module: Any) -> None:
    """Changes `module` in place."""
    with module.context:
        for load in ops.find(module.operation, "ml_program.global_load_const"):
            types, attributes = [load.results[0].type], ops.attributes_of(load)
            with load.location, ir.InsertionPoint(load):
                made = ops.create("ml_program.global_load", [], types, attributes)
            ops.replace(load, made.results)
