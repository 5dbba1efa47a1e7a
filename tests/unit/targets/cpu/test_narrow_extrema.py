"""Loops that carry maxima and minima of f16 and bf16 carry integers on the CPU."""

from __future__ import annotations

from helpers.filecheck import filecheck

from aotc.mlir import ir
from aotc.targets.cpu.expand.narrow_extrema import carry_extrema_as_integers

MODULE = """\
// CHECK-LABEL: func.func @window
// CHECK: %[[START:.*]] = arith.select {{.*}} : i16
// CHECK: %[[KEY:.*]] = scf.for {{.*}} iter_args(%[[OUTER:.*]] = %[[START]]) -> (i16) {
// CHECK: scf.for {{.*}} iter_args(%[[INNER:.*]] = %[[OUTER]]) -> (i16) {
// CHECK: arith.cmpi ugt, %{{.*}}, %c31744_i16
// CHECK: arith.maxsi %[[INNER]], %{{.*}} : i16
// CHECK: %[[BITS:.*]] = arith.xori %[[KEY]]
// CHECK: %[[V:.*]] = arith.bitcast %[[BITS]] : i16 to f16
// CHECK: return %[[V]]
func.func @window(%x: memref<?x?xf16>, %n: index, %start: f16) -> f16 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = scf.for %i = %c0 to %n step %c1 iter_args(%a = %start) -> (f16) {
    %w = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (f16) {
      %new = memref.load %x[%i, %j] : memref<?x?xf16>
      %m = arith.maximumf %b, %new : f16
      scf.yield %m : f16
    }
    scf.yield %w : f16
  }
  return %v : f16
}

// CHECK-LABEL: func.func @vectors
// CHECK: scf.for {{.*}} -> (vector<8xi16>) {
// CHECK: arith.minsi {{.*}} : vector<8xi16>
func.func @vectors(%x: memref<?x8xbf16>, %n: index, %start: vector<8xbf16>) -> vector<8xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = scf.for %i = %c0 to %n step %c1 iter_args(%a = %start) -> (vector<8xbf16>) {
    %new = vector.load %x[%i, %c0] : memref<?x8xbf16>, vector<8xbf16>
    %m = arith.minnumf %new, %a : vector<8xbf16>
    scf.yield %m : vector<8xbf16>
  }
  return %v : vector<8xbf16>
}

// What is read between, of two kinds, or of f32 stays.
// CHECK-LABEL: func.func @others
// CHECK-NOT: i16
func.func @others(%x: memref<?xf16>, %n: index, %start: f16, %s: f32) -> (f16, f16, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %start, %b = %start, %c = %s)
      -> (f16, f16, f32) {
    %new = memref.load %x[%i] : memref<?xf16>
    %m = arith.maximumf %a, %new : f16
    memref.store %m, %x[%i] : memref<?xf16>
    %least = arith.minimumf %b, %new : f16
    %both = arith.maximumf %least, %start : f16
    %wide = arith.extf %new : f16 to f32
    %largest = arith.maximumf %c, %wide : f32
    scf.yield %m, %both, %largest : f16, f16, f32
  }
  return %v#0, %v#1, %v#2 : f16, f16, f32
}
"""


def test_loops() -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE)
        carry_extrema_as_integers(module.operation)
        module.operation.verify()
        filecheck(str(module), MODULE)
