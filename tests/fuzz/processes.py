"""Runs commands, each in a process of its own: started anew, or forked from one that has loaded
aotc before, which takes a tenth of the time. Finds are confirmed by one that is started anew."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from helpers.command import process_environment

# What a build may take of a processor. Another limit is for one that waits: of a machine with other
# work, time tells little.
SECONDS = 20.0
_WAITING = 100.0
# A process that wants more memory than that is refused it, for the machine's other users.
_LARGEST_MEMORY = 12 << 30
# SIGXCPU first, then SIGKILL, for each process that the command starts.
_LIMITS = (
    (resource.RLIMIT_DATA, (_LARGEST_MEMORY, _LARGEST_MEMORY)),
    (resource.RLIMIT_CPU, (int(SECONDS), int(SECONDS) + 1)),
)
_PACKAGES = ("commands", "cpu", "device", "emit", "host", "input", "lower", "processes", "stages")


@dataclass(frozen=True)
class Finished:
    """The exit code (a signal's is negative), how long it took, how long processors were at work
    for it, the bytes of memory at most, and whether processes that it started are still there
    (they are ended then)."""

    code: int
    seconds: float
    processor_seconds: float
    memory: int
    left_processes: bool

    @property
    def is_slow(self) -> bool:
        return self.processor_seconds > SECONDS or self.seconds > _WAITING


def run(command: Sequence[str], place: Path, settings: Mapping[str, str], said: Path) -> Finished:
    """Runs a program in the folder `place`; its stderr goes to the file `said`."""
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=process_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    for kind, limit in _LIMITS:
        resource.prlimit(process.pid, kind, limit)
    finished = _watch(process.pid)
    process.returncode = finished.code
    return finished


def _watch(pid: int) -> Finished:
    """Waits for the first process of a session; ends it where it takes too long."""
    start = time.monotonic()
    handle = os.pidfd_open(pid)
    try:
        # SIGABRT first: Python's handler, where it is on, prints where it is.
        for number, seconds in ((signal.SIGABRT, _WAITING), (signal.SIGKILL, 1.5)):
            if select.select([handle], [], [], seconds)[0]:
                break
            os.killpg(pid, number)
        _, status, usage = os.wait4(pid, 0)
    except BaseException:
        _end_group(pid)
        raise
    finally:
        os.close(handle)
    code, seconds = os.waitstatus_to_exitcode(status), time.monotonic() - start
    left = code >= 0 and not _is_gone(pid)
    _end_group(pid)
    processor = usage.ru_utime + usage.ru_stime
    return Finished(code, seconds, processor, usage.ru_maxrss << 10, left)


def _is_gone(group: int) -> bool:
    """Whether no process of the group runs any more, after some time for the last ones."""
    for _ in range(20):
        if not any(_is_running_in(group, process) for process in Path("/proc").glob("[0-9]*")):
            return True
        time.sleep(0.05)
    return False


def _is_running_in(group: int, process: Path) -> bool:
    """Whether a process of /proc is of the group, and has not ended (a zombie has)."""
    try:
        state, _, its_group = (process / "stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(its_group) == group and state != "Z"


def _end_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Forks:
    """Runs aotc's command line in processes that are forked from one that has loaded it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()

    def run(
        self,
        arguments: Sequence[str],
        place: Path,
        settings: Mapping[str, str],
        said: Path,
        modules: Sequence[str] = (),
    ) -> Finished:
        """As `run` does, `aotc ARGUMENTS`; `modules` are loaded before the first time."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.processes"],
                cwd=Path(__file__).resolve().parent.parent,
                env=process_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        request = {
            "arguments": list(arguments),
            "place": str(place),
            "settings": dict(settings),
            "said": str(said),
            "modules": list(modules),
        }
        stdin.write(json.dumps(request).encode() + b"\n")
        stdin.flush()
        return Finished(**json.loads(stdout.readline()))


def _serve() -> None:
    """Reads a request a line from stdin, and writes how it ended to stdout."""
    import aotc
    from aotc import mlir

    mlir.bindings()
    for package in _PACKAGES:
        path = str(Path(aotc.__file__).parent / package)
        for module in pkgutil.walk_packages([path], f"aotc.{package}."):
            importlib.import_module(module.name)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        for name in request["modules"]:
            importlib.import_module(name)
        child = os.fork()
        if child == 0:
            _become(request)
        finished = _watch(child)
        print(json.dumps(finished.__dict__), flush=True)


def _become(request: dict[str, Any]) -> None:
    """Is the command from here on."""
    from aotc.__main__ import main

    os.setsid()
    for kind, limit in _LIMITS:
        resource.setrlimit(kind, limit)
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, file in enumerate((nothing, nothing, said)):
        os.dup2(file, number)
    os.closerange(3, 64)
    os.chdir(request["place"])
    os.environ.update(request["settings"])
    sys.argv[1:] = request["arguments"]
    main()


if __name__ == "__main__":
    _serve()
