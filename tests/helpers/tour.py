"""The commands of samples/README.md, run as they stand there, and what they print.

A block of them is fenced as `console`; the word behind that says what has to be installed. A line
`...` stands for any lines, `...` in a line for any characters.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.command import SAMPLES, Outcome

# Builds that others want, too: what `aotc build SOURCE` makes, by SOURCE.
Built = Callable[[Path], Path]


@dataclass(frozen=True)
class Step:
    """A command, and the lines that it prints; `file` is the sample's, or its folder."""

    file: str
    command: str
    expected: tuple[str, ...]


def steps(needs: str = "") -> Iterator[list[Step]]:
    """The steps of each block that needs this, by paragraphs."""
    text = (SAMPLES / "README.md").read_text()
    for paragraph in re.split(r"^(?=\*\*\[)", text, flags=re.MULTILINE)[1:]:
        file = paragraph[3 : paragraph.index("]")]
        for word, block in re.findall(
            r"^```console ?(\w*)\n(.*?)^```", paragraph, re.MULTILINE | re.DOTALL
        ):
            if word == needs:
                yield list(_steps(file, block))


def files() -> list[str]:
    """What the paragraphs are about, in order."""
    return re.findall(r"^\*\*\[(.+?)\]", (SAMPLES / "README.md").read_text(), re.MULTILINE)


def _steps(file: str, block: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = part.splitlines()
        yield Step(file, command, tuple(expected))


def check(
    block: list[Step], folder: Path, aotc: Callable[..., Outcome], built: Built | None = None
) -> None:
    """Runs a block in `folder`, the current one; aotc in this process, but for programs that are
    `built` anyway."""
    if not (folder / "samples").exists():
        (folder / "samples").symlink_to(SAMPLES)
    for step in block:
        words = shlex.split(step.command)
        simple = re.fullmatch(r"aotc build (samples/(\w+)\.mlir) -o \2", step.command)
        if simple and built:
            (folder / simple[2]).symlink_to(built(SAMPLES.parent / simple[1]))
            printed = ""
        elif words[0] == "aotc":
            printed = aotc(*words[1:]).succeeded().stdout
        else:
            printed = _run(step.command)
        pattern = "".join(_pattern(line) for line in step.expected)
        assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {step.command}\n{printed}"


def _run(command: str) -> str:
    """As a shell does, without a GPU; `python` is this one. Who shows errors shows that the CPU
    device lacks something: 3."""
    python = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-c", python + command],
        env={**os.environ, "AOTC_DEVICE": "cpu", "PYTHONPATH": str(SAMPLES.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (3 if "2>&1" in command else 0), (
        f"$ {command}\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def _pattern(line: str) -> str:
    if line == "...":
        return "(?:[^\n]*\n)*"
    return "[^\n]*".join(re.escape(part) for part in line.split("...")) + "\n"
