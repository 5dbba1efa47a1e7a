// RUN: aotc-expand-checks
func.func @f(%x: memref<?xf32>, %i: memref<1xi64>, %v: vector<4xi1>, %w: vector<4xi32>) -> vector<4xi32> {
  %c0 = arith.constant 0 : index
  %ones = arith.constant dense<1> : vector<4xi32>
  %size = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.load %i[%c0] : memref<1xi64>
  %row = arith.index_cast %a : i64 to index
  %is_row = arith.cmpi ult, %row, %size : index
  %checked = arith.select %is_row, %row, %c0 {aotc.check = "out of bounds"} : index
  %value = memref.load %x[%checked] : memref<?xf32>
  memref.store %value, %x[%c0] : memref<?xf32>
  %moved = arith.select %is_row, %row, %c0 {aotc.check = "moved"} : index
  %other = arith.select %is_row, %row, %c0 : index
  memref.store %value, %x[%other] : memref<?xf32>
  scf.for %k = %c0 to %size step %size {
    %again = arith.addi %moved, %moved : index
    memref.store %value, %x[%again] : memref<?xf32>
  }
  %checked_vector = arith.select %v, %w, %ones {aotc.check = "zero"} : vector<4xi1>, vector<4xi32>
  return %checked_vector : vector<4xi32>
}

// CHECK:      %[[IS:.*]] = arith.cmpi ult
// CHECK:      cf.assert %[[IS]], "out of bounds"
// CHECK-NEXT: %[[ROW:.*]] = arith.select %[[IS]], %{{.*}}, %{{.*}} : index
// CHECK-NEXT: memref.load %{{.*}}[%[[ROW]]]
// CHECK-NOT:  cf.assert
// CHECK:      scf.for
// CHECK-NEXT:   cf.assert %[[IS]], "moved"
// CHECK:      %[[ALL:.*]] = vector.reduction <and>, %arg2 : vector<4xi1> into i1
// CHECK-NEXT: cf.assert %[[ALL]], "zero"
