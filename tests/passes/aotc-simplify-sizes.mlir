// RUN: aotc-simplify-sizes
#all = affine_map<(b, g, h, i, j) -> (b, g, h, i, j)>

func.func @f(%x: index) -> (index, index) {
  %c12 = arith.constant 12 : index
  %c5 = arith.constant 5 : index
  %product = affine.apply affine_map<()[s0] -> (s0 * 12)>()[%x]
  %whole = arith.divsi %product, %c12 : index
  %part = arith.divsi %product, %c5 : index
  return %whole, %part : index, index
}

// K is repeated for heads: along what is of an unknown size it is asked whether that is 1.
func.func @repeated(%k: tensor<1x2x1x?x8xf32>) -> tensor<1x2x4x?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %size = tensor.dim %k, %c3 : tensor<1x2x1x?x8xf32>
  %empty = tensor.empty(%size) : tensor<1x2x4x?x8xf32>
  %repeated = linalg.generic {indexing_maps = [#all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      outs(%empty : tensor<1x2x4x?x8xf32>) {
  ^bb0(%old: f32):
    %head = linalg.index 1 : index
    %row = linalg.index 3 : index
    %column = linalg.index 4 : index
    %is_one = arith.cmpi eq, %size, %c1 : index
    %place = arith.select %is_one, %c0, %row : index
    %x = tensor.extract %k[%c0, %head, %c0, %place, %column] : tensor<1x2x1x?x8xf32>
    linalg.yield %x : f32
  } -> tensor<1x2x4x?x8xf32>
  return %repeated : tensor<1x2x4x?x8xf32>
}

// A tensor that is broadcast to its own size.
func.func @same(%x: tensor<1x?xf32>) -> tensor<1x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c1 : tensor<1x?xf32>
  %empty = tensor.empty(%size) : tensor<1x?xf32>
  %same = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<1x?xf32>) {
  ^bb0(%old: f32):
    %column = linalg.index 1 : index
    %is_one = arith.cmpi eq, %size, %c1 : index
    %place = arith.select %is_one, %c0, %column : index
    %element = tensor.extract %x[%c0, %place] : tensor<1x?xf32>
    linalg.yield %element : f32
  } -> tensor<1x?xf32>
  return %same : tensor<1x?xf32>
}

// The sizes of the tensor and of what it is broadcast to are the same sum, and asserted to be equal.
func.func @joined(%past: tensor<?x?xf32>, %x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %batch = tensor.dim %x, %c0 : tensor<?x?xf32>
  %past_batch = tensor.dim %past, %c0 : tensor<?x?xf32>
  %is_equal = arith.cmpi eq, %past_batch, %batch : index
  cf.assert %is_equal, "'x' has another size than 'past'"
  %past_rows = tensor.dim %past, %c1 : tensor<?x?xf32>
  %rows = tensor.dim %x, %c1 : tensor<?x?xf32>
  %all = arith.addi %rows, %past_rows : index
  %joined = tensor.concat dim(1) %past, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %size = tensor.dim %joined, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%batch, %all) : tensor<?x?xf32>
  %same = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<?x?xf32>) {
  ^bb0(%old: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %has_one_row = arith.cmpi eq, %batch, %c1 : index
    %from = arith.select %has_one_row, %c0, %row : index
    %has_one_column = arith.cmpi eq, %size, %c1 : index
    %place = arith.select %has_one_column, %c0, %column : index
    %element = tensor.extract %joined[%from, %place] : tensor<?x?xf32>
    linalg.yield %element : f32
  } -> tensor<?x?xf32>
  return %same : tensor<?x?xf32>
}

// What has perhaps one row is broadcast when the program runs.
func.func @perhaps(%x: tensor<?xf32>, %size: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %own = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%size) : tensor<?xf32>
  %wide = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%empty : tensor<?xf32>) {
  ^bb0(%old: f32):
    %row = linalg.index 0 : index
    %is_one = arith.cmpi eq, %own, %c1 : index
    %place = arith.select %is_one, %c0, %row : index
    %element = tensor.extract %x[%place] : tensor<?xf32>
    linalg.yield %element : f32
  } -> tensor<?xf32>
  return %wide : tensor<?xf32>
}

// CHECK-DAG: #[[SHARED:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, 0, d3, d4)>
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
// CHECK-LABEL: func.func @f
// CHECK:     %[[PRODUCT:.*]] = affine.apply
// CHECK:     %[[PART:.*]] = arith.divsi %[[PRODUCT]], %c5
// CHECK:     return %arg0, %[[PART]]
// CHECK-LABEL: func.func @repeated
// CHECK-SAME:      %[[K:.*]]: tensor<1x2x1x?x8xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[SHARED]], #[[ALL]]], {{.*}} ins(%[[K]] : tensor<1x2x1x?x8xf32>)
// CHECK-NOT:     tensor.extract
// CHECK-LABEL: func.func @same
// CHECK-SAME:      %[[X:.*]]: tensor<1x?xf32>
// CHECK:         return %[[X]]
// CHECK-LABEL: func.func @joined
// CHECK:         %[[JOINED:.*]] = tensor.concat
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[JOINED]]
// CHECK-LABEL: func.func @perhaps
// CHECK:         tensor.extract
// Constant sizes become part of the type; the other sizes stay operands.
func.func @constants(%x: tensor<?x?xf32>, %n: index) -> (tensor<?x?x?x5xf32>, tensor<?x?xf32>) {
  %n2 = arith.constant 2 : index
  %n3 = arith.constant 3 : index
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<?x?xf32>
  %y = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [%n2, %n, %n3, 5] : tensor<?x?xf32> into tensor<?x?x?x5xf32>
  %z = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %w = tensor.expand_shape %z [[0, 1]] output_shape [%size, %n3] : tensor<?xf32> into tensor<?x?xf32>
  return %y, %w : tensor<?x?x?x5xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: @constants
// CHECK:     %[[X:.*]] = tensor.cast %arg0 : tensor<?x?xf32> to tensor<?x15xf32>
// CHECK:     tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2, 3]] output_shape [2, %arg1, 3, 5] : tensor<?x15xf32> into tensor<2x?x3x5xf32>
// CHECK:     tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [%{{.*}}, 3] : tensor<?xf32> into tensor<?x3xf32>

// A static size of a padded tensor gives the size before the padding; the result of one that is
// padded by %n does not.
func.func @padded(%x: tensor<?x?xf32>, %n: index) -> tensor<7x9xf32> {
  %zero = arith.constant 0.0 : f32
  %y = tensor.pad %x low[2, 0] high[1, %n] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<7x9xf32>
  return %y : tensor<7x9xf32>
}

// CHECK-LABEL: @padded
// CHECK:     %[[SOURCE:.*]] = tensor.cast %arg0 : tensor<?x?xf32> to tensor<4x?xf32>
// CHECK:     tensor.pad %[[SOURCE]] low[2, 0] high[1, %arg1]
// CHECK:     } : tensor<4x?xf32> to tensor<7x9xf32>

// A size of 0 in the type, next to a size that is a constant.
func.func @none(%x: tensor<?xf32>, %n: index) -> tensor<0x?x?xf32> {
  %c4 = arith.constant 4 : index
  %r = tensor.expand_shape %x [[0, 1, 2]] output_shape [0, %n, %c4]
      : tensor<?xf32> into tensor<0x?x?xf32>
  return %r : tensor<0x?x?xf32>
}

// CHECK-LABEL: @none
// CHECK:     tensor.expand_shape %{{.*}} output_shape [0, %arg1, 4]
