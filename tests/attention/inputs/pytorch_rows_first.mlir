#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<70x2x384xf16> {aotc.name = "x"}) -> tensor<70x2x128xf16> attributes {llvm.emit_c_interface} {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x2x70x70xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [70, 2, 128] [1, 1, 1] : tensor<70x2x384xf16> to tensor<70x2x128xf16>
    %extracted_slice_4 = tensor.extract_slice %arg0[0, 0, 128] [70, 2, 128] [1, 1, 1] : tensor<70x2x384xf16> to tensor<70x2x128xf16>
    %extracted_slice_5 = tensor.extract_slice %arg0[0, 0, 256] [70, 2, 128] [1, 1, 1] : tensor<70x2x384xf16> to tensor<70x2x128xf16>
    %collapsed = tensor.collapse_shape %extracted_slice [[0], [1, 2]] : tensor<70x2x128xf16> into tensor<70x256xf16>
    %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [70, 4, 64] : tensor<70x256xf16> into tensor<70x4x64xf16>
    %0 = tensor.empty() : tensor<4x70x64xf16>
    %transposed = linalg.transpose ins(%expanded : tensor<70x4x64xf16>) outs(%0 : tensor<4x70x64xf16>) permutation = [1, 0, 2] 
    %expanded_6 = tensor.expand_shape %transposed [[0, 1], [2], [3]] output_shape [2, 2, 70, 64] : tensor<4x70x64xf16> into tensor<2x2x70x64xf16>
    %collapsed_7 = tensor.collapse_shape %extracted_slice_4 [[0], [1, 2]] : tensor<70x2x128xf16> into tensor<70x256xf16>
    %expanded_8 = tensor.expand_shape %collapsed_7 [[0], [1, 2]] output_shape [70, 4, 64] : tensor<70x256xf16> into tensor<70x4x64xf16>
    %transposed_9 = linalg.transpose ins(%expanded_8 : tensor<70x4x64xf16>) outs(%0 : tensor<4x70x64xf16>) permutation = [1, 0, 2] 
    %expanded_10 = tensor.expand_shape %transposed_9 [[0, 1], [2], [3]] output_shape [2, 2, 70, 64] : tensor<4x70x64xf16> into tensor<2x2x70x64xf16>
    %collapsed_11 = tensor.collapse_shape %extracted_slice_5 [[0], [1, 2]] : tensor<70x2x128xf16> into tensor<70x256xf16>
    %expanded_12 = tensor.expand_shape %collapsed_11 [[0], [1, 2]] output_shape [70, 4, 64] : tensor<70x256xf16> into tensor<70x4x64xf16>
    %transposed_13 = linalg.transpose ins(%expanded_12 : tensor<70x4x64xf16>) outs(%0 : tensor<4x70x64xf16>) permutation = [1, 0, 2] 
    %expanded_14 = tensor.expand_shape %transposed_13 [[0, 1], [2], [3]] output_shape [2, 2, 70, 64] : tensor<4x70x64xf16> into tensor<2x2x70x64xf16>
    %1 = tensor.empty() : tensor<2x2x70x64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6 : tensor<2x2x70x64xf16>) outs(%1 : tensor<2x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x2x70x64xf16>) outs(%1 : tensor<2x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_14 : tensor<2x2x70x64xf16>) outs(%1 : tensor<2x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x2x70x64xf32>) outs(%1 : tensor<2x2x70x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.truncf %cst_3 : f64 to f32
      %36 = arith.mulf %in, %35 : f32
      linalg.yield %36 : f32
    } -> tensor<2x2x70x64xf32>
    %6 = tensor.empty() : tensor<2x2x64x70xf32>
    %transposed_15 = linalg.transpose ins(%3 : tensor<2x2x70x64xf32>) outs(%6 : tensor<2x2x64x70xf32>) permutation = [0, 1, 3, 2] 
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_15 : tensor<2x2x64x70xf32>) outs(%6 : tensor<2x2x64x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.truncf %cst_3 : f64 to f32
      %36 = arith.mulf %in, %35 : f32
      linalg.yield %36 : f32
    } -> tensor<2x2x64x70xf32>
    %collapsed_16 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x2x70x64xf32> into tensor<4x70x64xf32>
    %collapsed_17 = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<2x2x64x70xf32> into tensor<4x64x70xf32>
    %8 = tensor.empty() : tensor<4x70x70xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<4x70x70xf32>) -> tensor<4x70x70xf32>
    %10 = linalg.batch_matmul ins(%collapsed_16, %collapsed_17 : tensor<4x70x64xf32>, tensor<4x64x70xf32>) outs(%9 : tensor<4x70x70xf32>) -> tensor<4x70x70xf32>
    %expanded_18 = tensor.expand_shape %10 [[0, 1], [2], [3]] output_shape [2, 2, 70, 70] : tensor<4x70x70xf32> into tensor<2x2x70x70xf32>
    %11 = tensor.empty() : tensor<2x2x70xi64>
    %12 = linalg.fill ins(%c0_i64 : i64) outs(%11 : tensor<2x2x70xi64>) -> tensor<2x2x70xi64>
    %13 = tensor.empty() : tensor<2x2x70xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<2x2x70xf32>) -> tensor<2x2x70xf32>
    %15:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_18 : tensor<2x2x70x70xf32>) outs(%14, %12 : tensor<2x2x70xf32>, tensor<2x2x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_25: i64):
      %35 = linalg.index 3 : index
      %36 = arith.index_cast %35 : index to i64
      %37 = arith.maximumf %in, %out : f32
      %38 = arith.cmpf ogt, %in, %out : f32
      %39 = arith.cmpf ugt, %in, %out : f32
      %40 = arith.cmpf ord, %out, %out : f32
      %41 = arith.andi %39, %40 : i1
      %42 = arith.select %41, %36, %out_25 : i64
      linalg.yield %37, %42 : f32, i64
    } -> (tensor<2x2x70xf32>, tensor<2x2x70xi64>)
    %expanded_19 = tensor.expand_shape %15#0 [[0], [1], [2, 3]] output_shape [2, 2, 70, 1] : tensor<2x2x70xf32> into tensor<2x2x70x1xf32>
    %16 = tensor.empty() : tensor<2x2x70x70xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_18, %expanded_19 : tensor<2x2x70x70xf32>, tensor<2x2x70x1xf32>) outs(%16 : tensor<2x2x70x70xf32>) {
    ^bb0(%in: f32, %in_25: f32, %out: f32):
      %35 = arith.subf %in, %in_25 : f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x70xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x2x70x70xf32>) outs(%16 : tensor<2x2x70x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = math.exp %in : f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x70xf32>
    %19 = tensor.empty() : tensor<2x2x70x1xf32>
    %20 = linalg.fill ins(%cst : f32) outs(%19 : tensor<2x2x70x1xf32>) -> tensor<2x2x70x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x2x70x70xf32>) outs(%20 : tensor<2x2x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.addf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x1xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %21 : tensor<2x2x70x70xf32>, tensor<2x2x70x1xf32>) outs(%16 : tensor<2x2x70x70xf32>) {
    ^bb0(%in: f32, %in_25: f32, %out: f32):
      %35 = arith.divf %in, %in_25 : f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x70xf32>
    %23 = tensor.empty() : tensor<2x2x70x70xi1>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_18 : tensor<2x2x70x70xf32>) outs(%23 : tensor<2x2x70x70xi1>) {
    ^bb0(%in: f32, %out: i1):
      %35 = arith.extf %in : f32 to f64
      %36 = arith.cmpf oeq, %35, %cst_2 : f64
      linalg.yield %36 : i1
    } -> tensor<2x2x70x70xi1>
    %25 = tensor.empty() : tensor<2x2x70x1xi1>
    %26 = linalg.fill ins(%true : i1) outs(%25 : tensor<2x2x70x1xi1>) -> tensor<2x2x70x1xi1>
    %27 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<2x2x70x70xi1>) outs(%26 : tensor<2x2x70x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %35 = arith.andi %in, %out : i1
      linalg.yield %35 : i1
    } -> tensor<2x2x70x1xi1>
    %28 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %cst_1, %22 : tensor<2x2x70x1xi1>, tensor<2x2x70x70xf32>, tensor<2x2x70x70xf32>) outs(%16 : tensor<2x2x70x70xf32>) {
    ^bb0(%in: i1, %in_25: f32, %in_26: f32, %out: f32):
      %35 = arith.select %in, %in_25, %in_26 : f32
      linalg.yield %35 : f32
    } -> tensor<2x2x70x70xf32>
    %collapsed_20 = tensor.collapse_shape %28 [[0, 1], [2], [3]] : tensor<2x2x70x70xf32> into tensor<4x70x70xf32>
    %collapsed_21 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x2x70x64xf32> into tensor<4x70x64xf32>
    %29 = tensor.empty() : tensor<4x70x64xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<4x70x64xf32>) -> tensor<4x70x64xf32>
    %31 = linalg.batch_matmul ins(%collapsed_20, %collapsed_21 : tensor<4x70x70xf32>, tensor<4x70x64xf32>) outs(%30 : tensor<4x70x64xf32>) -> tensor<4x70x64xf32>
    %expanded_22 = tensor.expand_shape %31 [[0, 1], [2], [3]] output_shape [2, 2, 70, 64] : tensor<4x70x64xf32> into tensor<2x2x70x64xf32>
    %32 = tensor.empty() : tensor<2x2x70x64xf16>
    %33 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_22 : tensor<2x2x70x64xf32>) outs(%32 : tensor<2x2x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %35 = arith.truncf %in : f32 to f16
      linalg.yield %35 : f16
    } -> tensor<2x2x70x64xf16>
    %34 = tensor.empty() : tensor<70x2x2x64xf16>
    %transposed_23 = linalg.transpose ins(%33 : tensor<2x2x70x64xf16>) outs(%34 : tensor<70x2x2x64xf16>) permutation = [2, 0, 1, 3] 
    %collapsed_24 = tensor.collapse_shape %transposed_23 [[0], [1], [2, 3]] : tensor<70x2x2x64xf16> into tensor<70x2x128xf16>
    return %collapsed_24 : tensor<70x2x128xf16>
  }
}
