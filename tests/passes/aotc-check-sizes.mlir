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

// A static size that a type declares is the size that the operation computes.
func.func @declared(%x: tensor<?xf32>, %m: memref<?x?xf32>) -> (tensor<6xf32>, memref<2x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<6xf32>
  %cast = memref.cast %m : memref<?x?xf32> to memref<2x?xf32>
  return %padded, %cast : tensor<6xf32>, memref<2x?xf32>
}
// CHECK-LABEL: func.func @declared
// CHECK:         cf.assert %{{.*}}, "the sizes of 'argument 0' do not fit: expected argument 0.shape[0] + 2 == 6"
// CHECK:         cf.assert %{{.*}}, "'argument 1' has another size in dimension 0 than 2"

// What is inserted has the slice's sizes, although it has fewer dimensions.
func.func @inserted(%row: tensor<?xf32>, %x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
  %y = tensor.insert_slice %row into %x[1, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
// CHECK-LABEL: func.func @inserted
// CHECK:         %[[IS_EQUAL:.*]] = arith.cmpi eq,
// CHECK-NEXT:    cf.assert %[[IS_EQUAL]], "sizes that depend on values and sizes of 'argument 0' do not fit tensor.insert_slice"

// Views of buffers are in bounds.
func.func @views(%x: memref<?xf32>, %n: index) -> (memref<4xf32, strided<[1], offset: 2>>, memref<?x8xf32>) {
  %part = memref.subview %x[2] [4] [1] : memref<?xf32> to memref<4xf32, strided<[1], offset: 2>>
  %rows = memref.expand_shape %x [[0, 1]] output_shape [%n, 8] : memref<?xf32> into memref<?x8xf32>
  return %part, %rows : memref<4xf32, strided<[1], offset: 2>>, memref<?x8xf32>
}
// CHECK-LABEL: func.func @views
// CHECK:         cf.assert %{{.*}}, "the sizes of 'argument 0' do not fit: expected 6 <= argument 0.shape[0]"
// CHECK:         cf.assert %{{.*}}, "sizes that depend on values and sizes of 'argument 0' do not fit memref.expand_shape"

// What is cast to an unranked type keeps its sizes.
func.func @unranked(%x: memref<?xf32>) -> memref<8xf32> {
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  %known = memref.cast %any : memref<*xf32> to memref<8xf32>
  return %known : memref<8xf32>
}
// CHECK-LABEL: func.func @unranked
// CHECK:         cf.assert %{{.*}}, "'argument 0' has another size in dimension 0 than 8"
// CHECK:         memref.cast %arg0 : memref<?xf32> to memref<8xf32>

// The last element of no elements is nowhere.
func.func @reversed(%x: memref<?xf32>) -> memref<?xf32, strided<[-1], offset: ?>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %last = arith.subi %n, %c1 : index
  %view = memref.subview %x[%last] [%n] [-1] : memref<?xf32> to memref<?xf32, strided<[-1], offset: ?>>
  return %view : memref<?xf32, strided<[-1], offset: ?>>
}
// CHECK-LABEL: func.func @reversed
// CHECK:         cf.assert %{{.*}}, "the sizes of 'argument 0' do not fit: expected 0 <= -1*argument 0.shape[0] + argument 0.shape[0]*argument 0.shape[0]"
