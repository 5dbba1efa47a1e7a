// RUN: aotc-mark-explicit-parallelism
func.func @decided(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.reduce
  }
  return
}
func.func @undecided(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  } {aotc.block = array<i32: 32, 8>}
  return
}

// CHECK: func.func @decided({{.*}}) attributes {aotc.sequential}
// CHECK: func.func @undecided({{.*}}) attributes {aotc.blocks = {"{{.*}}.mlir:13:3" = array<i32: 32, 8>}}
