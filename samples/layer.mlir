// A layer of a network in tosa, as front ends write it: clamp(x * w + b, 0, 6), for any number of
// rows.
func.func @layer(%x: tensor<1x?x16xf32>, %w: tensor<1x16x33xf32>, %b: tensor<1x1x33xf32>)
    -> tensor<1x?x33xf32> attributes {llvm.emit_c_interface} {
  %none = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %product = tosa.matmul %x, %w, %none, %none
      : (tensor<1x?x16xf32>, tensor<1x16x33xf32>, tensor<1xf32>, tensor<1xf32>)
        -> tensor<1x?x33xf32>
  %sum = tosa.add %product, %b
      : (tensor<1x?x33xf32>, tensor<1x1x33xf32>) -> tensor<1x?x33xf32>
  %result = tosa.clamp %sum {min_val = 0.0 : f32, max_val = 6.0 : f32}
      : (tensor<1x?x33xf32>) -> tensor<1x?x33xf32>
  return %result : tensor<1x?x33xf32>
}
