"""Modules in the LLVM dialect → LLVM IR text, by the LLVM of the bindings."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from aotc import mlir
from aotc.errors import InternalError
from aotc.mlir import llvm


def translate(module: Any) -> str:
    """The LLVM IR text of a builtin.module in the LLVM dialect, as the bindings' LLVM prints it.

    Raises InternalError, with what the bindings say, where they cannot.
    """
    # Where the translation fails, the bindings do not raise: they crash the process. A child of
    # this one does it, and what it says of the module before that is the message.
    with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as words:
        child = os.fork()
        if child == 0:
            _translate_and_exit(module, text.fileno(), words.fileno())
        _, status = os.waitpid(child, 0)
        text.seek(0)
        words.seek(0)
        if status == 0:
            return text.read().decode()
        said = words.read().decode(errors="replace").strip()
    raise InternalError(
        f"The MLIR bindings ({mlir.bindings().package}) cannot translate the module to LLVM IR"
        + (f":\n{said}" if said else ".")
    )


def _translate_and_exit(module: Any, text: int, words: int) -> None:
    """In the child: never returns, and runs nothing of the parent's on its way out."""
    try:
        os.dup2(words, 2)
        module.context.emit_error_diagnostics = True
        with module.context:
            content = llvm.translate_module_to_llvmir(module.operation).encode()
        with os.fdopen(text, "wb", closefd=False) as file:
            file.write(content)
    except BaseException as error:
        os.write(words, str(error).encode())
        os._exit(1)
    os._exit(0)
