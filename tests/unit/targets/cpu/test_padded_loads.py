"""Loads of padded buffers are branches on the CPU."""

from __future__ import annotations

from helpers.filecheck import filecheck

from aotc.mlir import ir
from aotc.targets.cpu.expand.padded_loads import load_under_conditions

MODULE = """\
// CHECK-LABEL: func.func @padded
// CHECK: %[[V:.*]] = scf.if %arg2 -> (f32) {
// CHECK-NEXT: %[[L:.*]] = memref.load %arg0[%arg1]
// CHECK-NEXT: scf.yield %[[L]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %cst
// CHECK-NEXT: }
// CHECK-NEXT: return %[[V]]
func.func @padded(%x: memref<?xf32>, %i: index, %is_in: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %at = arith.select %is_in, %i, %c0 : index
  %read = memref.load %x[%at] : memref<?xf32>
  %v = arith.select %is_in, %read, %zero : f32
  return %v : f32
}

// What is read at the same place in both cases, or is used elsewhere, stays.
// CHECK-LABEL: func.func @others
// CHECK-NOT: scf.if
func.func @others(%x: memref<?xf32>, %i: index, %is_in: i1) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %same = memref.load %x[%i] : memref<?xf32>
  %v = arith.select %is_in, %same, %zero : f32
  %at = arith.select %is_in, %i, %c0 : index
  %read = memref.load %x[%at] : memref<?xf32>
  %w = arith.select %is_in, %read, %zero : f32
  return %v, %w, %read : f32, f32, f32
}

// What is read before a store is not read behind it.
// CHECK-LABEL: func.func @before_a_store
// CHECK: %[[OLD:.*]] = memref.load
// CHECK-NEXT: memref.store
// CHECK-NOT: scf.if
func.func @before_a_store(%x: memref<?xf32>, %i: index, %is_in: i1, %new: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %at = arith.select %is_in, %i, %c0 : index
  %old = memref.load %x[%at] : memref<?xf32>
  memref.store %new, %x[%i] : memref<?xf32>
  %v = arith.select %is_in, %old, %new : f32
  return %v : f32
}
"""


def test_loads() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        load_under_conditions(module.operation)
        module.operation.verify()
        filecheck(str(module), MODULE)
