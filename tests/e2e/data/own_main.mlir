// A program of its own: it squares 0 .. 999 in a kernel and adds the squares up on the host.
// Its exit code is the sum modulo 97, and one more for each argument given.
func.func @main(%argc: i32, %argv: !llvm.ptr) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %zero = arith.constant 0 : i64
  %squares = memref.alloc() : memref<1000xi64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = arith.index_cast %i : index to i64
    %square = arith.muli %v, %v : i64
    memref.store %square, %squares[%i] : memref<1000xi64>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%partial = %zero) -> (i64) {
    %square = memref.load %squares[%i] : memref<1000xi64>
    %next = arith.addi %partial, %square : i64
    scf.yield %next : i64
  }
  memref.dealloc %squares : memref<1000xi64>
  %prime = arith.constant 97 : i64
  %rest = arith.remsi %sum, %prime : i64
  %code = arith.trunci %rest : i64 to i32
  %one = arith.constant 1 : i32
  %given = arith.subi %argc, %one : i32
  %result = arith.addi %code, %given : i32
  return %result : i32
}
