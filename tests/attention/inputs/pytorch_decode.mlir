#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention(%arg0: tensor<1x8x1x64xf16> {aotc.name = "q"}, %arg1: tensor<1x2x150x64xf16> {aotc.name = "k"}, %arg2: tensor<1x2x150x64xf16> {aotc.name = "v"}, %arg3: tensor<150xf16> {aotc.name = "mask"}) -> tensor<1x8x1x64xf16> attributes {aotc.call = "{\22inputs\22: \22[1, {\\\22type\\\22: \\\22builtins.tuple\\\22, \\\22context\\\22: \\\22null\\\22, \\\22children_spec\\\22: [{\\\22type\\\22: \\\22builtins.tuple\\\22, \\\22context\\\22: \\\22null\\\22, \\\22children_spec\\\22: [{\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}]}, {\\\22type\\\22: \\\22builtins.dict\\\22, \\\22context\\\22: \\\22[]\\\22, \\\22children_spec\\\22: []}]}]\22, \22outputs\22: \22[1, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}]\22, \22names\22: [\22q\22, \22k\22, \22v\22, \22mask\22], \22given\22: [{\22dtype\22: \22float16\22, \22constant\22: null}, {\22dtype\22: \22float16\22, \22constant\22: null}, {\22dtype\22: \22float16\22, \22constant\22: null}, {\22dtype\22: \22float16\22, \22constant\22: null}], \22returned\22: [{\22dtype\22: \22float16\22, \22constant\22: null}]}", aotc.imported, llvm.emit_c_interface} {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x8x1x150xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %expanded = tensor.expand_shape %arg3 [[0, 1, 2, 3]] output_shape [1, 1, 1, 150] : tensor<150xf16> into tensor<1x1x1x150xf16>
    %0 = tensor.empty() : tensor<1x8x1x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x8x1x64xf16>) outs(%0 : tensor<1x8x1x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %38 = arith.extf %in : f16 to f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x64xf32>
    %2 = tensor.empty() : tensor<1x2x150x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<1x2x150x64xf16>) outs(%2 : tensor<1x2x150x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %38 = arith.extf %in : f16 to f32
      linalg.yield %38 : f32
    } -> tensor<1x2x150x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<1x2x150x64xf16>) outs(%2 : tensor<1x2x150x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %38 = arith.extf %in : f16 to f32
      linalg.yield %38 : f32
    } -> tensor<1x2x150x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x8x1x64xf32>) outs(%0 : tensor<1x8x1x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.truncf %cst_3 : f64 to f32
      %39 = arith.mulf %in, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<1x8x1x64xf32>
    %6 = tensor.empty() : tensor<1x2x4x150x64xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x2x150x64xf32>) outs(%6 : tensor<1x2x4x150x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x150x64xf32>
    %collapsed = tensor.collapse_shape %7 [[0], [1, 2], [3], [4]] : tensor<1x2x4x150x64xf32> into tensor<1x8x150x64xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x2x150x64xf32>) outs(%6 : tensor<1x2x4x150x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x2x4x150x64xf32>
    %9 = tensor.empty() : tensor<1x8x64x150xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<1x8x150x64xf32>) outs(%9 : tensor<1x8x64x150xf32>) permutation = [0, 1, 3, 2] 
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<1x8x64x150xf32>) outs(%9 : tensor<1x8x64x150xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.truncf %cst_3 : f64 to f32
      %39 = arith.mulf %in, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<1x8x64x150xf32>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<1x8x1x64xf32> into tensor<8x1x64xf32>
    %collapsed_5 = tensor.collapse_shape %10 [[0, 1], [2], [3]] : tensor<1x8x64x150xf32> into tensor<8x64x150xf32>
    %11 = tensor.empty() : tensor<8x1x150xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<8x1x150xf32>) -> tensor<8x1x150xf32>
    %13 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x1x64xf32>, tensor<8x64x150xf32>) outs(%12 : tensor<8x1x150xf32>) -> tensor<8x1x150xf32>
    %expanded_6 = tensor.expand_shape %13 [[0, 1], [2], [3]] output_shape [1, 8, 1, 150] : tensor<8x1x150xf32> into tensor<1x8x1x150xf32>
    %14 = tensor.empty() : tensor<1x8x1x150xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded : tensor<1x8x1x150xf32>, tensor<1x1x1x150xf16>) outs(%14 : tensor<1x8x1x150xf32>) {
    ^bb0(%in: f32, %in_11: f16, %out: f32):
      %38 = arith.extf %in_11 : f16 to f32
      %39 = arith.addf %in, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<1x8x1x150xf32>
    %16 = tensor.empty() : tensor<1x8x1xi64>
    %17 = linalg.fill ins(%c0_i64 : i64) outs(%16 : tensor<1x8x1xi64>) -> tensor<1x8x1xi64>
    %18 = tensor.empty() : tensor<1x8x1xf32>
    %19 = linalg.fill ins(%cst_0 : f32) outs(%18 : tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
    %20:2 = linalg.generic {indexing_maps = [#map, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%15 : tensor<1x8x1x150xf32>) outs(%19, %17 : tensor<1x8x1xf32>, tensor<1x8x1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %38 = linalg.index 3 : index
      %39 = arith.index_cast %38 : index to i64
      %40 = arith.maximumf %in, %out : f32
      %41 = arith.cmpf ogt, %in, %out : f32
      %42 = arith.cmpf ugt, %in, %out : f32
      %43 = arith.cmpf ord, %out, %out : f32
      %44 = arith.andi %42, %43 : i1
      %45 = arith.select %44, %39, %out_11 : i64
      linalg.yield %40, %45 : f32, i64
    } -> (tensor<1x8x1xf32>, tensor<1x8x1xi64>)
    %expanded_7 = tensor.expand_shape %20#0 [[0], [1], [2, 3]] output_shape [1, 8, 1, 1] : tensor<1x8x1xf32> into tensor<1x8x1x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %expanded_7 : tensor<1x8x1x150xf32>, tensor<1x8x1x1xf32>) outs(%14 : tensor<1x8x1x150xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %38 = arith.subf %in, %in_11 : f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x150xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<1x8x1x150xf32>) outs(%14 : tensor<1x8x1x150xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = math.exp %in : f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x150xf32>
    %23 = tensor.empty() : tensor<1x8x1x1xf32>
    %24 = linalg.fill ins(%cst : f32) outs(%23 : tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22 : tensor<1x8x1x150xf32>) outs(%24 : tensor<1x8x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %38 = arith.addf %in, %out : f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x1xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %25 : tensor<1x8x1x150xf32>, tensor<1x8x1x1xf32>) outs(%14 : tensor<1x8x1x150xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %38 = arith.divf %in, %in_11 : f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x150xf32>
    %27 = tensor.empty() : tensor<1x8x1x150xi1>
    %28 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<1x8x1x150xf32>) outs(%27 : tensor<1x8x1x150xi1>) {
    ^bb0(%in: f32, %out: i1):
      %38 = arith.extf %in : f32 to f64
      %39 = arith.cmpf oeq, %38, %cst_2 : f64
      linalg.yield %39 : i1
    } -> tensor<1x8x1x150xi1>
    %29 = tensor.empty() : tensor<1x8x1x1xi1>
    %30 = linalg.fill ins(%true : i1) outs(%29 : tensor<1x8x1x1xi1>) -> tensor<1x8x1x1xi1>
    %31 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<1x8x1x150xi1>) outs(%30 : tensor<1x8x1x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %38 = arith.andi %in, %out : i1
      linalg.yield %38 : i1
    } -> tensor<1x8x1x1xi1>
    %32 = linalg.generic {indexing_maps = [#map5, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %cst_1, %26 : tensor<1x8x1x1xi1>, tensor<1x8x1x150xf32>, tensor<1x8x1x150xf32>) outs(%14 : tensor<1x8x1x150xf32>) {
    ^bb0(%in: i1, %in_11: f32, %in_12: f32, %out: f32):
      %38 = arith.select %in, %in_11, %in_12 : f32
      linalg.yield %38 : f32
    } -> tensor<1x8x1x150xf32>
    %collapsed_8 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<1x8x1x150xf32> into tensor<8x1x150xf32>
    %collapsed_9 = tensor.collapse_shape %8 [[0, 1, 2], [3], [4]] : tensor<1x2x4x150x64xf32> into tensor<8x150x64xf32>
    %33 = tensor.empty() : tensor<8x1x64xf32>
    %34 = linalg.fill ins(%cst : f32) outs(%33 : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
    %35 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x1x150xf32>, tensor<8x150x64xf32>) outs(%34 : tensor<8x1x64xf32>) -> tensor<8x1x64xf32>
    %expanded_10 = tensor.expand_shape %35 [[0, 1], [2], [3]] output_shape [1, 8, 1, 64] : tensor<8x1x64xf32> into tensor<1x8x1x64xf32>
    %36 = tensor.empty() : tensor<1x8x1x64xf16>
    %37 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<1x8x1x64xf32>) outs(%36 : tensor<1x8x1x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %38 = arith.truncf %in : f32 to f16
      linalg.yield %38 : f16
    } -> tensor<1x8x1x64xf16>
    return %37 : tensor<1x8x1x64xf16>
  }
}

