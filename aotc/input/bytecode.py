"""Whether MLIR's reader of bytecode survives a file.

It trusts what it reads: a flipped bit may crash it. So a task of the fork server reads the file
first.
"""

from __future__ import annotations

import contextlib

from aotc.input.source import BYTECODE_MAGIC, damaged
from aotc.mlir import ir
from aotc.processes.fork_server import FORK_SERVER, Limits, TaskError, server_context
from aotc.processes.memory import available_memory

# What reading may take, for each byte of the file and besides.
_MEMORY, _MEMORY_FACTOR = 1 << 30, 64
_SECONDS = 5


def check_bytecode(name: str, content: bytes) -> None:
    """Raises InputError for bytecode that MLIR cannot read without an end of its process. Of what
    it refuses, reading tells. Text passes."""
    if not content.startswith(BYTECODE_MAGIC):
        return
    limits = Limits(
        min(_MEMORY + _MEMORY_FACTOR * len(content), available_memory()),
        _SECONDS,
        len(content),
    )
    try:
        FORK_SERVER.call(f"{__name__}:read", content, limits=limits)
    except TaskError as error:
        raise damaged(name, f"MLIR's reader ended by {error.reason}") from None


def read(given: memoryview) -> bytes:
    """The task: reads bytecode, and prints it, which follows all references in it."""
    with contextlib.suppress(Exception):  # which the caller's reading will meet, too
        ir.Module.parse(bytes(given), server_context()).operation.get_asm(
            large_elements_limit=16, large_resource_limit=0
        )
    return b""
