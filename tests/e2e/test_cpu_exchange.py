"""Shuffles, reductions, ballots and ids on the CPU device, against NumPy: equal to the bit."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from e2e.exchange_programs import CASES, PROGRAM, source
from e2e.support import Programs, run
from helpers.shared import made_once, shared_folder

from samples import Array, Case, mismatch, write_files

# One chip: what the CPU device runs does not depend on it.
CHIP = ("--chip", "sm_90a", "--ptx", "none")


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's file: one place for all workers, so that it is built once."""

    def make(folder: Path) -> None:
        (folder / f"{PROGRAM}.mlir").write_text(source())

    return made_once(shared_folder(tmp_path_factory) / PROGRAM, make) / f"{PROGRAM}.mlir"


def _by_entry() -> dict[str, list[Case]]:
    entries: dict[str, list[Case]] = {}
    for case in CASES.values():
        entries.setdefault(case.entry or "", []).append(case)
    return entries


def _load(file: Path) -> Array:
    """What a program wrote. A .npy file has no word for bfloat16: they are two bytes there."""
    array: Array = np.load(file)
    return array.view(ml_dtypes.bfloat16) if array.dtype == "V2" else array


@pytest.mark.exhaustive
@pytest.mark.parametrize("entry", _by_entry())
@pytest.mark.parametrize("options", [(), ("-O0",)], ids=["O3", "O0"])
def test_result_is_numpys(
    programs: Programs, module: Path, tmp_path: Path, entry: str, options: tuple[str, ...]
) -> None:
    """Each kernel gives NumPy's result in blocks of whole warps, partial ones, and one thread."""
    program = programs.build(module, *CHIP, *options)
    for case in _by_entry()[entry]:
        results = list(case.make().results)
        outs = [word for name in results for word in ("--out", f"{name}={tmp_path / name}.npy")]
        done = run(program, *write_files(case, tmp_path), *outs, "--device", "cpu")
        assert (done.stderr, done.returncode) == ("", 0), case.name
        for name in results:
            assert f"{name} matches" in done.stdout
            problem = mismatch(case, name, _load(tmp_path / f"{name}.npy"))
            assert problem is None, problem
