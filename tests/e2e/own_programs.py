"""Modules with a main of their own: what each prints, and its exit code.

What upstream's integration tests for CUDA do, in small programs of ours: NAME.mlir beside NAME.txt,
its whole output. Only addresses (`base@ = 0x55d5...`) differ from run to run: they are `@` there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "data" / "programs"
SAMPLES = Path(__file__).resolve().parent.parent.parent / "samples"


@dataclass(frozen=True)
class OwnProgram:
    """A program, what it is called with, and its exit code."""

    name: str
    arguments: tuple[str, ...] = ()
    code: int = 0

    @property
    def source(self) -> Path:
        sample = SAMPLES / f"{self.name}.mlir"
        return sample if sample.exists() else FOLDER / f"{self.name}.mlir"

    @property
    def expected(self) -> Path:
        return FOLDER / f"{self.name}.txt"


PROGRAMS = {
    program.name: program
    for program in (
        OwnProgram("all_reduce"),
        OwnProgram("arguments", ("first", "second one"), code=2),
        OwnProgram("called"),
        OwnProgram("concurrent"),
        OwnProgram("kernel_print"),
        OwnProgram("mma_sync"),
        OwnProgram("shuffle"),
        OwnProgram("small_language"),
        OwnProgram("task_functions"),
        OwnProgram("task_group"),
        OwnProgram("task_memory"),
        OwnProgram("tasks"),
        OwnProgram("tasks_with_tokens"),
        OwnProgram("tokens"),
        OwnProgram("two_modules"),
        OwnProgram("unranked_copy"),
        OwnProgram("vectors", code=6),
        OwnProgram("wmma"),
    )
}


def without_addresses(text: str) -> str:
    """`base@ = 0x55d5` as `base@ = @`."""
    return re.sub(r"base@ = 0x[0-9a-f]+", "base@ = @", text)
