#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<1x2x70x64xf16> {aotc.name = "q"}, %arg1: tensor<1x2x131x64xf16> {aotc.name = "k"}, %arg2: tensor<1x2x131x64xf16> {aotc.name = "v"}, %arg3: tensor<70x131xf16> {aotc.name = "m"}) -> tensor<1x2x70x64xf16> attributes {llvm.emit_c_interface} {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x2x70x131xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<1x2x70x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x2x70x64xf16>) outs(%0 : tensor<1x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x64xf32>
    %2 = tensor.empty() : tensor<1x2x131x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x2x131x64xf16>) outs(%2 : tensor<1x2x131x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<1x2x131x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<1x2x131x64xf16>) outs(%2 : tensor<1x2x131x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %35 = arith.extf %in : f16 to f32
      linalg.yield %35 : f32
    } -> tensor<1x2x131x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x2x70x64xf32>) outs(%0 : tensor<1x2x70x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.truncf %cst_3 : f64 to f32
      %36 = arith.mulf %in, %35 : f32
      linalg.yield %36 : f32
    } -> tensor<1x2x70x64xf32>
    %6 = tensor.empty() : tensor<1x2x64x131xf32>
    %transposed = linalg.transpose ins(%3 : tensor<1x2x131x64xf32>) outs(%6 : tensor<1x2x64x131xf32>) permutation = [0, 1, 3, 2] 
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x2x64x131xf32>) outs(%6 : tensor<1x2x64x131xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.truncf %cst_3 : f64 to f32
      %36 = arith.mulf %in, %35 : f32
      linalg.yield %36 : f32
    } -> tensor<1x2x64x131xf32>
    %collapsed = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<1x2x70x64xf32> into tensor<2x70x64xf32>
    %collapsed_4 = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<1x2x64x131xf32> into tensor<2x64x131xf32>
    %8 = tensor.empty() : tensor<2x70x131xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
    %10 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<2x70x64xf32>, tensor<2x64x131xf32>) outs(%9 : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
    %expanded = tensor.expand_shape %10 [[0, 1], [2], [3]] output_shape [1, 2, 70, 131] : tensor<2x70x131xf32> into tensor<1x2x70x131xf32>
    %11 = tensor.empty() : tensor<1x2x70x131xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %arg3 : tensor<1x2x70x131xf32>, tensor<70x131xf16>) outs(%11 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %in_9: f16, %out: f32):
      %35 = arith.extf %in_9 : f16 to f32
      %36 = arith.addf %in, %35 : f32
      linalg.yield %36 : f32
    } -> tensor<1x2x70x131xf32>
    %13 = tensor.empty() : tensor<1x2x70xi64>
    %14 = linalg.fill ins(%c0_i64 : i64) outs(%13 : tensor<1x2x70xi64>) -> tensor<1x2x70xi64>
    %15 = tensor.empty() : tensor<1x2x70xf32>
    %16 = linalg.fill ins(%cst_0 : f32) outs(%15 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
    %17:2 = linalg.generic {indexing_maps = [#map, #map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<1x2x70x131xf32>) outs(%16, %14 : tensor<1x2x70xf32>, tensor<1x2x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %35 = linalg.index 3 : index
      %36 = arith.index_cast %35 : index to i64
      %37 = arith.maximumf %in, %out : f32
      %38 = arith.cmpf ogt, %in, %out : f32
      %39 = arith.select %38, %36, %out_9 : i64
      linalg.yield %37, %39 : f32, i64
    } -> (tensor<1x2x70xf32>, tensor<1x2x70xi64>)
    %expanded_5 = tensor.expand_shape %17#0 [[0], [1], [2, 3]] output_shape [1, 2, 70, 1] : tensor<1x2x70xf32> into tensor<1x2x70x1xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %expanded_5 : tensor<1x2x70x131xf32>, tensor<1x2x70x1xf32>) outs(%11 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %35 = arith.subf %in, %in_9 : f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x131xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x2x70x131xf32>) outs(%11 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = math.exp %in : f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x131xf32>
    %20 = tensor.empty() : tensor<1x2x70x1xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<1x2x70x1xf32>) -> tensor<1x2x70x1xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%19 : tensor<1x2x70x131xf32>) outs(%21 : tensor<1x2x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %35 = arith.addf %in, %out : f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19, %22 : tensor<1x2x70x131xf32>, tensor<1x2x70x1xf32>) outs(%11 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %35 = arith.divf %in, %in_9 : f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x131xf32>
    %24 = tensor.empty() : tensor<1x2x70x131xi1>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<1x2x70x131xf32>) outs(%24 : tensor<1x2x70x131xi1>) {
    ^bb0(%in: f32, %out: i1):
      %35 = arith.extf %in : f32 to f64
      %36 = arith.cmpf oeq, %35, %cst_2 : f64
      linalg.yield %36 : i1
    } -> tensor<1x2x70x131xi1>
    %26 = tensor.empty() : tensor<1x2x70x1xi1>
    %27 = linalg.fill ins(%true : i1) outs(%26 : tensor<1x2x70x1xi1>) -> tensor<1x2x70x1xi1>
    %28 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%25 : tensor<1x2x70x131xi1>) outs(%27 : tensor<1x2x70x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %35 = arith.andi %in, %out : i1
      linalg.yield %35 : i1
    } -> tensor<1x2x70x1xi1>
    %29 = linalg.generic {indexing_maps = [#map3, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %cst_1, %23 : tensor<1x2x70x1xi1>, tensor<1x2x70x131xf32>, tensor<1x2x70x131xf32>) outs(%11 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: i1, %in_9: f32, %in_10: f32, %out: f32):
      %35 = arith.select %in, %in_9, %in_10 : f32
      linalg.yield %35 : f32
    } -> tensor<1x2x70x131xf32>
    %collapsed_6 = tensor.collapse_shape %29 [[0, 1], [2], [3]] : tensor<1x2x70x131xf32> into tensor<2x70x131xf32>
    %collapsed_7 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<1x2x131x64xf32> into tensor<2x131x64xf32>
    %30 = tensor.empty() : tensor<2x70x64xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
    %32 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<2x70x131xf32>, tensor<2x131x64xf32>) outs(%31 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
    %expanded_8 = tensor.expand_shape %32 [[0, 1], [2], [3]] output_shape [1, 2, 70, 64] : tensor<2x70x64xf32> into tensor<1x2x70x64xf32>
    %33 = tensor.empty() : tensor<1x2x70x64xf16>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<1x2x70x64xf32>) outs(%33 : tensor<1x2x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %35 = arith.truncf %in : f32 to f16
      linalg.yield %35 : f16
    } -> tensor<1x2x70x64xf16>
    return %34 : tensor<1x2x70x64xf16>
  }
}
