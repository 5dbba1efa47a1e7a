// RUN: aotc-narrow-integers
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#scalar = affine_map<(d0, d1) -> ()>
func.func @one_zero_point(%x: tensor<?x64xi8>, %zero_point: tensor<i32>, %y: tensor<64x32xi8>, %size: index) -> tensor<?x32xi32> {
  %zero = arith.constant 0 : i64
  %wide = tensor.empty(%size) : tensor<?x64xi32>
  %a = linalg.generic {indexing_maps = [#map, #scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %zero_point : tensor<?x64xi8>, tensor<i32>) outs(%wide : tensor<?x64xi32>) {
  ^bb0(%in: i8, %point: i32, %out: i32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.subi %0, %point : i32
    linalg.yield %1 : i32
  } -> tensor<?x64xi32>
  %empty = tensor.empty(%size) : tensor<?x32xi64>
  %start = linalg.generic {indexing_maps = [#scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%zero : i64) outs(%empty : tensor<?x32xi64>) {
  ^bb0(%in: i64, %out: i64):
    linalg.yield %in : i64
  } -> tensor<?x32xi64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %y : tensor<?x64xi32>, tensor<64x32xi8>) outs(%start : tensor<?x32xi64>) {
  ^bb0(%in: i32, %other: i8, %out: i64):
    %0 = arith.extsi %in : i32 to i64
    %1 = arith.extsi %other : i8 to i64
    %2 = arith.muli %0, %1 : i64
    %3 = arith.addi %out, %2 : i64
    linalg.yield %3 : i64
  } -> tensor<?x32xi64>
  %cut = tensor.empty(%size) : tensor<?x32xi32>
  %result = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<?x32xi64>) outs(%cut : tensor<?x32xi32>) {
  ^bb0(%in: i64, %out: i32):
    %0 = arith.trunci %in : i64 to i32
    linalg.yield %0 : i32
  } -> tensor<?x32xi32>
  return %result : tensor<?x32xi32>
}

func.func @one_for_each_row(%x: tensor<?x64xi8>, %zero_point: tensor<?xi8>, %y: tensor<64x32xi8>, %size: index) -> tensor<?x32xi64> {
  %zero = arith.constant 0 : i64
  %wide = tensor.empty(%size) : tensor<?x64xi32>
  %a = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %zero_point : tensor<?x64xi8>, tensor<?xi8>) outs(%wide : tensor<?x64xi32>) {
  ^bb0(%in: i8, %point: i8, %out: i32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.extui %point : i8 to i32
    %2 = arith.subi %0, %1 : i32
    linalg.yield %2 : i32
  } -> tensor<?x64xi32>
  %empty = tensor.empty(%size) : tensor<?x32xi64>
  %start = linalg.generic {indexing_maps = [#scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%zero : i64) outs(%empty : tensor<?x32xi64>) {
  ^bb0(%in: i64, %out: i64):
    linalg.yield %in : i64
  } -> tensor<?x32xi64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %y : tensor<?x64xi32>, tensor<64x32xi8>) outs(%start : tensor<?x32xi64>) {
  ^bb0(%in: i32, %other: i8, %out: i64):
    %0 = arith.extsi %in : i32 to i64
    %1 = arith.extsi %other : i8 to i64
    %2 = arith.muli %0, %1 : i64
    %3 = arith.addi %out, %2 : i64
    linalg.yield %3 : i64
  } -> tensor<?x32xi64>
  return %sum : tensor<?x32xi64>
}

func.func @large(%x: tensor<?x64xi32>, %zero_point: tensor<?xi8>, %y: tensor<64x32xi8>, %size: index) -> tensor<?x32xi64> {
  %zero = arith.constant 0 : i64
  %wide = tensor.empty(%size) : tensor<?x64xi32>
  %a = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]} ins(%x, %zero_point : tensor<?x64xi32>, tensor<?xi8>) outs(%wide : tensor<?x64xi32>) {
  ^bb0(%in: i32, %point: i8, %out: i32):
    %1 = arith.extui %point : i8 to i32
    %2 = arith.subi %in, %1 : i32
    linalg.yield %2 : i32
  } -> tensor<?x64xi32>
  %empty = tensor.empty(%size) : tensor<?x32xi64>
  %start = linalg.generic {indexing_maps = [#scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%zero : i64) outs(%empty : tensor<?x32xi64>) {
  ^bb0(%in: i64, %out: i64):
    linalg.yield %in : i64
  } -> tensor<?x32xi64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %y : tensor<?x64xi32>, tensor<64x32xi8>) outs(%start : tensor<?x32xi64>) {
  ^bb0(%in: i32, %other: i8, %out: i64):
    %0 = arith.extsi %in : i32 to i64
    %1 = arith.extsi %other : i8 to i64
    %2 = arith.muli %0, %1 : i64
    %3 = arith.addi %out, %2 : i64
    linalg.yield %3 : i64
  } -> tensor<?x32xi64>
  return %sum : tensor<?x32xi64>
}

