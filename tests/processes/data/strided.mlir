// Columns of matrices: what lies apart in memory.
!column = memref<3xf16, strided<[2], offset: ?>>
func.func @exchange(%x: memref<3x2xf16>, %s: memref<3x2xf32>, %all: memref<2x3x2xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %tag = arith.constant 7 : i32
  %world = mpi.comm_world : !mpi.comm
  %rank = mpi.comm_rank(%world) : i32
  %size = mpi.comm_size(%world) : i32
  %behind = arith.addi %rank, %one : i32
  %next = arith.remsi %behind, %size : i32
  %first = memref.subview %x[0, %c0] [3, 1] [1, 1] : memref<3x2xf16> to !column
  %second = memref.subview %x[0, %c1] [3, 1] [1, 1] : memref<3x2xf16> to !column
  // The first column becomes the other process's second one.
  %out = mpi.isend(%first, %tag, %next, %world) : !column, i32, i32 -> !mpi.request
  %in = mpi.irecv(%second, %tag, %next, %world) : !column, i32, i32 -> !mpi.request
  mpi.wait(%out) : !mpi.request
  mpi.wait(%in) : !mpi.request
  %gathered = memref.subview %all[0, 0, 1] [2, 3, 1] [1, 1, 1]
    : memref<2x3x2xf16> to memref<2x3xf16, strided<[6, 2], offset: 1>>
  mpi.allgather(%first, %gathered, %world)
    : !column, memref<2x3xf16, strided<[6, 2], offset: 1>>
  %sums = memref.subview %s[0, 1] [3, 1] [1, 1]
    : memref<3x2xf32> to memref<3xf32, strided<[2], offset: 1>>
  mpi.allreduce(%sums, %sums, MPI_SUM, %world)
    : memref<3xf32, strided<[2], offset: 1>>, memref<3xf32, strided<[2], offset: 1>>
  return
}
