"""Warnings on the command line: shown, hidden, and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.checks import BUFFER, HEAD
from helpers.command import SAMPLES, Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

WRONG = f"""func.func @f(%a: {BUFFER}) attributes {{llvm.emit_c_interface}} {{
  %x = arith.constant 1.0 : f32
  %c9 = arith.constant 9 : index
  memref.store %x, %a[%c9] : {BUFFER}
  return
}}
"""


def test_options(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """A warning with its place and name; hidden; and an error, with which nothing is written."""
    path = mlir_file(WRONG)
    out = tmp_path / "out.mlir"
    command = ("build", path, "--emit", "host-mlir", "-o", out)
    said = (
        f"{path}:4:3: {{}}: memref.store has index 9, which is out of bounds for "
        f"dimension 0 of {BUFFER} [{{}}]\n"
        f"    memref.store %x, %a[%c9] : {BUFFER}\n"
        "    ^\n"
    )
    error = Outcome(2, "", said.format("error", "-Werror=out-of-bounds"))
    for option in ("-Werror", "-Werror=out-of-bounds"):
        assert aotc(*command, option) == error
        assert not out.exists()
    assert aotc(*command) == Outcome(0, "", said.format("warning", "-Wout-of-bounds"))
    assert out.exists()
    for option in ("-Wno-out-of-bounds", "-q"):
        assert aotc(*command, option) == Outcome(0, "", "")


@pytest.mark.parametrize("dimension", [-2147483648, 1, 1 << 40])
def test_a_dimension_that_a_buffer_has_not(
    dimension: int, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    """The size of such a dimension is undefined, whatever the buffer's shape is: the build says so
    and does not look for it."""
    path = mlir_file(
        f"""func.func @f(%a: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %c = arith.constant {dimension} : index
  %n = memref.dim %a, %c : memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf64>
  %x = memref.load %b[%n] : memref<?xf64>
  memref.store %x, %b[%n] : memref<?xf64>
  return
}}
"""
    )
    done = aotc("build", path, "--emit", "host-mlir", "-o", tmp_path / "out.mlir")
    assert done.code == 0
    said = f"memref.dim asks for dimension {dimension} of memref<?xf32>, which has 1"
    assert f"{path}:3:8: warning: {said} [-Wout-of-bounds]\n" in done.stderr


def test_an_unknown_name(aotc: Aotc) -> None:
    done = aotc("build", SAMPLES / "matmul.mlir", "-Wno-out-of-bound")
    assert done.code == 2
    assert done.stderr.startswith(
        "aotc: error: Unknown warning 'out-of-bound' in -Wno-out-of-bound. Did you mean "
        "out-of-bounds? Known: assembler-crash, block-size, "
    )


ON_THE_HOST = f"""func.func @f(%a: {BUFFER}, %n: index) attributes {{llvm.emit_c_interface}} {{
  %m = memref.alloc() : {BUFFER}
  gpu.launch blocks(%a0, %a1, %a2) in (%a3 = %n, %a4 = %n, %a5 = %n)
             threads(%b0, %b1, %b2) in (%b3 = %n, %b4 = %n, %b5 = %n) {{
    %x = memref.load %a[%b0] : {BUFFER}
    memref.store %x, %m[%b0] : {BUFFER}
    gpu.terminator
  }}
  memref.copy %m, %a : {BUFFER} to {BUFFER}
  memref.dealloc %m : {BUFFER}
  return
}}
"""


def test_host_memory_under_explicit_memory(aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    """An error at the launch unless an option says otherwise; aotc's own placement has none."""
    path = mlir_file(ON_THE_HOST)
    out = tmp_path / "out.mlir"
    command = ("build", path, "--emit", "mlir", "-o", out)
    said = (
        f"{path}:3:3: {{}}: kernel argument 1 is host memory, the memref.alloc of 2:8, which a GPU "
        "cannot reach: use gpu.alloc or gpu.host_register, or --memory auto [{}]\n"
        "    gpu.launch blocks(%a0, %a1, %a2) in (%a3 = %n, %a4 = %n, %a5 = %n)\n"
        "    ^\n"
    )
    error = Outcome(2, "", said.format("error", "-Werror=host-pointer"))
    for options in ((), ("-Werror=host-pointer",)):
        assert aotc(*command, "--memory", "explicit", *options) == error
        assert not out.exists()
    warning = Outcome(0, "", said.format("warning", "-Whost-pointer"))
    assert aotc(*command, "--memory", "explicit", "-Wno-error=host-pointer") == warning
    assert out.exists()
    for quiet in (("--memory", "explicit", "-Wno-host-pointer"), ("--memory", "auto")):
        assert aotc(*command, *quiet) == Outcome(0, "", "")


def test_an_error_by_default_can_be_a_warning(
    aotc: Aotc, mlir_file: MlirFile, tmp_path: Path
) -> None:
    path = mlir_file(
        f"""{HEAD}
  gpu.launch blocks(%a0, %a1, %a2) in (%a3 = %c1, %a4 = %c1, %a5 = %c1)
             threads(%b0, %b1, %b2) in (%b3 = %c1024, %b4 = %c2, %b5 = %c1) {{
    gpu.terminator
  }}
  return
}}
"""
    )
    command = ("build", path, "--emit", "mlir", "-o", tmp_path / "out.mlir")
    done = aotc(*command)
    assert done.code == 2
    assert (
        ": error: a block of 1024 x 2 x 1 threads has 2048: GPUs take 1024 [-Werror=block-size]\n"
    ) in done.stderr
    assert aotc(*command, "-Wno-error=block-size").stderr.count("warning: a block of") == 1
    assert aotc(*command, "-Wno-block-size").succeeded().stderr == ""
