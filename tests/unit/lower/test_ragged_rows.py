"""Which loops have lanes that share a row of a length that memory holds, and which do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
Write = Callable[..., Path]

ROWS = """\
func.func @f(%p: memref<?xindex>, %c: memref<?xindex>, %a: memref<?xf32>, %x: memref<?x?xf32>,
             %y: memref<?xf32>, %n: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {BEFORE
    %begin = memref.load %p[%i] : memref<?xindex>
    %next = arith.addi %i, %c1 : index
    %loaded = memref.load %p[%next] : memref<?xindex>
    %sum = scf.for %k = LOWER to UPPER step %c1 iter_args(%s = %zero) -> (f32) {
      %j = memref.load %c[%k] : memref<?xindex>
      %v = memref.load %a[%k] : memref<?xf32>
      %w = memref.load %x[INDICES] : memref<?x?xf32>
      %m = arith.mulf %v, %w : f32
      %t = arith.addf %s, %m : f32
      scf.yield %t : f32
    }
    memref.store %sum, %y[%i] : memref<?xf32>
  } ATTRIBUTES
  return
}
"""
DEFAULT = {
    "BEFORE": "",
    "LOWER": "%begin",
    "UPPER": "%loaded",
    "INDICES": "%j, %c0",
    "ATTRIBUTES": "",
}
LANES = "1 to 32 lanes for each row, by the rows' mean length, or a block for a row"


def _explained(aotc: Aotc, path: Path) -> str:
    options = ("--emit", "mlir", "-o", f"{path}.out", "--chip", "sm_90a", "--explain")
    return aotc("build", path, *options).succeeded().stdout


@pytest.mark.parametrize(
    ("change", "is_shared"),
    [
        ({}, True),
        # Until the last element.
        ({"UPPER": "%n"}, True),
        # All rows have a length that the host knows.
        ({"LOWER": "%c0", "UPPER": "%n"}, False),
        # Iterations of the outer loop read neighbours.
        ({"INDICES": "%j, %i"}, False),
        ({"BEFORE": "\n memref.store %zero, %a[%i] : memref<?xf32>"}, False),
        ({"ATTRIBUTES": "{aotc.block = array<i32: 64>}"}, False),
    ],
)
def test_loops(change: dict[str, str], is_shared: bool, aotc: Aotc, mlir_file: Write) -> None:
    text = ROWS
    for word, replacement in (DEFAULT | change).items():
        text = text.replace(word, replacement)
    explained = _explained(aotc, mlir_file(text))
    assert "a kernel with blocks" in explained
    assert (LANES in explained) == is_shared
