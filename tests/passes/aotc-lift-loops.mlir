// RUN: aotc-lift-loops

// A loop with two ways out, one of which has no value of the other's.
func.func @loop(%n: i32, %x: tensor<?xf32>) -> (tensor<?xf32>, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0 : index
  %most = arith.constant 10.0 : f32
  cf.br ^head(%c0, %x : i32, tensor<?xf32>)
^head(%i: i32, %t: tensor<?xf32>):
  %is_left = arith.cmpi slt, %i, %n : i32
  cf.cond_br %is_left, ^body, ^end(%t, %c1 : tensor<?xf32>, i32)
^body:
  %u = arith.addf %t, %t : tensor<?xf32>
  %j = arith.addi %i, %c1 : i32
  %v = tensor.extract %u[%zero] : tensor<?xf32>
  %is_much = arith.cmpf ogt, %v, %most : f32
  cf.cond_br %is_much, ^negated, ^head(%j, %u : i32, tensor<?xf32>)
^negated:
  %w = arith.negf %u : tensor<?xf32>
  return %w, %j : tensor<?xf32>, i32
^end(%q: tensor<?xf32>, %k: i32):
  return %q, %k : tensor<?xf32>, i32
}

// CHECK-LABEL: func.func @loop
// CHECK: tensor.empty
// CHECK-NOT: ub.poison : tensor
// CHECK: scf.while
// CHECK: scf.condition
// CHECK-NOT: cf.{{(cond_)?br}}
// CHECK: return

// A loop that nothing reaches is erased.
func.func @unreached(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
^again(%t: tensor<4xf32>):
  cf.br ^again(%t : tensor<4xf32>)
}

// CHECK-LABEL: func.func @unreached
// CHECK-NEXT: return
