"""Imports a file by its front end, in a process whose crash or hang is an error.

What front ends are made of (readers of formats, torch-mlir's passes) was not written for hostile
files, and some ordinary programs crash it, hang it or fill the memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from aotc import mlir
from aotc.errors import InputError, ToolError
from aotc.frontends.culprit import find_culprit
from aotc.frontends.registry import Frontend, check_usable, frontend_for, run_frontend
from aotc.input.source import bytecode_of
from aotc.processes.fork_server import FORK_SERVER, Limits, TaskError
from aotc.processes.memory import available_memory

# An import may take this many bytes of memory, and so many for each byte of its files.
_MEMORY, _MEMORY_FACTOR = 4 << 30, 16
# ... this many seconds of processor time between two steps that it tells of. Steps are passes; and
# what is written in Python, and takes longer, but does not hang.
_SECONDS = 60


def import_file(
    frontend: Frontend, path: Path, options: Mapping[str, str], *, named: str | None
) -> bytes:
    """The bytecode of the module that the front end makes of the file. `named` is the front end's
    name, if it was not chosen by the file's ending.

    Raises what `run_frontend` does; and InputError where the front end's process crashes, hangs
    or takes more memory than there is, with the operation at which it does.
    """
    check_usable(frontend, path, options)
    limits = import_limits(_size(frontend, path))
    question = {"frontend": named, "path": str(path), "options": dict(options)}
    try:
        given = json.dumps(question).encode()
        return FORK_SERVER.call(f"{__name__}:imported", given, limits=limits)
    except TaskError as error:
        raise import_failure(error) from None


def import_limits(size: int) -> Limits:
    """The limits of an import that reads `size` bytes."""
    return Limits(min(_MEMORY + _MEMORY_FACTOR * size, available_memory()), _SECONDS, size)


def import_failure(error: TaskError) -> InputError:
    """What to say of an import that ended otherwise than by an answer or an error."""
    how = {"SIGKILL": "was killed"}.get(error.reason, f"ended by {error.reason}")
    if error.reason.startswith("more than"):
        how = f"needs {error.reason}"
    elif error.reason.startswith("no progress"):
        how = f"made {error.reason}"
    message = f"The import {how}, in this step: {error.step or 'its beginning'}."
    culprit = find_culprit(error)
    if culprit is None:
        return InputError(message)
    place = f"{culprit.place}: error: " if culprit.place else ""
    return InputError(f"{place}{culprit.operation} cannot be imported. {message}")


def _size(frontend: Frontend, path: Path) -> int:
    """The size in bytes of the file and of those beside it that belong to it."""
    try:
        return sum(one.stat().st_size for one in (path, *frontend.beside(path)))
    except Exception:  # of others' code, for a file that may be none: the import tells of it
        return 0


def imported(given: memoryview) -> bytes:
    """The task of the fork server."""
    question = json.loads(bytes(given))
    path = Path(question["path"])
    frontend = frontend_for(path, question["frontend"])
    assert frontend is not None
    mlir.with_classes()
    module = run_frontend(frontend, path, question["options"])
    operation = getattr(module, "operation", module)
    if not hasattr(operation, "write_bytecode"):
        raise ToolError(
            f"The front end '{frontend.name}' made no ir.Module of {path}: {type(module).__name__}."
        )
    return bytecode_of(operation)
