"""Programs with a main of their own, on the CPU device: their output, to the byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from e2e.own_programs import FOLDER, PROGRAMS, without_addresses
from e2e.support import Programs, run

from aotc.cli import run as aotc_run

# One chip: what the CPU device runs does not depend on it.
CHIP = ("--chip", "sm_80", "--ptx", "none")
CPU = {"AOTC_DEVICE": "cpu"}


def test_each_file_is_a_program() -> None:
    assert {file.stem for file in FOLDER.glob("*.mlir")} < set(PROGRAMS)
    assert {file.stem for file in FOLDER.glob("*.txt")} == set(PROGRAMS)


# Without optimization coroutines are split all the same.
CASES = [(name, "-O3") for name in PROGRAMS] + [(n, "-O0") for n in PROGRAMS if "task" in n]


@pytest.mark.parametrize(("name", "optimization"), CASES)
def test_output_is_as_expected(programs: Programs, name: str, optimization: str) -> None:
    program = PROGRAMS[name]
    executable = programs.build(program.source, *CHIP, optimization)
    done = run(executable, *program.arguments, env=CPU)
    assert without_addresses(done.stdout) == program.expected.read_text()
    assert (done.stderr, done.returncode) == ("", program.code)


FAILING = """
func.func private @printI64(i64)

func.func @main() {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  call @printI64(%one) : (i64) -> ()
  TASK
  %two = arith.constant 2 : i64
  AWAIT
  call @printI64(%two) : (i64) -> ()
  return
}
"""
LAUNCH = """
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %false = arith.constant false
    cf.assert %false, "not to be"
    gpu.terminator
  }"""
# By how the kernel that fails is launched: its lines, the wait for it, and what is printed.
WAYS = {
    "by main": (LAUNCH, "", "1"),
    "by a task": (
        f"%t = async.execute {{ {LAUNCH}\n  async.yield }}",
        "async.await %t : !async.token",
        "1",
    ),
    "by a task that nobody awaits": (
        f"%t = async.execute {{ {LAUNCH}\n  async.yield }}",
        "",
        "12",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_that_fails_ends_it(programs: Programs, tmp_path: Path, way: str) -> None:
    """The program says why, exits with the device's failure, and prints nothing that hangs on
    it."""
    launched, awaited, printed = WAYS[way]
    source = tmp_path / "failing.mlir"
    source.write_text(FAILING.replace("TASK", launched).replace("AWAIT", awaited))
    done = run(programs.build(source, *CHIP), env=CPU)
    assert done.returncode == 4
    assert done.stderr.startswith("failing: error: ")
    assert "assertion failed: not to be" in done.stderr
    assert done.stdout == printed


EXIT_CODES = {"i1": ("true", 1), "i8": ("-3", 253), "i16": ("258", 2), "i64": ("5", 5)}


@pytest.mark.parametrize("type_", EXIT_CODES)
def test_what_main_returns_is_the_exit_code(programs: Programs, tmp_path: Path, type_: str) -> None:
    value, code = EXIT_CODES[type_]
    source = tmp_path / "returning.mlir"
    constant = value if type_ == "i1" else f"{value} : {type_}"
    source.write_text(
        f"func.func @main() -> {type_} {{\n  %x = arith.constant {constant}\n"
        f"  return %x : {type_}\n}}\n"
    )
    assert run(programs.build(source, *CHIP), env=CPU).returncode == code


_HELPER = """
func.func VISIBILITY@main(%x: f32) -> f32 { return %x : f32 }
func.func @f(%x: f32) -> f32 attributes {llvm.emit_c_interface} {
  %y = func.call @main(%x) : (f32) -> f32
  return %y : f32
}
"""


@pytest.mark.parametrize(
    ("visibility", "kind", "code"),
    [("private ", "exe", 0), ("private ", "shared", 0), ("", "shared", 0), ("", "exe", 2)],
)
def test_a_main_may_be_a_function_like_others(
    tmp_path: Path, visibility: str, kind: str, code: int
) -> None:
    """Where it is private, or of a library that has entries."""
    source = tmp_path / "helper.mlir"
    source.write_text(_HELPER.replace("VISIBILITY", visibility))
    command = ["build", str(source), *CHIP, "--emit", kind, "-q", "-o", f"{tmp_path}/out/"]
    assert aotc_run(command) == code


@pytest.mark.parametrize(("returned", "code"), [(0, 2), (7, 7)])
def test_output_that_is_not_written_is_an_error(
    programs: Programs, tmp_path: Path, returned: int, code: int
) -> None:
    source = tmp_path / "writing.mlir"
    source.write_text(
        f"""func.func @main() -> i32 {{
  %x = arith.constant {returned} : i32
  vector.print %x : i32
  return %x : i32
}}
"""
    )
    with Path("/dev/full").open("w") as full:
        command = [programs.build(source, *CHIP)]
        done = subprocess.run(command, env=CPU, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == code
    assert done.stderr == (
        b"writing: error: cannot write to standard output: No space left on device\n"
    )


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
@pytest.mark.parametrize("name", ["tasks", "task_group"])
def test_tasks_leave_nothing_behind(programs: Programs, name: str) -> None:
    """Coroutines, tokens and values are freed, and read no more."""
    executable = programs.build(PROGRAMS[name].source, *CHIP, "-O0")
    command = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full")
    done = subprocess.run(
        [*command, executable],
        env=CPU | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stderr, done.returncode) == ("", 0)
