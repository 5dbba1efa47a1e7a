// The dot product of two vectors, returned as a scalar: a kernel makes the products, and the
// host adds them up in f64.
func.func @dot(%x: memref<?xf32>, %y: memref<?xf32>) -> f64
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %n = memref.dim %x, %c0 : memref<?xf32>
  %products = memref.alloc(%n) : memref<?xf64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = memref.load %y[%i] : memref<?xf32>
    %wide_a = arith.extf %a : f32 to f64
    %wide_b = arith.extf %b : f32 to f64
    %product = arith.mulf %wide_a, %wide_b : f64
    memref.store %product, %products[%i] : memref<?xf64>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%partial = %zero) -> (f64) {
    %product = memref.load %products[%i] : memref<?xf64>
    %next = arith.addf %partial, %product : f64
    scf.yield %next : f64
  }
  memref.dealloc %products : memref<?xf64>
  return %sum : f64
}
