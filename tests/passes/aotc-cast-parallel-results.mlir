// RUN: aotc-cast-parallel-results,int-range-optimizations,canonicalize
// Both loops begin with zeros, and end with something else.
func.func @rows(%n: index, %x: tensor<4xi64>) -> tensor<4xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zeros = arith.constant dense<0> : tensor<4xi64>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zeros) -> (tensor<4xi64>) {
    %new = scf.forall (%j) in (4) shared_outs(%out = %old) -> (tensor<4xi64>) {
      %part = tensor.extract_slice %x[%j] [1] [1] : tensor<4xi64> to tensor<1xi64>
      scf.forall.in_parallel {
        tensor.parallel_insert_slice %part into %out[%j] [1] [1]
          : tensor<1xi64> into tensor<4xi64>
      }
    }
    scf.yield %new : tensor<4xi64>
  }
  return %last : tensor<4xi64>
}

func.func @sum(%n: index, %x: memref<4xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%old = %zero) -> (i64) {
    %new = scf.parallel (%j) = (%c0) to (%c4) step (%c1) init (%old) -> i64 {
      %element = memref.load %x[%j] : memref<4xi64>
      scf.reduce(%element : i64) {
      ^bb0(%left: i64, %right: i64):
        %both = arith.addi %left, %right : i64
        scf.reduce.return %both : i64
      }
    }
    scf.yield %new : i64
  }
  return %last : i64
}

// CHECK-LABEL: func.func @rows
// CHECK: %[[LAST:.*]] = scf.for
// CHECK-NOT: unrealized_conversion_cast
// CHECK: return %[[LAST]]
// CHECK-LABEL: func.func @sum
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: return %[[SUM]]
