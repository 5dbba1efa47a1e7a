"""Steps that are known at run time alone: one that is not positive is a failure, not a hang."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from aotc.cli import run

LOOP = """
func.func @f(%x: memref<8xf32>, %s: TYPE) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : TYPE
  %c8 = arith.constant 8 : TYPE
  %one = arith.constant 1.0 : f32
  LOOP {
    memref.store %one, %x[%j] : memref<8xf32>
  }
  return
}
"""
PARALLEL = LOOP.replace("LOOP", "scf.parallel (%j) = (%c0) to (%c8) step (%s)").replace(
    "TYPE", "index"
)
SEQUENTIAL = (
    LOOP.replace("LOOP {", "scf.for KIND%i = %c0 to %c8 step %s : TYPE {\n    %j = CAST")
    .replace("CAST", "arith.index_cast %i : TYPE to index")
    .replace("TYPE", "i32")
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PARALLEL, "scf.parallel"),
        (SEQUENTIAL.replace("KIND", ""), "scf.for"),
        (SEQUENTIAL.replace("KIND", "unsigned "), "scf.for"),
    ],
    ids=["parallel", "sequential", "unsigned"],
)
def test_a_step_of_zero_fails(text: str, name: str, tmp_path: Path) -> None:
    source, out = tmp_path / "program.mlir", tmp_path / "y.npy"
    source.write_text(text)
    np.save(tmp_path / "x.npy", np.zeros(8, np.float32))
    assert run(["build", str(source), "-o", f"{tmp_path}/", "--chip", "sm_80"]) == 0

    def call(step: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tmp_path / "program", f"--x={tmp_path}/x.npy", f"--s={step}", f"--out=x={out}"],
            env={"AOTC_DEVICE": "cpu"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    for step in (1, 3, 8):
        good = call(step)
        assert good.returncode == 0, good.stderr
        np.testing.assert_array_equal(np.load(out), np.arange(8) % step == 0)
    for step in (0, -2) if "unsigned" not in text else (0,):
        failed = call(step)
        assert failed.returncode == 4
        assert f"the step of this {name} is positive (program.mlir:6:3)" in failed.stderr
