"""Loops that say nothing of it are found parallel, and only where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

FUNCTION = """\
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %at: memref<?xindex>, %n: index, %by: index)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {loop} {{
    {body}
  }}
  return
}}
"""
FOR = "scf.for %i = %c0 to %n step %c1"
SCALE = """%a = memref.load %x[%i] : memref<?xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %y[%i] : memref<?xf32>"""
BEFORE = """%j = arith.subi %i, %c1 : index
    %a = memref.load %x[%j] : memref<?xf32>
    memref.store %a, %x[%i] : memref<?xf32>"""
SCATTER = """%a = memref.load %x[%i] : memref<?xf32>
    %j = memref.load %at[%i] : memref<?xindex>
    memref.store %a, %y[%j] : memref<?xf32>"""
ONE = """%a = memref.load %x[%i] : memref<?xf32>
    memref.store %a, %y[%c0] : memref<?xf32>"""


def kernels_of(aotc: Aotc, mlir_file: MlirFile, loop: str, body: str) -> int:
    path = mlir_file(FUNCTION.format(loop=loop, body=body))
    text = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    return text.count("gpu.launch_func")


@pytest.mark.parametrize(
    ("loop", "body"),
    [(FOR, SCALE), ("scf.for %i = %c1 to %n step %c1", SCALE), ("scf.forall (%i) in (%n)", SCALE)],
)
def test_parallel_loops_become_kernels(
    aotc: Aotc, mlir_file: MlirFile, loop: str, body: str
) -> None:
    assert kernels_of(aotc, mlir_file, loop, body) == 1


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        pytest.param(FOR, BEFORE, id="needs-the-one-before"),
        pytest.param(FOR, SCATTER, id="stores-where-data-says"),
        pytest.param(FOR, ONE, id="stores-to-one-place"),
        pytest.param("scf.for unsigned %i = %c0 to %n step %c1", SCALE, id="unsigned"),
        pytest.param("scf.for %i = %c0 to %n step %by", SCALE, id="unknown-step"),
    ],
)
def test_other_loops_stay(aotc: Aotc, mlir_file: MlirFile, loop: str, body: str) -> None:
    assert kernels_of(aotc, mlir_file, loop, body) == 0


REGISTERING = """\
func.func @g(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
  %u = memref.cast %x : memref<4xf32> to memref<*xf32>
  gpu.host_register %u : memref<*xf32>
  return
}
"""


def test_a_module_that_places_its_memory_keeps_its_loops(aotc: Aotc, mlir_file: MlirFile) -> None:
    """`@f` may run before what it is given is registered."""
    path = mlir_file(FUNCTION.format(loop=FOR, body=SCALE) + REGISTERING)
    text = aotc("build", path, "--emit", "mlir", "-o", "-").succeeded().stdout
    assert "gpu.launch_func" not in text
