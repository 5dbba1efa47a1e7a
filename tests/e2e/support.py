"""Executables for the tests: each built once a session, whichever worker asks first."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

from helpers.command import build_here

ROOT = Path(__file__).resolve().parent.parent.parent


class Programs:
    """Builds executables into a folder that all workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, source: Path, *options: str) -> Path:
        """The executable that `aotc build SOURCE OPTIONS` makes."""
        key = hashlib.sha256("\0".join([str(source), *options]).encode()).hexdigest()[:12]
        folder = self._folder / f"{source.stem}-{key}"
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / source.stem
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                build_here(source, *options, "-o", program)
        return program


def run(
    program: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program in an environment that holds `env` alone."""
    return subprocess.run(
        [program, *arguments],
        env=dict(env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
