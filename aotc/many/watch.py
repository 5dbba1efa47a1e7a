"""`aotc build --watch`: which files changed, and how the outputs changed, as values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from aotc.cache.sizes import size_text
from aotc.depfile import files_read
from aotc.errors import AotcError
from aotc.many.job import Job

_LOOK = 0.1  # seconds between two checks of the files
_MOST_KERNELS = 3  # maximum number of kernels that a line names

# The attributes by which a change of a file is detected; None if it does not exist.
State = tuple[int, int, int] | None


def files_of(job: Job) -> list[Path]:
    """The files that a job is built from: its input, the files that belong to it, and those that
    options name."""
    try:
        return [*files_read(job.request), *job.reads]
    except (AotcError, OSError, ValueError):  # the file may be missing: the build reports it
        return [job.request.source, *job.reads]


def states_of(files: Iterable[Path]) -> dict[Path, State]:
    return {file: _state(file) for file in files}


def _state(file: Path) -> State:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def wait_for_change(
    before: Mapping[Path, State], pause: Callable[[float], None] = time.sleep
) -> set[Path]:
    """Waits until files differ from `before` and no longer change; returns the files that changed.
    Editors may write a file in several steps."""
    last = dict(before)
    while True:
        pause(_LOOK)
        now = states_of(before)
        if now != before and now == last:
            return {file for file, state in now.items() if state != before[file]}
        last = now


class Made(Struct, frozen=True):
    """The result of a build: its duration, the total bytes of its files, and the registers of each
    kernel on each chip."""

    seconds: float
    size: int
    registers: Mapping[tuple[str, str], int]


def made_of(files: Iterable[Path], seconds: float) -> Made:
    files = list(files)
    registers: dict[tuple[str, str], int] = {}
    for file in files:
        registers |= _registers(file)
    return Made(seconds, sum(file.stat().st_size for file in files), registers)


def _registers(file: Path) -> dict[tuple[str, str], int]:
    from aotc.inspect import inspect

    try:
        images = inspect(file).images
    except AotcError:  # the file has no device code
        return {}
    return {
        (kernel.name, image.chip): kernel.registers
        for image in images
        for kernel in image.kernels
        if kernel.registers is not None
    }


def line_of(title: str, made: Made, before: Made | None) -> str:
    """`saxpy.mlir: 0.42 s, 61.2 KiB (+1.1 KiB); saxpy_kernel on sm_90: 16 registers (was 14)`."""
    size = size_text(made.size)
    if before is None:
        kernels = [f"{_title(key)}: {count} registers" for key, count in made.registers.items()]
        return _joined(title, f"{made.seconds:.2f} s, {size}", kernels)
    if made.size != before.size:
        sign = "+" if made.size > before.size else "-"
        size += f" ({sign}{size_text(abs(made.size - before.size))})"
    gone = [f"{_title(key)}: gone" for key in before.registers if key not in made.registers]
    changed = [
        f"{_title(key)}: {count} registers ({_was(before.registers.get(key))})"
        for key, count in made.registers.items()
        if before.registers.get(key) != count
    ]
    start = f"{made.seconds:.2f} s (was {before.seconds:.2f}), {size}"
    return _joined(title, start, [*changed, *gone] or ["registers as before"])


def _title(key: tuple[str, str]) -> str:
    return f"{key[0]} on {key[1]}"


def _was(count: int | None) -> str:
    return "new" if count is None else f"was {count}"


def _joined(title: str, start: str, kernels: list[str]) -> str:
    shown = kernels[:_MOST_KERNELS]
    if len(kernels) > len(shown):
        shown.append(f"{len(kernels) - len(shown)} kernels more")
    return f"{title}: {'; '.join([start, *shown])}"
