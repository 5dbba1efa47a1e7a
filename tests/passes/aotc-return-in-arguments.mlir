// RUN: aotc-mark-writable-tensors,canonicalize,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},aotc-return-in-arguments
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
// The sizes become a part of the type, and the allocation another.
func.func @freed(%x: tensor<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %buffer = memref.alloc(%c8) : memref<?xf32>
  %v = tensor.extract %x[%c0] : tensor<8xf32>
  memref.store %v, %buffer[%c0] : memref<?xf32>
  %r = memref.load %buffer[%c8] : memref<?xf32>
  memref.dealloc %buffer : memref<?xf32>
  return %r : f32
}
// What a called function returns is written where the caller wants it.
func.func @called(%x: tensor<8xf32>) -> tensor<8xf32> attributes {llvm.emit_c_interface} {
  %y = func.call @private(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @private(%x: tensor<8xf32>) -> tensor<8xf32> attributes {no_inline} {
  %empty = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
// Each result of unknown size is a buffer of its own, even if a loop runs no trip.
func.func @loop(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?xf32> {
    %v = tensor.extract %t[%i] : tensor<?xf32>
    %u = tensor.insert %v into %t[%c0] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  return %y, %y : tensor<?xf32>, tensor<?xf32>
}
// Views and branches, too; two buffers are not copied.
func.func @views(%x: tensor<?x4xf32>, %c: i1) -> (tensor<?x4xf32>, tensor<?xf32>, tensor<?x4xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%n) : tensor<?x4xf32>
  %e = linalg.exp ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %z = tensor.collapse_shape %e [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %s = linalg.log ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
  %w = scf.if %c -> tensor<?x4xf32> {
    scf.yield %s : tensor<?x4xf32>
  } else {
    %v = linalg.abs ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %v : tensor<?x4xf32>
  }
  return %e, %z, %w : tensor<?x4xf32>, tensor<?xf32>, tensor<?x4xf32>
}
// Wherever a function returns, a result has another buffer than each earlier result has anywhere.
func.func @returns(%x: tensor<?xf32>, %c: i1) -> (tensor<?xf32>, tensor<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %e = linalg.exp ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  cf.cond_br %c, ^bb1(%e : tensor<?xf32>), ^bb2
^bb1(%p: tensor<?xf32>):
  return %p, %e : tensor<?xf32>, tensor<?xf32>
^bb2:
  %a = linalg.abs ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %a, %e : tensor<?xf32>, tensor<?xf32>
}

// CHECK:      func.func @f(%arg0: memref<8xf32>, %arg1: memref<8xf32> {aotc.name = "result0"})
// CHECK-NOT:    memref.alloc
// CHECK:        linalg.exp ins(%arg0 : memref<8xf32>) outs(%arg1 : memref<8xf32>)
// CHECK-NEXT:   return
// CHECK-NEXT: }
// CHECK-LABEL: func.func @freed(
// CHECK:         memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
// CHECK:      func.func @called(%arg0: memref<8xf32>, %arg1: memref<8xf32> {aotc.name = "result0"})
// CHECK-NEXT:   call @private(%arg0, %arg1)
// CHECK-NEXT:   return
// CHECK-LABEL: func.func @loop(
// CHECK:         %[[Y:.*]] = scf.for
// CHECK:         %[[COPY:.*]] = memref.alloc(
// CHECK-NEXT:    memref.copy %[[Y]], %[[COPY]]
// CHECK-NEXT:    return %[[Y]], %[[COPY]]
// CHECK-LABEL: func.func @views(
// CHECK:         %[[W:.*]] = scf.if
// CHECK:         } else {
// CHECK:         }
// CHECK:         %[[COPY:.*]] = memref.alloc(
// CHECK-NEXT:    memref.copy %{{.*}}, %[[COPY]]
// CHECK-NEXT:    return %{{.*}}, %[[COPY]], %[[W]]
// CHECK-LABEL: func.func @returns(
// CHECK:       ^bb1(%[[P:.*]]: memref<?xf32>):
// CHECK:         %[[ONE:.*]] = memref.alloc(
// CHECK-NEXT:    memref.copy %{{.*}}, %[[ONE]]
// CHECK-NEXT:    return %[[P]], %[[ONE]]
// CHECK:       ^bb2:
// CHECK:         %[[OTHER:.*]] = memref.alloc(
// CHECK-NEXT:    memref.copy %{{.*}}, %[[OTHER]]
// CHECK-NEXT:    return %{{.*}}, %[[OTHER]]
