// RUN: aotc-widen-accumulators

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// The products are f32, too: each sum is rounded once.
func.func @product(%a: memref<4x100xf16>, %b: memref<100x?xf16>, %c: memref<4x?xf16>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x100xf16>, memref<100x?xf16>) outs(%c : memref<4x?xf16>) {
    ^bb0(%x: f16, %y: f16, %z: f16):
      %p = arith.mulf %x, %y fastmath<contract> : f16
      %s = arith.addf %z, %p fastmath<contract> : f16
      linalg.yield %s : f16
  }
  return
}

// CHECK-LABEL: func.func @product(
// CHECK:         %[[SIZE:.*]] = memref.dim %arg2,
// CHECK:         %[[WIDE:.*]] = memref.alloc(%[[SIZE]]) : memref<4x?xf32>
// CHECK:         linalg.generic {{.*}} ins(%arg2 : memref<4x?xf16>) outs(%[[WIDE]] : memref<4x?xf32>)
// CHECK:           arith.extf
// CHECK:         linalg.generic {{.*}} ins(%arg0, %arg1 : memref<4x100xf16>, memref<100x?xf16>) outs(%[[WIDE]] : memref<4x?xf32>)
// CHECK:           arith.mulf {{.*}} fastmath<contract> : f32
// CHECK:           arith.addf {{.*}} fastmath<contract> : f32
// CHECK:         linalg.generic {{.*}} ins(%[[WIDE]] : memref<4x?xf32>) outs(%arg2 : memref<4x?xf16>)
// CHECK:           arith.truncf
// CHECK:         memref.dealloc %[[WIDE]]

// One output is a sum of bf16. The maximum stays: it is exact. So does the sum of f32.
#row = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> (i)>
func.func @several(%x: memref<4x100xbf16>, %sum: memref<4xbf16>, %most: memref<4xbf16>, %wide: memref<4xf32>) {
  linalg.generic {indexing_maps = [#row, #one, #one, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xbf16>) outs(%sum, %most, %wide : memref<4xbf16>, memref<4xbf16>, memref<4xf32>) {
    ^bb0(%e: bf16, %s: bf16, %m: bf16, %w: f32):
      %sums = arith.addf %e, %s : bf16
      %largest = arith.maximumf %e, %m : bf16
      %ext = arith.extf %e : bf16 to f32
      %total = arith.addf %ext, %w : f32
      linalg.yield %sums, %largest, %total : bf16, bf16, f32
  }
  return
}

// CHECK-LABEL: func.func @several(
// CHECK:         %[[WIDE:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         outs(%[[WIDE]], %arg2, %arg3 : memref<4xf32>, memref<4xbf16>, memref<4xf32>)
// CHECK:           arith.maximumf {{.*}} : bf16
// CHECK:         arith.truncf

// Not a sum: the accumulator is scaled in each step.
func.func @scaled(%x: memref<4x100xf16>, %y: memref<4xf16>) {
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf16>) outs(%y : memref<4xf16>) {
    ^bb0(%e: f16, %s: f16):
      %twice = arith.addf %s, %s : f16
      %sum = arith.addf %twice, %e : f16
      linalg.yield %sum : f16
  }
  return
}

// CHECK-LABEL: func.func @scaled(
// CHECK-NOT:     f32

// A difference, a fused product and a sum of two terms in each step.
func.func @steps(%x: memref<4x100xf16>, %y: memref<4xf16>) {
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf16>) outs(%y : memref<4xf16>) {
    ^bb0(%e: f16, %s: f16):
      %0 = arith.subf %s, %e : f16
      %1 = math.fma %e, %e, %0 : f16
      %2 = arith.addf %e, %1 : f16
      linalg.yield %2 : f16
  }
  return
}

// CHECK-LABEL: func.func @steps(
// CHECK:         ^bb0(%[[E:.*]]: f16, %[[S:.*]]: f32):
// CHECK:           %[[D:.*]] = arith.subf %[[S]], %{{.*}} : f32
// CHECK:           %[[F:.*]] = math.fma %{{.*}}, %{{.*}}, %[[D]] : f32
// CHECK:           %[[A:.*]] = arith.addf %{{.*}}, %[[F]] : f32
// CHECK-NEXT:      linalg.yield %[[A]] : f32

func.func @bytes(%x: memref<4x100xf8E4M3FN>, %y: memref<4xf8E4M3FN>) {
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf8E4M3FN>) outs(%y : memref<4xf8E4M3FN>) {
    ^bb0(%e: f8E4M3FN, %s: f8E4M3FN):
      %0 = arith.addf %s, %e : f8E4M3FN
      linalg.yield %0 : f8E4M3FN
  }
  return
}

// CHECK-LABEL: func.func @bytes(
// CHECK:           arith.addf {{.*}} : f32
// CHECK:           arith.truncf {{.*}} : f32 to f8E4M3FN

// Not a sum: its sign changes in each step.
func.func @alternating(%x: memref<4x100xf16>, %y: memref<4xf16>) {
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x100xf16>) outs(%y : memref<4xf16>) {
    ^bb0(%e: f16, %s: f16):
      %0 = arith.subf %e, %s : f16
      linalg.yield %0 : f16
  }
  return
}

// CHECK-LABEL: func.func @alternating(
// CHECK-NOT:     f32
