"""Rows of padded images on the CPU: where no element is compared with the ends of its row."""

from __future__ import annotations

import pytest
from helpers.filecheck import filecheck

from aotc import mlir, ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.effects import Overlaps
from aotc.analysis.functions import Functions
from aotc.lower.mapping.row_vectors import create_row_vectors, plan_window_vectors
from aotc.mlir import ir

# Windows of 3 x 3 of an image of %n columns, padded by 1; `%column` is the column of an element.
WINDOWS = """
func.func @windows(%x: memref<64x40x?xf32>, %out: memref<64x40x?xf32>, %n: index, %k: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %low = arith.constant 0xFF800000 : f32
  scf.parallel (%i, %r, %c) = (%c0, %c0, %c0) to (%c64, %c40, %n) step (%c1, %c1, %c1) {{
    %max = scf.for %s = %c0 to %c3 step %c1 iter_args(%old = %low) -> (f32) {{
      %max = scf.for %t = %c0 to %c3 step %c1 iter_args(%before = %old) -> (f32) {{
        %a = arith.addi %r, %s : index
        %row = arith.subi %a, %c1 : index
        %is_row = arith.cmpi ult, %row, %c40 : index
        {column}
        %is_column = arith.cmpi ult, %column, %n : index
        %is_in = arith.andi %is_row, %is_column : i1
        %j = arith.select %is_in, %row, %c0 : index
        %l = arith.select %is_in, %column, %c0 : index
        %loaded = memref.load %x[%i, %j, %l] : memref<64x40x?xf32>
        %value = arith.select %is_in, %loaded, %low : f32
        %new = arith.maximumf %before, %value : f32
        scf.yield %new : f32
      }}
      scf.yield %max : f32
    }}
    memref.store %max, %out[%i, %r, %c] : memref<64x40x?xf32>
  }}
  return
}}
"""
ADJACENT = "%b = arith.addi %c, %t : index %column = arith.subi %b, %c1 : index"
EVERY_SECOND = """%b = arith.muli %c, %c2 : index %e = arith.muli %t, %c2 : index
        %d = arith.addi %b, %e : index %column = arith.subi %d, %c3 : index"""
INSIDE = """
// CHECK:       scf.for
// CHECK:       %[[COLUMN:.*]] = arith.minui %arg{{.*}}
// CHECK:         %[[LAST:.*]] = arith.addi %[[COLUMN]], %c15
// CHECK:         %[[FIRST_OF:.*]] = arith.muli %[[COLUMN]], %cSTRIDE
// CHECK:         %[[LOW:.*]] = arith.addi %[[FIRST_OF]], %cLEAST
// CHECK:         %[[LAST_OF:.*]] = arith.muli %[[LAST]], %cSTRIDE
// CHECK:         %[[HIGH:.*]] = arith.addi %[[LAST_OF]], %cMOST
// CHECK:         %[[IS_LOW:.*]] = arith.cmpi sge, %[[LOW]], %c0
// CHECK:         %[[IS_HIGH:.*]] = arith.cmpi slt, %[[HIGH]], %arg2
// CHECK:         %[[INSIDE:.*]] = arith.andi %[[IS_LOW]], %[[IS_HIGH]]
// CHECK:         scf.if %[[INSIDE]] {
// CHECK-NOT:       vector.maskedload
// CHECK:           scf.if %{{.*}} -> (vector<16xf32>) {
// CHECK:             vector.load
// CHECK-NOT:       vector.maskedload
// CHECK:         } else {
// CHECK:             vector.reduction <and>
"""
CASES = {"adjacent": (ADJACENT, "1", "-1", "1"), "every second": (EVERY_SECOND, "2", "-3", "1")}


def row_vectors(column: str, windows: str = WINDOWS) -> str:
    """The kernel for the windows, with constants that are the same ones made once."""
    with mlir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(windows.format(column=column))
        (loop,) = ops.find(module.operation, "scf.parallel")
        plan = plan_window_vectors(loop, Overlaps(Roots(Functions(module))))
        assert plan is not None
        with ir.InsertionPoint(loop):
            create_row_vectors(loop, plan)
        ops.erase(loop)
        mlir.PassManager.parse("builtin.module(cse)").run(module.operation)
        module.operation.verify()
        return str(module)


@pytest.mark.parametrize("name", CASES)
def test_windows_within_the_row_are_loaded_whole(name: str) -> None:
    column, stride, least, most = CASES[name]
    checks = INSIDE.replace("STRIDE", stride).replace("LEAST", least).replace("MOST", most)
    filecheck(row_vectors(column), checks)


def test_windows_of_unknown_offsets_are_compared() -> None:
    text = row_vectors("%b = arith.addi %c, %t : index %column = arith.subi %b, %k : index")
    assert "arith.cmpi sge" not in text
    assert "vector.reduction <and>" in text


def test_the_last_vector_of_a_row_of_unknown_length_ends_with_it() -> None:
    """Columns are computed twice, unless the loop reads what it stores."""
    filecheck(
        row_vectors(ADJACENT),
        """
// CHECK:       %[[IS_SHORT:.*]] = arith.cmpi ult, %[[N:.*]], %c16
// CHECK:       scf.if %[[IS_SHORT]] {
// CHECK:         vector.maskedstore
// CHECK:       } else {
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]], %c16
// CHECK:         scf.for %[[AT:.*]] = %c0 to %[[N]] step %c16
// CHECK:           arith.minui %[[AT]], %[[LAST]]
// CHECK-NOT:       vector.maskedstore
""",
    )
    old = "%old = memref.load %out[%i, %r, %c] : memref<64x40x?xf32>"
    store = f"{old} %sum = arith.addf %max, %old : f32 memref.store %sum"
    reads = WINDOWS.replace("memref.store %max", store)
    assert "arith.cmpi ult, %arg2, %c16" not in row_vectors(ADJACENT, reads)
