// RUN: aotc-view-contiguous-slices
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Channels of an image of any size are contiguous: the image is made of bytes, of which it and its
// channels are views. The buffer has the sizes of the image, so that others of these sizes may have
// its memory later.
func.func @channels(%x: memref<16x?x?xf32>, %h: index, %w: index) {
  %a = memref.alloc(%h, %w) {alignment = 64 : i64} : memref<1x48x?x?xf32>
  %s = memref.subview %a[0, 16, 0, 0] [1, 16, %h, %w] [1, 1, 1, 1] : memref<1x48x?x?xf32> to memref<16x?x?xf32, strided<[?, ?, 1], offset: ?>>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<16x?x?xf32>) outs(%s : memref<16x?x?xf32, strided<[?, ?, 1], offset: ?>>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  %e = memref.expand_shape %s [[0, 1], [2], [3]] output_shape [1, 16, %h, %w] : memref<16x?x?xf32, strided<[?, ?, 1], offset: ?>> into memref<1x16x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>
  %t = memref.subview %a[0, 0, 0, 0] [1, 16, %h, %w] [1, 1, 1, 1] : memref<1x48x?x?xf32> to memref<1x16x?x?xf32, strided<[?, ?, ?, 1]>>
  memref.copy %e, %t : memref<1x16x?x?xf32, strided<[?, ?, ?, 1], offset: ?>> to memref<1x16x?x?xf32, strided<[?, ?, ?, 1]>>
  memref.dealloc %a : memref<1x48x?x?xf32>
  return
}

// CHECK-LABEL: func.func @channels
// CHECK: %[[A:.*]] = memref.alloc(%arg1, %arg2) {alignment = 64 : i64} : memref<4x48x?x?xi8>
// CHECK: %[[BYTES:.*]] = memref.collapse_shape %[[A]] {{.*}} into memref<?xi8>
// CHECK: %[[H:.*]] = arith.muli %c64, %arg1
// CHECK: %[[AT:.*]] = arith.muli %[[H]], %arg2
// CHECK: %[[S:.*]] = memref.view %[[BYTES]][%[[AT]]][%arg1, %arg2] {aotc.range = array<i64: 16, 32>} : memref<?xi8> to memref<16x?x?xf32>
// CHECK: linalg.generic {{.*}} outs(%[[S]] : memref<16x?x?xf32>)
// CHECK: %[[E:.*]] = memref.expand_shape %[[S]] {{.*}} : memref<16x?x?xf32> into memref<1x16x?x?xf32>
// CHECK: %[[T:.*]] = memref.view {{.*}} {aotc.range = array<i64: 0, 16>} : memref<?xi8> to memref<1x16x?x?xf32>
// CHECK: memref.copy %[[E]], %[[T]] : memref<1x16x?x?xf32> to memref<1x16x?x?xf32>
// CHECK: memref.dealloc %[[A]] : memref<4x48x?x?xi8>

// Not contiguous, between vectors, with an unknown place, and with a view that names the strides.
func.func @others(%h: index, %w: index, %i: index) {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc(%h, %w) : memref<2x48x?x?xf32>
  %s = memref.subview %a[0, 16, 0, 0] [2, 16, %h, %w] [1, 1, 1, 1] : memref<2x48x?x?xf32> to memref<2x16x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%s : memref<2x16x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>)
  %b = memref.alloc(%h) : memref<48x?xf32>
  %t = memref.subview %b[1, 0] [16, %h] [1, 1] : memref<48x?xf32> to memref<16x?xf32, strided<[?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%t : memref<16x?xf32, strided<[?, 1], offset: ?>>)
  %u = memref.subview %b[%i, 0] [16, %h] [1, 1] : memref<48x?xf32> to memref<16x?xf32, strided<[?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%u : memref<16x?xf32, strided<[?, 1], offset: ?>>)
  %v = memref.subview %b[16, 0] [16, %w] [1, 1] : memref<48x?xf32> to memref<16x?xf32, strided<[?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%v : memref<16x?xf32, strided<[?, 1], offset: ?>>)
  %y = memref.subview %b[16, 0] [16, %h] [1, 1] : memref<48x?xf32> to memref<16x?xf32, strided<[?, 1], offset: ?>>
  %c = memref.cast %y : memref<16x?xf32, strided<[?, 1], offset: ?>> to memref<?x?xf32, strided<[?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%c : memref<?x?xf32, strided<[?, 1], offset: ?>>)
  memref.dealloc %a : memref<2x48x?x?xf32>
  memref.dealloc %b : memref<48x?xf32>
  return
}

// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: memref.subview
// CHECK-NOT: memref.view

// A half of the channels is a view of the same bytes. What is no view of these keeps its strides, and
// the slice that it is taken from, too.
func.func @halves(%h: index, %w: index) {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc(%h, %w) : memref<1x96x?x?xf32>
  %s = memref.subview %a[0, 32, 0, 0] [1, 32, %h, %w] [1, 1, 1, 1] : memref<1x96x?x?xf32> to memref<32x?x?xf32, strided<[?, ?, 1], offset: ?>>
  %e = memref.expand_shape %s [[0, 1], [2], [3]] output_shape [1, 32, %h, %w] : memref<32x?x?xf32, strided<[?, ?, 1], offset: ?>> into memref<1x32x?x?xf32, strided<[?, ?, ?, 1], offset: ?>>
  %half = memref.subview %e[0, 16, 0, 0] [1, 16, %h, %w] [1, 1, 1, 1] : memref<1x32x?x?xf32, strided<[?, ?, ?, 1], offset: ?>> to memref<16x?x?xf32, strided<[?, ?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%half : memref<16x?x?xf32, strided<[?, ?, 1], offset: ?>>)
  %t = memref.subview %a[0, 64, 0, 0] [1, 32, %h, %w] [1, 1, 1, 1] : memref<1x96x?x?xf32> to memref<32x?x?xf32, strided<[?, ?, 1], offset: ?>>
  %row = memref.subview %t[0, 0, 0] [32, 1, %w] [1, 1, 1] : memref<32x?x?xf32, strided<[?, ?, 1], offset: ?>> to memref<32x1x?xf32, strided<[?, ?, 1], offset: ?>>
  linalg.fill ins(%z : f32) outs(%row : memref<32x1x?xf32, strided<[?, ?, 1], offset: ?>>)
  memref.dealloc %a : memref<1x96x?x?xf32>
  return
}

// CHECK-LABEL: func.func @halves
// CHECK: %[[WHOLE:.*]] = memref.view {{.*}} to memref<1x96x?x?xf32>
// CHECK: memref.view {{.*}} {aotc.range = array<i64: 32, 64>} : memref<?xi8> to memref<32x?x?xf32>
// CHECK: %[[HALF:.*]] = memref.view {{.*}} {aotc.range = array<i64: 48, 64>} : memref<?xi8> to memref<16x?x?xf32>
// CHECK: linalg.fill ins({{.*}}) outs(%[[HALF]] :
// CHECK: %[[T:.*]] = memref.subview %[[WHOLE]][0, 64, 0, 0]
// CHECK: memref.subview %[[T]]

// The first size must be known: it is multiplied by the bytes of an element.
func.func @unknown_rows(%n: index) {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc(%n) : memref<?x64xf32>
  %s = memref.subview %a[0, 0] [16, 64] [1, 1] : memref<?x64xf32> to memref<16x64xf32, strided<[64, 1]>>
  linalg.fill ins(%z : f32) outs(%s : memref<16x64xf32, strided<[64, 1]>>)
  memref.dealloc %a : memref<?x64xf32>
  return
}

// CHECK-LABEL: func.func @unknown_rows
// CHECK: memref.subview
// CHECK-NOT: memref.view
