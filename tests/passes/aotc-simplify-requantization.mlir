// RUN: aotc-simplify-requantization
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @f(%n: tensor<2x8xi32>, %r: tensor<2x8xi8>, %out: tensor<2x8xi8>) -> tensor<2x8xi8> {
  %sums = arith.constant dense<[3, -5]> : tensor<2xi32>
  %scale = arith.constant dense<[0.5, 0.25]> : tensor<2xf32>
  %bias = arith.constant dense<[1.0, -6.0]> : tensor<2xf32>
  %move = arith.constant 128 : i32
  %two = arith.constant 2.0 : f32
  %four = arith.constant 4.0 : f32
  %none = arith.constant 0.0 : f32
  %zero = arith.constant 125.0 : f32
  %integer_zero = arith.constant 125 : i64
  %most = arith.constant 255.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #row, #row, #row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n, %sums, %scale, %bias, %r : tensor<2x8xi32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2x8xi8>)
      outs(%out : tensor<2x8xi8>) {
  ^bb0(%sum: i32, %of_row: i32, %s: f32, %b: f32, %other: i8, %o: i8):
    %1 = arith.muli %of_row, %move : i32
    %2 = arith.addi %sum, %1 : i32
    %3 = arith.sitofp %2 : i32 to f32
    %4 = arith.mulf %3, %s : f32
    %5 = arith.addf %b, %4 : f32
    %6 = arith.divf %5, %two : f32
    %7 = math.roundeven %6 : f32
    %8 = arith.addf %7, %zero : f32
    %9 = arith.maxnumf %8, %none : f32
    %10 = arith.minnumf %9, %most : f32
    %11 = arith.fptoui %10 : f32 to i8
    %12 = arith.extui %11 : i8 to i64
    %13 = arith.subi %12, %integer_zero : i64
    %14 = arith.sitofp %13 : i64 to f32
    %15 = arith.mulf %14, %two : f32
    %16 = arith.uitofp %other : i8 to f32
    %17 = arith.addf %15, %16 : f32
    %18 = arith.divf %17, %four : f32
    %19 = math.roundeven %18 : f32
    %20 = arith.addf %19, %none : f32
    %21 = arith.maxnumf %20, %none : f32
    %22 = arith.minnumf %21, %most : f32
    %23 = arith.fptoui %22 : f32 to i8
    linalg.yield %23 : i8
  } -> tensor<2x8xi8>
  return %0 : tensor<2x8xi8>
}

// Divisions are products with constants, what is a byte stays a float, and a zero point of 0 is left
// out.
// CHECK-LABEL: @f
// CHECK-DAG: dense<[384, -640]> : tensor<2xi32>
// CHECK-DAG: dense<[2.500000e-01, 1.250000e-01]> : tensor<2xf32>
// CHECK-DAG: dense<[5.000000e-01, -3.000000e+00]> : tensor<2xf32>
// CHECK: arith.addi
// CHECK-NEXT: arith.sitofp {{.*}} : i32 to f32
// CHECK-NEXT: arith.mulf {{.*}} fastmath<contract>
// CHECK-NEXT: arith.addf {{.*}} fastmath<contract>
// CHECK-NEXT: math.roundeven
// CHECK-NOT: arith.divf
// CHECK-NOT: i64
// CHECK: arith.subf
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: arith.mulf {{.*}} fastmath<contract>
// CHECK: arith.addf {{.*}} fastmath<contract>
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: arith.maxnumf
// CHECK-NEXT: arith.minnumf
// CHECK-NEXT: arith.fptoui

// What is quantized of floats alone is divided, as ONNX says.
func.func @floats(%x: tensor<8xf32>, %out: tensor<8xi8>) -> tensor<8xi8> {
  %two = arith.constant 3.0 : f32
  %none = arith.constant 0.0 : f32
  %most = arith.constant 255.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%out : tensor<8xi8>) {
  ^bb0(%a: f32, %o: i8):
    %1 = arith.divf %a, %two : f32
    %2 = math.roundeven %1 : f32
    %3 = arith.maxnumf %2, %none : f32
    %4 = arith.minnumf %3, %most : f32
    %5 = arith.fptoui %4 : f32 to i8
    linalg.yield %5 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}

// CHECK-LABEL: @floats
// CHECK: arith.divf

// A float of a negative integer that is read as unsigned is another one, and so is the sign of a zero
// that is not rounded.
func.func @unsigned(%n: tensor<8xi32>, %x: tensor<8xf32>, %out: tensor<8xf32>) -> tensor<8xf32> {
  %two = arith.constant 2.0 : f32
  %none = arith.constant 0.0 : f32
  %least = arith.constant -128.0 : f32
  %most = arith.constant 127.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%n, %x : tensor<8xi32>, tensor<8xf32>) outs(%out : tensor<8xf32>) {
  ^bb0(%sum: i32, %a: f32, %o: f32):
    %1 = arith.sitofp %sum : i32 to f32
    %2 = arith.divf %1, %two : f32
    %3 = math.roundeven %2 : f32
    %4 = arith.maxnumf %3, %least : f32
    %5 = arith.minnumf %4, %most : f32
    %6 = arith.fptosi %5 : f32 to i8
    %7 = arith.extsi %6 : i8 to i32
    %8 = arith.uitofp %7 : i32 to f32
    %9 = arith.addf %a, %none : f32
    %10 = arith.maxnumf %9, %least : f32
    %11 = arith.divf %8, %10 : f32
    linalg.yield %11 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @unsigned
// CHECK: arith.fptosi
// CHECK: arith.uitofp
// CHECK: arith.addf
// CHECK-NEXT: arith.maxnumf
