// RUN: aotc-slice-producers,canonicalize
#rows = affine_map<(b, t, i) -> (b, t, i)>
#row = affine_map<(b, t, i) -> (b, t)>
#matrix = affine_map<(i, j) -> (i, j)>
#scalar = affine_map<(i, j) -> ()>
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// The last row of each sequence, behind a matmul of all rows, a residual and the sum of each row.
func.func @last_row(%x: tensor<2x16x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %all = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x16x8xf32> into tensor<32x8xf32>
  %empty = tensor.empty() : tensor<32x8xf32>
  %start = linalg.generic {indexing_maps = [#scalar, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%zero : f32) outs(%empty : tensor<32x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<32x8xf32>
  %product = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%all, %w : tensor<32x8xf32>, tensor<8x8xf32>) outs(%start : tensor<32x8xf32>) {
  ^bb0(%p: f32, %q: f32, %sum: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<32x8xf32>
  %y = tensor.expand_shape %product [[0, 1], [2]] output_shape [2, 16, 8] : tensor<32x8xf32> into tensor<2x16x8xf32>
  %empty_rows = tensor.empty() : tensor<2x16x8xf32>
  %residual = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<2x16x8xf32>, tensor<2x16x8xf32>) outs(%empty_rows : tensor<2x16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<2x16x8xf32>
  %zeros = arith.constant dense<0.0> : tensor<2x16xf32>
  %sums = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%residual : tensor<2x16x8xf32>) outs(%zeros : tensor<2x16xf32>) {
  ^bb0(%p: f32, %sum: f32):
    %0 = arith.addf %sum, %p : f32
    linalg.yield %0 : f32
  } -> tensor<2x16xf32>
  %divided = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%residual, %sums : tensor<2x16x8xf32>, tensor<2x16xf32>) outs(%empty_rows : tensor<2x16x8xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.divf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<2x16x8xf32>
  %last = tensor.extract_slice %divided[0, 15, 0] [2, 1, 8] [1, 1, 1] : tensor<2x16x8xf32> to tensor<2x8xf32>
  return %last : tensor<2x8xf32>
}

// CHECK-LABEL: @last_row
// CHECK: tensor.extract_slice %{{.*}}[0, 15, 0] [2, 1, 8] [1, 1, 1] : tensor<2x16x8xf32> to tensor<2x1x8xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x8xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<2x8xf32>, tensor<8x8xf32>)
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x1x8xf32>, tensor<2x1x8xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}} : tensor<2x1x8xf32>)
// CHECK: arith.divf
// CHECK-NOT: tensor.extract_slice

// A slice of a reshape that is no slice of what is reshaped is computed from all of it.
func.func @no_one_stride(%x: tensor<8x6xf32>) -> tensor<2x2x6xf32> {
  %empty = tensor.empty() : tensor<8x6xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>) {
  ^bb0(%p: f32, %old: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<8x6xf32>
  %rows = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 6] : tensor<8x6xf32> into tensor<2x4x6xf32>
  %part = tensor.extract_slice %rows[0, 1, 0] [2, 2, 6] [1, 1, 1] : tensor<2x4x6xf32> to tensor<2x2x6xf32>
  return %part : tensor<2x2x6xf32>
}

// CHECK-LABEL: @no_one_stride
// CHECK: math.exp
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0] [2, 2, 6]

