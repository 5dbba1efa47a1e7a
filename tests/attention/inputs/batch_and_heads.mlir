func.func @attention(%q: tensor<2x3x70x64xf16>, %k: tensor<2x3x131x64xf16>, %v: tensor<2x3x131x64xf16>) -> tensor<2x3x70x64xf16>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %wide = tensor.empty() : tensor<2x3x70x131xf32>
  %no_scores = linalg.fill ins(%zero : f32) outs(%wide : tensor<2x3x70x131xf32>) -> tensor<2x3x70x131xf32>
  %scores = linalg.contract
      indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, i, j)>]
      ins(%q, %k : tensor<2x3x70x64xf16>, tensor<2x3x131x64xf16>) outs(%no_scores : tensor<2x3x70x131xf32>) -> tensor<2x3x70x131xf32>
  %scaled = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>,
                       affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores : tensor<2x3x70x131xf32>) outs(%wide : tensor<2x3x70x131xf32>) {
  ^bb0(%in: f32, %out: f32):
    %made = arith.mulf %in, %scale : f32
    linalg.yield %made : f32
  } -> tensor<2x3x70x131xf32>
  %weights = linalg.softmax dimension(3) ins(%scaled : tensor<2x3x70x131xf32>) outs(%wide : tensor<2x3x70x131xf32>) -> tensor<2x3x70x131xf32>
  %empty = tensor.empty() : tensor<2x3x70x131xf16>
  %narrow = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>,
                       affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%weights : tensor<2x3x70x131xf32>) outs(%empty : tensor<2x3x70x131xf16>) {
  ^bb0(%in: f32, %out: f16):
    %made = arith.truncf %in : f32 to f16
    linalg.yield %made : f16
  } -> tensor<2x3x70x131xf16>
  %empty_sums = tensor.empty() : tensor<2x3x70x64xf32>
  %no_sums = linalg.fill ins(%zero : f32) outs(%empty_sums : tensor<2x3x70x64xf32>) -> tensor<2x3x70x64xf32>
  %sums = linalg.contract
      indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, j)>,
                       affine_map<(b, h, i, j, d) -> (b, h, j, d)>,
                       affine_map<(b, h, i, j, d) -> (b, h, i, d)>]
      ins(%narrow, %v : tensor<2x3x70x131xf16>, tensor<2x3x131x64xf16>) outs(%no_sums : tensor<2x3x70x64xf32>) -> tensor<2x3x70x64xf32>
  %empty_result = tensor.empty() : tensor<2x3x70x64xf16>
  %result = linalg.generic {
      indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>,
                       affine_map<(b, h, i, j) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums : tensor<2x3x70x64xf32>) outs(%empty_result : tensor<2x3x70x64xf16>) {
  ^bb0(%in: f32, %out: f16):
    %made = arith.truncf %in : f32 to f16
    linalg.yield %made : f16
  } -> tensor<2x3x70x64xf16>
  return %result : tensor<2x3x70x64xf16>
}
