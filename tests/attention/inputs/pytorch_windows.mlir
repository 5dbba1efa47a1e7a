#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3, d4) -> (0, d1, 0, d3, d4)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<8x9x48xf32> {aotc.name = "x"}, %arg1: tensor<2x9x9xf32> {aotc.name = "bias"}, %arg2: tensor<4x9x9xf32> {aotc.name = "mask"}) -> tensor<8x9x16xf32> attributes {llvm.emit_c_interface} {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 0.35355339059327379 : f64
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3, 4]] output_shape [8, 9, 3, 2, 8] : tensor<8x9x48xf32> into tensor<8x9x3x2x8xf32>
    %0 = tensor.empty() : tensor<3x8x2x9x8xf32>
    %transposed = linalg.transpose ins(%expanded : tensor<8x9x3x2x8xf32>) outs(%0 : tensor<3x8x2x9x8xf32>) permutation = [2, 0, 3, 1, 4] 
    %extracted_slice = tensor.extract_slice %transposed[0, 0, 0, 0, 0] [1, 8, 2, 9, 8] [1, 1, 1, 1, 1] : tensor<3x8x2x9x8xf32> to tensor<1x8x2x9x8xf32>
    %collapsed = tensor.collapse_shape %extracted_slice [[0, 1], [2], [3], [4]] : tensor<1x8x2x9x8xf32> into tensor<8x2x9x8xf32>
    %extracted_slice_2 = tensor.extract_slice %transposed[1, 0, 0, 0, 0] [1, 8, 2, 9, 8] [1, 1, 1, 1, 1] : tensor<3x8x2x9x8xf32> to tensor<1x8x2x9x8xf32>
    %collapsed_3 = tensor.collapse_shape %extracted_slice_2 [[0, 1], [2], [3], [4]] : tensor<1x8x2x9x8xf32> into tensor<8x2x9x8xf32>
    %extracted_slice_4 = tensor.extract_slice %transposed[2, 0, 0, 0, 0] [1, 8, 2, 9, 8] [1, 1, 1, 1, 1] : tensor<3x8x2x9x8xf32> to tensor<1x8x2x9x8xf32>
    %1 = tensor.empty() : tensor<8x2x9x8xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<8x2x9x8xf32>) outs(%1 : tensor<8x2x9x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.truncf %cst_1 : f64 to f32
      %27 = arith.mulf %in, %26 : f32
      linalg.yield %27 : f32
    } -> tensor<8x2x9x8xf32>
    %3 = tensor.empty() : tensor<8x2x8x9xf32>
    %transposed_5 = linalg.transpose ins(%collapsed_3 : tensor<8x2x9x8xf32>) outs(%3 : tensor<8x2x8x9xf32>) permutation = [0, 1, 3, 2] 
    %collapsed_6 = tensor.collapse_shape %2 [[0, 1], [2], [3]] : tensor<8x2x9x8xf32> into tensor<16x9x8xf32>
    %collapsed_7 = tensor.collapse_shape %transposed_5 [[0, 1], [2], [3]] : tensor<8x2x8x9xf32> into tensor<16x8x9xf32>
    %4 = tensor.empty() : tensor<16x9x9xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<16x9x9xf32>) -> tensor<16x9x9xf32>
    %6 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<16x9x8xf32>, tensor<16x8x9xf32>) outs(%5 : tensor<16x9x9xf32>) -> tensor<16x9x9xf32>
    %expanded_8 = tensor.expand_shape %6 [[0, 1], [2], [3]] output_shape [8, 2, 9, 9] : tensor<16x9x9xf32> into tensor<8x2x9x9xf32>
    %7 = tensor.empty() : tensor<8x2x9x9xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8, %arg1 : tensor<8x2x9x9xf32>, tensor<2x9x9xf32>) outs(%7 : tensor<8x2x9x9xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %26 = arith.addf %in, %in_18 : f32
      linalg.yield %26 : f32
    } -> tensor<8x2x9x9xf32>
    %expanded_9 = tensor.expand_shape %8 [[0, 1], [2], [3], [4]] output_shape [2, 4, 2, 9, 9] : tensor<8x2x9x9xf32> into tensor<2x4x2x9x9xf32>
    %expanded_10 = tensor.expand_shape %arg2 [[0, 1], [2, 3], [4]] output_shape [1, 4, 1, 9, 9] : tensor<4x9x9xf32> into tensor<1x4x1x9x9xf32>
    %9 = tensor.empty() : tensor<2x4x2x9x9xf32>
    %10 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9, %expanded_10 : tensor<2x4x2x9x9xf32>, tensor<1x4x1x9x9xf32>) outs(%9 : tensor<2x4x2x9x9xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %26 = arith.addf %in, %in_18 : f32
      linalg.yield %26 : f32
    } -> tensor<2x4x2x9x9xf32>
    %collapsed_11 = tensor.collapse_shape %10 [[0, 1], [2], [3], [4]] : tensor<2x4x2x9x9xf32> into tensor<8x2x9x9xf32>
    %11 = tensor.empty() : tensor<8x2x9xi64>
    %12 = linalg.fill ins(%c0_i64 : i64) outs(%11 : tensor<8x2x9xi64>) -> tensor<8x2x9xi64>
    %13 = tensor.empty() : tensor<8x2x9xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<8x2x9xf32>) -> tensor<8x2x9xf32>
    %15:2 = linalg.generic {indexing_maps = [#map, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%collapsed_11 : tensor<8x2x9x9xf32>) outs(%14, %12 : tensor<8x2x9xf32>, tensor<8x2x9xi64>) {
    ^bb0(%in: f32, %out: f32, %out_18: i64):
      %26 = linalg.index 3 : index
      %27 = arith.index_cast %26 : index to i64
      %28 = arith.maximumf %in, %out : f32
      %29 = arith.cmpf ogt, %in, %out : f32
      %30 = arith.cmpf ugt, %in, %out : f32
      %31 = arith.cmpf ord, %out, %out : f32
      %32 = arith.andi %30, %31 : i1
      %33 = arith.select %32, %27, %out_18 : i64
      linalg.yield %28, %33 : f32, i64
    } -> (tensor<8x2x9xf32>, tensor<8x2x9xi64>)
    %expanded_12 = tensor.expand_shape %15#0 [[0], [1], [2, 3]] output_shape [8, 2, 9, 1] : tensor<8x2x9xf32> into tensor<8x2x9x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed_11, %expanded_12 : tensor<8x2x9x9xf32>, tensor<8x2x9x1xf32>) outs(%7 : tensor<8x2x9x9xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %26 = arith.subf %in, %in_18 : f32
      linalg.yield %26 : f32
    } -> tensor<8x2x9x9xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<8x2x9x9xf32>) outs(%7 : tensor<8x2x9x9xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = math.exp %in : f32
      linalg.yield %26 : f32
    } -> tensor<8x2x9x9xf32>
    %18 = tensor.empty() : tensor<8x2x9x1xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<8x2x9x1xf32>) -> tensor<8x2x9x1xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%17 : tensor<8x2x9x9xf32>) outs(%19 : tensor<8x2x9x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.addf %in, %out : f32
      linalg.yield %26 : f32
    } -> tensor<8x2x9x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %20 : tensor<8x2x9x9xf32>, tensor<8x2x9x1xf32>) outs(%7 : tensor<8x2x9x9xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %26 = arith.divf %in, %in_18 : f32
      linalg.yield %26 : f32
    } -> tensor<8x2x9x9xf32>
    %collapsed_13 = tensor.collapse_shape %21 [[0, 1], [2], [3]] : tensor<8x2x9x9xf32> into tensor<16x9x9xf32>
    %collapsed_14 = tensor.collapse_shape %extracted_slice_4 [[0, 1, 2], [3], [4]] : tensor<1x8x2x9x8xf32> into tensor<16x9x8xf32>
    %22 = tensor.empty() : tensor<16x9x8xf32>
    %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<16x9x8xf32>) -> tensor<16x9x8xf32>
    %24 = linalg.batch_matmul ins(%collapsed_13, %collapsed_14 : tensor<16x9x9xf32>, tensor<16x9x8xf32>) outs(%23 : tensor<16x9x8xf32>) -> tensor<16x9x8xf32>
    %expanded_15 = tensor.expand_shape %24 [[0, 1], [2], [3]] output_shape [8, 2, 9, 8] : tensor<16x9x8xf32> into tensor<8x2x9x8xf32>
    %25 = tensor.empty() : tensor<8x9x2x8xf32>
    %transposed_16 = linalg.transpose ins(%expanded_15 : tensor<8x2x9x8xf32>) outs(%25 : tensor<8x9x2x8xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_17 = tensor.collapse_shape %transposed_16 [[0], [1], [2, 3]] : tensor<8x9x2x8xf32> into tensor<8x9x16xf32>
    return %collapsed_17 : tensor<8x9x16xf32>
  }
}
