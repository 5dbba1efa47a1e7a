"""The programs in which threads exchange values, on the CPU device, against NumPy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from e2e.exchange_programs import CASES, PROGRAM, source
from e2e.support import Programs, run

from samples import write_files

# One chip: what the CPU device runs does not depend on it.
CHIP = ("--chip", "sm_80")


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's file: one place for all workers, so that it is built once."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    draft = tmp_path_factory.mktemp("draft") / f"{PROGRAM}.mlir"
    draft.write_text(source())
    return draft.rename(folder / draft.name)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.runs_on_cpu])
def test_result_is_numpys(programs: Programs, module: Path, tmp_path: Path, name: str) -> None:
    """Every thread gets NumPy's value, to the bit: sums are in the order that is defined."""
    case = CASES[name]
    assert (case.rtol, case.atol) == (0, 0)
    program = programs.build(module, *CHIP)
    done = run(program, *write_files(case, tmp_path), "--device", "cpu")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.count(" matches ") == len(case.make().results)
