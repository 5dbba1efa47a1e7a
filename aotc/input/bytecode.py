"""A check that MLIR's bytecode reader can read a file without a crash.

The reader trusts its input: a flipped bit may crash it. So a task of the fork server reads the file
first. That needs memory of several times its size, and is skipped for bytecode that the same
bindings have just written.
"""

from __future__ import annotations

import contextlib

from aotc.errors import InputError
from aotc.input.source import BYTECODE_MAGIC, damaged
from aotc.mlir import ir
from aotc.processes.fork_server import FORK_SERVER, Limits, TaskError, server_context
from aotc.processes.memory import available_memory, gibibytes

# Limits of a read: bytes of memory, a factor for each byte of the file, and seconds.
_MEMORY, _MEMORY_FACTOR = 1 << 30, 64
_SECONDS = 5


def check_bytecode(name: str, content: bytes) -> None:
    """Raises InputError for bytecode whose reading ends the process. Text passes, as does bytecode
    that MLIR refuses with an error."""
    if not content.startswith(BYTECODE_MAGIC):
        return
    enough, available = _MEMORY + _MEMORY_FACTOR * len(content), available_memory()
    limits = Limits(min(enough, available), _SECONDS, len(content))
    too_much = f"more than {gibibytes(limits.memory)} of memory"
    try:
        FORK_SERVER.call(f"{__name__}:read", content, limits=limits)
    except TaskError as error:
        if error.reason == too_much and available < enough:
            raise InputError(
                f"Cannot read {name}: MLIR's reader takes {too_much}, and no more is available.",
                hint="build it on a machine with more memory, or give aotc.build the ir.Module.",
            ) from None
        raise damaged(name, f"MLIR's reader ended by {error.reason}") from None


def read(given: memoryview) -> bytes:
    """The task of the fork server: reads bytecode, and prints the module, which follows all
    references in it."""
    with contextlib.suppress(Exception):  # the caller gets the same exception when it reads
        ir.Module.parse(bytes(given), server_context()).operation.get_asm(
            large_elements_limit=16, large_resource_limit=0
        )
    return b""
