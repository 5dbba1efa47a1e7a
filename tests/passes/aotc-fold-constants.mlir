// RUN: func.func(linalg-generalize-named-ops),aotc-fold-constants
func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %empty = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%w : tensor<2x3xf32>) outs(%empty : tensor<3x2xf32>) permutation = [1, 0]
  %y = linalg.add ins(%x, %t : tensor<3x2xf32>, tensor<3x2xf32>) outs(%empty : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// CHECK:      %[[FOLDED:.*]] = arith.constant dense<{{\[\[}}1.0{{.*}}, 4.0{{.*}}], [2.0{{.*}}, 5.0{{.*}}], [3.0{{.*}}, 6.0{{.*}}]]> : tensor<3x2xf32>
// CHECK-NEXT: linalg.generic {{.*}} ins(%arg0, %[[FOLDED]] :
// CHECK-NOT:  linalg.generic

// A sum of constants, which has one element for each column, and that of 4 to the result.
func.func @sum(%x: tensor<3xf32>) -> tensor<3xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %four = arith.constant dense<4.0> : tensor<3xf32>
  %s = linalg.reduce {arith.addf} ins(%w : tensor<2x3xf32>) outs(%four : tensor<3xf32>) dimensions = [0]
  %empty = tensor.empty() : tensor<3xf32>
  %y = linalg.add ins(%x, %s : tensor<3xf32>, tensor<3xf32>) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK:      %[[SUM:.*]] = arith.constant dense<[9.0{{.*}}, 1.1{{.*}}e+01, 1.3{{.*}}e+01]> : tensor<3xf32>
// CHECK:      linalg.generic {{.*}} ins(%arg0, %[[SUM]] :
// CHECK-NOT:  linalg.generic

// A quantized filter is one of floats, though these take more memory; a matrix stays.
func.func @filter(%x: tensor<64x58x58xf32>, %y: tensor<8x576xf32>, %conv: tensor<64x56x56xf32>, %product: tensor<8x64xf32>) -> (tensor<64x56x56xf32>, tensor<8x64xf32>) {
  %w_empty = tensor.empty() : tensor<64x64x3x3xi8>
  %w = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%w_empty : tensor<64x64x3x3xi8>) {
  ^bb0(%out: i8):
    %0 = linalg.index 0 : index
    %1 = linalg.index 1 : index
    %2 = linalg.index 2 : index
    %3 = linalg.index 3 : index
    %4 = arith.addi %0, %1 : index
    %5 = arith.addi %2, %3 : index
    %6 = arith.addi %4, %5 : index
    %7 = arith.index_cast %6 : index to i8
    linalg.yield %7 : i8
  } -> tensor<64x64x3x3xi8>
  %m_empty = tensor.empty() : tensor<576x64xi8>
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%m_empty : tensor<576x64xi8>) {
  ^bb0(%out: i8):
    %0 = linalg.index 0 : index
    %1 = linalg.index 1 : index
    %2 = arith.addi %0, %1 : index
    %3 = arith.index_cast %2 : index to i8
    linalg.yield %3 : i8
  } -> tensor<576x64xi8>
  %wide = tensor.empty() : tensor<64x64x3x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%w : tensor<64x64x3x3xi8>) outs(%wide : tensor<64x64x3x3xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<64x64x3x3xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d1 + d4, d2 + d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %f : tensor<64x58x58xf32>, tensor<64x64x3x3xf32>) outs(%conv : tensor<64x56x56xf32>) {
  ^bb0(%in: f32, %filter: f32, %out: f32):
    %0 = arith.mulf %in, %filter : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64x56x56xf32>
  %flat = tensor.empty() : tensor<576x64xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<576x64xi8>) outs(%flat : tensor<576x64xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.sitofp %in : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<576x64xf32>
  %p = linalg.matmul ins(%y, %g : tensor<8x576xf32>, tensor<576x64xf32>) outs(%product : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %c, %p : tensor<64x56x56xf32>, tensor<8x64xf32>
}

// CHECK-LABEL: func.func @filter
// CHECK-DAG:  %[[FILTER:.*]] = arith.constant dense{{.*}} : tensor<64x64x3x3xf32>
// CHECK:      linalg.generic {{.*}} ins(%arg0, %[[FILTER]] :
// CHECK:      sitofp

// Taps of a filter, of which one is a slice of a slice. Rows of one stay: they are memory as it lies.
func.func @slices(%x: tensor<2xf32>, %y: tensor<1x2xf32>) -> (tensor<2xf32>, tensor<1x2xf32>) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %first = tensor.extract_slice %w[0, 0] [2, 1] [1, 1] : tensor<2x2xf32> to tensor<2xf32>
  %second = tensor.extract_slice %w[0, 1] [2, 1] [1, 1] : tensor<2x2xf32> to tensor<2x1xf32>
  %last = tensor.extract_slice %second[0, 0] [2, 1] [1, 1] : tensor<2x1xf32> to tensor<2xf32>
  %empty = tensor.empty() : tensor<2xf32>
  %a = linalg.add ins(%x, %first : tensor<2xf32>, tensor<2xf32>) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %b = linalg.mul ins(%a, %last : tensor<2xf32>, tensor<2xf32>) outs(%empty : tensor<2xf32>) -> tensor<2xf32>
  %r = arith.constant dense<[[5.0, 6.0], [7.0, 8.0]]> : tensor<2x2xf32>
  %row = tensor.extract_slice %r[1, 0] [1, 2] [1, 1] : tensor<2x2xf32> to tensor<1x2xf32>
  %wide = tensor.empty() : tensor<1x2xf32>
  %c = linalg.add ins(%y, %row : tensor<1x2xf32>, tensor<1x2xf32>) outs(%wide : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %b, %c : tensor<2xf32>, tensor<1x2xf32>
}

// CHECK-LABEL: func.func @slices
// CHECK-NOT:  extract_slice
// CHECK-DAG:  %[[FIRST:.*]] = arith.constant dense<[1.0{{.*}}, 3.0{{.*}}]> : tensor<2xf32>
// CHECK-DAG:  %[[LAST:.*]] = arith.constant dense<[2.0{{.*}}, 4.0{{.*}}]> : tensor<2xf32>
// CHECK:      linalg.generic {{.*}} ins(%arg0, %[[FIRST]] :
// CHECK:      linalg.generic {{.*}} ins({{.*}}, %[[LAST]] :
// CHECK:      %[[ROW:.*]] = tensor.extract_slice
// CHECK:      linalg.generic {{.*}} ins(%arg1, %[[ROW]] :

// A sum over as many elements as an argument has.
func.func @over_unknown_size(%x: tensor<?xf32>) -> tensor<i32> {
  %zero = arith.constant dense<0> : tensor<i32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]} ins(%x : tensor<?xf32>) outs(%zero : tensor<i32>) {
  ^bb0(%unused: f32, %partial: i32):
    %i = linalg.index 0 : index
    %term = arith.index_cast %i : index to i32
    %more = arith.addi %partial, %term : i32
    linalg.yield %more : i32
  } -> tensor<i32>
  return %sum : tensor<i32>
}

// CHECK-LABEL: func.func @over_unknown_size
// CHECK:      linalg.generic
