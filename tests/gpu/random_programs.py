"""Random programs of the property test → executables and checks of the GPU bundle.

The GPU's answers are compared with the same evaluation as the CPU device's (tests/property).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from property.batch import BUILD_OPTIONS, expect_words, write_inputs
from property.features import Features
from property.generate import generate
from property.inputs import argument_words
from property.mlir_text import module_text
from property.program import Program

COUNT = 200
_FIRST_SEED = 1
# In one executable: one that does not build takes all of them along.
_IN_A_MODULE = 25
OPTIONS = BUILD_OPTIONS

_FOLDER = "random"


def _modules() -> Iterator[tuple[str, list[Program]]]:
    """The modules' names, each with its programs."""
    for first in range(_FIRST_SEED, _FIRST_SEED + COUNT, _IN_A_MODULE):
        seeds = range(first, min(first + _IN_A_MODULE, _FIRST_SEED + COUNT))
        yield f"random{first}", [generate(f"p{seed}", seed, Features()) for seed in seeds]


def write_sources(folder: Path) -> list[Path]:
    """Writes the modules into `folder`."""
    files = []
    for name, programs in _modules():
        files.append(folder / f"{name}.mlir")
        files[-1].write_text(module_text(programs))
    return files


def write_checks(out: Path) -> list[str]:
    """Writes inputs and expected results into the bundle `out`; its lines of cases.sh."""
    folder = out / _FOLDER
    folder.mkdir()
    write_inputs(folder)
    lines = []
    for name, programs in _modules():
        for program in programs:
            words = argument_words(program, _FOLDER) + expect_words(program, folder, _FOLDER)
            command = [f"bin/{name}", *words, "--device", "cuda"]
            lines.append(f"check {shlex.join(['cuda', f'random-{program.name}', *command])}")
    return lines
