// RUN: aotc-create-lookup-tables
#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0, d1) -> ()>
func.func @computed(%x: tensor<128x256xf32>, %by: tensor<f32>, %scale: f32) -> tensor<128x256xf32> {
  %empty = tensor.empty() : tensor<128x256xf32>
  %y = linalg.generic {indexing_maps = [#map, #one, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %by : tensor<128x256xf32>, tensor<f32>) outs(%empty : tensor<128x256xf32>) {
  ^bb0(%in: f32, %factor: f32, %out: f32):
    %0 = arith.mulf %in, %factor : f32
    %1 = arith.fptoui %0 : f32 to i8
    %2 = arith.uitofp %1 : i8 to f32
    %3 = arith.divf %2, %scale : f32
    %4 = math.erf %3 : f32
    %5 = math.exp %4 : f32
    %6 = arith.mulf %5, %factor : f32
    linalg.yield %6 : f32
  } -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}

func.func @read(%x: tensor<256xi8>, %scale: f32) -> tensor<128x256xi8> {
  %empty = tensor.empty() : tensor<128x256xi8>
  %y = linalg.generic {indexing_maps = [#column, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<256xi8>) outs(%empty : tensor<128x256xi8>) {
  ^bb0(%in: i8, %out: i8):
    %0 = arith.sitofp %in : i8 to f32
    %1 = math.tanh %0 : f32
    %2 = math.exp %1 : f32
    %3 = arith.divf %2, %scale : f32
    %4 = arith.fptosi %3 : f32 to i8
    linalg.yield %4 : i8
  } -> tensor<128x256xi8>
  return %y : tensor<128x256xi8>
}

func.func @of_more(%x: tensor<128x256xi8>, %other: tensor<256xf32>, %small: tensor<2x8xi8>) -> (tensor<128x256xf32>, tensor<128x256xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<128x256xf32>
  %y = linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %other : tensor<128x256xi8>, tensor<256xf32>) outs(%empty : tensor<128x256xf32>) {
  ^bb0(%in: i8, %of: f32, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = arith.mulf %0, %of : f32
    %2 = math.exp %1 : f32
    %3 = math.tanh %2 : f32
    linalg.yield %3 : f32
  } -> tensor<128x256xf32>
  %cheap = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<128x256xi8>) outs(%empty : tensor<128x256xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<128x256xf32>
  %few = tensor.empty() : tensor<2x8xf32>
  %z = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%small : tensor<2x8xi8>) outs(%few : tensor<2x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    %1 = math.exp %0 : f32
    %2 = math.tanh %1 : f32
    linalg.yield %2 : f32
  } -> tensor<2x8xf32>
  return %y, %cheap, %z : tensor<128x256xf32>, tensor<128x256xf32>, tensor<2x8xf32>
}

func.func @divides(%x: tensor<128x256xi8>) -> tensor<128x256xf32> {
  %empty = tensor.empty() : tensor<128x256xf32>
  %hundred = arith.constant 100 : i32
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<128x256xi8>) outs(%empty : tensor<128x256xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.extsi %in : i8 to i32
    %1 = arith.divsi %hundred, %0 : i32
    %2 = arith.sitofp %1 : i32 to f32
    %3 = math.exp %2 : f32
    %4 = math.tanh %3 : f32
    linalg.yield %4 : f32
  } -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}

// The bytes are computed, and then looked up.
// CHECK-LABEL: @computed
// CHECK: %[[TABLE:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<f32>) outs({{.*}} : tensor<256xf32>)
// CHECK: linalg.index 0
// CHECK: arith.index_cast {{.*}} : index to i8
// CHECK: math.erf
// CHECK: math.exp
// CHECK: %[[BYTES:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<128x256xi8>)
// CHECK: arith.fptoui
// CHECK-NEXT: linalg.yield {{.*}} : i8
// CHECK: ins(%[[BYTES]] : tensor<128x256xi8>)
// CHECK: %[[INDEX:.*]] = arith.index_castui {{.*}} : i8 to index
// CHECK: tensor.extract %[[TABLE]][%[[INDEX]]]
// CHECK-NOT: math

// CHECK-LABEL: @read
// CHECK: outs({{.*}} : tensor<256xi8>)
// CHECK: math.tanh
// CHECK: ins(%arg0 : tensor<256xi8>) outs({{.*}} : tensor<128x256xi8>)
// CHECK: tensor.extract

// Of another value, too; of little work; of few elements.
// CHECK-LABEL: @of_more
// CHECK-NOT: tensor.extract
// CHECK: return

// By a byte, of which 0 may not be there.
// CHECK-LABEL: @divides
// CHECK-NOT: tensor.extract

// What quantizes a byte with the scale that it was dequantized with gives that byte.
func.func @same(%bytes: tensor<4x8xi8>) -> tensor<4x8xi8> {
  %scale = arith.constant 0.0227930788 : f32
  %least = arith.constant 0.000000e+00 : f32
  %most = arith.constant 2.550000e+02 : f32
  %zero = arith.constant 7.000000e+00 : f32
  %empty = tensor.empty() : tensor<4x8xi8>
  %quantized = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%bytes : tensor<4x8xi8>) outs(%empty : tensor<4x8xi8>) {
  ^bb0(%x: i8, %old: i8):
    %wide = arith.uitofp %x : i8 to f32
    %moved = arith.subf %wide, %zero : f32
    %scaled = arith.mulf %moved, %scale : f32
    %divided = arith.divf %scaled, %scale : f32
    %even = math.roundeven %divided : f32
    %added = arith.addf %even, %zero : f32
    %above = arith.maxnumf %added, %least : f32
    %inside = arith.minnumf %above, %most : f32
    %byte = arith.fptoui %inside : f32 to i8
    linalg.yield %byte : i8
  } -> tensor<4x8xi8>
  return %quantized : tensor<4x8xi8>
}

// CHECK-LABEL: @same
// CHECK: ^bb0(%[[BYTE:.*]]: i8, %{{.*}}: i8):
// CHECK-NEXT: linalg.yield %[[BYTE]] : i8
