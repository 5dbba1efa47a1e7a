"""Runs the command of a case, and says how that ended: `Ending`."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from aotc.processes.signals import signal_name
from fuzz.case import Case
from fuzz.processes import Finished, Forks, run

# More than that for inputs of a few kilobytes is a find.
_LARGE_MEMORY = 4 << 30
# One screen, and some room for the notes of a diagnostic.
_MOST_LINES = 100
_MOST_CHARACTERS = 20_000


@dataclass(frozen=True)
class Limit:
    """An exit code 3 or 4 that is right: for such an input, with such a message."""

    content: re.Pattern[bytes]
    said: re.Pattern[str]

    def holds(self, content: bytes, said: str) -> bool:
        return bool(self.content.search(content) and self.said.search(said))


LIMITS = (
    # Assembly is the input's own, and a tool's to judge.
    Limit(re.compile(rb"inline_asm|module_asm"), re.compile("ptxas could not|zig .*could not")),
)


@dataclass(frozen=True)
class Ending:
    """`kind` is «ok», «refused» or «limit», or names what must not be; `signature` is alike for
    finds that have one cause, as far as can be told."""

    kind: str
    signature: str
    code: int
    seconds: float
    processor_seconds: float
    said: str

    @property
    def is_find(self) -> bool:
        return self.kind not in ("ok", "refused", "limit")


def execute(case: Case, forks: Forks | None = None) -> Ending:
    """Runs the case in a folder of its own; by `forks` first, where these are given."""
    if forks is not None and not case.is_program:
        ending = _executed(case, forks)
        if not ending.is_find:
            return ending
    return _executed(case, None)


def _executed(case: Case, forks: Forks | None) -> Ending:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        place, temporary, said = folder / "case", folder / "tmp", folder / "stderr"
        place.mkdir()
        temporary.mkdir()
        case.write(place)
        settings = {"TMPDIR": str(temporary), "AOTC_DEVICE": "cpu"}
        if forks is not None:
            finished = forks.run(case.arguments, place, settings, said, case.modules)
        else:
            command = _command(case, place)
            finished = run(command, place, settings, said)
        text = _text(said, folder)
        kind = _kind(case, finished, text)
        if kind in ("ok", "refused", "limit"):
            kind = _kind_of_files(case, place, temporary, finished.code) or kind
        if forks is None and finished.code < 0:
            # Again, for the stack of calls: Python's handler of signals is no part of a build.
            run(command, place, {**settings, "PYTHONFAULTHANDLER": "1"}, said)
            text += _text(said, folder)
        signature = f"{kind}: {_cause(kind, text)}"
        times = (finished.seconds, finished.processor_seconds)
        return Ending(kind, signature, finished.code, *times, text)


def _command(case: Case, place: Path) -> list[str]:
    first, *rest = case.arguments
    if case.is_program:
        return [str(place / first), *rest]
    return [sys.executable, "-m", "aotc", first, *rest]


def _text(said: Path, folder: Path) -> str:
    """What was written, without the name of a folder that is another each time."""
    with said.open("rb") as file:
        return file.read(1 << 20).decode(errors="replace").replace(str(folder), "FOLDER")


def _kind(case: Case, finished: Finished, said: str) -> str:
    code = finished.code
    if finished.is_slow or signal_name(signal.SIGXCPU) in said:
        return "slow"
    if code < 0:
        return signal.Signals(-code).name
    if "Traceback (most recent call last)" in said:
        return "traceback"
    if finished.memory > _LARGE_MEMORY:
        return "memory"
    if finished.left_processes:
        return "left processes"
    if said.count("\n") > _MOST_LINES or len(said) > _MOST_CHARACTERS:
        return "flood"
    if code == 0 or (code == 1 and case.compares):
        return "ok"
    if code in (3, 4) and any(limit.holds(case.content, said) for limit in LIMITS):
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
    words = [first] if case.is_program else ["python", "-m", "aotc", first]
    script = folder / "reproduce.sh"
    script.write_text(f'cd "$(dirname "$0")" && {shlex.join([*words, *rest])}\n')
