"""Modules in the LLVM dialect → LLVM IR text that clang reads, by the LLVM of the bindings.

If the translation fails, the bindings do not raise an exception, but crash the process. So a task
of the fork server runs it in another process.
"""

from __future__ import annotations

import struct
from typing import Any

from aotc import mlir
from aotc.errors import InternalError
from aotc.input.source import bytecode_of
from aotc.mlir import ir, llvm
from aotc.processes.fork_server import FORK_SERVER, TaskError, server_context
from aotc.toolchain.version import Version

# The version of the LLVM that reads the text. The module's bytecode follows it.
_READER = struct.Struct("<III")


def translate(module: Any, reader: Version) -> str:
    """The LLVM IR text of a builtin.module in the LLVM dialect, for an LLVM of version `reader`.

    Raises InternalError, with the message of the bindings, if the translation fails.
    """
    return Translation(module, reader).text()


class Translation:
    """A translation in progress. The module may be changed once this object exists."""

    def __init__(self, module: Any, reader: Version) -> None:
        header = _READER.pack(reader.major, reader.minor, reader.patch)
        self._pending = FORK_SERVER.start(
            f"{__name__}:translated", header, bytecode_of(module.operation)
        )

    def text(self) -> str:
        """Waits for the text, in any thread. May be called once. Raises InternalError as
        `translate` does."""
        try:
            return self._pending.answer().decode()
        except TaskError as error:
            raise _refusal(error.said.strip() or f"It was ended by {error.reason}.") from None


def _refusal(said: str) -> InternalError:
    return InternalError(
        f"The MLIR bindings ({mlir.bindings().package}) cannot translate the module to LLVM IR:\n"
        f"{said}"
    )


def translated(given: memoryview) -> bytes:
    """The task of the fork server: version and bytecode → LLVM IR text."""
    from aotc.toolchain.llvm_text import downlevel  # not needed in the client process

    reader = Version(*_READER.unpack(given[: _READER.size]))
    context = server_context()
    context.emit_error_diagnostics = True  # the bindings' exception does not have them
    try:
        # A parsed module is deterministic. In one that was built, the order of a phi's predecessors
        # depends on how it was built.
        module = ir.Module.parse(bytes(given[_READER.size :]), context)
        text = llvm.translate_module_to_llvmir(module.operation)
    except Exception as error:
        raise _refusal(str(error)) from None
    writer = Version.parse(mlir.bindings().llvm_version)
    return downlevel(text, writer=writer, reader=reader).encode()
