// RUN: func.func(linalg-generalize-named-ops),aotc-insert-fusion-barriers
func.func @f(%x: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %a = linalg.tanh ins(%x : tensor<128x128xf32>) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %c : tensor<128x128xf32>
}

// CHECK:      %[[A:.*]] = linalg.generic {{.*}} ins(%arg0 :
// CHECK:        math.tanh
// CHECK:      bufferization.dealloc_tensor %[[A]] {aotc.fusion_barrier}
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[A]], %arg1 :

// The result of a product that dequantizes its weights: what reads it as heads leaves it a vector.
func.func @quantized(%x: tensor<64xf32>, %w: tensor<256x64xi8>, %scales: tensor<256xf32>) -> tensor<2x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<256xf32>) -> tensor<256xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %scales : tensor<64xf32>, tensor<256x64xi8>, tensor<256xf32>) outs(%zeros : tensor<256xf32>) {
  ^bb0(%a: f32, %b: i8, %s: f32, %sum: f32):
    %wide = arith.sitofp %b : i8 to f32
    %scaled = arith.mulf %wide, %s : f32
    %product = arith.mulf %a, %scaled : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<256xf32>
  %heads = tensor.expand_shape %y [[0, 1]] output_shape [2, 128] : tensor<256xf32> into tensor<2x128xf32>
  return %heads : tensor<2x128xf32>
}

// CHECK-LABEL: func.func @quantized
// CHECK:      %[[Y:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1, %arg2 :
// CHECK:        arith.sitofp
// CHECK:      bufferization.dealloc_tensor %[[Y]] {aotc.fusion_barrier}
// CHECK-NEXT: tensor.expand_shape %[[Y]]
