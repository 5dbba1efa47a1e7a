"""Runs aotc's command line in tests: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aotc import cli

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SAMPLES = REPOSITORY / "samples"


@dataclass(frozen=True)
class Outcome:
    """What a command line left: its exit code and its words."""

    code: int
    stdout: str
    stderr: str

    def succeeded(self) -> Outcome:
        """This outcome, if the command succeeded; fails the test otherwise."""
        assert self.code == 0, self.stderr
        return self


def build_here(source: Path, *options: str | Path) -> None:
    """`aotc build SOURCE OPTIONS` in this process; fails the test with its words if it fails.

    For tests that want what it makes: a process would take half of its time to start.
    """
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = cli.run(["build", str(source), *map(str, options)])
    assert code == 0, f"aotc build {source}: exit code {code}\n{said.getvalue()}"


def own_process(
    arguments: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Outcome:
    """`aotc ARGUMENTS` as a process; `env` adds to this one's environment."""
    done = subprocess.run(
        aotc_command(*arguments),
        cwd=cwd,
        env=process_environment(env),
        input=stdin,
        capture_output=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def aotc_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "aotc", *map(str, arguments)]


def process_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment with `env`, in which `python -m aotc` finds this checkout."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **(env or {})}
