// RUN: aotc-expand-mpi
func.func @f(%m: memref<4xf32>, %n: memref<8xf32>, %p: memref<?x2xi64>,
    %i: memref<4xindex>) -> (i1, i32) {
  %c = mpi.comm_world : !mpi.comm
  %s, %rank = mpi.comm_rank(%c) : !mpi.retval, i32
  %part = mpi.comm_split(%c, %rank, %rank) : !mpi.comm
  mpi.send(%m, %rank, %rank, %part) : memref<4xf32>, i32, i32
  %r = mpi.recv(%p, %rank, %rank, %c) : memref<?x2xi64>, i32, i32 -> !mpi.retval
  %q = mpi.isend(%m, %rank, %rank, %c) : memref<4xf32>, i32, i32 -> !mpi.request
  mpi.wait(%q) : !mpi.request
  mpi.allgather(%m, %n, %c) : memref<4xf32>, memref<8xf32>
  mpi.allreduce(%m, %m, MPI_SUM, %c) : memref<4xf32>, memref<4xf32>
  mpi.send(%i, %rank, %rank, %c) : memref<4xindex>, i32, i32
  mpi.send(%p, %rank, %rank, %c) : memref<?x2xi64>, i32, i32
  %b = mpi.retval_check %r = <MPI_ERR_TAG> : i1
  return %b, %rank : i1, i32
}

// CHECK-LABEL: func.func @f
// CHECK:         %[[WORLD:.*]] = arith.constant 257 : i64
// CHECK:         %[[RANK:.*]] = call @aotc_mpi_comm_rank(%[[WORLD]]) : (i64) -> i32
// CHECK:         %[[PART:.*]] = call @aotc_mpi_comm_split(%[[WORLD]], %[[RANK]], %[[RANK]])
// CHECK:         %[[M:.*]] = memref.cast %{{.*}} : memref<4xf32> to memref<*xf32>
// CHECK:         %[[CHECKED:.*]] = arith.constant true
// CHECK:         call @aotc_mpi_send_f32(%[[M]], %[[RANK]], %[[RANK]], %[[PART]], %[[CHECKED]])
// CHECK:         %[[KEPT:.*]] = arith.constant false
// CHECK:         %[[STATUS:.*]] = call @aotc_mpi_recv_i64({{.*}}, %[[KEPT]])
// CHECK:         %[[REQUEST:.*]] = call @aotc_mpi_isend_f32({{.*}} -> i64
// CHECK:         call @aotc_mpi_wait(%[[REQUEST]]
// CHECK:         call @aotc_mpi_allgather_f32(
// CHECK:         %[[SUM:.*]] = arith.constant 3 : i32
// CHECK:         call @aotc_mpi_allreduce_f32({{.*}}, {{.*}}, %[[SUM]], %[[WORLD]]
// CHECK:         call @aotc_mpi_send_index(
// CHECK:         call @aotc_mpi_send_i64(
// CHECK:         %[[CLASS:.*]] = call @aotc_mpi_error_class(%[[STATUS]])
// CHECK:         %[[TAG:.*]] = arith.constant 4 : i32
// CHECK:         %[[IS:.*]] = arith.cmpi eq, %[[CLASS]], %[[TAG]]
// CHECK:         return %[[IS]], %[[RANK]]
// CHECK:       func.func private @aotc_mpi_send_f32(memref<*xf32>, i32, i32, i64, i1) -> i32
