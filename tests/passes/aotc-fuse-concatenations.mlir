// RUN: aotc-fuse-concatenations
#id = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// A rotary embedding: the halves of a row change places, and one of them its sign.
func.func @turned(%x: tensor<8x6x128xf32>, %s: tensor<6x8x128xf32>) -> tensor<6x8x128xf32> {
  %e = tensor.empty() : tensor<6x8x128xf32>
  %t = linalg.transpose ins(%x : tensor<8x6x128xf32>) outs(%e : tensor<6x8x128xf32>) permutation = [1, 0, 2]
  %a = tensor.extract_slice %t[0, 0, 0] [6, 8, 64] [1, 1, 1] : tensor<6x8x128xf32> to tensor<6x8x64xf32>
  %b = tensor.extract_slice %t[0, 0, 64] [6, 8, 64] [1, 1, 1] : tensor<6x8x128xf32> to tensor<6x8x64xf32>
  %h = tensor.empty() : tensor<6x8x64xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : tensor<6x8x64xf32>) outs(%h : tensor<6x8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<6x8x64xf32>
  %c = tensor.concat dim(2) %n, %a : (tensor<6x8x64xf32>, tensor<6x8x64xf32>) -> tensor<6x8x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %s : tensor<6x8x128xf32>, tensor<6x8x128xf32>) outs(%e : tensor<6x8x128xf32>) {
  ^bb0(%in: f32, %of: f32, %out: f32):
    %0 = arith.mulf %in, %of : f32
    linalg.yield %0 : f32
  } -> tensor<6x8x128xf32>
  return %r : tensor<6x8x128xf32>
}

// CHECK-LABEL: func.func @turned
// CHECK-NOT: tensor.concat
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<6x8x128xf32>)
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[K:.*]] = linalg.index 2
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[K]], %c64
// CHECK: scf.if %[[FIRST]] -> (f32)
// CHECK: %[[LATER:.*]] = arith.addi %[[K]], %c64
// CHECK: %[[B:.*]] = tensor.extract %arg0[%[[J]], %[[I]], %[[LATER]]]
// CHECK: %[[N:.*]] = arith.negf %[[B]]
// CHECK: scf.yield %[[N]]
// CHECK: %[[EARLIER:.*]] = arith.subi %[[K]], %c64
// CHECK: %[[A:.*]] = tensor.extract %arg0[%[[J]], %[[I]], %[[EARLIER]]]
// CHECK: scf.yield %[[A]]

// Three pieces; what made one of them has another reader, and is a tensor anyway.
func.func @three(%x: tensor<4x3xf32>, %y: tensor<5x4xf32>, %z: tensor<4x2xf32>) -> (tensor<4x10xf32>, tensor<4x5xf32>) {
  %e = tensor.empty() : tensor<4x5xf32>
  %y2 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<5x4xf32>) outs(%e : tensor<4x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x5xf32>
  %c = tensor.concat dim(1) %x, %y2, %z : (tensor<4x3xf32>, tensor<4x5xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  %f = tensor.empty() : tensor<4x10xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<4x10xf32>) outs(%f : tensor<4x10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x10xf32>
  return %r, %y2 : tensor<4x10xf32>, tensor<4x5xf32>
}

// CHECK-LABEL: func.func @three
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: %[[K:.*]] = linalg.index 1
// CHECK: arith.cmpi ult, %[[K]], %c3
// CHECK: tensor.extract %arg0[
// CHECK: %[[K3:.*]] = arith.subi %[[K]], %c3
// CHECK: arith.cmpi ult, %[[K3]], %c5
// CHECK: tensor.extract %[[Y]][%{{.*}}, %[[K3]]]
// CHECK: %[[K8:.*]] = arith.subi %[[K3]], %c5
// CHECK: tensor.extract %arg2[%{{.*}}, %[[K8]]]

// A reduction reads an element of it more than once, and what returns it all of it.
func.func @kept(%x: tensor<4x3xf32>, %w: tensor<6x5xf32>, %o: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<6x3xf32>) {
  %c = tensor.concat dim(1) %x, %x : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%c, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%o : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %s, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x5xf32>
  %y = tensor.extract_slice %x[0, 0] [2, 3] [1, 1] : tensor<4x3xf32> to tensor<2x3xf32>
  %d = tensor.concat dim(0) %x, %y : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  return %r, %d : tensor<4x5xf32>, tensor<6x3xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK: tensor.concat
// CHECK: tensor.concat

// A loop that writes a row of a cache: it computes the row's elements.
func.func @written(%a: tensor<8x64xf16>, %b: tensor<8x64xf16>, %cache: tensor<8x32x128xf16>, %at: index) -> tensor<8x32x128xf16> {
  %e = tensor.empty() : tensor<8x64xf16>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<8x64xf16>) outs(%e : tensor<8x64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %0 = arith.negf %in : f16
    linalg.yield %0 : f16
  } -> tensor<8x64xf16>
  %c = tensor.concat dim(1) %n, %a : (tensor<8x64xf16>, tensor<8x64xf16>) -> tensor<8x128xf16>
  %r = scf.forall (%i, %j) in (8, 128) shared_outs(%o = %cache) -> (tensor<8x32x128xf16>) {
    %x = tensor.extract %c[%i, %j] : tensor<8x128xf16>
    %y = tensor.from_elements %x : tensor<1x1x1xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %at, %j] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xf16> into tensor<8x32x128xf16>
    }
  }
  return %r : tensor<8x32x128xf16>
}

