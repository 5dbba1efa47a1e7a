"""Modules in the LLVM dialect → LLVM IR text that the clang in use reads."""

from __future__ import annotations

from typing import Any

from aotc import mlir
from aotc.errors import InternalError
from aotc.mlir import ir, llvm


def translate(module: Any) -> str:
    """The LLVM IR text of a builtin.module in the LLVM dialect, as the bindings' LLVM prints it."""
    with module.context:
        try:
            text = llvm.translate_module_to_llvmir(module.operation)
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            raise InternalError(f"Cannot translate the module to LLVM IR: {error}") from None
    if not text:
        raise InternalError(
            f"The MLIR bindings ({mlir.bindings().package}) could not translate the module to "
            "LLVM IR."
        )
    return str(text)
