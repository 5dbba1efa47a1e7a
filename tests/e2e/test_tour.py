"""samples/README.md: each sample has a paragraph, and its commands print what it says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.support import Programs
from helpers.command import SAMPLES, Outcome
from helpers.tour import Step, check, files, steps

BLOCKS = {block[0].file: block for block in steps()}


def test_every_sample_has_a_paragraph() -> None:
    there = {file.name for file in SAMPLES.glob("*.mlir")}
    there |= {f"{file.parent.name}/{file.name}" for file in SAMPLES.glob("*/*.py")}
    there |= {f"{folder.name}/" for folder in SAMPLES.iterdir() if (folder / "README.md").exists()}
    # A folder with a README of its own has one paragraph.
    there -= {name for name in there if name.endswith(".py") and f"{name.split('/')[0]}/" in there}
    assert sorted(files()) == sorted(there)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_commands(
    block: list[Step],
    programs: Programs,
    aotc: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if any(step.command.startswith("cc ") for step in block) and not shutil.which("c++"):
        pytest.skip("there are no cc and c++")
    monkeypatch.chdir(tmp_path)
    check(block, tmp_path, aotc, programs.build)
