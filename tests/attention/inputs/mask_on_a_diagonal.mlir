
func.func @attention(%q: tensor<2x128x64xf16>, %k: tensor<2x128x64xf16>, %v: tensor<2x128x64xf16>, %mask: tensor<128x128x128xf32>) -> tensor<2x128x64xf16> attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %minus_zero = arith.constant -0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<2x128x64xf16>
  %i = tensor.dim %q, %c1 : tensor<2x128x64xf16>
  %j = tensor.dim %k, %c1 : tensor<2x128x64xf16>
  %empty_turned = tensor.empty() : tensor<2x64x128xf16>
  %turned = linalg.transpose ins(%k : tensor<2x128x64xf16>) outs(%empty_turned : tensor<2x64x128xf16>) permutation = [0, 2, 1]
  %empty = tensor.empty() : tensor<2x128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %scores = linalg.batch_matmul ins(%q, %turned : tensor<2x128x64xf16>, tensor<2x64x128xf16>) outs(%zeros : tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %masked = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b,i,j) -> (i,i,j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores, %mask : tensor<2x128x128xf32>, tensor<128x128x128xf32>) outs(%empty : tensor<2x128x128xf32>) {
  ^bb0(%score: f32, %m: f32, %out: f32):
    %scaled = arith.mulf %score, %scale : f32
    %seen = arith.addf %scaled, %m : f32
    linalg.yield %seen : f32
  } -> tensor<2x128x128xf32>
  %weights = linalg.softmax dimension(2) ins(%masked : tensor<2x128x128xf32>) outs(%empty : tensor<2x128x128xf32>)
      -> tensor<2x128x128xf32>
  %empty_narrow = tensor.empty() : tensor<2x128x128xf16>
  %narrow = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weights : tensor<2x128x128xf32>) outs(%empty_narrow : tensor<2x128x128xf16>) {
  ^bb0(%score: f32, %out: f16):
    %n = arith.truncf %score : f32 to f16
    linalg.yield %n : f16
  } -> tensor<2x128x128xf16>
  %empty_sums = tensor.empty() : tensor<2x128x64xf32>
  %no_sums = linalg.fill ins(%zero : f32) outs(%empty_sums : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %sums = linalg.batch_matmul ins(%narrow, %v : tensor<2x128x128xf16>, tensor<2x128x64xf16>) outs(%no_sums : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>
  %empty_result = tensor.empty() : tensor<2x128x64xf16>
  %result = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums : tensor<2x128x64xf32>) outs(%empty_result : tensor<2x128x64xf16>) {
  ^bb0(%score: f32, %out: f16):
    %n = arith.truncf %score : f32 to f16
    linalg.yield %n : f16
  } -> tensor<2x128x64xf16>
  return %result : tensor<2x128x64xf16>
}
