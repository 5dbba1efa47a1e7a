#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, 0)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> ()>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<1x2x70x64xf16> {aotc.name = "q"}, %arg1: tensor<1x2x131x64xf16> {aotc.name = "k"}, %arg2: tensor<1x2x131x64xf16> {aotc.name = "v"}) -> tensor<1x2x70x64xf16> attributes {llvm.emit_c_interface} {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %true = arith.constant true
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant dense<0xFC00> : tensor<f16>
    %cst_2 = arith.constant dense<true> : tensor<70x131xi1>
    %cst_3 = arith.constant 1.250000e-01 : f16
    %0 = tensor.empty() : tensor<1x2x64x131xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<1x2x131x64xf16>) outs(%0 : tensor<1x2x64x131xf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<1x2x70x64xf16> into tensor<2x70x64xf16>
    %collapsed_4 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<1x2x64x131xf16> into tensor<2x64x131xf16>
    %1 = tensor.empty() : tensor<2x70x131xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<2x70x64xf16>, tensor<2x64x131xf16>) outs(%2 : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
    %4 = tensor.empty() : tensor<2x70x131xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x70x131xf32>) outs(%4 : tensor<2x70x131xf16>) {
    ^bb0(%in: f32, %out: f16):
      %38 = arith.truncf %in : f32 to f16
      linalg.yield %38 : f16
    } -> tensor<2x70x131xf16>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [1, 2, 70, 131] : tensor<2x70x131xf16> into tensor<1x2x70x131xf16>
    %6 = tensor.empty() : tensor<1x2x70x131xf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<1x2x70x131xf16>) outs(%6 : tensor<1x2x70x131xf16>) {
    ^bb0(%in: f16, %out: f16):
      %38 = arith.mulf %in, %cst_3 : f16
      linalg.yield %38 : f16
    } -> tensor<1x2x70x131xf16>
    %8 = tensor.empty() : tensor<131xi64>
    %9 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%8 : tensor<131xi64>) {
    ^bb0(%out: i64):
      %38 = linalg.index 0 : index
      %39 = arith.index_cast %38 : index to i64
      linalg.yield %39 : i64
    } -> tensor<131xi64>
    %expanded_5 = tensor.expand_shape %9 [[0, 1]] output_shape [1, 131] : tensor<131xi64> into tensor<1x131xi64>
    %10 = tensor.empty() : tensor<70xi64>
    %11 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%10 : tensor<70xi64>) {
    ^bb0(%out: i64):
      %38 = linalg.index 0 : index
      %39 = arith.index_cast %38 : index to i64
      linalg.yield %39 : i64
    } -> tensor<70xi64>
    %expanded_6 = tensor.expand_shape %11 [[0, 1]] output_shape [70, 1] : tensor<70xi64> into tensor<70x1xi64>
    %12 = tensor.empty() : tensor<70x131xi64>
    %13 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel"]} ins(%expanded_5, %expanded_6 : tensor<1x131xi64>, tensor<70x1xi64>) outs(%12 : tensor<70x131xi64>) {
    ^bb0(%in: i64, %in_11: i64, %out: i64):
      %38 = arith.subi %in, %in_11 : i64
      linalg.yield %38 : i64
    } -> tensor<70x131xi64>
    %14 = tensor.empty() : tensor<70x131xi1>
    %15 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<70x131xi64>) outs(%14 : tensor<70x131xi1>) {
    ^bb0(%in: i64, %out: i1):
      %38 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %38 : i1
    } -> tensor<70x131xi1>
    %16 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%15, %cst_2 : tensor<70x131xi1>, tensor<70x131xi1>) outs(%14 : tensor<70x131xi1>) {
    ^bb0(%in: i1, %in_11: i1, %out: i1):
      %38 = arith.andi %in, %in_11 : i1
      linalg.yield %38 : i1
    } -> tensor<70x131xi1>
    %17 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel"]} ins(%16 : tensor<70x131xi1>) outs(%14 : tensor<70x131xi1>) {
    ^bb0(%in: i1, %out: i1):
      %38 = arith.xori %in, %true : i1
      linalg.yield %38 : i1
    } -> tensor<70x131xi1>
    %18 = linalg.generic {indexing_maps = [#map6, #map7, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %cst_1, %7 : tensor<70x131xi1>, tensor<f16>, tensor<1x2x70x131xf16>) outs(%6 : tensor<1x2x70x131xf16>) {
    ^bb0(%in: i1, %in_11: f16, %in_12: f16, %out: f16):
      %38 = arith.select %in, %in_11, %in_12 : f16
      linalg.yield %38 : f16
    } -> tensor<1x2x70x131xf16>
    %19 = tensor.empty() : tensor<1x2x70x131xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x2x70x131xf16>) outs(%19 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f16, %out: f32):
      %38 = arith.extf %in : f16 to f32
      linalg.yield %38 : f32
    } -> tensor<1x2x70x131xf32>
    %21 = tensor.empty() : tensor<1x2x70xi64>
    %22 = linalg.fill ins(%c0_i64 : i64) outs(%21 : tensor<1x2x70xi64>) -> tensor<1x2x70xi64>
    %23 = tensor.empty() : tensor<1x2x70xf32>
    %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<1x2x70xf32>) -> tensor<1x2x70xf32>
    %25:2 = linalg.generic {indexing_maps = [#map1, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<1x2x70x131xf32>) outs(%24, %22 : tensor<1x2x70xf32>, tensor<1x2x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %38 = linalg.index 3 : index
      %39 = arith.index_cast %38 : index to i64
      %40 = arith.maximumf %in, %out : f32
      %41 = arith.cmpf ogt, %in, %out : f32
      %42 = arith.select %41, %39, %out_11 : i64
      linalg.yield %40, %42 : f32, i64
    } -> (tensor<1x2x70xf32>, tensor<1x2x70xi64>)
    %expanded_7 = tensor.expand_shape %25#0 [[0], [1], [2, 3]] output_shape [1, 2, 70, 1] : tensor<1x2x70xf32> into tensor<1x2x70x1xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %expanded_7 : tensor<1x2x70x131xf32>, tensor<1x2x70x1xf32>) outs(%19 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %38 = arith.subf %in, %in_11 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x70x131xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<1x2x70x131xf32>) outs(%19 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = math.exp %in : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x70x131xf32>
    %28 = tensor.empty() : tensor<1x2x70x1xf32>
    %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<1x2x70x1xf32>) -> tensor<1x2x70x1xf32>
    %30 = linalg.generic {indexing_maps = [#map1, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27 : tensor<1x2x70x131xf32>) outs(%29 : tensor<1x2x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.addf %in, %out : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x70x1xf32>
    %31 = linalg.generic {indexing_maps = [#map1, #map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %30 : tensor<1x2x70x131xf32>, tensor<1x2x70x1xf32>) outs(%19 : tensor<1x2x70x131xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %38 = arith.divf %in, %in_11 : f32
      linalg.yield %38 : f32
    } -> tensor<1x2x70x131xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31 : tensor<1x2x70x131xf32>) outs(%6 : tensor<1x2x70x131xf16>) {
    ^bb0(%in: f32, %out: f16):
      %38 = arith.truncf %in : f32 to f16
      linalg.yield %38 : f16
    } -> tensor<1x2x70x131xf16>
    %collapsed_8 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<1x2x70x131xf16> into tensor<2x70x131xf16>
    %collapsed_9 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<1x2x131x64xf16> into tensor<2x131x64xf16>
    %33 = tensor.empty() : tensor<2x70x64xf32>
    %34 = linalg.fill ins(%cst : f32) outs(%33 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
    %35 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<2x70x131xf16>, tensor<2x131x64xf16>) outs(%34 : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
    %36 = tensor.empty() : tensor<2x70x64xf16>
    %37 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%35 : tensor<2x70x64xf32>) outs(%36 : tensor<2x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %38 = arith.truncf %in : f32 to f16
      linalg.yield %38 : f16
    } -> tensor<2x70x64xf16>
    %expanded_10 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 2, 70, 64] : tensor<2x70x64xf16> into tensor<1x2x70x64xf16>
    return %expanded_10 : tensor<1x2x70x64xf16>
  }
}
