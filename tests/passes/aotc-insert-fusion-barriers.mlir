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

// A pooling leaves the ReLU of a convolution to the convolution's epilogue, and computes that of an
// argument.
func.func @pooled(%x: tensor<16x33x33xf32>, %w: tensor<16x16x3x3xf32>, %other: tensor<16x31x31xf32>) -> (tensor<16x15x15xf32>, tensor<16x15x15xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x31x31xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x31x31xf32>) -> tensor<16x31x31xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(o, h, w, c, p, q) -> (c, h + p, w + q)>, affine_map<(o, h, w, c, p, q) -> (o, c, p, q)>, affine_map<(o, h, w, c, p, q) -> (o, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x33x33xf32>, tensor<16x16x3x3xf32>) outs(%zeros : tensor<16x31x31xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x31x31xf32>
  %relu = linalg.elementwise kind=#linalg.elementwise_kind<abs> ins(%y : tensor<16x31x31xf32>) outs(%empty : tensor<16x31x31xf32>) -> tensor<16x31x31xf32>
  %relu2 = linalg.elementwise kind=#linalg.elementwise_kind<abs> ins(%other : tensor<16x31x31xf32>) outs(%empty : tensor<16x31x31xf32>) -> tensor<16x31x31xf32>
  %small = tensor.empty() : tensor<16x15x15xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %first = linalg.fill ins(%zero : f32) outs(%small : tensor<16x15x15xf32>) -> tensor<16x15x15xf32>
  %p:2 = linalg.generic {
      indexing_maps = [affine_map<(c, h, w, p, q) -> (c, h * 2 + p, w * 2 + q)>, affine_map<(c, h, w, p, q) -> (c, h * 2 + p, w * 2 + q)>, affine_map<(c, h, w, p, q) -> (p, q)>, affine_map<(c, h, w, p, q) -> (c, h, w)>, affine_map<(c, h, w, p, q) -> (c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%relu, %relu2, %window : tensor<16x31x31xf32>, tensor<16x31x31xf32>, tensor<3x3xf32>) outs(%first, %first : tensor<16x15x15xf32>, tensor<16x15x15xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %max: f32, %max2: f32):
    %larger = arith.maximumf %max, %a : f32
    %larger2 = arith.maximumf %max2, %b : f32
    linalg.yield %larger, %larger2 : f32, f32
  } -> (tensor<16x15x15xf32>, tensor<16x15x15xf32>)
  return %p#0, %p#1 : tensor<16x15x15xf32>, tensor<16x15x15xf32>
}

// CHECK-LABEL: func.func @pooled
// CHECK:      %[[C:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK:      %[[R:.*]] = linalg.generic {{.*}} ins(%[[C]] :
// CHECK:      bufferization.dealloc_tensor %[[R]] {aotc.fusion_barrier}
// CHECK:      linalg.generic {{.*}} ins(%arg2 :
// CHECK-NOT:  bufferization.dealloc_tensor

// A reshape of the result of a convolution must not divide its loops.
func.func @reshaped(%x: tensor<16x33x33xf32>, %w: tensor<16x3x3xf32>) -> tensor<16x31x31x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x31x31xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x31x31xf32>) -> tensor<16x31x31xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(c, h, w, p, q) -> (c, h + p, w + q)>, affine_map<(c, h, w, p, q) -> (c, p, q)>, affine_map<(c, h, w, p, q) -> (c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x33x33xf32>, tensor<16x3x3xf32>) outs(%zeros : tensor<16x31x31xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x31x31xf32>
  %z = tensor.expand_shape %y [[0], [1], [2, 3]] output_shape [16, 31, 31, 1] : tensor<16x31x31xf32> into tensor<16x31x31x1xf32>
  return %z : tensor<16x31x31x1xf32>
}

// CHECK-LABEL: func.func @reshaped
// CHECK:      %[[Y:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK:      bufferization.dealloc_tensor %[[Y]] {aotc.fusion_barrier}
// CHECK-NEXT: tensor.expand_shape %[[Y]]


