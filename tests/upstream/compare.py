"""The output of a program against the CHECK lines of its test: by LLVM's FileCheck where this
machine has it, else by the package `filecheck`, which refuses some lines that LLVM's own takes."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


@functools.cache
def filecheck() -> tuple[str, ...]:
    """The command: of $FILECHECK, of PATH, of the newest LLVM in /usr/lib, or the package's."""
    if named := os.environ.get("FILECHECK"):
        return (named,)
    if found := shutil.which("FileCheck"):
        return (found,)
    if installed := sorted(Path("/usr/lib").glob("llvm-*/bin/FileCheck"), key=_release):
        return (str(installed[-1]),)
    return (sys.executable, "-m", "filecheck")


def _release(path: Path) -> int:
    return int(re.sub(r"\D", "", path.parts[3]) or 0)


def difference(output: bytes, words: Sequence[str]) -> str | None:
    """What `output` lacks, in one line, by a FileCheck command's `words`; None where it fits."""
    done = subprocess.run(
        [*filecheck(), *words, "--allow-empty"], input=output, capture_output=True, check=False
    )
    if done.returncode == 0:
        return None
    said = (done.stderr + done.stdout).decode(errors="replace").splitlines()
    complaint = next((line for line in said if "error:" in line), "the output does not fit")
    what = re.sub(r"^.*?error:\s*", "", complaint)
    wanted = next((line for line in said if "CHECK" in line and "error:" not in line), "")
    return f"{what}: {wanted.strip()}" if wanted else what
