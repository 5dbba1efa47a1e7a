// RUN: aotc-check-sizes
// A cast to a known size asks the argument when the entry is called.
func.func @f(%x: tensor<?xf32>) -> tensor<8xf32> attributes {aotc.imported} {
  %y = tensor.cast %x : tensor<?xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @proven(%x: tensor<8xf32>) -> tensor<8xf32> attributes {aotc.imported} {
  %known = tensor.cast %x : tensor<8xf32> to tensor<?xf32>
  %y = tensor.cast %known : tensor<?xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @f(%arg0: tensor<?xf32>) -> tensor<8xf32> {
// CHECK:         %[[SIZE:.*]] = tensor.dim %arg0, %c0
// CHECK:         %[[IS_EQUAL:.*]] = arith.cmpi eq,
// CHECK-NEXT:    cf.assert %[[IS_EQUAL]], "'argument 0' has another size in dimension 0 than 8"
// CHECK-NEXT:    tensor.cast %arg0
// CHECK-LABEL: func.func @proven
// CHECK-NOT:     cf.assert

// Operands of elementwise operations, and of copies, have equal sizes.
func.func @operands(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: i1, %z: tensor<?xf32>, %m: memref<?xf32>) {
  %sum = arith.addf %x, %y : tensor<?xf32>
  %one = math.exp %sum : tensor<?xf32>
  // One of two tensors is chosen, whatever the other one's size.
  %chosen = arith.select %c, %one, %z : tensor<?xf32>
  bufferization.materialize_in_destination %one in restrict writable %m : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
// CHECK-LABEL: func.func @operands
// CHECK:         cf.assert %{{.*}}, "'argument 1' has another size in dimension 0 than 'argument 0' in dimension 0"
// CHECK:         cf.assert %{{.*}}, "'argument 4' has another size in dimension 0 than 'argument 0' in dimension 0"
// CHECK-NOT:     cf.assert

// The known size of a concatenation is the sum of the operands' sizes.
func.func @concatenated(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<4x3xf32> {
  %both = tensor.concat dim(0) %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
  return %both : tensor<4x3xf32>
}
// CHECK-LABEL: func.func @concatenated
// CHECK:         cf.assert %{{.*}}, "the sizes of 'argument 0' and 'argument 1' do not fit:
