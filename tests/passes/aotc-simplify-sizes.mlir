// RUN: aotc-simplify-sizes
func.func @f(%x: index) -> (index, index) {
  %c12 = arith.constant 12 : index
  %c5 = arith.constant 5 : index
  %product = affine.apply affine_map<()[s0] -> (s0 * 12)>()[%x]
  %whole = arith.divsi %product, %c12 : index
  %part = arith.divsi %product, %c5 : index
  return %whole, %part : index, index
}

// CHECK:     %[[PRODUCT:.*]] = affine.apply
// CHECK:     %[[PART:.*]] = arith.divsi %[[PRODUCT]], %c5
// CHECK:     return %arg0, %[[PART]]
