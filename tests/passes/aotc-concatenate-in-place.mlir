// RUN: aotc-concatenate-in-place
#id = affine_map<(d0, d1) -> (d0, d1)>

// Steps of a recurrent layer: the second one reads the first, and both are made in the result.
func.func @steps(%x: tensor<4x16xf32>) -> tensor<2x4x16xf32> {
  %e = tensor.empty() : tensor<4x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  %a1 = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 4, 16] : tensor<4x16xf32> into tensor<1x4x16xf32>
  %f = tensor.empty() : tensor<4x16xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x16xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  %b1 = tensor.expand_shape %b [[0, 1], [2]] output_shape [1, 4, 16] : tensor<4x16xf32> into tensor<1x4x16xf32>
  %c = tensor.concat dim(0) %a1, %b1 : (tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<2x4x16xf32>
  return %c : tensor<2x4x16xf32>
}

// CHECK-LABEL: func.func @steps
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x4x16xf32>
// CHECK: %[[P:.*]] = tensor.extract_slice %[[E]][0, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<2x4x16xf32> to tensor<4x16xf32>
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%[[P]] : tensor<4x16xf32>)
// CHECK: %[[WITH_A:.*]] = tensor.insert_slice %[[A]] into %[[E]][0, 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[WITH_A]][1, 0, 0] [1, 4, 16] [1, 1, 1]
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<4x16xf32>) outs(%[[Q]] : tensor<4x16xf32>)
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %[[B]] into %[[WITH_A]][1, 0, 0]
// CHECK: return %[[BOTH]]

// A piece that is an argument is copied, and one that is there twice is made once.
func.func @some(%x: tensor<1x16xf32>) -> tensor<3x16xf32> {
  %e = tensor.empty() : tensor<1x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x16xf32>) outs(%e : tensor<1x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<1x16xf32>
  %c = tensor.concat dim(0) %x, %a, %a : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<3x16xf32>
  return %c : tensor<3x16xf32>
}

// CHECK-LABEL: func.func @some
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3x16xf32>
// CHECK: %[[P:.*]] = tensor.extract_slice %[[E]][1, 0]
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%[[P]] : tensor<1x16xf32>)
// CHECK: %[[ONE:.*]] = tensor.insert_slice %[[A]] into %[[E]][1, 0]
// CHECK: %[[TWO:.*]] = tensor.insert_slice %arg0 into %[[ONE]][0, 0]
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[A]] into %[[TWO]][2, 0]
// CHECK: return %[[ALL]]

// Pieces that are not contiguous, or would begin between vectors, are put together later.
func.func @apart(%x: tensor<4x16xf32>) -> (tensor<4x32xf32>, tensor<2x12xf32>) {
  %e = tensor.empty() : tensor<4x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x16xf32>
  %c = tensor.concat dim(1) %a, %x : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x32xf32>
  %s = tensor.extract_slice %x[0, 0] [1, 12] [1, 1] : tensor<4x16xf32> to tensor<1x12xf32>
  %f = tensor.empty() : tensor<1x12xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<1x12xf32>) outs(%f : tensor<1x12xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<1x12xf32>
  %d = tensor.concat dim(0) %b, %s : (tensor<1x12xf32>, tensor<1x12xf32>) -> tensor<2x12xf32>
  return %c, %d : tensor<4x32xf32>, tensor<2x12xf32>
}

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-2: tensor.concat

