"""Programs → verdicts: many in one module, built by aotc, run one after the other."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from property.arithmetic import Array
from property.evaluate import evaluate
from property.inputs import argument_words, compared, input_files, inputs_of, path_of
from property.mlir_text import module_text
from property.program import Program

ROOT = Path(__file__).resolve().parent.parent.parent

# One chip, and no PTX: the rest of a build is not what is asked here.
BUILD_OPTIONS = ("--chip", "sm_90", "--ptx", "none")
# A pass that never ends also takes more and more memory.
_BUILD_SECONDS = 60
_BUILD_SECONDS_EACH = 5
_BUILD_KIB = 4 * 2**20
_RUN_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """What became of a program. `kind` is "ok", "build", "mismatch", "error" or "hang"."""

    program: Program
    kind: str
    message: str = ""
    # The message's line that says what is wrong, if it is not about numbers.
    said: str = ""

    @property
    def signature(self) -> tuple[str, str]:
        """What two failures for one reason have in common: no numbers, places or names."""
        return self.kind, re.sub(r"'[^']*'|\S*\d\S*", "", self.said)


@dataclass(frozen=True)
class Settings:
    """How programs are built and run."""

    device: str = "cpu"
    build_options: tuple[str, ...] = BUILD_OPTIONS
    # The runtime's threads; 0 leaves it their number.
    cpu_threads: int = 0


def expect_words(program: Program, folder: Path, shown_as: str) -> list[str]:
    """Writes what the program must give into `folder`; the words that compare it.

    Integers are equal when nothing is said of tolerances, and the few sums of f32 are of small
    integers, which no tolerance below a half hides.
    """
    expected = evaluate(program, inputs_of(program, _FILES))
    words = []
    for name in compared(program):
        path = path_of(folder, program, name)
        np.save(path, expected[name])
        words += ["--expect", f"{name}={shown_as}/{path.name}"]
    return words


def write_inputs(folder: Path) -> None:
    """Writes the inputs of all programs."""
    for name, values in _FILES.items():
        np.save(folder / name, values)


def build(programs: Sequence[Program], folder: Path, settings: Settings) -> tuple[Path, str]:
    """The executable with these programs, and what aotc says if it makes none."""
    source = folder / "programs.mlir"
    source.write_text(module_text(programs))
    executable = folder / "programs"
    executable.unlink(missing_ok=True)
    limited = ["sh", "-c", f'ulimit -v {_BUILD_KIB} && exec "$@"', "sh"]
    command = [sys.executable, "-m", "aotc", "build", str(source), *settings.build_options]
    seconds = _BUILD_SECONDS + _BUILD_SECONDS_EACH * len(programs)
    try:
        result = subprocess.run(
            [*limited, *command, "-o", str(executable)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return executable, f"error: aotc took more than {seconds} seconds"
    if result.returncode == 0:
        return executable, ""
    return executable, f"aotc: exit code {result.returncode}\n{result.stderr}"


def judge(programs: Sequence[Program], folder: Path, settings: Settings) -> list[Verdict]:
    """Builds and runs programs in this folder, which is theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    write_inputs(folder)
    executable, problem = build(programs, folder, settings)
    if problem and len(programs) == 1:
        said = next((line for line in problem.splitlines() if "error:" in line), "")
        return [Verdict(programs[0], "build", problem, said)]
    if problem:
        # Each half alone, down to those that aotc does not take.
        half = len(programs) // 2
        parts = (programs[:half], programs[half:])
        return [verdict for part in parts for verdict in judge(part, folder, settings)]
    return [_run(program, executable, folder, settings) for program in programs]


def _run(program: Program, executable: Path, folder: Path, settings: Settings) -> Verdict:
    words = argument_words(program, str(folder))
    words += expect_words(program, folder, str(folder))
    command = [str(executable), *words, "--device", settings.device]
    environment = {"AOTC_CPU_THREADS": str(settings.cpu_threads)} if settings.cpu_threads else {}
    try:
        result = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_RUN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Verdict(program, "hang", f"$ {shlex.join(command)}\nno end in {_RUN_SECONDS} s")
    if result.returncode == 0:
        return Verdict(program, "ok")
    said = f"$ {shlex.join(command)}\nexit code {result.returncode}\n{result.stderr}{result.stdout}"
    if result.returncode == 1:
        return Verdict(program, "mismatch", said)
    return Verdict(program, "error", said, result.stderr or str(result.returncode))


_FILES: dict[str, Array] = input_files()
