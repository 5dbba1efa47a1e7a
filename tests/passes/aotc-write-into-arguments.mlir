// RUN: aotc-mark-writable-tensors,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},aotc-write-into-arguments

// A row of a cache is written in place.
func.func @row(%k: tensor<4x1xf32>, %at: index, %cache: tensor<4x9xf32>)
    -> (tensor<4x9xf32> {aotc.into = 2}) attributes {llvm.emit_c_interface} {
  %r = tensor.insert_slice %k into %cache[0, %at] [4, 1] [1, 1]
      : tensor<4x1xf32> into tensor<4x9xf32>
  return %r : tensor<4x9xf32>
}

// CHECK:      func.func @row(%arg0: memref<4x1xf32>, %arg1: index, %arg2: memref<4x9xf32>
// CHECK-NOT:    memref.alloc
// CHECK:        %[[ROW:.*]] = memref.subview %arg2[0, %arg1] [4, 1] [1, 1]
// CHECK-NEXT:   memref.copy %arg0, %[[ROW]]
// CHECK-NEXT:   return

// Two arguments are exchanged, and the old value of one is returned: copies come first.
func.func @exchange(%a: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<8xf32> {aotc.into = 0}, tensor<8xf32> {aotc.into = 1}, tensor<8xf32>)
    attributes {llvm.emit_c_interface} {
  return %b, %a, %a : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK:      func.func @exchange(%arg0: memref<8xf32>, %arg1: memref<8xf32>
// CHECK-SAME:     -> memref<8xf32>
// CHECK:        memref.copy %arg1, %[[B:.*]] :
// CHECK:        memref.copy %arg0, %[[A:.*]] :
// CHECK:        memref.copy %arg0, %[[OLD:.*]] :
// CHECK-NEXT:   memref.copy %[[B]], %arg0
// CHECK-NEXT:   memref.copy %[[A]], %arg1
// CHECK-NEXT:   return %[[OLD]] : memref<8xf32>

// What a branch yields in both cases is returned itself.
func.func @either(%is: i1, %x: tensor<8xf32>, %y: tensor<8xf32>)
    -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %empty = bufferization.alloc_tensor() : tensor<8xf32>
  %made = scf.if %is -> (tensor<8xf32>) {
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %exp : tensor<8xf32>
  } else {
    %log = linalg.log ins(%y : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %log : tensor<8xf32>
  }
  return %made : tensor<8xf32>
}

// CHECK:      func.func @either(
// CHECK:        %[[MADE:.*]] = memref.alloc
// CHECK-NOT:    memref.alloc
// CHECK:        return %[[MADE]] : memref<8xf32>
