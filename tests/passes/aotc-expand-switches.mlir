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
func.func @blocks(%a: i32, %x: tensor<4xf32>) -> tensor<4xf32> {
  cf.switch %a : i32, [
    default: ^done(%x : tensor<4xf32>),
    7: ^negated,
    -1: ^done(%x : tensor<4xf32>)
  ]
^negated:
  %n = arith.negf %x : tensor<4xf32>
  cf.br ^done(%n : tensor<4xf32>)
^done(%r : tensor<4xf32>):
  return %r : tensor<4xf32>
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

// CHECK-LABEL: func.func @blocks
// CHECK: %[[SEVEN:.*]] = arith.cmpi eq, %arg0, %c7_i32
// CHECK: cf.cond_br %[[SEVEN]], ^[[NEGATED:.*]], ^[[NEXT:.*]]
// CHECK: ^[[NEXT]]:
// CHECK: %[[MINUS:.*]] = arith.cmpi eq, %arg0, %c-1_i32
// CHECK: cf.cond_br %[[MINUS]], ^[[DONE:.*]](%arg1 : tensor<4xf32>), ^[[DONE]](%arg1 : tensor<4xf32>)
// CHECK: ^[[NEGATED]]:
