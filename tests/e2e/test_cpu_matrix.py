"""Tensor cores, ldmatrix and asynchronous copies on the CPU device, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from e2e.matrix_programs import CASES, PROGRAM, source
from e2e.support import Programs, run
from helpers.shared import made_once, shared_folder

from samples import mismatch, write_files

# One chip: what the CPU device runs does not depend on it.
CHIP = ("--chip", "sm_90a")


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's file: one place for all workers, so that it is built once."""

    def make(folder: Path) -> None:
        (folder / f"{PROGRAM}.mlir").write_text(source())

    return made_once(shared_folder(tmp_path_factory) / PROGRAM, make) / f"{PROGRAM}.mlir"


def check(program: Path, name: str, folder: Path) -> None:
    case = CASES[name]
    results = list(case.make().results)
    outs = [word for result in results for word in ("--out", f"{result}={folder / result}.npy")]
    done = run(program, *write_files(case, folder), *outs, "--device", "cpu")
    assert (done.stderr, done.returncode) == ("", 0)
    for result in results:
        assert f"{result} matches" in done.stdout
        assert mismatch(case, result, np.load(folder / f"{result}.npy")) is None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("options", [(), ("-O0",)], ids=["O3", "O0"])
def test_result_is_numpys(
    programs: Programs, module: Path, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    """Each kernel gives NumPy's result: exactly for integers and moves, else within rounding."""
    check(programs.build(module, *CHIP, *options), name, tmp_path)
