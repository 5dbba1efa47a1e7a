// RUN: aotc-check-tosa
// Sizes that the lowering of TOSA does not compare are asserted.
func.func @f(%x: tensor<?x3xf32>, %y: tensor<?x?xf32>, %v: tensor<2x?x?xf32>, %i: tensor<?x4xi32>, %u: tensor<?x4x?xf32>) -> (tensor<?x3xf32>, tensor<2x?x?xf32>) {
  %both = tosa.concat %x, %y {axis = 0 : i32} : (tensor<?x3xf32>, tensor<?x?xf32>) -> tensor<?x3xf32>
  %all = tosa.scatter %v, %i, %u : (tensor<2x?x?xf32>, tensor<?x4xi32>, tensor<?x4x?xf32>) -> tensor<2x?x?xf32>
  return %both, %all : tensor<?x3xf32>, tensor<2x?x?xf32>
}
// CHECK:     tensor.concat dim(0) %arg0, %arg1 : (tensor<?x3xf32>, tensor<?x?xf32>) -> tensor<?x3xf32>
// CHECK:     cf.assert {{.*}}, "tosa.scatter: operands have different sizes of N"
// CHECK:     cf.assert {{.*}}, "tosa.scatter: operands have different sizes of N"
// CHECK-NOT: of W
// CHECK:     cf.assert {{.*}}, "tosa.scatter: operands have different sizes of C"
// CHECK:     tosa.scatter
