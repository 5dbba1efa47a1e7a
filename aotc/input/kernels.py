"""The attribute that marks kernels: the bindings set an old one."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

# The attribute of an older MLIR, which `GPUFuncOp` of the Python bindings still sets. MLIR prints
# the new one instead, so that text never has the old one, but bytecode and modules in memory may.
_OLD, _NEW = "gpu.kernel", "kernel"


def mark_kernels(module: Any) -> None:
    """Replaces the old attribute of each kernel by the new one."""
    for function in ops.find(module.operation, "gpu.func"):
        if _OLD in function.attributes:
            del function.attributes[_OLD]
            function.attributes[_NEW] = ir.UnitAttr.get(function.context)