// A piece of no elements begins where the next one does, which is copied there.
func.func @none(%x: tensor<0x16xf32>, %y: tensor<1x16xf32>) -> tensor<1x16xf32> {
  %e = tensor.empty() : tensor<0x16xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<0x16xf32>) outs(%e : tensor<0x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<0x16xf32>
  %c = tensor.concat dim(0) %a, %y : (tensor<0x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
  return %c : tensor<1x16xf32>
}

// CHECK-LABEL: func.func @none
// CHECK: tensor.concat

// A slice can leave dimensions of 1 out, and has no others: a row that was made as a column is
// copied.
func.func @turned(%x: tensor<16x1xf32>, %y: tensor<1x16xf32>) -> tensor<2x16xf32> {
  %e = tensor.empty() : tensor<16x1xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x1xf32>) outs(%e : tensor<16x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<16x1xf32>
  %v = tensor.collapse_shape %a [[0, 1]] : tensor<16x1xf32> into tensor<16xf32>
  %r = tensor.expand_shape %v [[0, 1]] output_shape [1, 16] : tensor<16xf32> into tensor<1x16xf32>
  %c = tensor.concat dim(0) %y, %r : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<2x16xf32>
  return %c : tensor<2x16xf32>
}

// CHECK-LABEL: func.func @turned
// CHECK: tensor.concat

#im = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// Channels of an image of any size: 16 channels end at a vector's alignment.
func.func @channels(%x: tensor<16x?x?xf32>, %y: tensor<1x8x?x?xf32>, %h: index, %w: index) -> tensor<?x?xf32> {
  %e = tensor.empty(%h, %w) : tensor<16x?x?xf32>
  %a = linalg.generic {indexing_maps = [#im, #im], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<16x?x?xf32>) outs(%e : tensor<16x?x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<16x?x?xf32>
  %b = tensor.expand_shape %a [[0, 1], [2], [3]] output_shape [1, 16, %h, %w] : tensor<16x?x?xf32> into tensor<1x16x?x?xf32>
  %c = tensor.concat dim(1) %b, %y : (tensor<1x16x?x?xf32>, tensor<1x8x?x?xf32>) -> tensor<1x24x?x?xf32>
  %s = tensor.extract_slice %c[0, 3, 0, 0] [1, 1, %h, %w] [1, 1, 1, 1] : tensor<1x24x?x?xf32> to tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @channels
// CHECK: %[[E:.*]] = tensor.empty(%arg2, %arg3) : tensor<1x24x?x?xf32>
// CHECK: %[[P:.*]] = tensor.extract_slice %[[E]][0, 0, 0, 0] [1, 16, %arg2, %arg3] [1, 1, 1, 1] : tensor<1x24x?x?xf32> to tensor<16x?x?xf32>
// CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%[[P]] : tensor<16x?x?xf32>)
// CHECK: %[[ONE:.*]] = tensor.insert_slice %[[A]] into %[[E]][0, 0, 0, 0]
// CHECK: tensor.insert_slice %arg1 into %[[ONE]][0, 16, 0, 0] [1, 8, %arg2, %arg3]

// Sizes that nothing says are equal are not before the concatenation, which may be checked there:
// the second operand is copied.
func.func @unequal(%x: tensor<16x?xf32>, %y: tensor<16x?xf32>, %h: index, %w: index) -> f32 {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%h) : tensor<16x?xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x?xf32>) outs(%e : tensor<16x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<16x?xf32>
  %f = tensor.empty(%w) : tensor<16x?xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<16x?xf32>) outs(%f : tensor<16x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<16x?xf32>
  %c = tensor.concat dim(0) %a, %b : (tensor<16x?xf32>, tensor<16x?xf32>) -> tensor<32x?xf32>
  %r = tensor.extract %c[%c0, %c0] : tensor<32x?xf32>
  return %r : f32
}

// CHECK-LABEL: func.func @unequal
// CHECK: %[[E:.*]] = tensor.empty(%arg2) : tensor<32x?xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<16x?xf32>)
// CHECK: %[[F:.*]] = tensor.empty(%arg3) : tensor<16x?xf32>
// CHECK: %[[B:.*]] = linalg.generic {{.*}} outs(%[[F]] : tensor<16x?xf32>)
// CHECK: tensor.insert_slice %[[B]] into %{{.*}}[16, 0] [16, %arg2]

// A result of the function, a slice between vectors, sizes that were changed by reshapes, and an
// unknown number of channels are put together later.
func.func @others(%x: tensor<16x?xf32>, %h: index, %w: index, %v: index) -> (tensor<32x?xf32>, f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%h) : tensor<16x?xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x?xf32>) outs(%e : tensor<16x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<16x?xf32>
  %returned = tensor.concat dim(0) %a, %a : (tensor<16x?xf32>, tensor<16x?xf32>) -> tensor<32x?xf32>
  %row = tensor.extract_slice %x[0, 0] [1, %h] [1, 1] : tensor<16x?xf32> to tensor<1x?xf32>
  %between = tensor.concat dim(0) %row, %a : (tensor<1x?xf32>, tensor<16x?xf32>) -> tensor<17x?xf32>
  %p = tensor.extract %between[%c0, %c0] : tensor<17x?xf32>
  %g = tensor.empty(%v, %w) : tensor<?x?xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%g : tensor<?x?xf32>) {
  ^bb0(%out: f32):
    %0 = arith.constant 1.0 : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  %flat = tensor.collapse_shape %b [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %turned = tensor.expand_shape %flat [[0, 1, 2]] output_shape [1, %w, %v] : tensor<?xf32> into tensor<1x?x?xf32>
  %reshaped = tensor.concat dim(0) %turned, %turned : (tensor<1x?x?xf32>, tensor<1x?x?xf32>) -> tensor<2x?x?xf32>
  %q = tensor.extract %reshaped[%c0, %c0, %c0] : tensor<2x?x?xf32>
  %unknown = tensor.concat dim(0) %b, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = tensor.extract %unknown[%c0, %c0] : tensor<?x?xf32>
  return %returned, %p, %q, %r : tensor<32x?xf32>, f32, f32, f32
}

// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: tensor.concat

// Halves of one tensor that follow each other are the tensor, which is written in place; a half that
// does not follow the other one stays a slice.
func.func @halves(%x: tensor<32x?x?xf32>, %h: index, %w: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%h, %w) : tensor<32x?x?xf32>
  %a = linalg.generic {indexing_maps = [#im, #im], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<32x?x?xf32>) outs(%e : tensor<32x?x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<32x?x?xf32>
  %image = tensor.expand_shape %a [[0, 1], [2], [3]] output_shape [1, 32, %h, %w] : tensor<32x?x?xf32> into tensor<1x32x?x?xf32>
  %s = tensor.extract_slice %image[0, 0, 0, 0] [1, 16, %h, %w] [1, 1, 1, 1] : tensor<1x32x?x?xf32> to tensor<16x?x?xf32>
  %first = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [1, 16, %h, %w] : tensor<16x?x?xf32> into tensor<1x16x?x?xf32>
  %second = tensor.extract_slice %image[0, 16, 0, 0] [1, 16, %h, %w] [1, 1, 1, 1] : tensor<1x32x?x?xf32> to tensor<1x16x?x?xf32>
  %one = tensor.concat dim(1) %second, %first, %second, %first : (tensor<1x16x?x?xf32>, tensor<1x16x?x?xf32>, tensor<1x16x?x?xf32>, tensor<1x16x?x?xf32>) -> tensor<1x64x?x?xf32>
  %p = tensor.extract %one[%c0, %c0, %c0, %c0] : tensor<1x64x?x?xf32>
  %other = tensor.concat dim(1) %first, %first : (tensor<1x16x?x?xf32>, tensor<1x16x?x?xf32>) -> tensor<1x32x?x?xf32>
  %q = tensor.extract %other[%c0, %c0, %c0, %c0] : tensor<1x32x?x?xf32>
  return %p, %q : f32, f32
}

// CHECK-LABEL: func.func @halves
// CHECK: %[[E:.*]] = tensor.empty(%arg1, %arg2) : tensor<1x64x?x?xf32>
// CHECK: %[[P:.*]] = tensor.extract_slice %[[E]][0, 16, 0, 0] [1, 32, %arg1, %arg2]
// CHECK: linalg.generic {{.*}} outs(%[[P]] : tensor<32x?x?xf32>)
// CHECK: %[[SECOND:.*]] = tensor.extract_slice {{.*}} to tensor<1x16x?x?xf32>
// CHECK: tensor.insert_slice %[[SECOND]] into %{{.*}}[0, 0, 0, 0] [1, 16, %arg1, %arg2]
// CHECK: tensor.concat dim(1)