// Rows that follow each other, through a reshape of the loops of one dimension.
func.func @contiguous(%x: tensor<4x3x6xf32>) -> tensor<3x6xf32> {
  %empty = tensor.empty() : tensor<4x3x6xf32>
  %y = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x3x6xf32>) outs(%empty : tensor<4x3x6xf32>) {
  ^bb0(%p: f32, %old: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<4x3x6xf32>
  %rows = tensor.collapse_shape %y [[0, 1], [2]] : tensor<4x3x6xf32> into tensor<12x6xf32>
  %part = tensor.extract_slice %rows[6, 0] [3, 6] [1, 1] : tensor<12x6xf32> to tensor<3x6xf32>
  return %part : tensor<3x6xf32>
}

// CHECK-LABEL: @contiguous
// CHECK: tensor.extract_slice %{{.*}}[2, 0, 0] [1, 3, 6] [1, 1, 1]
// CHECK: math.exp
// CHECK-NOT: tensor.extract_slice

// Other readers need all rows.
func.func @read_as_a_whole(%x: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<6xf32>) {
  %empty = tensor.empty() : tensor<8x6xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x6xf32>) outs(%empty : tensor<8x6xf32>) {
  ^bb0(%p: f32, %old: f32):
    %0 = math.exp %p : f32
    linalg.yield %0 : f32
  } -> tensor<8x6xf32>
  %part = tensor.extract_slice %y[7, 0] [1, 6] [1, 1] : tensor<8x6xf32> to tensor<6xf32>
  return %y, %part : tensor<8x6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @read_as_a_whole
// CHECK: math.exp
// CHECK: tensor.extract_slice %{{.*}}[7, 0]

// A weight stays whole; an index would be another one in the slice.
func.func @constants_and_indices(%x: tensor<6x6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %w = arith.constant dense<[[1., 2., 3., 4., 5., 6.], [2., 2., 3., 4., 5., 6.], [3., 2., 3., 4., 5., 6.],
      [4., 2., 3., 4., 5., 6.], [5., 2., 3., 4., 5., 6.], [6., 2., 3., 4., 5., 6.]]> : tensor<6x6xf32>
  %empty = tensor.empty() : tensor<6x6xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<6x6xf32>, tensor<6x6xf32>) outs(%empty : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<6x6xf32>
  %z = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x6xf32>) outs(%empty : tensor<6x6xf32>) {
  ^bb0(%p: f32, %old: f32):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.addf %p, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<6x6xf32>
  %a = tensor.extract_slice %y[3, 0] [1, 6] [1, 1] : tensor<6x6xf32> to tensor<6xf32>
  %b = tensor.extract_slice %z[3, 0] [1, 6] [1, 1] : tensor<6x6xf32> to tensor<6xf32>
  return %a, %b : tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @constants_and_indices
// CHECK: arith.mulf
// CHECK: linalg.index 0
// CHECK: tensor.extract_slice %{{.*}}[3, 0] [1, 6]
// CHECK: tensor.extract_slice %{{.*}}[3, 0] [1, 6]

// The rows of a constant that are multiplied are read in place; a part of a weight's columns is not taken.
func.func @rows_of_constant(%w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %table = arith.constant dense<[[1., 2., 3., 4.], [2., 3., 4., 5.], [3., 4., 5., 6.], [4., 5., 6., 7.]]> : tensor<4x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x4xf32>
  %product = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%table, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<4x4xf32>) {
  ^bb0(%p: f32, %q: f32, %sum: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x4xf32>
  %part = tensor.extract_slice %product[1, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  return %part : tensor<2x4xf32>
}

// CHECK-LABEL: @rows_of_constant
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<4x4xf32>)

func.func @columns_of_constant(%x: tensor<4x4xf32>) -> tensor<4x2xf32> {
  %weight = arith.constant dense<[[1., 2., 3., 4.], [2., 3., 4., 5.], [3., 4., 5., 6.], [4., 5., 6., 7.]]> : tensor<4x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x4xf32>
  %product = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %weight : tensor<4x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<4x4xf32>) {
  ^bb0(%p: f32, %q: f32, %sum: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x4xf32>
  %part = tensor.extract_slice %product[0, 1] [4, 2] [1, 1] : tensor<4x4xf32> to tensor<4x2xf32>
  return %part : tensor<4x2xf32>
}

// CHECK-LABEL: @columns_of_constant
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>)

// A mask that is a constant of bytes is no weight: the part of the positions that are there is read.
func.func @mask() -> tensor<2x4xi1> attributes {llvm.emit_c_interface} {
  %bytes = arith.constant dense<[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]]> : tensor<1x4x4xi8>
  %zero = arith.constant 0 : i32
  %rows = tensor.collapse_shape %bytes [[0, 1], [2]]
      : tensor<1x4x4xi8> into tensor<4x4xi8>
  %wide_empty = tensor.empty() : tensor<4x4xi32>
  %wide = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4x4xi8>) outs(%wide_empty : tensor<4x4xi32>) {
  ^bb0(%in: i8, %out: i32):
    %number = arith.extui %in : i8 to i32
    linalg.yield %number : i32
  } -> tensor<4x4xi32>
  %empty = tensor.empty() : tensor<4x4xi1>
  %mask = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<4x4xi32>) outs(%empty : tensor<4x4xi1>) {
  ^bb0(%in: i32, %out: i1):
    %is = arith.cmpi ne, %in, %zero : i32
    linalg.yield %is : i1
  } -> tensor<4x4xi1>
  %part = tensor.extract_slice %mask[0, 0] [2, 4] [1, 1]
      : tensor<4x4xi1> to tensor<2x4xi1>
  return %part : tensor<2x4xi1>
}

// CHECK:      func.func @mask
// CHECK:        tensor.extract_slice %{{.*}}[0, 0, 0] [1, 2, 4] [1, 1, 1]
// CHECK:        linalg.generic
// CHECK-SAME:     ins(%{{.*}} : tensor<2x4xi8>)
// CHECK:        linalg.generic
// CHECK-SAME:     outs(%{{.*}} : tensor<2x4xi1>)
