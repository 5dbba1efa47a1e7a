// RUN: aotc-clone-casts
#map = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<8xf32>, %wide: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %e = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%wide : tensor<8xf64>) {
  ^bb0(%in: f32, %out: f64):
    %0 = arith.extf %in : f32 to f64
    linalg.yield %0 : f64
  } -> tensor<8xf64>
  %a = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%e, %e : tensor<8xf64>, tensor<8xf64>) outs(%wide : tensor<8xf64>) {
  ^bb0(%in: f64, %other: f64, %out: f64):
    %0 = arith.mulf %in, %other : f64
    linalg.yield %0 : f64
  } -> tensor<8xf64>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%e : tensor<8xf64>) outs(%wide : tensor<8xf64>) {
  ^bb0(%in: f64, %out: f64):
    %0 = arith.negf %in : f64
    linalg.yield %0 : f64
  } -> tensor<8xf64>
  return %a, %b : tensor<8xf64>, tensor<8xf64>
}

// Each of the two reads its own.
// CHECK-COUNT-2: arith.extf
// CHECK-NOT: arith.extf
