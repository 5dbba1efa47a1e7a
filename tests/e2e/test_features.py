"""The entries of the GPU bundle's feature_programs.py on the CPU device, against NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.support import Programs, run
from gpu.feature_programs import CASES, PROGRAM, source
from helpers.shared import made_once, shared_folder

from samples import write_files


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's file: one place for all workers, so that it is built once."""

    def make(folder: Path) -> None:
        (folder / f"{PROGRAM}.mlir").write_text(source())

    return made_once(shared_folder(tmp_path_factory) / PROGRAM, make) / f"{PROGRAM}.mlir"


@pytest.mark.parametrize("name", CASES)
def test_result_is_numpys(programs: Programs, module: Path, tmp_path: Path, name: str) -> None:
    program = programs.build(module, "--chip", "sm_90a", "-O1")
    done = run(program, *write_files(CASES[name], tmp_path), "--device", "cpu")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.count(" matches ") == len(CASES[name].make().results)
