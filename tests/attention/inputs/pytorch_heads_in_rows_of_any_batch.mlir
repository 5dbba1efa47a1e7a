#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<()[s0] -> (s0 * 2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map10 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @attention(%arg0: tensor<?x70x384xf16> {aotc.name = "x"}) -> tensor<?x70x128xf16> attributes {llvm.emit_c_interface} {
    %c0_i64 = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_3 = arith.constant dense<true> : tensor<70x70xi1>
    %cst_4 = arith.constant 0xFFF0000000000000 : f64
    %cst_5 = arith.constant 0.35355339059327379 : f64
    %dim = tensor.dim %arg0, %c0 : tensor<?x70x384xf16>
    %0 = arith.index_cast %dim : index to i64
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [%dim, 70, 128] [1, 1, 1] : tensor<?x70x384xf16> to tensor<?x70x128xf16>
    %extracted_slice_6 = tensor.extract_slice %arg0[0, 0, 128] [%dim, 70, 128] [1, 1, 1] : tensor<?x70x384xf16> to tensor<?x70x128xf16>
    %extracted_slice_7 = tensor.extract_slice %arg0[0, 0, 256] [%dim, 70, 128] [1, 1, 1] : tensor<?x70x384xf16> to tensor<?x70x128xf16>
    %expanded = tensor.expand_shape %extracted_slice [[0], [1], [2, 3]] output_shape [%dim, 70, 2, 64] : tensor<?x70x128xf16> into tensor<?x70x2x64xf16>
    %1 = tensor.empty(%dim) : tensor<?x2x70x64xf16>
    %transposed = linalg.transpose ins(%expanded : tensor<?x70x2x64xf16>) outs(%1 : tensor<?x2x70x64xf16>) permutation = [0, 2, 1, 3] 
    %expanded_8 = tensor.expand_shape %extracted_slice_6 [[0], [1], [2, 3]] output_shape [%dim, 70, 2, 64] : tensor<?x70x128xf16> into tensor<?x70x2x64xf16>
    %transposed_9 = linalg.transpose ins(%expanded_8 : tensor<?x70x2x64xf16>) outs(%1 : tensor<?x2x70x64xf16>) permutation = [0, 2, 1, 3] 
    %expanded_10 = tensor.expand_shape %extracted_slice_7 [[0], [1], [2, 3]] output_shape [%dim, 70, 2, 64] : tensor<?x70x128xf16> into tensor<?x70x2x64xf16>
    %transposed_11 = linalg.transpose ins(%expanded_10 : tensor<?x70x2x64xf16>) outs(%1 : tensor<?x2x70x64xf16>) permutation = [0, 2, 1, 3] 
    %2 = tensor.empty(%dim) : tensor<?x2x70x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<?x2x70x64xf16>) outs(%2 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %60 = arith.extf %in : f16 to f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_9 : tensor<?x2x70x64xf16>) outs(%2 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %60 = arith.extf %in : f16 to f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_11 : tensor<?x2x70x64xf16>) outs(%2 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %60 = arith.extf %in : f16 to f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<?x2x70x64xf32>) outs(%2 : tensor<?x2x70x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %60 = arith.truncf %cst_5 : f64 to f32
      %61 = arith.mulf %in, %60 : f32
      linalg.yield %61 : f32
    } -> tensor<?x2x70x64xf32>
    %7 = tensor.empty() : tensor<70xi64>
    %8 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%7 : tensor<70xi64>) {
    ^bb0(%out: i64):
      %60 = linalg.index 0 : index
      %61 = arith.index_cast %60 : index to i64
      linalg.yield %61 : i64
    } -> tensor<70xi64>
    %expanded_12 = tensor.expand_shape %8 [[0, 1]] output_shape [1, 70] : tensor<70xi64> into tensor<1x70xi64>
    %expanded_13 = tensor.expand_shape %8 [[0, 1]] output_shape [70, 1] : tensor<70xi64> into tensor<70x1xi64>
    %9 = tensor.empty() : tensor<70x70xi64>
    %10 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded_12, %expanded_13 : tensor<1x70xi64>, tensor<70x1xi64>) outs(%9 : tensor<70x70xi64>) {
    ^bb0(%in: i64, %in_23: i64, %out: i64):
      %60 = arith.subi %in, %in_23 : i64
      linalg.yield %60 : i64
    } -> tensor<70x70xi64>
    %11 = tensor.empty() : tensor<70x70xi1>
    %12 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<70x70xi64>) outs(%11 : tensor<70x70xi1>) {
    ^bb0(%in: i64, %out: i1):
      %60 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %60 : i1
    } -> tensor<70x70xi1>
    %13 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%12, %cst_3 : tensor<70x70xi1>, tensor<70x70xi1>) outs(%11 : tensor<70x70xi1>) {
    ^bb0(%in: i1, %in_23: i1, %out: i1):
      %60 = arith.andi %in, %in_23 : i1
      linalg.yield %60 : i1
    } -> tensor<70x70xi1>
    %14 = tensor.empty() : tensor<70x70xf32>
    %15 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%13, %cst_1, %cst_2 : tensor<70x70xi1>, tensor<f32>, tensor<f32>) outs(%14 : tensor<70x70xf32>) {
    ^bb0(%in: i1, %in_23: f32, %in_24: f32, %out: f32):
      %60 = arith.select %in, %in_23, %in_24 : f32
      linalg.yield %60 : f32
    } -> tensor<70x70xf32>
    %16 = tensor.empty(%dim) : tensor<?x2x64x70xf32>
    %transposed_14 = linalg.transpose ins(%4 : tensor<?x2x70x64xf32>) outs(%16 : tensor<?x2x64x70xf32>) permutation = [0, 1, 3, 2] 
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_14 : tensor<?x2x64x70xf32>) outs(%16 : tensor<?x2x64x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %60 = arith.truncf %cst_5 : f64 to f32
      %61 = arith.mulf %in, %60 : f32
      linalg.yield %61 : f32
    } -> tensor<?x2x64x70xf32>
    %18 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %19 = tensor.empty(%dim) : tensor<?x2x70x64xf32>
    %20 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%19 : tensor<?x2x70x64xf32>) {
    ^bb0(%out: f32):
      %60 = linalg.index 0 : index
      %61 = linalg.index 1 : index
      %62 = linalg.index 2 : index
      %63 = linalg.index 3 : index
      %64 = arith.cmpi eq, %dim, %c1 : index
      %65 = arith.select %64, %c0, %60 : index
      %extracted = tensor.extract %6[%65, %61, %62, %63] : tensor<?x2x70x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x64xf32>
    %collapsed = tensor.collapse_shape %20 [[0, 1], [2], [3]] : tensor<?x2x70x64xf32> into tensor<?x70x64xf32>
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %21 = tensor.empty(%dim) : tensor<?x2x64x70xf32>
    %22 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%21 : tensor<?x2x64x70xf32>) {
    ^bb0(%out: f32):
      %60 = linalg.index 0 : index
      %61 = linalg.index 1 : index
      %62 = linalg.index 2 : index
      %63 = linalg.index 3 : index
      %64 = arith.cmpi eq, %dim, %c1 : index
      %65 = arith.select %64, %c0, %60 : index
      %extracted = tensor.extract %17[%65, %61, %62, %63] : tensor<?x2x64x70xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x64x70xf32>
    %collapsed_15 = tensor.collapse_shape %22 [[0, 1], [2], [3]] : tensor<?x2x64x70xf32> into tensor<?x64x70xf32>
    %23 = affine.apply #map6()[%dim]
    %24 = tensor.empty(%23) : tensor<?x70x70xf32>
    %25 = linalg.fill ins(%cst : f32) outs(%24 : tensor<?x70x70xf32>) -> tensor<?x70x70xf32>
    %26 = linalg.batch_matmul ins(%collapsed, %collapsed_15 : tensor<?x70x64xf32>, tensor<?x64x70xf32>) outs(%25 : tensor<?x70x70xf32>) -> tensor<?x70x70xf32>
    %27 = arith.divsi %23, %c2 : index
    %expanded_16 = tensor.expand_shape %26 [[0, 1], [2], [3]] output_shape [%27, 2, 70, 70] : tensor<?x70x70xf32> into tensor<?x2x70x70xf32>
    %28 = tensor.empty(%27) : tensor<?x2x70x70xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map7, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_16, %15 : tensor<?x2x70x70xf32>, tensor<70x70xf32>) outs(%28 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %in_23: f32, %out: f32):
      %60 = arith.addf %in, %in_23 : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x70xf32>
    %30 = tensor.empty(%27) : tensor<?x2x70xi64>
    %31 = linalg.fill ins(%c0_i64 : i64) outs(%30 : tensor<?x2x70xi64>) -> tensor<?x2x70xi64>
    %32 = tensor.empty(%27) : tensor<?x2x70xf32>
    %33 = linalg.fill ins(%cst_0 : f32) outs(%32 : tensor<?x2x70xf32>) -> tensor<?x2x70xf32>
    %34:2 = linalg.generic {indexing_maps = [#map, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<?x2x70x70xf32>) outs(%33, %31 : tensor<?x2x70xf32>, tensor<?x2x70xi64>) {
    ^bb0(%in: f32, %out: f32, %out_23: i64):
      %60 = linalg.index 3 : index
      %61 = arith.index_cast %60 : index to i64
      %62 = arith.maximumf %in, %out : f32
      %63 = arith.cmpf ogt, %in, %out : f32
      %64 = arith.select %63, %61, %out_23 : i64
      linalg.yield %62, %64 : f32, i64
    } -> (tensor<?x2x70xf32>, tensor<?x2x70xi64>)
    %expanded_17 = tensor.expand_shape %34#0 [[0], [1], [2, 3]] output_shape [%27, 2, 70, 1] : tensor<?x2x70xf32> into tensor<?x2x70x1xf32>
    %35 = linalg.generic {indexing_maps = [#map, #map9, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %expanded_17 : tensor<?x2x70x70xf32>, tensor<?x2x70x1xf32>) outs(%28 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %in_23: f32, %out: f32):
      %60 = arith.subf %in, %in_23 : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x70xf32>
    %36 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<?x2x70x70xf32>) outs(%28 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %60 = math.exp %in : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x70xf32>
    %37 = tensor.empty(%27) : tensor<?x2x70x1xf32>
    %38 = linalg.fill ins(%cst : f32) outs(%37 : tensor<?x2x70x1xf32>) -> tensor<?x2x70x1xf32>
    %39 = linalg.generic {indexing_maps = [#map, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%36 : tensor<?x2x70x70xf32>) outs(%38 : tensor<?x2x70x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %60 = arith.addf %in, %out : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x1xf32>
    %40 = linalg.generic {indexing_maps = [#map, #map9, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36, %39 : tensor<?x2x70x70xf32>, tensor<?x2x70x1xf32>) outs(%28 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %in_23: f32, %out: f32):
      %60 = arith.divf %in, %in_23 : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x70xf32>
    %41 = tensor.empty(%27) : tensor<?x2x70x70xi1>
    %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<?x2x70x70xf32>) outs(%41 : tensor<?x2x70x70xi1>) {
    ^bb0(%in: f32, %out: i1):
      %60 = arith.extf %in : f32 to f64
      %61 = arith.cmpf oeq, %60, %cst_4 : f64
      linalg.yield %61 : i1
    } -> tensor<?x2x70x70xi1>
    %43 = tensor.empty(%27) : tensor<?x2x70x1xi1>
    %44 = linalg.fill ins(%true : i1) outs(%43 : tensor<?x2x70x1xi1>) -> tensor<?x2x70x1xi1>
    %45 = linalg.generic {indexing_maps = [#map, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%42 : tensor<?x2x70x70xi1>) outs(%44 : tensor<?x2x70x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %60 = arith.andi %in, %out : i1
      linalg.yield %60 : i1
    } -> tensor<?x2x70x1xi1>
    %46 = arith.index_cast %27 : index to i64
    %47 = arith.cmpi sge, %46, %c0_i64 : i64
    cf.assert %47, "negative values not allowed in new dimensions"
    %48 = tensor.empty(%27) : tensor<?x2x70x70xf32>
    %49 = linalg.generic {indexing_maps = [#map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%48 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x2x70x70xf32>
    cf.assert %true, "mismatched size for broadcast"
    %50 = linalg.generic {indexing_maps = [#map9, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %49, %40 : tensor<?x2x70x1xi1>, tensor<?x2x70x70xf32>, tensor<?x2x70x70xf32>) outs(%28 : tensor<?x2x70x70xf32>) {
    ^bb0(%in: i1, %in_23: f32, %in_24: f32, %out: f32):
      %60 = arith.select %in, %in_23, %in_24 : f32
      linalg.yield %60 : f32
    } -> tensor<?x2x70x70xf32>
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %51 = tensor.empty(%dim) : tensor<?x2x70x70xf32>
    %52 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%51 : tensor<?x2x70x70xf32>) {
    ^bb0(%out: f32):
      %60 = linalg.index 0 : index
      %61 = linalg.index 1 : index
      %62 = linalg.index 2 : index
      %63 = linalg.index 3 : index
      %64 = arith.cmpi eq, %27, %c1 : index
      %65 = arith.select %64, %c0, %60 : index
      %extracted = tensor.extract %50[%65, %61, %62, %63] : tensor<?x2x70x70xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x70xf32>
    %collapsed_18 = tensor.collapse_shape %52 [[0, 1], [2], [3]] : tensor<?x2x70x70xf32> into tensor<?x70x70xf32>
    cf.assert %18, "unimplemented: dynamic negative broadcast sizes"
    %53 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%19 : tensor<?x2x70x64xf32>) {
    ^bb0(%out: f32):
      %60 = linalg.index 0 : index
      %61 = linalg.index 1 : index
      %62 = linalg.index 2 : index
      %63 = linalg.index 3 : index
      %64 = arith.cmpi eq, %dim, %c1 : index
      %65 = arith.select %64, %c0, %60 : index
      %extracted = tensor.extract %5[%65, %61, %62, %63] : tensor<?x2x70x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x70x64xf32>
    %collapsed_19 = tensor.collapse_shape %53 [[0, 1], [2], [3]] : tensor<?x2x70x64xf32> into tensor<?x70x64xf32>
    %54 = tensor.empty(%23) : tensor<?x70x64xf32>
    %55 = linalg.fill ins(%cst : f32) outs(%54 : tensor<?x70x64xf32>) -> tensor<?x70x64xf32>
    %56 = linalg.batch_matmul ins(%collapsed_18, %collapsed_19 : tensor<?x70x70xf32>, tensor<?x70x64xf32>) outs(%55 : tensor<?x70x64xf32>) -> tensor<?x70x64xf32>
    %expanded_20 = tensor.expand_shape %56 [[0, 1], [2], [3]] output_shape [%27, 2, 70, 64] : tensor<?x70x64xf32> into tensor<?x2x70x64xf32>
    %57 = tensor.empty(%27) : tensor<?x2x70x64xf16>
    %58 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_20 : tensor<?x2x70x64xf32>) outs(%57 : tensor<?x2x70x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %60 = arith.truncf %in : f32 to f16
      linalg.yield %60 : f16
    } -> tensor<?x2x70x64xf16>
    %59 = tensor.empty(%27) : tensor<?x70x2x64xf16>
    %transposed_21 = linalg.transpose ins(%58 : tensor<?x2x70x64xf16>) outs(%59 : tensor<?x70x2x64xf16>) permutation = [0, 2, 1, 3] 
    %collapsed_22 = tensor.collapse_shape %transposed_21 [[0], [1], [2, 3]] : tensor<?x70x2x64xf16> into tensor<?x70x128xf16>
    return %collapsed_22 : tensor<?x70x128xf16>
  }
}
