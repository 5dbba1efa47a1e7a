// RUN: aotc-assert-sizes
#id = affine_map<(d0) -> (d0)>
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// CHECK:      %[[X:.*]] = memref.dim %arg0, %c0
// CHECK:      %[[Y:.*]] = memref.dim %arg1, %c0
// CHECK-NEXT: %[[IS_EQUAL:.*]] = arith.cmpi eq, %[[X]], %[[Y]]
// CHECK-NEXT: cf.assert %[[IS_EQUAL]], "operands of a linalg operation differ in size" {aotc.assumption}
// CHECK-NEXT: linalg.generic