// A walk down a tree must not be repeated for each column of the table that its leaf is looked up in. A single gather may be.
func.func @walked(%roots: tensor<8xindex>, %next: tensor<64xindex>, %table: tensor<64x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
  %empty = tensor.empty() : tensor<8xindex>
  %leaves = linalg.generic {
      indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
      ins(%roots : tensor<8xindex>) outs(%empty : tensor<8xindex>) {
  ^bb0(%root: index, %out: index):
    %1 = tensor.extract %next[%root] : tensor<64xindex>
    %2 = tensor.extract %next[%1] : tensor<64xindex>
    %3 = tensor.extract %next[%2] : tensor<64xindex>
    linalg.yield %3 : index
  } -> tensor<8xindex>
  %deeper = linalg.generic {
      indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
      ins(%leaves : tensor<8xindex>) outs(%empty : tensor<8xindex>) {
  ^bb0(%leaf: index, %out: index):
    %1 = tensor.extract %next[%leaf] : tensor<64xindex>
    %2 = tensor.extract %next[%1] : tensor<64xindex>
    linalg.yield %2 : index
  } -> tensor<8xindex>
  %many = tensor.empty() : tensor<8x3xf32>
  %found = linalg.generic {
      indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%deeper : tensor<8xindex>) outs(%many : tensor<8x3xf32>) {
  ^bb0(%leaf: index, %out: f32):
    %column = linalg.index 1 : index
    %value = tensor.extract %table[%leaf, %column] : tensor<64x3xf32>
    linalg.yield %value : f32
  } -> tensor<8x3xf32>
  %other = linalg.generic {
      indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%leaves : tensor<8xindex>) outs(%many : tensor<8x3xf32>) {
  ^bb0(%leaf: index, %out: f32):
    %column = linalg.index 1 : index
    %value = tensor.extract %table[%leaf, %column] : tensor<64x3xf32>
    linalg.yield %value : f32
  } -> tensor<8x3xf32>
  return %found, %other : tensor<8x3xf32>, tensor<8x3xf32>
}

// CHECK-LABEL: func.func @walked
// CHECK:      linalg.generic {{.*}} ins(%arg0 :
// CHECK-NOT:  bufferization.dealloc_tensor
// CHECK:      %[[DEEPER:.*]] = linalg.generic
// CHECK:      bufferization.dealloc_tensor %[[DEEPER]] {aotc.fusion_barrier}
// CHECK-NOT:  bufferization.dealloc_tensor


// All experts multiply the same activations, whose broadcast a kernel of batches reads in place.
func.func @experts(%x: tensor<128x64xf32>, %w: tensor<4x64x96xf32>, %zeros: tensor<4x128x96xf32>) -> tensor<4x128x96xf32> {
  %empty = tensor.empty() : tensor<128x64xf32>
  %act = linalg.generic {
      indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<128x64xf32>) outs(%empty : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<128x64xf32>
  %many = tensor.empty() : tensor<4x128x64xf32>
  %same = linalg.generic {
      indexing_maps = [affine_map<(e, m, k) -> (m, k)>, affine_map<(e, m, k) -> (e, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%act : tensor<128x64xf32>) outs(%many : tensor<4x128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x128x64xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(e, m, n, k) -> (e, m, k)>, affine_map<(e, m, n, k) -> (e, k, n)>, affine_map<(e, m, n, k) -> (e, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%same, %w : tensor<4x128x64xf32>, tensor<4x64x96xf32>) outs(%zeros : tensor<4x128x96xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x128x96xf32>
  return %y : tensor<4x128x96xf32>
}

// CHECK-LABEL: func.func @experts
// CHECK:      %[[ACT:.*]] = linalg.generic {{.*}} ins(%arg0 :
// CHECK:      bufferization.dealloc_tensor %[[ACT]] {aotc.fusion_barrier}
// CHECK-NEXT: tensor.empty


// The bucket of a distance is computed by a logarithm once, not for each head of the table that it is looked up in.
func.func @buckets(%distances: tensor<?x?xf32>, %table: tensor<32x4xf32>, %rows: index, %columns: index) -> tensor<?x?x4xf32> {
  %numbers = tensor.empty(%rows, %columns) : tensor<?x?xi64>
  %bucket = linalg.generic {
      indexing_maps = [affine_map<(q, k) -> (q, k)>, affine_map<(q, k) -> (q, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%distances : tensor<?x?xf32>) outs(%numbers : tensor<?x?xi64>) {
  ^bb0(%distance: f32, %out: i64):
    %log = math.log %distance : f32
    %number = arith.fptosi %log : f32 to i64
    linalg.yield %number : i64
  } -> tensor<?x?xi64>
  %empty = tensor.empty(%rows, %columns) : tensor<?x?x4xf32>
  %bias = linalg.generic {
      indexing_maps = [affine_map<(q, k, h) -> (q, k)>, affine_map<(q, k, h) -> (q, k, h)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bucket : tensor<?x?xi64>) outs(%empty : tensor<?x?x4xf32>) {
  ^bb0(%number: i64, %out: f32):
    %row = arith.index_cast %number : i64 to index
    %head = linalg.index 2 : index
    %value = tensor.extract %table[%row, %head] : tensor<32x4xf32>
    linalg.yield %value : f32
  } -> tensor<?x?x4xf32>
  return %bias : tensor<?x?x4xf32>
}

// CHECK-LABEL: func.func @buckets
// CHECK:      %[[BUCKET:.*]] = linalg.generic {{.*}} ins(%arg0 :
// CHECK:      bufferization.dealloc_tensor %[[BUCKET]] {aotc.fusion_barrier}
// CHECK:      tensor.extract


// A permutation of a sum of a product and of a part of a tensor, which is no computation: nothing is kept apart.
func.func @permuted(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %other: tensor<200x128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %part = tensor.extract_slice %other[3, 0] [128, 128] [1, 1] : tensor<200x128xf32> to tensor<128x128xf32>
  %product = linalg.matmul ins(%x, %w : tensor<128x128xf32>, tensor<128x128xf32>) outs(%zeros : tensor<128x128xf32>) -> tensor<128x128xf32>
  %sum = linalg.add ins(%part, %product : tensor<128x128xf32>, tensor<128x128xf32>) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %y = linalg.transpose ins(%sum : tensor<128x128xf32>) outs(%empty : tensor<128x128xf32>) permutation = [1, 0]
  return %y : tensor<128x128xf32>
}

// CHECK-LABEL: func.func @permuted
// CHECK-NOT:  bufferization.dealloc_tensor
// CHECK:      return
