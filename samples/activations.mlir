// Three activation functions of a half-precision tensor, computed in f32:
// gelu by erf, a logistic sigmoid by exp, and tanh.
func.func @activations(%x: memref<?x?xf16>, %gelu: memref<?x?xf16>,
                       %sigmoid: memref<?x?xf32>, %tanh: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf16>
  %columns = memref.dim %x, %c1 : memref<?x?xf16>
  affine.parallel (%i, %j) = (0, 0) to (%rows, %columns) {
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %root_half = arith.constant 0.70710678118654752 : f32
    %narrow = affine.load %x[%i, %j] : memref<?x?xf16>
    %v = arith.extf %narrow : f16 to f32

    %scaled = arith.mulf %v, %root_half : f32
    %erf = math.erf %scaled : f32
    %shifted = arith.addf %one, %erf : f32
    %halved = arith.mulf %half, %v : f32
    %g = arith.mulf %halved, %shifted : f32
    %g_narrow = arith.truncf %g : f32 to f16
    affine.store %g_narrow, %gelu[%i, %j] : memref<?x?xf16>

    %minus = arith.negf %v : f32
    %e = math.exp %minus : f32
    %denominator = arith.addf %one, %e : f32
    %s = arith.divf %one, %denominator : f32
    affine.store %s, %sigmoid[%i, %j] : memref<?x?xf32>

    %t = math.tanh %v : f32
    affine.store %t, %tanh[%i, %j] : memref<?x?xf32>
  }
  return
}
