// RUN: func.func(linalg-generalize-named-ops),aotc-fold-constants
func.func @f(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %empty = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%w : tensor<2x3xf32>) outs(%empty : tensor<3x2xf32>) permutation = [1, 0]
  %y = linalg.add ins(%x, %t : tensor<3x2xf32>, tensor<3x2xf32>) outs(%empty : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// CHECK:      %[[FOLDED:.*]] = arith.constant dense<{{\[\[}}1.0{{.*}}, 4.0{{.*}}], [2.0{{.*}}, 5.0{{.*}}], [3.0{{.*}}, 6.0{{.*}}]]> : tensor<3x2xf32>
// CHECK-NEXT: linalg.generic {{.*}} ins(%arg0, %[[FOLDED]] :
// CHECK-NOT:  linalg.generic
