func.func @layer(%a: tensor<?x512xf32>, %b: tensor<512x1024xf32>, %bias: tensor<1024xf32>) -> tensor<?x1024xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x512xf32>
  %e = tensor.empty(%m) : tensor<?x1024xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x512xf32>, tensor<512x1024xf32>) outs(%f : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>, affine_map<(i,j)->(j)>, affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%p, %bias : tensor<?x1024xf32>, tensor<1024xf32>) outs(%e : tensor<?x1024xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %k = arith.maximumf %s, %z : f32
    linalg.yield %k : f32
  } -> tensor<?x1024xf32>
  return %r : tensor<?x1024xf32>
}
