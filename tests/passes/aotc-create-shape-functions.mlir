// RUN: aotc-check-sizes,aotc-create-shape-functions
func.func @joined(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %n: index) -> (tensor<?x4xf32>, tensor<?x3xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %xy = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%n) : tensor<?x3xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x3xf32>) -> tensor<?x3xf32>
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %padded = tensor.pad %flat low[1] high[%n] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %xy, %filled, %padded : tensor<?x4xf32>, tensor<?x3xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @joined.result_sizes(
// CHECK-SAME:    %[[X:.*]]: index, %[[Y:.*]]: index, %[[N:.*]]: index) -> (index, index, index, index, index)
// CHECK:         cf.assert {{.*}}, "sizes that depend on values do not fit tensor.empty"
// CHECK:         %[[ROWS:.*]] = arith.addi %[[X]], %[[Y]] : index
// CHECK:         %[[X64:.*]] = arith.index_cast %[[X]] : index to i64
// CHECK:         %[[FOUR64:.*]] = arith.index_cast %[[FOUR:.*]] : index to i64
// CHECK:         %[[LOW:.*]], %[[HIGH:.*]] = arith.mulsi_extended %[[X64]], %[[FOUR64]] : i64
// CHECK:         cf.assert {{.*}}, "there is no memory for results of these sizes" {aotc.for_memory}
// CHECK:         return %[[ROWS]], %[[FOUR]], %[[N]], %{{.*}}, %{{.*}} :

// Elements are not read: a size that depends on them is unknown, and so is what is asserted of it.
func.func @counted(%x: tensor<?xindex>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.extract %x[%c0] : tensor<?xindex>
  %empty = tensor.empty(%n) : tensor<?xf32>
  return %empty : tensor<?xf32>
}

// CHECK-LABEL: func.func @counted.result_sizes(%{{.*}}: index) -> index
// CHECK-NOT:     cf.assert
// CHECK:         %[[UNKNOWN:.*]] = arith.constant -9223372036854775808 : index
// CHECK-NOT:     cf.assert
// CHECK:         return %[[UNKNOWN]] : index

// What a loop carries has the size that it began with.
func.func @carried(%x: tensor<?x4xf32>, %n: index, %which: i1) -> tensor<?x4xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?x4xf32> {
    %either = scf.if %which -> tensor<?x4xf32> {
      %m = linalg.exp ins(%t : tensor<?x4xf32>) outs(%t : tensor<?x4xf32>) -> tensor<?x4xf32>
      scf.yield %m : tensor<?x4xf32>
    } else {
      scf.yield %t : tensor<?x4xf32>
    }
    scf.yield %either : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @carried.result_sizes(
// CHECK-SAME:    %[[X:.*]]: index, %{{.*}}: index, %{{.*}}: i1) -> (index, index)
// CHECK:         return %[[X]], %{{.*}} : index, index

// The caller knows these sizes.
func.func @fixed(%x: tensor<?x4xf32>) -> tensor<4xf32> attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<4xf32>
  return %empty : tensor<4xf32>
}

// CHECK-NOT: fixed.result_sizes