func.func @wide_zero_points(%x: tensor<5x64xi8>, %zero_point: i64, %y: tensor<64x32xi64>) -> tensor<5x32xi32> {
  %zero = arith.constant 0 : i64
  %wide = tensor.empty() : tensor<5x64xi64>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x64xi8>) outs(%wide : tensor<5x64xi64>) {
  ^bb0(%in: i8, %out: i64):
    %0 = arith.extsi %in : i8 to i64
    %1 = arith.subi %0, %zero_point : i64
    linalg.yield %1 : i64
  } -> tensor<5x64xi64>
  %empty = tensor.empty() : tensor<5x32xi64>
  %start = linalg.generic {indexing_maps = [#scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%zero : i64) outs(%empty : tensor<5x32xi64>) {
  ^bb0(%in: i64, %out: i64):
    linalg.yield %in : i64
  } -> tensor<5x32xi64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %y : tensor<5x64xi64>, tensor<64x32xi64>) outs(%start : tensor<5x32xi64>) {
  ^bb0(%in: i64, %other: i64, %out: i64):
    %0 = arith.muli %in, %other : i64
    %1 = arith.addi %out, %0 : i64
    linalg.yield %1 : i64
  } -> tensor<5x32xi64>
  %narrow = tensor.empty() : tensor<5x32xi32>
  %cut = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<5x32xi64>) outs(%narrow : tensor<5x32xi32>) {
  ^bb0(%in: i64, %out: i32):
    %0 = arith.trunci %in : i64 to i32
    linalg.yield %0 : i32
  } -> tensor<5x32xi32>
  return %cut : tensor<5x32xi32>
}

func.func @any_zero_point(%x: tensor<5x64xi8>, %zero_point: i32, %y: tensor<64x32xi8>) -> tensor<5x32xi64> {
  %zero = arith.constant 0 : i64
  %wide = tensor.empty() : tensor<5x64xi32>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x64xi8>) outs(%wide : tensor<5x64xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    %1 = arith.subi %0, %zero_point : i32
    linalg.yield %1 : i32
  } -> tensor<5x64xi32>
  %empty = tensor.empty() : tensor<5x32xi64>
  %start = linalg.generic {indexing_maps = [#scalar, #map], iterator_types = ["parallel", "parallel"]} ins(%zero : i64) outs(%empty : tensor<5x32xi64>) {
  ^bb0(%in: i64, %out: i64):
    linalg.yield %in : i64
  } -> tensor<5x32xi64>
  %sum = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %y : tensor<5x64xi32>, tensor<64x32xi8>) outs(%start : tensor<5x32xi64>) {
  ^bb0(%in: i32, %other: i8, %out: i64):
    %0 = arith.extsi %in : i32 to i64
    %1 = arith.extsi %other : i8 to i64
    %2 = arith.muli %0, %1 : i64
    %3 = arith.addi %out, %2 : i64
    linalg.yield %3 : i64
  } -> tensor<5x32xi64>
  return %sum : tensor<5x32xi64>
}

func.func @in_the_body(%x: tensor<4x8x64xi8>, %y: tensor<4x64x32xi8>, %point: i32, %other: i32) -> tensor<4x8x32xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<4x8x32xi32>
  %start = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> ()>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%zero : i32) outs(%empty : tensor<4x8x32xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<4x8x32xi32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> ()>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y, %point, %other : tensor<4x8x64xi8>, tensor<4x64x32xi8>, i32, i32) outs(%start : tensor<4x8x32xi32>) {
  ^bb0(%left: i8, %right: i8, %of_left: i32, %of_right: i32, %out: i32):
    %0 = arith.extsi %left : i8 to i32
    %1 = arith.subi %0, %of_left : i32
    %2 = arith.extsi %right : i8 to i32
    %3 = arith.subi %2, %of_right : i32
    %4 = arith.muli %1, %3 : i32
    %5 = arith.addi %out, %4 : i32
    linalg.yield %5 : i32
  } -> tensor<4x8x32xi32>
  return %sum : tensor<4x8x32xi32>
}

// A byte and a constant, as signed bytes; with the columns' sums, products of 32 bits are what is cut.
// CHECK-LABEL: @one_zero_point
// CHECK: arith.subi %{{.*}}, %c128_i32
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK: arith.muli {{.*}} : i32
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: arith.addi {{.*}} : i32

// A difference of two unsigned bytes has 9 bits: 64 products of it and a byte have less than 32.
// CHECK-LABEL: @one_for_each_row
// CHECK: arith.trunci {{.*}} : i32 to i16
// CHECK: arith.muli {{.*}} : i32
// CHECK: arith.extsi {{.*}} : i32 to i64

// CHECK-LABEL: @large
// CHECK-NOT: trunci
// CHECK: arith.muli {{.*}} : i64

// Sums of columns of 64 bits, and the zero point, are cut as the products are.
// CHECK-LABEL: @wide_zero_points
// CHECK: arith.trunci {{.*}} : i64 to i32
// CHECK: iterator_types = ["reduction", "parallel"]
// CHECK: arith.trunci {{.*}} : i64 to i32
// CHECK: arith.addi {{.*}} : i32

// The difference may be too large for its 32 bits, which sums of 64 show: it stays what it is.
// CHECK-LABEL: @any_zero_point
// CHECK-SAME: %[[POINT:[a-z0-9_]*]]: i32
// CHECK: arith.subi %{{.*}}, %[[POINT]] : i32
// CHECK-NOT: arith.subi
// CHECK: return

// The differences of `linalg.quantized_batch_matmul` are taken out of its body, which multiplies bytes.
// CHECK-LABEL: @in_the_body
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: "parallel", "parallel", "parallel", "reduction"
// CHECK-NOT: arith.subi
// CHECK: arith.muli {{.*}} : i32
