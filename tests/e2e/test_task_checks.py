"""Assertions in tasks of the async dialect: the task ends, and who awaits it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.support import Programs, run

DATA = Path(__file__).parent / "data"
CHIP = ("--chip", "sm_80", "--ptx", "none")
CPU = {"AOTC_DEVICE": "cpu"}
# By how many arguments are given: what is printed, and what fails.
OUTCOMES = {
    0: ("", "x is not zero (task_checks.mlir:8:3)"),
    1: ("30\n", None),
    2: ("", "x is not two (task_checks.mlir:27:7)"),
    3: ("9\n", None),
}


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize("count", OUTCOMES)
def test_a_task_ends_where_it_fails(programs: Programs, count: int, optimization: str) -> None:
    program = programs.build(DATA / "task_checks.mlir", *CHIP, optimization)
    done = run(program, *["argument"] * count, env=CPU)
    printed, failed = OUTCOMES[count]
    message = f"task_checks: error: assertion failed: {failed}\n" if failed else ""
    assert (done.stdout, done.stderr) == (printed, message)
    assert done.returncode == (4 if failed else 0)


WAITING = """
func.func private @printI64(i64)

func.func @main(%count: i32, %values: !llvm.ptr) {
  %done = async.execute {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c3 step %c1 {
      %inner, %value = async.execute -> !async.value<i64> {
        %square = arith.muli %i, %i : index
        %result = arith.index_cast %square : index to i64
        async.yield %result : i64
      }
      %square = async.await %value : !async.value<i64>
      %given = arith.extsi %count : i32 to i64
      %holds = arith.cmpi slt, %square, %given : i64
      cf.assert %holds, "as many as arguments"
      func.call @printI64(%square) : (i64) -> ()
    }
    async.yield
  }
  async.await %done : !async.token
  return
}
"""


@pytest.mark.parametrize("count", [1, 4])
def test_a_task_that_waits_in_a_loop(programs: Programs, tmp_path: Path, count: int) -> None:
    """Its lowering takes the loop apart; the assertion in it still ends it."""
    source = tmp_path / "waiting.mlir"
    source.write_text(WAITING)
    done = run(programs.build(source, *CHIP), *["argument"] * count, env=CPU)
    if count == 4:
        assert (done.stdout, done.stderr, done.returncode) == ("014", "", 0)
    else:
        assert done.stdout == "01"
        assert "assertion failed: as many as arguments (waiting.mlir:18:7)" in done.stderr
        assert done.returncode == 4


ASKING = """
func.func @main() {
  %false = arith.constant false
  %token, %value = async.execute -> !async.value<f32> {
    %inner = async.execute {
      cf.assert %false, "of the inner task"
      async.yield
    }
    async.await %inner : !async.token
    %number = arith.constant 1.5 : f32
    async.yield %number : f32
  }
  async.runtime.await %token : !async.token
  async.runtime.await %value : !async.value<f32>
  %of_token = async.runtime.is_error %token : !async.token
  %of_value = async.runtime.is_error %value : !async.value<f32>
  vector.print %of_token : i1
  vector.print %of_value : i1
  %fine = async.execute {
    async.yield
  }
  async.runtime.await %fine : !async.token
  %of_fine = async.runtime.is_error %fine : !async.token
  vector.print %of_fine : i1
  return
}
"""


def test_who_asks_whether_a_task_failed_goes_on(programs: Programs, tmp_path: Path) -> None:
    source = tmp_path / "asking.mlir"
    source.write_text(ASKING)
    done = run(programs.build(source, *CHIP), env=CPU)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n1\n0\n", "", 0)
