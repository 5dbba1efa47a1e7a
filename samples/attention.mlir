// Attention of any number of heads and tokens: softmax(q * transpose(k)) * v, in linalg on tensors.
func.func @attention(%q: tensor<?x?x16xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x?x16xf32>)
    -> tensor<?x?x16xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %heads = tensor.dim %q, %c0 : tensor<?x?x16xf32>
  %queries = tensor.dim %q, %c1 : tensor<?x?x16xf32>
  %tokens = tensor.dim %k, %c1 : tensor<?x?x16xf32>
  %empty_scores = tensor.empty(%heads, %queries, %tokens) : tensor<?x?x?xf32>
  %empty_result = tensor.empty(%heads, %queries) : tensor<?x?x16xf32>
  %empty_keys = tensor.empty(%heads, %tokens) : tensor<?x16x?xf32>

  %keys = linalg.transpose ins(%k : tensor<?x?x16xf32>) outs(%empty_keys : tensor<?x16x?xf32>)
          permutation = [0, 2, 1]
  %no_scores = linalg.fill ins(%zero : f32) outs(%empty_scores : tensor<?x?x?xf32>)
               -> tensor<?x?x?xf32>
  %scores = linalg.batch_matmul ins(%q, %keys : tensor<?x?x16xf32>, tensor<?x16x?xf32>)
            outs(%no_scores : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<?x?x?xf32>)
             outs(%empty_scores : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %no_result = linalg.fill ins(%zero : f32) outs(%empty_result : tensor<?x?x16xf32>)
               -> tensor<?x?x16xf32>
  %result = linalg.batch_matmul ins(%weights, %v : tensor<?x?x?xf32>, tensor<?x?x16xf32>)
            outs(%no_result : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  return %result : tensor<?x?x16xf32>
}
