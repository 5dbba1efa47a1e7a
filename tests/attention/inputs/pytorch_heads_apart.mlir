#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<1x70x3x64xf16> {aotc.name = "q"}, %arg1: tensor<1x131x3x64xf16> {aotc.name = "k"}, %arg2: tensor<1x131x3x64xf16> {aotc.name = "v"}) -> tensor<1x70x3x64xf16> attributes {llvm.emit_c_interface} {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x3x70x131xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<1x3x70x64xf16>
    %transposed = linalg.transpose ins(%arg0 : tensor<1x70x3x64xf16>) outs(%0 : tensor<1x3x70x64xf16>) permutation = [0, 2, 1, 3] 
    %1 = tensor.empty() : tensor<1x3x131x64xf16>
    %transposed_4 = linalg.transpose ins(%arg1 : tensor<1x131x3x64xf16>) outs(%1 : tensor<1x3x131x64xf16>) permutation = [0, 2, 1, 3] 
    %transposed_5 = linalg.transpose ins(%arg2 : tensor<1x131x3x64xf16>) outs(%1 : tensor<1x3x131x64xf16>) permutation = [0, 2, 1, 3] 
    %2 = tensor.empty() : tensor<1x3x70x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x3x70x64xf16>) outs(%2 : tensor<1x3x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x64xf32>
    %4 = tensor.empty() : tensor<1x3x131x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_4 : tensor<1x3x131x64xf16>) outs(%4 : tensor<1x3x131x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<1x3x131x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_5 : tensor<1x3x131x64xf16>) outs(%4 : tensor<1x3x131x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<1x3x131x64xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x3x70x64xf32>) outs(%2 : tensor<1x3x70x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.truncf %cst_3 : f64 to f32
      %37 = arith.mulf %in, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<1x3x70x64xf32>
    %8 = tensor.empty() : tensor<1x3x64x131xf32>
    %transposed_6 = linalg.transpose ins(%5 : tensor<1x3x131x64xf32>) outs(%8 : tensor<1x3x64x131xf32>) permutation = [0, 1, 3, 2] 
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_6 : tensor<1x3x64x131xf32>) outs(%8 : tensor<1x3x64x131xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.truncf %cst_3 : f64 to f32
      %37 = arith.mulf %in, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<1x3x64x131xf32>
    %collapsed = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<1x3x70x64xf32> into tensor<3x70x64xf32>
    %collapsed_7 = tensor.collapse_shape %9 [[0, 1], [2], [3]] : tensor<1x3x64x131xf32> into tensor<3x64x131xf32>
    %10 = tensor.empty() : tensor<3x70x131xf32>
    %11 = linalg.fill ins(%cst : f32) outs(%10 : tensor<3x70x131xf32>) -> tensor<3x70x131xf32>
    %12 = linalg.batch_matmul ins(%collapsed, %collapsed_7 : tensor<3x70x64xf32>, tensor<3x64x131xf32>) outs(%11 : tensor<3x70x131xf32>) -> tensor<3x70x131xf32>
    %expanded = tensor.expand_shape %12 [[0, 1], [2], [3]] output_shape [1, 3, 70, 131] : tensor<3x70x131xf32> into tensor<1x3x70x131xf32>
    %13 = tensor.empty() : tensor<1x3x70xi64>
    %14 = linalg.fill ins(%c0_i64 : i64) outs(%13 : tensor<1x3x70xi64>) -> tensor<1x3x70xi64>
    %15 = tensor.empty() : tensor<1x3x70xf32>
    %16 = linalg.fill ins(%cst_0 : f32) outs(%15 : tensor<1x3x70xf32>) -> tensor<1x3x70xf32>
    %17:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded : tensor<1x3x70x131xf32>) outs(%16, %14 : tensor<1x3x70xf32>, tensor<1x3x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_13: i64):
      %36 = linalg.index 3 : index
      %37 = arith.index_cast %36 : index to i64
      %38 = arith.maximumf %in, %out : f32
      %39 = arith.cmpf ogt, %in, %out : f32
      %40 = arith.select %39, %37, %out_13 : i64
      linalg.yield %38, %40 : f32, i64
    } -> (tensor<1x3x70xf32>, tensor<1x3x70xi64>)
    %expanded_8 = tensor.expand_shape %17#0 [[0], [1], [2, 3]] output_shape [1, 3, 70, 1] : tensor<1x3x70xf32> into tensor<1x3x70x1xf32>
    %18 = tensor.empty() : tensor<1x3x70x131xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_8 : tensor<1x3x70x131xf32>, tensor<1x3x70x1xf32>) outs(%18 : tensor<1x3x70x131xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %36 = arith.subf %in, %in_13 : f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x131xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<1x3x70x131xf32>) outs(%18 : tensor<1x3x70x131xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = math.exp %in : f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x131xf32>
    %21 = tensor.empty() : tensor<1x3x70x1xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<1x3x70x1xf32>) -> tensor<1x3x70x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<1x3x70x131xf32>) outs(%22 : tensor<1x3x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.addf %in, %out : f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x1xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %23 : tensor<1x3x70x131xf32>, tensor<1x3x70x1xf32>) outs(%18 : tensor<1x3x70x131xf32>) {
    ^bb0(%in: f32, %in_13: f32, %out: f32):
      %36 = arith.divf %in, %in_13 : f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x131xf32>
    %25 = tensor.empty() : tensor<1x3x70x131xi1>
    %26 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x3x70x131xf32>) outs(%25 : tensor<1x3x70x131xi1>) {
    ^bb0(%in: f32, %out: i1):
      %36 = arith.extf %in : f32 to f64
      %37 = arith.cmpf oeq, %36, %cst_2 : f64
      linalg.yield %37 : i1
    } -> tensor<1x3x70x131xi1>
    %27 = tensor.empty() : tensor<1x3x70x1xi1>
    %28 = linalg.fill ins(%true : i1) outs(%27 : tensor<1x3x70x1xi1>) -> tensor<1x3x70x1xi1>
    %29 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%26 : tensor<1x3x70x131xi1>) outs(%28 : tensor<1x3x70x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %36 = arith.andi %in, %out : i1
      linalg.yield %36 : i1
    } -> tensor<1x3x70x1xi1>
    %30 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %cst_1, %24 : tensor<1x3x70x1xi1>, tensor<1x3x70x131xf32>, tensor<1x3x70x131xf32>) outs(%18 : tensor<1x3x70x131xf32>) {
    ^bb0(%in: i1, %in_13: f32, %in_14: f32, %out: f32):
      %36 = arith.select %in, %in_13, %in_14 : f32
      linalg.yield %36 : f32
    } -> tensor<1x3x70x131xf32>
    %collapsed_9 = tensor.collapse_shape %30 [[0, 1], [2], [3]] : tensor<1x3x70x131xf32> into tensor<3x70x131xf32>
    %collapsed_10 = tensor.collapse_shape %6 [[0, 1], [2], [3]] : tensor<1x3x131x64xf32> into tensor<3x131x64xf32>
    %31 = tensor.empty() : tensor<3x70x64xf32>
    %32 = linalg.fill ins(%cst : f32) outs(%31 : tensor<3x70x64xf32>) -> tensor<3x70x64xf32>
    %33 = linalg.batch_matmul ins(%collapsed_9, %collapsed_10 : tensor<3x70x131xf32>, tensor<3x131x64xf32>) outs(%32 : tensor<3x70x64xf32>) -> tensor<3x70x64xf32>
    %expanded_11 = tensor.expand_shape %33 [[0, 1], [2], [3]] output_shape [1, 3, 70, 64] : tensor<3x70x64xf32> into tensor<1x3x70x64xf32>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<1x3x70x64xf32>) outs(%0 : tensor<1x3x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %36 = arith.truncf %in : f32 to f16
      linalg.yield %36 : f16
    } -> tensor<1x3x70x64xf16>
    %35 = tensor.empty() : tensor<1x70x3x64xf16>
    %transposed_12 = linalg.transpose ins(%34 : tensor<1x3x70x64xf16>) outs(%35 : tensor<1x70x3x64xf16>) permutation = [0, 2, 1, 3] 
    return %transposed_12 : tensor<1x70x3x64xf16>
  }
}
