"""Programs in which threads and blocks work together, on the CPU device, against NumPy."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.cooperation_programs import CASES, PROGRAM
from e2e.support import Programs, run

from samples import write_files

SOURCE = Path(__file__).resolve().parent / "data" / f"{PROGRAM}.mlir"
# One chip: what the CPU device runs does not depend on it.
CHIP = ("--chip", "sm_80", "--ptx", "none")


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("name", CASES)
def test_result_is_numpys(programs: Programs, tmp_path: Path, name: str, optimization: str) -> None:
    program = programs.build(SOURCE, *CHIP, optimization)
    done = run(program, *write_files(CASES[name], tmp_path), "--device", "cpu")
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.count(" matches ") == len(CASES[name].make().results)
