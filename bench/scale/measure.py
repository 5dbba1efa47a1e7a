"""A build's wall time, and the memory that it and its tools have together."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_INTERVAL = 0.1  # seconds
_PROC = Path("/proc")


@dataclass(frozen=True)
class Measured:
    """Wall time, the processors' time, and the largest memory seen: the proportional share (Pss)
    of every process."""

    seconds: float
    cpu_seconds: float
    mebibytes: float


def build(source: Path, *options: str) -> Measured:
    """Builds an executable beside `source`, and removes it. Raises CalledProcessError."""
    output = source.with_suffix(".exe")
    command = [
        sys.executable,
        "-m",
        "aotc",
        "build",
        "--no-cache",
        str(source),
        *options,
        "-o",
        str(output),
    ]
    before, start, peak = _cpu_seconds(), time.perf_counter(), 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_kibibytes, _tree(process.pid))))
            time.sleep(_INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    output.unlink()
    return Measured(seconds, _cpu_seconds() - before, peak / 1024)


def _cpu_seconds() -> float:
    """Of all that has run and ended below this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(root: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Behind the name, which may hold anything but ends with the last parenthesis.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _kibibytes(process: int) -> int:
    try:
        lines = (_PROC / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
