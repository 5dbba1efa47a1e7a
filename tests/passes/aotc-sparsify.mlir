// RUN: aotc-mark-writable-tensors, aotc-sparsify
// Rows are parallel, and so are columns of a dense matrix; a sliding window is not, as all iterations have its
// positions in one buffer.
#BSR = #sparse_tensor.encoding<{map = (i, j) -> (i floordiv 2 : dense, j floordiv 4 : compressed, i mod 2 : dense, j mod 4 : dense)}>
#CSR = #sparse_tensor.encoding<{map = (i, j) -> (i : dense, j : compressed)}>
func.func @rows(%a: tensor<8x16xf32, #CSR>, %x: tensor<16xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.matvec ins(%a, %x : tensor<8x16xf32, #CSR>, tensor<16xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  bufferization.dealloc_tensor %a : tensor<8x16xf32, #CSR>
  return %r : tensor<8xf32>
}
// How many elements there are is in the last position, which nobody needs: no function gets it.
func.func @entry(%a: tensor<8x16xf32, #CSR>, %x: tensor<16xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %y = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = func.call @private(%a, %x, %y) : (tensor<8x16xf32, #CSR>, tensor<16xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @private(%a: tensor<8x16xf32, #CSR>, %x: tensor<16xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.matvec ins(%a, %x : tensor<8x16xf32, #CSR>, tensor<16xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
// Rows begin with a number, not with memory that is filled by a copy.
func.func @zeros(%a: tensor<8x16xf32, #CSR>, %x: tensor<16xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %y = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.matvec ins(%a, %x : tensor<8x16xf32, #CSR>, tensor<16xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @columns(%a: tensor<8x16xf32, #CSR>, %x: tensor<16x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %r = linalg.matmul ins(%a, %x : tensor<8x16xf32, #CSR>, tensor<16x4xf32>) outs(%y : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
func.func @blocks(%a: tensor<8x16xf32, #BSR>, %x: tensor<16xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.matvec ins(%a, %x : tensor<8x16xf32, #BSR>, tensor<16xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @windows(%a: tensor<8x8xf32, #CSR>, %f: tensor<3x3xf32, #CSR>, %y: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %r = linalg.conv_2d ins(%a, %f : tensor<8x8xf32, #CSR>, tensor<3x3xf32, #CSR>) outs(%y : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %r : tensor<6x6xf32>
}

// CHECK-LABEL: func.func @rows(%arg0: memref<?xindex>, %arg1: memref<?xindex>, %arg2: memref<?xf32>,
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           memref.load %{{.*}}[%[[I]]]
// CHECK:           scf.for %{{.*}} iter_args
// CHECK:           memref.store %{{.*}}[%[[I]]]
// CHECK-NOT:     memref.dealloc
// CHECK-LABEL: func.func @entry(
// CHECK:         call @private(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}})
// CHECK-LABEL: func.func private @private(
// CHECK-SAME:    %arg0: memref<?xindex>, %arg1: memref<?xindex>, %arg2: memref<?xf32>, %arg3: memref<16xf32>, %arg4: memref<8xf32>)
// CHECK:         memref.load %arg1[
// CHECK-LABEL: func.func @zeros(
// CHECK-NOT:     memref.copy
// CHECK:         scf.parallel
// CHECK-NEXT:      memref.store %cst
// CHECK:         scf.parallel
// CHECK-LABEL: func.func @columns(
// CHECK:         scf.parallel (%[[I:.*]], %[[J:.*]]) =
// CHECK:           %[[BEGIN:.*]] = memref.load %[[Y:.*]][%[[I]], %[[J]]]
// CHECK:           %[[SUM:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %[[BEGIN]])
// CHECK-NOT:         scf.for
// CHECK:             memref.load %{{.*}}[%{{.*}}, %[[J]]]
// CHECK:           memref.store %[[SUM]], %[[Y]][%[[I]], %[[J]]]
// CHECK-LABEL: func.func @blocks(
// CHECK:         scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c4, %c2)
// CHECK:           scf.for %{{.*}} iter_args
// CHECK:             scf.for %{{.*}} iter_args
// CHECK:           memref.store
// CHECK-LABEL: func.func @windows(
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for
