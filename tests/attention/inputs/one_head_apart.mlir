
func.func @attention(%q4: tensor<2x70x1x64xf16>, %k4: tensor<2x131x1x64xf16>, %v4: tensor<2x131x1x64xf16>) -> tensor<2x70x64xf16> attributes {llvm.emit_c_interface} {
  %q = tensor.collapse_shape %q4 [[0],[1,2],[3]] : tensor<2x70x1x64xf16> into tensor<2x70x64xf16>
  %k = tensor.collapse_shape %k4 [[0],[1,2],[3]] : tensor<2x131x1x64xf16> into tensor<2x131x64xf16>
  %v = tensor.collapse_shape %v4 [[0],[1,2],[3]] : tensor<2x131x1x64xf16> into tensor<2x131x64xf16>
  %zero = arith.constant 0.0 : f32
  %minus_zero = arith.constant -0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<2x70x64xf16>
  %i = tensor.dim %q, %c1 : tensor<2x70x64xf16>
  %j = tensor.dim %k, %c1 : tensor<2x131x64xf16>
  %empty_turned = tensor.empty() : tensor<2x64x131xf16>
  %turned = linalg.transpose ins(%k : tensor<2x131x64xf16>) outs(%empty_turned : tensor<2x64x131xf16>) permutation = [0, 2, 1]
  %empty = tensor.empty() : tensor<2x70x131xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
  %scores = linalg.batch_matmul ins(%q, %turned : tensor<2x70x64xf16>, tensor<2x64x131xf16>) outs(%zeros : tensor<2x70x131xf32>) -> tensor<2x70x131xf32>
  %masked = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x70x131xf32>) outs(%empty : tensor<2x70x131xf32>) {
  ^bb0(%score: f32, %out: f32):
    %scaled = arith.mulf %score, %scale : f32
    linalg.yield %scaled : f32
  } -> tensor<2x70x131xf32>
  %weights = linalg.softmax dimension(2) ins(%masked : tensor<2x70x131xf32>) outs(%empty : tensor<2x70x131xf32>)
      -> tensor<2x70x131xf32>
  %empty_narrow = tensor.empty() : tensor<2x70x131xf16>
  %narrow = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weights : tensor<2x70x131xf32>) outs(%empty_narrow : tensor<2x70x131xf16>) {
  ^bb0(%score: f32, %out: f16):
    %n = arith.truncf %score : f32 to f16
    linalg.yield %n : f16
  } -> tensor<2x70x131xf16>
  %empty_sums = tensor.empty() : tensor<2x70x64xf32>
  %no_sums = linalg.fill ins(%zero : f32) outs(%empty_sums : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
  %sums = linalg.batch_matmul ins(%narrow, %v : tensor<2x70x131xf16>, tensor<2x131x64xf16>) outs(%no_sums : tensor<2x70x64xf32>) -> tensor<2x70x64xf32>
  %empty_result = tensor.empty() : tensor<2x70x64xf16>
  %result = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums : tensor<2x70x64xf32>) outs(%empty_result : tensor<2x70x64xf16>) {
  ^bb0(%score: f32, %out: f16):
    %n = arith.truncf %score : f32 to f16
    linalg.yield %n : f16
  } -> tensor<2x70x64xf16>
  return %result : tensor<2x70x64xf16>
}
