// Attention of four heads, 33 tokens: softmax(q * transpose(k)) * v, in linalg on tensors.
func.func @attention(%q: tensor<4x33x16xf32>, %k: tensor<4x33x16xf32>, %v: tensor<4x33x16xf32>)
    -> tensor<4x33x16xf32> attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %empty_scores = tensor.empty() : tensor<4x33x33xf32>
  %empty_result = tensor.empty() : tensor<4x33x16xf32>
  %empty_keys = tensor.empty() : tensor<4x16x33xf32>

  %keys = linalg.transpose ins(%k : tensor<4x33x16xf32>) outs(%empty_keys : tensor<4x16x33xf32>)
          permutation = [0, 2, 1]
  %no_scores = linalg.fill ins(%zero : f32) outs(%empty_scores : tensor<4x33x33xf32>)
               -> tensor<4x33x33xf32>
  %scores = linalg.batch_matmul ins(%q, %keys : tensor<4x33x16xf32>, tensor<4x16x33xf32>)
            outs(%no_scores : tensor<4x33x33xf32>) -> tensor<4x33x33xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<4x33x33xf32>)
             outs(%empty_scores : tensor<4x33x33xf32>) -> tensor<4x33x33xf32>
  %no_result = linalg.fill ins(%zero : f32) outs(%empty_result : tensor<4x33x16xf32>)
               -> tensor<4x33x16xf32>
  %result = linalg.batch_matmul ins(%weights, %v : tensor<4x33x33xf32>, tensor<4x33x16xf32>)
            outs(%no_result : tensor<4x33x16xf32>) -> tensor<4x33x16xf32>
  return %result : tensor<4x33x16xf32>
}
