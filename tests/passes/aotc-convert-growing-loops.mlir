// RUN: aotc-convert-growing-loops

// Each iteration appends.
func.func @appended(%n: index, %x: tensor<5xf32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %begin = tensor.cast %x : tensor<5xf32> to tensor<?xf32>
  %y = scf.for %i = %zero to %n step %one iter_args(%a = %begin) -> tensor<?xf32> {
    %b = tensor.concat dim(0) %a, %w : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @appended(
// CHECK-NOT:     scf.for
// CHECK:         %[[MADE:.*]]:2 = scf.while (%[[I:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : (index, tensor<?xf32>) -> (index, tensor<?xf32>)
// CHECK:           arith.cmpi slt, %[[I]], %arg0 : index
// CHECK:           scf.condition
// CHECK:           tensor.concat
// CHECK:           arith.addi
// CHECK:           scf.yield
// CHECK:         return %[[MADE]]#1

// All these keep the sizes, in a loop in the loop, too.
#map = affine_map<(i) -> (i)>
func.func @kept(%n: index, %x: tensor<5xf32>, %c: i1) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %begin = tensor.cast %x : tensor<5xf32> to tensor<?xf32>
  %y = scf.for %i = %zero to %n step %one iter_args(%a = %begin) -> tensor<?xf32> {
    %inner = scf.for %j = %zero to %n step %one iter_args(%b = %a) -> tensor<?xf32> {
      %put = tensor.insert %f into %b[%zero] : tensor<?xf32>
      scf.yield %put : tensor<?xf32>
    }
    %size = tensor.dim %inner, %zero : tensor<?xf32>
    %empty = tensor.empty(%size) : tensor<?xf32>
    %more = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%inner : tensor<?xf32>) outs(%empty : tensor<?xf32>) {
      ^bb0(%e: f32, %o: f32):
        %s = arith.addf %e, %e : f32
        linalg.yield %s : f32
    } -> tensor<?xf32>
    %sum = arith.addf %more, %a : tensor<?xf32>
    %chosen = scf.if %c -> tensor<?xf32> {
      scf.yield %sum : tensor<?xf32>
    } else {
      scf.yield %a : tensor<?xf32>
    }
    scf.yield %chosen : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @kept(
// CHECK-NOT:     scf.while
// CHECK:         return
