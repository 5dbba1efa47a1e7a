// RUN: func.func(linalg-generalize-named-ops),aotc-insert-fusion-barriers,func.func(linalg-fuse-elementwise-ops),aotc-erase-fusion-barriers
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
// CHECK-NOT:  aotc.fusion_barrier
// CHECK:      linalg.generic {{.*}} ins(%[[A]], %arg1 :
