"""Runs the command of a case in a fresh process, and says how that ended: `Ending`."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from helpers.command import REPOSITORY

from fuzz.case import Case

# What a build may take.
SECONDS = 20.0
# A process that wants more memory than that is refused it, for the machine's other users.
_LARGEST_MEMORY = 12 << 30
# More than that for inputs of a few kilobytes is a find.
_LARGE_MEMORY = 4 << 30
# One screen, and some room for the notes of a diagnostic.
_MOST_LINES = 100
_MOST_CHARACTERS = 20_000

# Messages of limits that are written down: these may end in exit code 3 or 4.
LIMITS: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True)
class Ending:
    """`kind` is «ok», «refused» or «limit», or names what must not be; `signature` is alike for
    finds that have one cause, as far as can be told."""

    kind: str
    signature: str
    code: int
    seconds: float
    said: str

    @property
    def is_find(self) -> bool:
        return self.kind not in ("ok", "refused", "limit")


def execute(case: Case) -> Ending:
    """Runs the case in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        place, temporary = folder / "case", folder / "tmp"
        place.mkdir()
        temporary.mkdir()
        case.write(place)
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "TMPDIR": str(temporary),
            "AOTC_DEVICE": "cpu",
        }
        command = _command(case, folder)
        code, seconds, memory, said = _run(command, place, environment, folder)
        if code < 0:
            # Again, for the stack of calls: Python's handler of signals is no part of a build.
            environment["PYTHONFAULTHANDLER"] = "1"
            said += _run(command, place, environment, folder)[3]
        kind = _kind(case, code, seconds, memory, said)
        if kind in ("ok", "refused", "limit"):
            kind = _kind_of_files(case, place, temporary, code) or kind
        return Ending(kind, f"{kind}: {_cause(kind, said)}", code, seconds, said)


def _command(case: Case, folder: Path) -> list[str]:
    first, *rest = case.arguments
    if first.startswith("./"):
        return [str(folder / "case" / first), *rest]
    return [sys.executable, "-m", "aotc", first, *rest]


def _run(
    command: list[str], place: Path, environment: dict[str, str], folder: Path
) -> tuple[int, float, int, str]:
    """The exit code (a signal's is negative), seconds, bytes of memory at most, and stderr."""
    said = folder / "stderr"
    start = time.monotonic()
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (_LARGEST_MEMORY, _LARGEST_MEMORY))
    # SIGABRT first: Python's handler, where it is on, prints where it is.
    timers = [
        threading.Timer(SECONDS + 0.5, _kill, [process.pid, signal.SIGABRT]),
        threading.Timer(SECONDS + 2, _kill, [process.pid, signal.SIGKILL]),
    ]
    for timer in timers:
        timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        _kill(process.pid, signal.SIGKILL)
        raise
    finally:
        for timer in timers:
            timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    with said.open("rb") as stderr:
        text = stderr.read(1 << 20).decode(errors="replace")
    text = text.replace(str(folder), "FOLDER")
    return process.returncode, seconds, usage.ru_maxrss << 10, text


def _kill(group: int, number: signal.Signals) -> None:
    """Ends the process and those that it started."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _kind(case: Case, code: int, seconds: float, memory: int, said: str) -> str:
    if seconds > SECONDS:
        return "slow"
    if code < 0:
        return signal.Signals(-code).name
    if "Traceback (most recent call last)" in said:
        return "traceback"
    if memory > _LARGE_MEMORY:
        return "memory"
    if said.count("\n") > _MOST_LINES or len(said) > _MOST_CHARACTERS:
        return "flood"
    if code == 0 or (code == 1 and case.compares):
        return "ok"
    if any(limit.search(said) for limit in LIMITS):
        return "limit"
    if code != 2:
        return f"exit {code}"
    return "refused" if said.strip() else "silent"


def _kind_of_files(case: Case, place: Path, temporary: Path, code: int) -> str | None:
    """What is wrong with the files that are there at the end, if anything is."""
    if any(temporary.iterdir()):
        return "left temporary files"
    made = [output for output in case.outputs if (place / output).exists()]
    if code == 0 and len(made) < len(case.outputs):
        return "no output"
    if code != 0 and made:
        return "output of a failure"
    if code == 0:
        for name, content in case.expected.items():
            if (place / name).read_bytes() != content:
                return "wrong output"
    return None


def _cause(kind: str, said: str) -> str:
    """The words by which finds of one cause know each other: without names, numbers, places."""
    lines = [line for line in said.splitlines() if line.strip()]
    frames = re.findall(r'File "[^"]*?([^"/]+/[^"/]+)", line \d+ in (\S+)', said)
    if kind.startswith(("SIG", "slow")) and frames:
        return " ".join(frames[0])
    if kind == "traceback":
        frames = re.findall(r'File "[^"]*?([^"/]+/[^"/]+)", line \d+, in (\S+)', said)
        ours = [f"{file} {function}" for file, function in frames if "importlib" not in file]
        error = next((line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)), "")
        lines = [f"{ours[-1] if ours else ''} {error.split(':')[0]}"]
    words = next((line for line in lines if "error" in line), lines[0] if lines else "")
    words = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", words)
    return re.sub(r"\d+", "N", words)[:160]


def keep(case: Case, folder: Path) -> None:
    """Writes the files of the case, and a script with its command."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case.write(folder)
    first, *rest = case.arguments
    words = [first] if first.startswith("./") else ["python", "-m", "aotc", first]
    script = folder / "reproduce.sh"
    script.write_text(f'cd "$(dirname "$0")" && {shlex.join([*words, *rest])}\n')
