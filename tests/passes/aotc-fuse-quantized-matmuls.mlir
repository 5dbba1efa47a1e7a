// RUN: aotc-fuse-quantized-matmuls
#image = affine_map<(n, f, h, w, c, p, q) -> (n, c, h + p, w + q)>
#filter = affine_map<(n, f, h, w, c, p, q) -> (f, c, p, q)>
#result = affine_map<(n, f, h, w, c, p, q) -> (n, f, h, w)>
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d0)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#pair = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @padded(%x: tensor<?x1x4x4xi8>, %bias: tensor<?x2x4x4xf32>, %size: index) -> tensor<?x2x4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %point = arith.constant dense<131> : tensor<i32>
  %extracted = tensor.extract %point[] : tensor<i32>
  %wide_point = arith.extsi %extracted : i32 to i64
  %scale = arith.constant 0.5 : f32
  %points = arith.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %scales = arith.constant dense<[0.25, 2.0]> : tensor<2xf32>
  %filters = arith.constant dense<[[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], [[[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]]]]> : tensor<2x1x3x3xi8>
  %empty = tensor.empty(%size) : tensor<?x1x4x4xf32>
  %image = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<?x1x4x4xi8>) outs(%empty : tensor<?x1x4x4xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.extui %in : i8 to i64
    %1 = arith.subi %0, %wide_point : i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %scale : f32
    linalg.yield %3 : f32
  } -> tensor<?x1x4x4xf32>
  %larger = tensor.empty(%size) : tensor<?x1x6x6xf32>
  %padded = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%larger : tensor<?x1x6x6xf32>) {
  ^bb0(%out: f32):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %h = linalg.index 2 : index
    %w = linalg.index 3 : index
    %0 = arith.subi %h, %c1 : index
    %1 = arith.cmpi ult, %0, %c4 : index
    %2 = arith.subi %w, %c1 : index
    %3 = arith.cmpi ult, %2, %c4 : index
    %4 = arith.andi %1, %3 : i1
    %5 = arith.select %4, %0, %c0 : index
    %6 = arith.select %4, %2, %c0 : index
    %7 = tensor.extract %image[%n, %c, %5, %6] : tensor<?x1x4x4xf32>
    %8 = arith.select %4, %7, %zero : f32
    linalg.yield %8 : f32
  } -> tensor<?x1x6x6xf32>
  %of_filters = tensor.empty() : tensor<2x1x3x3xf32>
  %floats = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%filters : tensor<2x1x3x3xi8>) outs(%of_filters : tensor<2x1x3x3xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x1x3x3xf32>
  %scaled = linalg.generic {indexing_maps = [#map, #channel, #channel, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%floats, %points, %scales : tensor<2x1x3x3xf32>, tensor<2xf32>, tensor<2xf32>) outs(%of_filters : tensor<2x1x3x3xf32>) {
  ^bb0(%in: f32, %of: f32, %by: f32, %out: f32):
    %0 = arith.subf %in, %of : f32
    %1 = arith.mulf %0, %by : f32
    linalg.yield %1 : f32
  } -> tensor<2x1x3x3xf32>
  %sum = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%padded, %scaled : tensor<?x1x6x6xf32>, tensor<2x1x3x3xf32>) outs(%bias : tensor<?x2x4x4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.mulf %in, %other : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x2x4x4xf32>
  return %sum : tensor<?x2x4x4xf32>
}

func.func @of_weights(%x: tensor<5x4xi8>, %scale: f32, %by: tensor<4xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %known = arith.constant 0.5 : f32
  %weights = arith.constant dense<[[1, 2, 3, 4], [-5, 6, 7, -128]]> : tensor<2x4xi8>
  %scales = arith.constant dense<[0.25, 2.0]> : tensor<2xf32>
  %columns = arith.constant dense<[0.25, 2.0, 1.0, 1.0]> : tensor<4xf32>
  %empty = tensor.empty() : tensor<5x4xf32>
  %a = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x4xi8>) outs(%empty : tensor<5x4xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = arith.mulf %0, %known : f32
    linalg.yield %1 : f32
  } -> tensor<5x4xf32>
  %wide = tensor.empty() : tensor<2x4xf32>
  %w = linalg.generic {indexing_maps = [#pair, #row, #pair], iterator_types = ["parallel", "parallel"]} ins(%weights, %scales : tensor<2x4xi8>, tensor<2xf32>) outs(%wide : tensor<2x4xf32>) {
  ^bb0(%in: i8, %of: f32, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = arith.mulf %0, %of : f32
    linalg.yield %1 : f32
  } -> tensor<2x4xf32>
  %other = linalg.generic {indexing_maps = [#pair, affine_map<(d0, d1) -> (d1)>, #pair], iterator_types = ["parallel", "parallel"]} ins(%weights, %columns : tensor<2x4xi8>, tensor<4xf32>) outs(%wide : tensor<2x4xf32>) {
  ^bb0(%in: i8, %of: f32, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = arith.mulf %0, %of : f32
    linalg.yield %1 : f32
  } -> tensor<2x4xf32>
  %tall = tensor.empty() : tensor<4x2xf32>
  %b = linalg.generic {indexing_maps = [#pair, #turned], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<2x4xf32>) outs(%tall : tensor<4x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x2xf32>
  %b2 = linalg.generic {indexing_maps = [#pair, #turned], iterator_types = ["parallel", "parallel"]} ins(%other : tensor<2x4xf32>) outs(%tall : tensor<4x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x2xf32>
  %start = tensor.empty() : tensor<5x2xf32>
  %fill = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>, #pair], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%start : tensor<5x2xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<5x2xf32>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<5x4xf32>, tensor<4x2xf32>) outs(%fill : tensor<5x2xf32>) {
  ^bb0(%in: f32, %other_in: f32, %out: f32):
    %0 = arith.mulf %in, %other_in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<5x2xf32>
  %several = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b2 : tensor<5x4xf32>, tensor<4x2xf32>) outs(%fill : tensor<5x2xf32>) {
  ^bb0(%in: f32, %other_in: f32, %out: f32):
    %0 = arith.mulf %in, %other_in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<5x2xf32>
  return %sum, %several : tensor<5x2xf32>, tensor<5x2xf32>
}

func.func @of_16_bits(%x: tensor<5x4xi8>, %point: i8, %start: tensor<5x2xf64>) -> tensor<5x2xf64> {
  %weights = arith.constant dense<[[1, 2], [3, 4], [-5, 6], [7, -128]]> : tensor<4x2xi8>
  %wide = tensor.empty() : tensor<5x4xi32>
  %moved = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x4xi8>) outs(%wide : tensor<5x4xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.extui %point : i8 to i32
    %2 = arith.subi %0, %1 : i32
    linalg.yield %2 : i32
  } -> tensor<5x4xi32>
  %empty = tensor.empty() : tensor<5x4xf64>
  %a = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%moved : tensor<5x4xi32>) outs(%empty : tensor<5x4xf64>) {
  ^bb0(%in: i32, %out: f64):
    %0 = arith.sitofp %in : i32 to f64
    linalg.yield %0 : f64
  } -> tensor<5x4xf64>
  %other = tensor.empty() : tensor<4x2xf64>
  %b = linalg.generic {indexing_maps = [#pair, #pair], iterator_types = ["parallel", "parallel"]} ins(%weights : tensor<4x2xi8>) outs(%other : tensor<4x2xf64>) {
  ^bb0(%in: i8, %out: f64):
    %0 = arith.sitofp %in : i8 to f64
    linalg.yield %0 : f64
  } -> tensor<4x2xf64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<5x4xf64>, tensor<4x2xf64>) outs(%start : tensor<5x2xf64>) {
  ^bb0(%in: f64, %other_in: f64, %out: f64):
    %0 = arith.mulf %in, %other_in : f64
    %1 = arith.addf %out, %0 : f64
    linalg.yield %1 : f64
  } -> tensor<5x2xf64>
  return %sum : tensor<5x2xf64>
}

// The image is padded with its zero point, and channels have their scales, and zero points.
// CHECK-LABEL: @padded
// CHECK: %[[POINT:.*]] = arith.constant -125 : i8
// CHECK: arith.select {{.*}}, %[[POINT]] : i8
// CHECK: arith.extui {{.*}} : i8 to i32
// CHECK: arith.subi {{.*}} : i32
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: arith.muli {{.*}} : i32
// CHECK: dense<[1.250000e-01, 1.000000e+00]>
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: arith.addf

// Weights are turned as bytes. Scales of the terms of one sum are no scales of it.
// CHECK-LABEL: @of_weights
// CHECK: ins(%{{.*}} : tensor<2x4xi8>) outs(%{{.*}} : tensor<4x2xi8>)
// CHECK: arith.muli {{.*}} : i32
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK: ins({{.*}} : tensor<5x4xf32>, tensor<4x2xf32>)
// CHECK: arith.mulf

// Differences of bytes and a zero point that is known when the program runs have 16 bits. Their scale
// is 1.
// CHECK-LABEL: @of_16_bits
// CHECK: arith.trunci {{.*}} : i32 to i16
// CHECK: arith.extsi {{.*}} : i16 to i32
// CHECK: arith.muli {{.*}} : i32
// CHECK: arith.sitofp {{.*}} : i32 to f64
// CHECK-NOT: arith.mulf
// CHECK: return
