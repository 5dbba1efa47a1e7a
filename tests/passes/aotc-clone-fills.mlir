// RUN: func.func(linalg-generalize-named-ops),aotc-clone-fills
func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %a = linalg.exp ins(%x : tensor<8xf32>) outs(%zeros : tensor<8xf32>) -> tensor<8xf32>
  %b = linalg.log ins(%x : tensor<8xf32>) outs(%zeros : tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// The fill that both began from is used by neither.
// CHECK: linalg.generic {{.*}} ins(%cst : f32)
// CHECK: %[[ONE:.*]] = linalg.generic {{.*}} ins(%cst : f32)
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<8xf32>) outs(%[[ONE]] :
// CHECK:   math.exp
// CHECK: %[[OTHER:.*]] = linalg.generic {{.*}} ins(%cst : f32)
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<8xf32>) outs(%[[OTHER]] :
// CHECK:   math.log

// A bias that two layers share.
func.func @bias(%x: tensor<2x8xf32>, %bias: tensor<2xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %empty = tensor.empty() : tensor<2x8xf32>
  %spread = linalg.broadcast ins(%bias : tensor<2xf32>) outs(%empty : tensor<2x8xf32>) dimensions = [1]
  %a = linalg.exp ins(%x : tensor<2x8xf32>) outs(%spread : tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = linalg.log ins(%x : tensor<2x8xf32>) outs(%spread : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %a, %b : tensor<2x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: func.func @bias
// CHECK-COUNT-2: linalg.generic {{.*}} ins(%arg1 : tensor<2xf32>)
// CHECK-NOT: linalg.generic {{.*}} ins(%arg1 : tensor<2xf32>)
// CHECK: return

// An empty tensor: %b reads %a, and may be written in its place; %c reads neither.
func.func @empty(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %empty = tensor.empty() : tensor<2x8xf32>
  %a = linalg.exp ins(%x : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) -> tensor<2x8xf32>
  %b = linalg.log ins(%a : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) -> tensor<2x8xf32>
  %sum = linalg.add ins(%b, %x : tensor<2x8xf32>, tensor<2x8xf32>) outs(%x : tensor<2x8xf32>) -> tensor<2x8xf32>
  %c = linalg.exp ins(%sum : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %c : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @empty
// CHECK: %[[FIRST:.*]] = tensor.empty()
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%[[FIRST]] :
// CHECK: linalg.generic {{.*}} ins(%[[A]] : {{.*}} outs(%[[FIRST]] :
// CHECK: linalg.generic {{.*}} outs(%arg0 :
// CHECK: %[[SECOND:.*]] = tensor.empty()
// CHECK: linalg.generic {{.*}} outs(%[[SECOND]] :

// One tensor that a loop yields twice.
func.func @twice(%x: tensor<2x8xf32>, %n: index) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %results:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
    %empty = tensor.empty() : tensor<2x8xf32>
    %sum = linalg.add ins(%a, %b : tensor<2x8xf32>, tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) -> tensor<2x8xf32>
    scf.yield %sum, %sum : tensor<2x8xf32>, tensor<2x8xf32>
  }
  return %results#0, %results#1 : tensor<2x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(
// CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[SUM]])
// CHECK: scf.yield %[[SUM]], %[[COPY]]

// A sum of complex numbers: they are elements, and have some.
func.func @complex(%x: tensor<8xcomplex<f32>>) -> tensor<complex<f32>> {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %empty = tensor.empty() : tensor<complex<f32>>
  %start = linalg.fill ins(%zero : complex<f32>) outs(%empty : tensor<complex<f32>>) -> tensor<complex<f32>>
  %sum = linalg.reduce { complex.add } ins(%x : tensor<8xcomplex<f32>>) outs(%start : tensor<complex<f32>>) dimensions = [0]
  return %sum : tensor<complex<f32>>
}

// CHECK-LABEL: func.func @complex
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : complex<f32>)
// CHECK-NEXT: ^bb0(%[[VALUE:.*]]: complex<f32>, %{{.*}}: complex<f32>):
// CHECK-NEXT: linalg.yield %[[VALUE]] : complex<f32>
