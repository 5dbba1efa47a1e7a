"""Imports a file by its front end in a separate process, so that a crash or a hang becomes an
error.

The libraries that front ends use (readers of formats, torch-mlir's passes) are not hardened against
hostile files. Some ordinary programs, too, make them crash, hang or exhaust the memory.
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

# The memory limit of an import: a constant, and a number of bytes for each byte of its files.
_MEMORY, _MEMORY_FACTOR = 4 << 30, 16
# The limit of processor seconds between two progress reports. Passes report progress, and so does
# Python code that takes long.
_SECONDS = 60


def import_file(
    frontend: Frontend, path: Path, options: Mapping[str, str], *, named: str | None
) -> bytes:
    """Returns the bytecode of the module that the front end imports from the file. `named` is the
    front end's name if it was given explicitly, and None if it was chosen by the file's extension.

    Raises the errors of `run_frontend`. Raises InputError, which names the operation, if the front
    end's process crashes, hangs or exceeds the memory limit.
    """
    check_usable(frontend, path, options)
    limits = import_limits(_size(frontend, path))
    request = {"frontend": named, "path": str(path), "options": dict(options)}
    try:
        given = json.dumps(request).encode()
        return FORK_SERVER.call(f"{__name__}:import_task", given, limits=limits)
    except TaskError as error:
        raise import_failure(error) from None


def import_limits(size: int) -> Limits:
    """The limits of an import that reads `size` bytes."""
    return Limits(min(_MEMORY + _MEMORY_FACTOR * size, available_memory()), _SECONDS, size)


def import_failure(error: TaskError) -> InputError:
    """The error for an import whose process ended without an answer or an error of its own."""
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
    """The size in bytes of the file and of the files that belong to it."""
    try:
        return sum(one.stat().st_size for one in (path, *frontend.beside(path)))
    except Exception:  # of any front end, e.g. for a missing file: the import reports it
        return 0


def import_task(given: memoryview) -> bytes:
    """The task of the fork server."""
    request = json.loads(bytes(given))
    path = Path(request["path"])
    frontend = frontend_for(path, request["frontend"])
    assert frontend is not None
    mlir.with_classes()
    module = run_frontend(frontend, path, request["options"])
    operation = getattr(module, "operation", module)
    if not hasattr(operation, "write_bytecode"):
        raise ToolError(
            f"The front end '{frontend.name}' made no ir.Module of {path}: {type(module).__name__}."
        )
    return bytecode_of(operation)
