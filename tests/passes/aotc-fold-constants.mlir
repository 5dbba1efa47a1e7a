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

// A sum of constants, which has one element for each column, and that of 4 to the result.
func.func @sum(%x: tensor<3xf32>) -> tensor<3xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %four = arith.constant dense<4.0> : tensor<3xf32>
  %s = linalg.reduce {arith.addf} ins(%w : tensor<2x3xf32>) outs(%four : tensor<3xf32>) dimensions = [0]
  %empty = tensor.empty() : tensor<3xf32>
  %y = linalg.add ins(%x, %s : tensor<3xf32>, tensor<3xf32>) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK:      %[[SUM:.*]] = arith.constant dense<[9.0{{.*}}, 1.1{{.*}}e+01, 1.3{{.*}}e+01]> : tensor<3xf32>
// CHECK:      linalg.generic {{.*}} ins(%arg0, %[[SUM]] :
// CHECK-NOT:  linalg.generic
