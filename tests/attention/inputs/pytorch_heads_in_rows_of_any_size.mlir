#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (0, d1)>
#map5 = affine_map<(d0, d1) -> (d0, 0)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @attention(%arg0: tensor<?x?x384xf16> {aotc.name = "x"}) -> tensor<?x?x128xf16> attributes {llvm.emit_c_interface} {
    %c2_i64 = arith.constant 2 : i64
    %c128_i64 = arith.constant 128 : i64
    %c1_i64 = arith.constant 1 : i64
    %c0_i64 = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64_i64 = arith.constant 64 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_3 = arith.constant dense<true> : tensor<i1>
    %cst_4 = arith.constant 0xFFF0000000000000 : f64
    %cst_5 = arith.constant 0.35355339059327379 : f64
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x384xf16>
    %0 = arith.index_cast %dim : index to i64
    %dim_6 = tensor.dim %arg0, %c1 : tensor<?x?x384xf16>
    %1 = arith.index_cast %dim_6 : index to i64
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [%dim, %dim_6, 128] [1, 1, 1] : tensor<?x?x384xf16> to tensor<?x?x128xf16>
    %extracted_slice_7 = tensor.extract_slice %arg0[0, 0, 128] [%dim, %dim_6, 128] [1, 1, 1] : tensor<?x?x384xf16> to tensor<?x?x128xf16>
    %extracted_slice_8 = tensor.extract_slice %arg0[0, 0, 256] [%dim, %dim_6, 128] [1, 1, 1] : tensor<?x?x384xf16> to tensor<?x?x128xf16>
    %2 = arith.cmpi slt, %0, %c0_i64 : i64
    %3 = arith.select %2, %c1_i64, %0 : i64
    %4 = arith.extui %2 : i1 to i64
    %5 = arith.muli %3, %1 : i64
    %6 = arith.addi %4, %c1_i64 : i64
    %7 = arith.cmpi slt, %1, %c0_i64 : i64
    %8 = arith.select %7, %3, %5 : i64
    %9 = arith.select %7, %6, %4 : i64
    %10 = arith.muli %8, %c128_i64 : i64
    %11 = arith.cmpi sle, %9, %c1_i64 : i64
    cf.assert %11, "must have at most one inferred (negative) dimension"
    %12 = arith.muli %0, %1 : i64
    %13 = arith.muli %12, %c128_i64 : i64
    %14 = arith.divsi %13, %10 : i64
    %15 = arith.select %2, %14, %0 : i64
    %16 = arith.select %7, %14, %1 : i64
    %from_elements = tensor.from_elements %15, %16, %c2_i64, %c64_i64 : tensor<4xi64>
    %reshape = tensor.reshape %extracted_slice(%from_elements) : (tensor<?x?x128xf16>, tensor<4xi64>) -> tensor<?x?x2x64xf16>
    %17 = arith.index_cast %15 : i64 to index
    %18 = arith.index_cast %16 : i64 to index
    %19 = tensor.empty(%17, %18) : tensor<?x2x?x64xf16>
    %transposed = linalg.transpose ins(%reshape : tensor<?x?x2x64xf16>) outs(%19 : tensor<?x2x?x64xf16>) permutation = [0, 2, 1, 3] 
    cf.assert %11, "must have at most one inferred (negative) dimension"
    %reshape_9 = tensor.reshape %extracted_slice_7(%from_elements) : (tensor<?x?x128xf16>, tensor<4xi64>) -> tensor<?x?x2x64xf16>
    %transposed_10 = linalg.transpose ins(%reshape_9 : tensor<?x?x2x64xf16>) outs(%19 : tensor<?x2x?x64xf16>) permutation = [0, 2, 1, 3] 
    cf.assert %11, "must have at most one inferred (negative) dimension"
    %reshape_11 = tensor.reshape %extracted_slice_8(%from_elements) : (tensor<?x?x128xf16>, tensor<4xi64>) -> tensor<?x?x2x64xf16>
    %transposed_12 = linalg.transpose ins(%reshape_11 : tensor<?x?x2x64xf16>) outs(%19 : tensor<?x2x?x64xf16>) permutation = [0, 2, 1, 3] 
    %20 = tensor.empty(%17, %18) : tensor<?x2x?x64xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<?x2x?x64xf16>) outs(%20 : tensor<?x2x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %155 = arith.extf %in : f16 to f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x64xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_10 : tensor<?x2x?x64xf16>) outs(%20 : tensor<?x2x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %155 = arith.extf %in : f16 to f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x64xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_12 : tensor<?x2x?x64xf16>) outs(%20 : tensor<?x2x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %155 = arith.extf %in : f16 to f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x64xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<?x2x?x64xf32>) outs(%20 : tensor<?x2x?x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %155 = arith.truncf %cst_5 : f64 to f32
      %156 = arith.mulf %in, %155 : f32
      linalg.yield %156 : f32
    } -> tensor<?x2x?x64xf32>
    %25 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %25, "negative values not allowed in new dimensions"
    cf.assert %25, "negative values not allowed in new dimensions"
    %26 = tensor.empty(%dim_6, %dim_6) : tensor<?x?xi1>
    %27 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%cst_3 : tensor<i1>) outs(%26 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<?x?xi1>
    %28 = tensor.empty(%dim_6) : tensor<?xi64>
    %29 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%28 : tensor<?xi64>) {
    ^bb0(%out: i64):
      %155 = linalg.index 0 : index
      %156 = arith.index_cast %155 : index to i64
      linalg.yield %156 : i64
    } -> tensor<?xi64>
    %expanded = tensor.expand_shape %29 [[0, 1]] output_shape [1, %dim_6] : tensor<?xi64> into tensor<1x?xi64>
    %expanded_13 = tensor.expand_shape %29 [[0, 1]] output_shape [%dim_6, 1] : tensor<?xi64> into tensor<?x1xi64>
    %30 = tensor.empty(%dim_6, %dim_6) : tensor<?x?xi64>
    %31 = linalg.generic {indexing_maps = [#map4, #map5, #map2], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_13 : tensor<1x?xi64>, tensor<?x1xi64>) outs(%30 : tensor<?x?xi64>) {
    ^bb0(%in: i64, %in_30: i64, %out: i64):
      %155 = arith.subi %in, %in_30 : i64
      linalg.yield %155 : i64
    } -> tensor<?x?xi64>
    %32 = tensor.empty(%dim_6, %dim_6) : tensor<?x?xi1>
    %33 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%31 : tensor<?x?xi64>) outs(%32 : tensor<?x?xi1>) {
    ^bb0(%in: i64, %out: i1):
      %155 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %155 : i1
    } -> tensor<?x?xi1>
    cf.assert %true, "mismatched size for broadcast"
    cf.assert %true, "mismatched size for broadcast"
    %34 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%33, %27 : tensor<?x?xi1>, tensor<?x?xi1>) outs(%32 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %in_30: i1, %out: i1):
      %155 = arith.andi %in, %in_30 : i1
      linalg.yield %155 : i1
    } -> tensor<?x?xi1>
    %35 = tensor.empty(%dim_6, %dim_6) : tensor<?x?xf32>
    %36 = linalg.generic {indexing_maps = [#map2, #map1, #map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%34, %cst_1, %cst_2 : tensor<?x?xi1>, tensor<f32>, tensor<f32>) outs(%35 : tensor<?x?xf32>) {
    ^bb0(%in: i1, %in_30: f32, %in_31: f32, %out: f32):
      %155 = arith.select %in, %in_30, %in_31 : f32
      linalg.yield %155 : f32
    } -> tensor<?x?xf32>
    %37 = tensor.empty(%17, %18) : tensor<?x2x64x?xf32>
    %transposed_14 = linalg.transpose ins(%22 : tensor<?x2x?x64xf32>) outs(%37 : tensor<?x2x64x?xf32>) permutation = [0, 1, 3, 2] 
    %38 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_14 : tensor<?x2x64x?xf32>) outs(%37 : tensor<?x2x64x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %155 = arith.truncf %cst_5 : f64 to f32
      %156 = arith.mulf %in, %155 : f32
      linalg.yield %156 : f32
    } -> tensor<?x2x64x?xf32>
    %39 = arith.muli %0, %c2_i64 : i64
    %40 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %40, "unimplemented: dynamic negative broadcast sizes"
    %41 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %41, "unimplemented: dynamic negative broadcast sizes"
    %42 = tensor.empty(%dim, %dim_6) : tensor<?x2x?x64xf32>
    %43 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%42 : tensor<?x2x?x64xf32>) {
    ^bb0(%out: f32):
      %155 = linalg.index 0 : index
      %156 = linalg.index 1 : index
      %157 = linalg.index 2 : index
      %158 = linalg.index 3 : index
      %159 = arith.cmpi eq, %17, %c1 : index
      %160 = arith.select %159, %c0, %155 : index
      %161 = arith.cmpi eq, %18, %c1 : index
      %162 = arith.select %161, %c0, %157 : index
      %extracted = tensor.extract %24[%160, %156, %162, %158] : tensor<?x2x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x?x64xf32>
    %44 = arith.cmpi slt, %39, %c0_i64 : i64
    %45 = arith.select %44, %c1_i64, %39 : i64
    %46 = arith.extui %44 : i1 to i64
    %47 = arith.muli %45, %1 : i64
    %48 = arith.addi %46, %c1_i64 : i64
    %49 = arith.select %7, %45, %47 : i64
    %50 = arith.select %7, %48, %46 : i64
    %51 = arith.muli %49, %c64_i64 : i64
    %52 = arith.cmpi sle, %50, %c1_i64 : i64
    cf.assert %52, "must have at most one inferred (negative) dimension"
    %53 = arith.muli %39, %1 : i64
    %54 = arith.muli %53, %c64_i64 : i64
    %55 = arith.divsi %54, %51 : i64
    %56 = arith.select %44, %55, %39 : i64
    %57 = arith.select %7, %55, %1 : i64
    %from_elements_15 = tensor.from_elements %56, %57, %c64_i64 : tensor<3xi64>
    %reshape_16 = tensor.reshape %43(%from_elements_15) : (tensor<?x2x?x64xf32>, tensor<3xi64>) -> tensor<?x?x64xf32>
    cf.assert %40, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %41, "unimplemented: dynamic negative broadcast sizes"
    %58 = tensor.empty(%dim, %dim_6) : tensor<?x2x64x?xf32>
    %59 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%58 : tensor<?x2x64x?xf32>) {
    ^bb0(%out: f32):
      %155 = linalg.index 0 : index
      %156 = linalg.index 1 : index
      %157 = linalg.index 2 : index
      %158 = linalg.index 3 : index
      %159 = arith.cmpi eq, %17, %c1 : index
      %160 = arith.select %159, %c0, %155 : index
      %161 = arith.cmpi eq, %18, %c1 : index
      %162 = arith.select %161, %c0, %158 : index
      %extracted = tensor.extract %38[%160, %156, %157, %162] : tensor<?x2x64x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x64x?xf32>
    %60 = arith.muli %45, %c64_i64 : i64
    %61 = arith.muli %60, %1 : i64
    %62 = arith.select %7, %60, %61 : i64
    cf.assert %52, "must have at most one inferred (negative) dimension"
    %63 = arith.muli %0, %c128_i64 : i64
    %64 = arith.muli %63, %1 : i64
    %65 = arith.divsi %64, %62 : i64
    %66 = arith.select %44, %65, %39 : i64
    %67 = arith.select %7, %65, %1 : i64
    %from_elements_17 = tensor.from_elements %66, %c64_i64, %67 : tensor<3xi64>
    %reshape_18 = tensor.reshape %59(%from_elements_17) : (tensor<?x2x64x?xf32>, tensor<3xi64>) -> tensor<?x64x?xf32>
    %68 = arith.index_cast %56 : i64 to index
    %69 = arith.index_cast %57 : i64 to index
    %70 = arith.index_cast %67 : i64 to index
    %71 = arith.cmpi eq, %56, %66 : i64
    cf.assert %71, "mismatching contracting dimension"
    %72 = tensor.empty(%68, %69, %70) : tensor<?x?x?xf32>
    %73 = linalg.fill ins(%cst : f32) outs(%72 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %74 = linalg.batch_matmul ins(%reshape_16, %reshape_18 : tensor<?x?x64xf32>, tensor<?x64x?xf32>) outs(%73 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %75 = arith.muli %3, %c2_i64 : i64
    %76 = arith.muli %75, %1 : i64
    %77 = arith.select %7, %75, %76 : i64
    %78 = arith.muli %77, %1 : i64
    %79 = arith.addi %9, %c1_i64 : i64
    %80 = arith.select %7, %75, %78 : i64
    %81 = arith.select %7, %79, %4 : i64
    %82 = arith.cmpi sle, %81, %c1_i64 : i64
    cf.assert %82, "must have at most one inferred (negative) dimension"
    %83 = arith.muli %56, %57 : i64
    %84 = arith.muli %83, %67 : i64
    %85 = arith.divsi %84, %80 : i64
    %86 = arith.select %2, %85, %0 : i64
    %87 = arith.select %7, %85, %1 : i64
    %from_elements_19 = tensor.from_elements %86, %c2_i64, %87, %87 : tensor<4xi64>
    %reshape_20 = tensor.reshape %74(%from_elements_19) : (tensor<?x?x?xf32>, tensor<4xi64>) -> tensor<?x2x?x?xf32>
    %88 = arith.index_cast %86 : i64 to index
    %89 = arith.index_cast %87 : i64 to index
    %90 = arith.cmpi eq, %89, %dim_6 : index
    cf.assert %90, "mismatched size for broadcast"
    cf.assert %90, "mismatched size for broadcast"
    %91 = tensor.empty(%88, %89, %89) : tensor<?x2x?x?xf32>
    %92 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape_20, %36 : tensor<?x2x?x?xf32>, tensor<?x?xf32>) outs(%91 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %in_30: f32, %out: f32):
      %155 = arith.addf %in, %in_30 : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x?xf32>
    %93 = tensor.empty(%88, %89) : tensor<?x2x?xi64>
    %94 = linalg.fill ins(%c0_i64 : i64) outs(%93 : tensor<?x2x?xi64>) -> tensor<?x2x?xi64>
    %95 = tensor.empty(%88, %89) : tensor<?x2x?xf32>
    %96 = linalg.fill ins(%cst_0 : f32) outs(%95 : tensor<?x2x?xf32>) -> tensor<?x2x?xf32>
    %97:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%92 : tensor<?x2x?x?xf32>) outs(%96, %94 : tensor<?x2x?xf32>, tensor<?x2x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_30: i64):
      %155 = linalg.index 3 : index
      %156 = arith.index_cast %155 : index to i64
      %157 = arith.maximumf %in, %out : f32
      %158 = arith.cmpf ogt, %in, %out : f32
      %159 = arith.select %158, %156, %out_30 : i64
      linalg.yield %157, %159 : f32, i64
    } -> (tensor<?x2x?xf32>, tensor<?x2x?xi64>)
    %expanded_21 = tensor.expand_shape %97#0 [[0], [1], [2, 3]] output_shape [%88, 2, %89, 1] : tensor<?x2x?xf32> into tensor<?x2x?x1xf32>
    %98 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%92, %expanded_21 : tensor<?x2x?x?xf32>, tensor<?x2x?x1xf32>) outs(%91 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %in_30: f32, %out: f32):
      %155 = arith.subf %in, %in_30 : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x?xf32>
    %99 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%98 : tensor<?x2x?x?xf32>) outs(%91 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %155 = math.exp %in : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x?xf32>
    %100 = tensor.empty(%88, %89) : tensor<?x2x?x1xf32>
    %101 = linalg.fill ins(%cst : f32) outs(%100 : tensor<?x2x?x1xf32>) -> tensor<?x2x?x1xf32>
    %102 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%99 : tensor<?x2x?x?xf32>) outs(%101 : tensor<?x2x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %155 = arith.addf %in, %out : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x1xf32>
    %103 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%99, %102 : tensor<?x2x?x?xf32>, tensor<?x2x?x1xf32>) outs(%91 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %in_30: f32, %out: f32):
      %155 = arith.divf %in, %in_30 : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x?xf32>
    %104 = tensor.empty(%88, %89, %89) : tensor<?x2x?x?xi1>
    %105 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%92 : tensor<?x2x?x?xf32>) outs(%104 : tensor<?x2x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %155 = arith.extf %in : f32 to f64
      %156 = arith.cmpf oeq, %155, %cst_4 : f64
      linalg.yield %156 : i1
    } -> tensor<?x2x?x?xi1>
    %106 = tensor.empty(%88, %89) : tensor<?x2x?x1xi1>
    %107 = linalg.fill ins(%true : i1) outs(%106 : tensor<?x2x?x1xi1>) -> tensor<?x2x?x1xi1>
    %108 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%105 : tensor<?x2x?x?xi1>) outs(%107 : tensor<?x2x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %155 = arith.andi %in, %out : i1
      linalg.yield %155 : i1
    } -> tensor<?x2x?x1xi1>
    %109 = arith.cmpi sge, %86, %c0_i64 : i64
    cf.assert %109, "negative values not allowed in new dimensions"
    %110 = arith.index_cast %86 : i64 to index
    %111 = arith.cmpi sge, %87, %c0_i64 : i64
    cf.assert %111, "negative values not allowed in new dimensions"
    %112 = arith.index_cast %87 : i64 to index
    cf.assert %111, "negative values not allowed in new dimensions"
    %113 = tensor.empty(%110, %112, %112) : tensor<?x2x?x?xf32>
    %114 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%113 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x2x?x?xf32>
    %115 = arith.cmpi eq, %88, %110 : index
    cf.assert %115, "mismatched size for broadcast"
    %116 = arith.cmpi eq, %89, %112 : index
    cf.assert %116, "mismatched size for broadcast"
    %117 = arith.cmpi eq, %112, %89 : index
    cf.assert %117, "mismatched size for broadcast"
    %118 = tensor.empty(%88, %89, %112) : tensor<?x2x?x?xf32>
    %119 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%108, %114, %103 : tensor<?x2x?x1xi1>, tensor<?x2x?x?xf32>, tensor<?x2x?x?xf32>) outs(%118 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: i1, %in_30: f32, %in_31: f32, %out: f32):
      %155 = arith.select %in, %in_30, %in_31 : f32
      linalg.yield %155 : f32
    } -> tensor<?x2x?x?xf32>
    cf.assert %40, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %41, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %41, "unimplemented: dynamic negative broadcast sizes"
    %120 = tensor.empty(%dim, %dim_6, %dim_6) : tensor<?x2x?x?xf32>
    %121 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%120 : tensor<?x2x?x?xf32>) {
    ^bb0(%out: f32):
      %155 = linalg.index 0 : index
      %156 = linalg.index 1 : index
      %157 = linalg.index 2 : index
      %158 = linalg.index 3 : index
      %159 = arith.cmpi eq, %88, %c1 : index
      %160 = arith.select %159, %c0, %155 : index
      %161 = arith.cmpi eq, %89, %c1 : index
      %162 = arith.select %161, %c0, %157 : index
      %163 = arith.cmpi eq, %112, %c1 : index
      %164 = arith.select %163, %c0, %158 : index
      %extracted = tensor.extract %119[%160, %156, %162, %164] : tensor<?x2x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x?x?xf32>
    %122 = arith.muli %49, %1 : i64
    %123 = arith.addi %50, %c1_i64 : i64
    %124 = arith.select %7, %45, %122 : i64
    %125 = arith.select %7, %123, %46 : i64
    %126 = arith.cmpi sle, %125, %c1_i64 : i64
    cf.assert %126, "must have at most one inferred (negative) dimension"
    %127 = arith.muli %53, %1 : i64
    %128 = arith.divsi %127, %124 : i64
    %129 = arith.select %44, %128, %39 : i64
    %130 = arith.select %7, %128, %1 : i64
    %from_elements_22 = tensor.from_elements %129, %130, %130 : tensor<3xi64>
    %reshape_23 = tensor.reshape %121(%from_elements_22) : (tensor<?x2x?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
    cf.assert %40, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %41, "unimplemented: dynamic negative broadcast sizes"
    %131 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%42 : tensor<?x2x?x64xf32>) {
    ^bb0(%out: f32):
      %155 = linalg.index 0 : index
      %156 = linalg.index 1 : index
      %157 = linalg.index 2 : index
      %158 = linalg.index 3 : index
      %159 = arith.cmpi eq, %17, %c1 : index
      %160 = arith.select %159, %c0, %155 : index
      %161 = arith.cmpi eq, %18, %c1 : index
      %162 = arith.select %161, %c0, %157 : index
      %extracted = tensor.extract %23[%160, %156, %162, %158] : tensor<?x2x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x2x?x64xf32>
    cf.assert %52, "must have at most one inferred (negative) dimension"
    %reshape_24 = tensor.reshape %131(%from_elements_15) : (tensor<?x2x?x64xf32>, tensor<3xi64>) -> tensor<?x?x64xf32>
    %132 = arith.index_cast %129 : i64 to index
    %133 = arith.index_cast %130 : i64 to index
    %134 = arith.cmpi eq, %129, %56 : i64
    cf.assert %134, "mismatching contracting dimension"
    %135 = arith.cmpi eq, %130, %57 : i64
    cf.assert %135, "mismatching contracting dimension"
    %136 = tensor.empty(%132, %133) : tensor<?x?x64xf32>
    %137 = linalg.fill ins(%cst : f32) outs(%136 : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
    %138 = linalg.batch_matmul ins(%reshape_23, %reshape_24 : tensor<?x?x?xf32>, tensor<?x?x64xf32>) outs(%137 : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
    %139 = arith.muli %77, %c64_i64 : i64
    cf.assert %11, "must have at most one inferred (negative) dimension"
    %140 = arith.muli %129, %130 : i64
    %141 = arith.muli %140, %c64_i64 : i64
    %142 = arith.divsi %141, %139 : i64
    %143 = arith.select %2, %142, %0 : i64
    %144 = arith.select %7, %142, %1 : i64
    %from_elements_25 = tensor.from_elements %143, %c2_i64, %144, %c64_i64 : tensor<4xi64>
    %reshape_26 = tensor.reshape %138(%from_elements_25) : (tensor<?x?x64xf32>, tensor<4xi64>) -> tensor<?x2x?x64xf32>
    %145 = arith.index_cast %143 : i64 to index
    %146 = arith.index_cast %144 : i64 to index
    %147 = tensor.empty(%145, %146) : tensor<?x2x?x64xf16>
    %148 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape_26 : tensor<?x2x?x64xf32>) outs(%147 : tensor<?x2x?x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %155 = arith.truncf %in : f32 to f16
      linalg.yield %155 : f16
    } -> tensor<?x2x?x64xf16>
    %149 = tensor.empty(%145, %146) : tensor<?x?x2x64xf16>
    %transposed_27 = linalg.transpose ins(%148 : tensor<?x2x?x64xf16>) outs(%149 : tensor<?x?x2x64xf16>) permutation = [0, 2, 1, 3] 
    cf.assert %11, "must have at most one inferred (negative) dimension"
    %150 = arith.muli %143, %144 : i64
    %151 = arith.muli %150, %c128_i64 : i64
    %152 = arith.divsi %151, %10 : i64
    %153 = arith.select %2, %152, %0 : i64
    %154 = arith.select %7, %152, %1 : i64
    %from_elements_28 = tensor.from_elements %153, %154, %c128_i64 : tensor<3xi64>
    %reshape_29 = tensor.reshape %transposed_27(%from_elements_28) : (tensor<?x?x2x64xf16>, tensor<3xi64>) -> tensor<?x?x128xf16>
    return %reshape_29 : tensor<?x?x128xf16>
  }
}
