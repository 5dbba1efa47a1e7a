// RUN: aotc-slice-elementwise,canonicalize
#state = affine_map<(b, c, t, n) -> (c, n)>
#step = affine_map<(b, c, t, n) -> (b, c, t)>
#all = affine_map<(b, c, t, n) -> (b, c, t, n)>
#row = affine_map<(b, c, n) -> (b, c, n)>
#matrix = affine_map<(i, j) -> (i, j)>
#vector = affine_map<(i) -> (i)>

// Each step computes its own part of what is scaled and exponentiated.
func.func @steps(%a: tensor<4x16xf32>, %dt: tensor<2x4x2xf32>, %h: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  %empty = tensor.empty() : tensor<2x4x2x16xf32>
  %scaled = linalg.generic {indexing_maps = [#state, #step, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a, %dt : tensor<4x16xf32>, tensor<2x4x2xf32>) outs(%empty : tensor<2x4x2x16xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<2x4x2x16xf32>
  %decay = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scaled : tensor<2x4x2x16xf32>) outs(%empty : tensor<2x4x2x16xf32>) {
  ^bb0(%x: f32, %old: f32):
    %z = math.exp %x : f32
    linalg.yield %z : f32
  } -> tensor<2x4x2x16xf32>
  %state_empty = tensor.empty() : tensor<2x4x16xf32>
  %d0 = tensor.extract_slice %decay[0, 0, 0, 0] [2, 4, 1, 16] [1, 1, 1, 1] : tensor<2x4x2x16xf32> to tensor<2x4x16xf32>
  %h0 = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d0, %h : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%state_empty : tensor<2x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<2x4x16xf32>
  %d1 = tensor.extract_slice %decay[0, 0, 1, 0] [2, 4, 1, 16] [1, 1, 1, 1] : tensor<2x4x2x16xf32> to tensor<2x4x16xf32>
  %h1 = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d1, %h0 : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%state_empty : tensor<2x4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %old: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<2x4x16xf32>
  return %h1 : tensor<2x4x16xf32>
}

// CHECK-LABEL: @steps
// CHECK: %[[T0:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [2, 4, 1] [1, 1, 1] : tensor<2x4x2xf32> to tensor<2x4xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T0]] : tensor<4x16xf32>, tensor<2x4xf32>)
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: %[[T1:.*]] = tensor.extract_slice %{{.*}}[0, 0, 1] [2, 4, 1] [1, 1, 1] : tensor<2x4x2xf32> to tensor<2x4xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T1]] : tensor<4x16xf32>, tensor<2x4xf32>)
// CHECK: math.exp
// CHECK: arith.addf
// CHECK-NOT: tensor<2x4x2x16xf32>

