// RUN: aotc-assert-sizes,func.func(convert-linalg-to-parallel-loops),aotc-unify-sizes
#id = affine_map<(d0) -> (d0)>
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : memref<?xf32>) outs(%z : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// CHECK-NOT: cf.assert
// CHECK:     %[[SIZE:.*]] = memref.dim %arg0, %c0
// CHECK:     scf.parallel ({{.*}}) = (%c0) to (%{{.*}}) step (%c1)
// CHECK:     scf.parallel ({{.*}}) = (%c0) to (%[[SIZE]]) step (%c1)
// CHECK-NOT: cf.assert
