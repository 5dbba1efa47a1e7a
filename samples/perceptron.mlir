// Two layers on tensors: y = relu(x * w1 + b1) * w2 + b2. Products, biases and relu are linalg and
// elementwise operations; aotc fuses what it can, and makes kernels and buffers of the rest.
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

func.func @perceptron(%x: tensor<33x100xf32>, %w1: tensor<100x65xf32>, %b1: tensor<65xf32>,
                      %w2: tensor<65x10xf32>, %b2: tensor<10xf32>) -> tensor<33x10xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %hidden = tensor.empty() : tensor<33x65xf32>
  %output = tensor.empty() : tensor<33x10xf32>

  %h0 = linalg.fill ins(%zero : f32) outs(%hidden : tensor<33x65xf32>) -> tensor<33x65xf32>
  %h1 = linalg.matmul ins(%x, %w1 : tensor<33x100xf32>, tensor<100x65xf32>)
                      outs(%h0 : tensor<33x65xf32>) -> tensor<33x65xf32>
  %h2 = linalg.generic {indexing_maps = [#rows, #columns, #rows],
                        iterator_types = ["parallel", "parallel"]}
      ins(%h1, %b1 : tensor<33x65xf32>, tensor<65xf32>) outs(%hidden : tensor<33x65xf32>) {
  ^bb0(%v: f32, %bias: f32, %unused: f32):
    %sum = arith.addf %v, %bias : f32
    %relu = arith.maximumf %sum, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<33x65xf32>

  %y0 = linalg.fill ins(%zero : f32) outs(%output : tensor<33x10xf32>) -> tensor<33x10xf32>
  %y1 = linalg.matmul ins(%h2, %w2 : tensor<33x65xf32>, tensor<65x10xf32>)
                      outs(%y0 : tensor<33x10xf32>) -> tensor<33x10xf32>
  %y2 = linalg.generic {indexing_maps = [#rows, #columns, #rows],
                        iterator_types = ["parallel", "parallel"]}
      ins(%y1, %b2 : tensor<33x10xf32>, tensor<10xf32>) outs(%output : tensor<33x10xf32>) {
  ^bb0(%v: f32, %bias: f32, %unused: f32):
    %sum = arith.addf %v, %bias : f32
    linalg.yield %sum : f32
  } -> tensor<33x10xf32>
  return %y2 : tensor<33x10xf32>
}