// CHECK-LABEL: func.func @written
// CHECK-NOT: tensor.concat
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (8, 128)
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[J]], %c64
// CHECK: scf.if %[[FIRST]] -> (f16)
// CHECK: %[[B:.*]] = tensor.extract %arg1[%[[I]], %[[J]]]
// CHECK: arith.negf %[[B]]
// CHECK: %[[LATER:.*]] = arith.subi %[[J]], %c64
// CHECK: tensor.extract %arg0[%[[I]], %[[LATER]]]

// Each element is read for several rows.
func.func @of_each_row(%a: tensor<1x64xf16>, %b: tensor<1x64xf16>, %cache: tensor<8x32x128xf16>, %at: index) -> tensor<8x32x128xf16> {
  %c = tensor.concat dim(1) %a, %b : (tensor<1x64xf16>, tensor<1x64xf16>) -> tensor<1x128xf16>
  %c0 = arith.constant 0 : index
  %r = scf.forall (%i, %j) in (8, 128) shared_outs(%o = %cache) -> (tensor<8x32x128xf16>) {
    %x = tensor.extract %c[%c0, %j] : tensor<1x128xf16>
    %y = tensor.from_elements %x : tensor<1x1x1xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, %at, %j] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xf16> into tensor<8x32x128xf16>
    }
  }
  return %r : tensor<8x32x128xf16>
}

// CHECK-LABEL: func.func @of_each_row
// CHECK: tensor.concat

// The biases of Q, K and V, of which that of K is 0.
func.func @constants(%x: tensor<2x6xf16>) -> tensor<2x6xf16> {
  %q = arith.constant dense<[1.0, 2.0]> : tensor<2xf16>
  %k = arith.constant dense<0.0> : tensor<2xf16>
  %v = arith.constant dense<[3.0, 4.0]> : tensor<2xf16>
  %c = tensor.concat dim(0) %q, %k, %v : (tensor<2xf16>, tensor<2xf16>, tensor<2xf16>) -> tensor<6xf16>
  %e = tensor.empty() : tensor<2x6xf16>
  %r = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d1)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<2x6xf16>, tensor<6xf16>) outs(%e : tensor<2x6xf16>) {
  ^bb0(%in: f16, %bias: f16, %out: f16):
    %0 = arith.addf %in, %bias : f16
    linalg.yield %0 : f16
  } -> tensor<2x6xf16>
  return %r : tensor<2x6xf16>
}

// CHECK-LABEL: func.func @constants
// CHECK-NOT: tensor.concat
// CHECK: %[[ALL:.*]] = arith.constant dense<[1.0{{.*}}, 2.0{{.*}}, 0.0{{.*}}, 0.0{{.*}}, 3.0{{.*}}, 4.0{{.*}}]> : tensor<6xf16>
// CHECK-NOT: linalg.index
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[ALL]] :

// A concatenation of any size that is rounded to bytes in two steps: the operands are, as the bytes are fewer.
func.func @quantized(%x: tensor<?x6xf32>, %y: tensor<?x6xf32>, %n: index, %s: f32) -> tensor<?x6xi8> {
  %c = tensor.concat dim(0) %x, %y : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  %e = tensor.empty(%n) : tensor<?x6xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<?x6xf32>
  %f = tensor.empty(%n) : tensor<?x6xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<?x6xf32>) outs(%f : tensor<?x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %0 = math.roundeven %in : f32
    %1 = arith.fptosi %0 : f32 to i8
    linalg.yield %1 : i8
  } -> tensor<?x6xi8>
  return %q : tensor<?x6xi8>
}

// CHECK-LABEL: func.func @quantized
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<?x6xf32>)
// CHECK: %[[X:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<?x6xi8>)
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<?x6xf32>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<?x6xi8>)
// CHECK: %[[Q:.*]] = tensor.concat dim(0) %[[X]], %[[Y]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Q]]

// One that has another reader as well is rounded afterwards.
func.func @read_twice(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<8x6xi8>, tensor<8x6xf32>) {
  %c = tensor.concat dim(0) %x, %y : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %f = tensor.empty() : tensor<8x6xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<8x6xf32>) outs(%f : tensor<8x6xi8>) {
  ^bb0(%in: f32, %out: i8):
    %1 = arith.fptosi %in : f32 to i8
    linalg.yield %1 : i8
  } -> tensor<8x6xi8>
  return %q, %c : tensor<8x6xi8>, tensor<8x6xf32>
}

// CHECK-LABEL: func.func @read_twice
// CHECK: tensor.concat dim(0) %arg0, %arg1 : (tensor<4x6xf32>, tensor<4x6xf32>)
