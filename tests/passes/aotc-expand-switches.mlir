// RUN: aotc-expand-switches
func.func @f(%a: index, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %p = scf.index_switch %a -> tensor<4xf32>
  case 7 {
    scf.yield %x : tensor<4xf32>
  }
  case 9 {
    %n = arith.negf %x : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  default {
    scf.yield %y : tensor<4xf32>
  }
  %q = scf.index_switch %a -> index
  case 7 {
    scf.yield %a : index
  }
  default {
    %c1 = arith.constant 1 : index
    scf.yield %c1 : index
  }
  return %p, %q : tensor<4xf32>, index
}

// CHECK-LABEL: func.func @f
// CHECK: %[[SEVEN:.*]] = arith.cmpi eq, %arg0, %c7
// CHECK: %[[P:.*]] = scf.if %[[SEVEN]] -> (tensor<4xf32>) {
// CHECK:   scf.yield %arg1
// CHECK: } else {
// CHECK:   %[[NINE:.*]] = arith.cmpi eq, %arg0, %c9
// CHECK:   %[[INNER:.*]] = scf.if %[[NINE]]
// CHECK:     arith.negf
// CHECK:   } else {
// CHECK:     scf.yield %arg2
// CHECK:   scf.yield %[[INNER]]
// Of other values a switch stays.
// CHECK: scf.index_switch
