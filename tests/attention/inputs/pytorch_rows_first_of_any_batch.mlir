#map = affine_map<()[s0] -> (s0 * 128)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<()[s0] -> (s0 * 2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map5 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @attention(%arg0: tensor<70x?x384xf16> {aotc.name = "x"}) -> tensor<70x?x128xf16> attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %dim = tensor.dim %arg0, %c1 : tensor<70x?x384xf16>
    %c1_0 = arith.constant 1 : index
    %dim_1 = tensor.dim %arg0, %c1_0 : tensor<70x?x384xf16>
    %0 = arith.cmpi eq, %dim, %dim_1 : index
    cf.assert %0, "the sizes of the arguments do not fit"
    %c64 = arith.constant 64 : index
    %1 = arith.cmpi sle, %dim, %c64 : index
    cf.assert %1, "the sizes of the arguments do not fit"
    %c0_i64 = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %c1_2 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64_3 = arith.constant 64 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_4 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_6 = arith.constant 0xFFF0000000000000 : f64
    %cst_7 = arith.constant 0.35355339059327379 : f64
    %dim_8 = tensor.dim %arg0, %c1_2 : tensor<70x?x384xf16>
    %2 = arith.index_cast %dim : index to i64
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [70, %dim, 128] [1, 1, 1] : tensor<70x?x384xf16> to tensor<70x?x128xf16>
    %extracted_slice_9 = tensor.extract_slice %arg0[0, 0, 128] [70, %dim, 128] [1, 1, 1] : tensor<70x?x384xf16> to tensor<70x?x128xf16>
    %extracted_slice_10 = tensor.extract_slice %arg0[0, 0, 256] [70, %dim, 128] [1, 1, 1] : tensor<70x?x384xf16> to tensor<70x?x128xf16>
    %collapsed = tensor.collapse_shape %extracted_slice [[0], [1, 2]] : tensor<70x?x128xf16> into tensor<70x?xf16>
    %3 = affine.apply #map()[%dim]
    %4 = arith.divsi %3, %c64_3 : index
    %expanded = tensor.expand_shape %collapsed [[0], [1, 2]] output_shape [70, %4, 64] : tensor<70x?xf16> into tensor<70x?x64xf16>
    %5 = tensor.empty(%4) : tensor<?x70x64xf16>
    %transposed = linalg.transpose ins(%expanded : tensor<70x?x64xf16>) outs(%5 : tensor<?x70x64xf16>) permutation = [1, 0, 2] 
    %6 = arith.divsi %4, %c2 : index
    %expanded_11 = tensor.expand_shape %transposed [[0, 1], [2], [3]] output_shape [%6, 2, 70, 64] : tensor<?x70x64xf16> into tensor<?x2x70x64xf16>
    %collapsed_12 = tensor.collapse_shape %extracted_slice_9 [[0], [1, 2]] : tensor<70x?x128xf16> into tensor<70x?xf16>
    %expanded_13 = tensor.expand_shape %collapsed_12 [[0], [1, 2]] output_shape [70, %4, 64] : tensor<70x?xf16> into tensor<70x?x64xf16>
    %transposed_14 = linalg.transpose ins(%expanded_13 : tensor<70x?x64xf16>) outs(%5 : tensor<?x70x64xf16>) permutation = [1, 0, 2] 
    %expanded_15 = tensor.expand_shape %transposed_14 [[0, 1], [2], [3]] output_shape [%6, 2, 70, 64] : tensor<?x70x64xf16> into tensor<?x2x70x64xf16>
    %collapsed_16 = tensor.collapse_shape %extracted_slice_10 [[0], [1, 2]] : tensor<70x?x128xf16> into tensor<70x?xf16>
    %expanded_17 = tensor.expand_shape %collapsed_16 [[0], [1, 2]] output_shape [70, %4, 64] : tensor<70x?xf16> into tensor<70x?x64xf16>
    %transposed_18 = linalg.transpose ins(%expanded_17 : tensor<70x?x64xf16>) outs(%5 : tensor<?x70x64xf16>) permutation = [1, 0, 2] 
    %expanded_19 = tensor.expand_shape %transposed_18 [[0, 1], [2], [3]] output_shape [%6, 2, 70, 64] : tensor<?x70x64xf16> into tensor<?x2x70x64xf16>
    %7 = tensor.empty(%6) : tensor<?x2x70x64xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<?x2x70x64xf16>) outs(%7 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %55 = arith.extf %in : f16 to f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x64xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15 : tensor<?x2x70x64xf16>) outs(%7 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %55 = arith.extf %in : f16 to f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x64xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_19 : tensor<?x2x70x64xf16>) outs(%7 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %55 = arith.extf %in : f16 to f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x64xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<?x2x70x64xf32>) outs(%7 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.truncf %cst_7 : f64 to f32
      %56 = arith.mulf %in, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<?x2x70x64xf32>
    %12 = tensor.empty(%6) : tensor<?x2x64x70xf32>
    %transposed_20 = linalg.transpose ins(%9 : tensor<?x2x70x64xf32>) outs(%12 : tensor<?x2x64x70xf32>) permutation = [0, 1, 3, 2] 
    %13 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_20 : tensor<?x2x64x70xf32>) outs(%12 : tensor<?x2x64x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.truncf %cst_7 : f64 to f32
      %56 = arith.mulf %in, %55 : f32
      linalg.yield %56 : f32
    } -> tensor<?x2x64x70xf32>
    %14 = arith.cmpi sge, %2, %c0_i64 : i64
    cf.assert %14, "unimplemented: dynamic negative broadcast sizes"
    %15 = tensor.empty(%dim) : tensor<?x2x70x64xf32>
    %16 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%15 : tensor<?x2x70x64xf32>) {
    ^bb0(%out: f32):
      %55 = linalg.index 0 : index
      %56 = linalg.index 1 : index
      %57 = linalg.index 2 : index
      %58 = linalg.index 3 : index
      %59 = arith.cmpi eq, %6, %c1_2 : index
      %60 = arith.select %59, %c0, %55 : index
      %extracted = tensor.extract %11[%60, %56, %57, %58] : tensor<?x2x70x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x64xf32>
    %collapsed_21 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<?x2x70x64xf32> into tensor<?x70x64xf32>
    cf.assert %14, "unimplemented: dynamic negative broadcast sizes"
    %17 = tensor.empty(%dim) : tensor<?x2x64x70xf32>
    %18 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%17 : tensor<?x2x64x70xf32>) {
    ^bb0(%out: f32):
      %55 = linalg.index 0 : index
      %56 = linalg.index 1 : index
      %57 = linalg.index 2 : index
      %58 = linalg.index 3 : index
      %59 = arith.cmpi eq, %6, %c1_2 : index
      %60 = arith.select %59, %c0, %55 : index
      %extracted = tensor.extract %13[%60, %56, %57, %58] : tensor<?x2x64x70xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x64x70xf32>
    %collapsed_22 = tensor.collapse_shape %18 [[0, 1], [2], [3]] : tensor<?x2x64x70xf32> into tensor<?x64x70xf32>
    %19 = affine.apply #map2()[%dim]
    %20 = tensor.empty(%19) : tensor<?x70x70xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<?x70x70xf32>) -> tensor<?x70x70xf32>
    %22 = linalg.batch_matmul ins(%collapsed_21, %collapsed_22 : tensor<?x70x64xf32>, tensor<?x64x70xf32>) outs(%21 : tensor<?x70x70xf32>) -> tensor<?x70x70xf32>
    %23 = arith.divsi %19, %c2 : index
    %expanded_23 = tensor.expand_shape %22 [[0, 1], [2], [3]] output_shape [%23, 2, 70, 70] : tensor<?x70x70xf32> into tensor<?x2x70x70xf32>
    %24 = tensor.empty(%23) : tensor<?x2x70xi64>
    %25 = linalg.fill ins(%c0_i64 : i64) outs(%24 : tensor<?x2x70xi64>) -> tensor<?x2x70xi64>
    %26 = tensor.empty(%23) : tensor<?x2x70xf32>
    %27 = linalg.fill ins(%cst_4 : f32) outs(%26 : tensor<?x2x70xf32>) -> tensor<?x2x70xf32>
    %28:2 = linalg.generic {indexing_maps = [#map1, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_23 : tensor<?x2x70x70xf32>) outs(%27, %25 : tensor<?x2x70xf32>, tensor<?x2x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_30: i64):
      %55 = linalg.index 3 : index
      %56 = arith.index_cast %55 : index to i64
      %57 = arith.maximumf %in, %out : f32
      %58 = arith.cmpf ogt, %in, %out : f32
      %59 = arith.cmpf ugt, %in, %out : f32
      %60 = arith.cmpf ord, %out, %out : f32
      %61 = arith.andi %59, %60 : i1
      %62 = arith.select %61, %56, %out_30 : i64
      linalg.yield %57, %62 : f32, i64
    } -> (tensor<?x2x70xf32>, tensor<?x2x70xi64>)
    %expanded_24 = tensor.expand_shape %28#0 [[0], [1], [2, 3]] output_shape [%23, 2, 70, 1] : tensor<?x2x70xf32> into tensor<?x2x70x1xf32>
    %29 = tensor.empty(%23) : tensor<?x2x70x70xf32>
    %30 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_23, %expanded_24 : tensor<?x2x70x70xf32>, tensor<?x2x70x1xf32>) outs(%29 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %in_30: f32, %out: f32):
      %55 = arith.subf %in, %in_30 : f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x70xf32>
    %31 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<?x2x70x70xf32>) outs(%29 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = math.exp %in : f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x70xf32>
    %32 = tensor.empty(%23) : tensor<?x2x70x1xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<?x2x70x1xf32>) -> tensor<?x2x70x1xf32>
    %34 = linalg.generic {indexing_maps = [#map1, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<?x2x70x70xf32>) outs(%33 : tensor<?x2x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %55 = arith.addf %in, %out : f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x1xf32>
    %35 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %34 : tensor<?x2x70x70xf32>, tensor<?x2x70x1xf32>) outs(%29 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %in_30: f32, %out: f32):
      %55 = arith.divf %in, %in_30 : f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x70xf32>
    %36 = tensor.empty(%23) : tensor<?x2x70x70xi1>
    %37 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_23 : tensor<?x2x70x70xf32>) outs(%36 : tensor<?x2x70x70xi1>) {
    ^bb0(%in: f32, %out: i1):
      %55 = arith.extf %in : f32 to f64
      %56 = arith.cmpf oeq, %55, %cst_6 : f64
      linalg.yield %56 : i1
    } -> tensor<?x2x70x70xi1>
    %38 = tensor.empty(%23) : tensor<?x2x70x1xi1>
    %39 = linalg.fill ins(%true : i1) outs(%38 : tensor<?x2x70x1xi1>) -> tensor<?x2x70x1xi1>
    %40 = linalg.generic {indexing_maps = [#map1, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%37 : tensor<?x2x70x70xi1>) outs(%39 : tensor<?x2x70x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %55 = arith.andi %in, %out : i1
      linalg.yield %55 : i1
    } -> tensor<?x2x70x1xi1>
    %41 = arith.index_cast %23 : index to i64
    %42 = arith.cmpi sge, %41, %c0_i64 : i64
    cf.assert %42, "negative values not allowed in new dimensions"
    %43 = tensor.empty(%23) : tensor<?x2x70x70xf32>
    %44 = linalg.generic {indexing_maps = [#map5, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_5 : tensor<f32>) outs(%43 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x2x70x70xf32>
    cf.assert %true, "mismatched size for broadcast"
    %45 = linalg.generic {indexing_maps = [#map4, #map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %44, %35 : tensor<?x2x70x1xi1>, tensor<?x2x70x70xf32>, tensor<?x2x70x70xf32>) outs(%29 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: i1, %in_30: f32, %in_31: f32, %out: f32):
      %55 = arith.select %in, %in_30, %in_31 : f32
      linalg.yield %55 : f32
    } -> tensor<?x2x70x70xf32>
    cf.assert %14, "unimplemented: dynamic negative broadcast sizes"
    %46 = tensor.empty(%dim) : tensor<?x2x70x70xf32>
    %47 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%46 : tensor<?x2x70x70xf32>) {
    ^bb0(%out: f32):
      %55 = linalg.index 0 : index
      %56 = linalg.index 1 : index
      %57 = linalg.index 2 : index
      %58 = linalg.index 3 : index
      %59 = arith.cmpi eq, %23, %c1_2 : index
      %60 = arith.select %59, %c0, %55 : index
      %extracted = tensor.extract %45[%60, %56, %57, %58] : tensor<?x2x70x70xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x70xf32>
    %collapsed_25 = tensor.collapse_shape %47 [[0, 1], [2], [3]] : tensor<?x2x70x70xf32> into tensor<?x70x70xf32>
    cf.assert %14, "unimplemented: dynamic negative broadcast sizes"
    %48 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%15 : tensor<?x2x70x64xf32>) {
    ^bb0(%out: f32):
      %55 = linalg.index 0 : index
      %56 = linalg.index 1 : index
      %57 = linalg.index 2 : index
      %58 = linalg.index 3 : index
      %59 = arith.cmpi eq, %6, %c1_2 : index
      %60 = arith.select %59, %c0, %55 : index
      %extracted = tensor.extract %10[%60, %56, %57, %58] : tensor<?x2x70x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x64xf32>
    %collapsed_26 = tensor.collapse_shape %48 [[0, 1], [2], [3]] : tensor<?x2x70x64xf32> into tensor<?x70x64xf32>
    %49 = tensor.empty(%19) : tensor<?x70x64xf32>
    %50 = linalg.fill ins(%cst : f32) outs(%49 : tensor<?x70x64xf32>) -> tensor<?x70x64xf32>
    %51 = linalg.batch_matmul ins(%collapsed_25, %collapsed_26 : tensor<?x70x70xf32>, tensor<?x70x64xf32>) outs(%50 : tensor<?x70x64xf32>) -> tensor<?x70x64xf32>
    %expanded_27 = tensor.expand_shape %51 [[0, 1], [2], [3]] output_shape [%23, 2, 70, 64] : tensor<?x70x64xf32> into tensor<?x2x70x64xf32>
    %52 = tensor.empty(%23) : tensor<?x2x70x64xf16>
    %53 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_27 : tensor<?x2x70x64xf32>) outs(%52 : tensor<?x2x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %55 = arith.truncf %in : f32 to f16
      linalg.yield %55 : f16
    } -> tensor<?x2x70x64xf16>
    %54 = tensor.empty(%23) : tensor<70x?x2x64xf16>
    %transposed_28 = linalg.transpose ins(%53 : tensor<?x2x70x64xf16>) outs(%54 : tensor<70x?x2x64xf16>) permutation = [2, 0, 1, 3] 
    %collapsed_29 = tensor.collapse_shape %transposed_28 [[0], [1], [2, 3]] : tensor<70x?x2x64xf16> into tensor<70x?x128xf16>
    return %collapsed_29 : tensor<70x?x128xf16>
  }
}
