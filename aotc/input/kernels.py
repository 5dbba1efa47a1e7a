"""Kernels, as the bindings mark them and as everything else does."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

# The attribute of an older MLIR, which `GPUFuncOp` of the Python bindings still sets. MLIR prints
# it as the new one, so that text has it no more, but bytecode and modules in memory do.
_OLD, _NEW = "gpu.kernel", "kernel"


def mark_kernels(module: Any) -> None:
    """Gives each gpu.func that is a kernel the attribute that says so today."""
    for function in ops.find(module.operation, "gpu.func"):
        if _OLD in function.attributes:
            del function.attributes[_OLD]
            function.attributes[_NEW] = ir.UnitAttr.get(function.context)