// Slices that overlap would be computed twice.
func.func @overlapping(%x: tensor<3x8xf32>) -> tensor<2x8xf32> {
  %empty = tensor.empty() : tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %a = tensor.extract_slice %all[0, 0] [2, 8] [1, 1] : tensor<3x8xf32> to tensor<2x8xf32>
  %b = tensor.extract_slice %all[1, 0] [2, 8] [1, 1] : tensor<3x8xf32> to tensor<2x8xf32>
  %sum_empty = tensor.empty() : tensor<2x8xf32>
  %sum = linalg.generic {indexing_maps = [#matrix, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<2x8xf32>, tensor<2x8xf32>) outs(%sum_empty : tensor<2x8xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %z = arith.addf %p, %q : f32
    linalg.yield %z : f32
  } -> tensor<2x8xf32>
  return %sum : tensor<2x8xf32>
}

// CHECK-LABEL: @overlapping
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp

// A loop would compute its slice in each iteration.
func.func @in_a_loop(%x: tensor<2x8xf32>, %count: index, %start: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %empty = tensor.empty() : tensor<2x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<2x8xf32>) outs(%empty : tensor<2x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<2x8xf32>
  %end = scf.for %i = %zero to %count step %one iter_args(%sum = %start) -> tensor<8xf32> {
    %a = tensor.extract_slice %all[0, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
    %next_empty = tensor.empty() : tensor<8xf32>
    %next = linalg.generic {indexing_maps = [#vector, #vector, #vector], iterator_types = ["parallel"]}
        ins(%a, %sum : tensor<8xf32>, tensor<8xf32>) outs(%next_empty : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %old: f32):
      %z = arith.addf %p, %q : f32
      linalg.yield %z : f32
    } -> tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  return %end : tensor<8xf32>
}

// CHECK-LABEL: @in_a_loop
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: tensor.extract_slice {{.*}} : tensor<2x8xf32> to tensor<8xf32>
// CHECK-NOT: math.exp

// Memory may be written until a slice is read.
func.func @memory(%x: tensor<3x8xf32>, %factor: memref<1xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %limit = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %y = memref.load %factor[%zero] : memref<1xf32>
    %z = arith.mulf %in, %y : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  memref.store %limit, %factor[%zero] : memref<1xf32>
  %a = tensor.extract_slice %all[1, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<8xf32>
  %next_empty = tensor.empty() : tensor<8xf32>
  %next = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%next_empty : tensor<8xf32>) {
  ^bb0(%p: f32, %old: f32):
    %z = math.exp %p : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %next : tensor<8xf32>
}

// CHECK-LABEL: @memory
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: memref.load

// What is asserted of all elements is asserted of those that no slice has.
func.func @assertion(%x: tensor<3x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %limit = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %is_small = arith.cmpf olt, %in, %limit : f32
    cf.assert %is_small, "an element is too large"
    %z = arith.addf %in, %in : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %a = tensor.extract_slice %all[1, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<8xf32>
  %next_empty = tensor.empty() : tensor<8xf32>
  %next = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%next_empty : tensor<8xf32>) {
  ^bb0(%p: f32, %old: f32):
    %z = math.exp %p : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %next : tensor<8xf32>
}

// CHECK-LABEL: @assertion
// CHECK: cf.assert
// CHECK: tensor.extract_slice {{.*}} : tensor<3x8xf32> to tensor<8xf32>

// A check becomes an assertion.
func.func @check(%x: tensor<3x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0 : index
  %limit = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %is_small = arith.cmpf olt, %in, %limit : f32
    %z = arith.select %is_small, %in, %limit {aotc.check = "an element is too large"} : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %a = tensor.extract_slice %all[1, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<8xf32>
  %next_empty = tensor.empty() : tensor<8xf32>
  %next = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%next_empty : tensor<8xf32>) {
  ^bb0(%p: f32, %old: f32):
    %z = math.exp %p : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %next : tensor<8xf32>
}

// CHECK-LABEL: @check
// CHECK: arith.select {{.*}}aotc.check
// CHECK: tensor.extract_slice {{.*}} : tensor<3x8xf32> to tensor<8xf32>

// Each row of the reader would compute the slice again.
func.func @broadcast(%x: tensor<3x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %a = tensor.extract_slice %all[1, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<8xf32>
  %sum_empty = tensor.empty() : tensor<4x8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%a, %y : tensor<8xf32>, tensor<4x8xf32>) outs(%sum_empty : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %old: f32):
    %z = arith.addf %p, %q : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  return %sum : tensor<4x8xf32>
}

// CHECK-LABEL: @broadcast
// CHECK: math.exp
// CHECK: tensor.extract_slice {{.*}} : tensor<3x8xf32> to tensor<8xf32>

// Each reader would have a copy of a long computation.
func.func @long(%x: tensor<3x8xf32>) -> tensor<8xf32> {
  %empty = tensor.empty() : tensor<3x8xf32>
  %first = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %z = math.tanh %in : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %all = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%first : tensor<3x8xf32>) outs(%empty : tensor<3x8xf32>) {
  ^bb0(%in: f32, %old: f32):
    %u = math.erf %in : f32
    %z = math.exp %u : f32
    linalg.yield %z : f32
  } -> tensor<3x8xf32>
  %a = tensor.extract_slice %all[1, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<8xf32>
  %next_empty = tensor.empty() : tensor<8xf32>
  %next = linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%next_empty : tensor<8xf32>) {
  ^bb0(%p: f32, %old: f32):
    %z = math.absf %p : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  return %next : tensor<8xf32>
}

// CHECK-LABEL: @long
// CHECK: math.tanh
// CHECK: tensor.extract_slice {{.*}} : tensor<3x8xf32> to tensor<8xf32>
// CHECK: math.erf
