// RUN: aotc-expand-selects

// The tensors may have different sizes.
func.func @whole(%which: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = arith.select %which, %x, %y : tensor<?xf32>
  return %z : tensor<?xf32>
}

// CHECK-LABEL: @whole
// CHECK:      scf.if %arg0 -> (tensor<?xf32>)
// CHECK-NEXT:   scf.yield %arg1
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield %arg2

// These stay elementwise.
func.func @elements(%which: tensor<?xi1>, %one: i1, %x: tensor<?xf32>, %y: tensor<?xf32>, %u: tensor<4xf32>) -> (tensor<?xf32>, tensor<4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %z = arith.select %which, %x, %y : tensor<?xi1>, tensor<?xf32>
  %v = arith.select %one, %u, %u : tensor<4xf32>
  %e = tensor.extract %x[%c0] : tensor<?xf32>
  %f = tensor.extract %y[%c0] : tensor<?xf32>
  %w = arith.select %one, %e, %f : f32
  return %z, %v, %w : tensor<?xf32>, tensor<4xf32>, f32
}

// CHECK-LABEL: @elements
// CHECK-COUNT-3: arith.select
