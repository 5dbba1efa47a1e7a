// Each construct of the mpi dialect, in as many processes as there are.
func.func private @printI64(i64)
func.func private @printNewline()
func.func @main(%argc: i32, %argv: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %tag = arith.constant 7 : i32
  %true = arith.constant true
  mpi.init
  %world = mpi.comm_world : !mpi.comm
  %rank = mpi.comm_rank(%world) : i32
  %size = mpi.comm_size(%world) : i32
  // With an argument, the last rank fails, and the others wait for it.
  %last = arith.subi %size, %one : i32
  %has_argument = arith.cmpi sgt, %argc, %one : i32
  %is_last = arith.cmpi eq, %rank, %last : i32
  %fails = arith.andi %has_argument, %is_last : i1
  %goes_on = arith.xori %fails, %true : i1
  cf.assert %goes_on, "the last rank fails"
  // Each sends its rank to the next one.
  %behind = arith.addi %rank, %one : i32
  %next = arith.remsi %behind, %size : i32
  %ahead = arith.addi %rank, %last : i32
  %previous = arith.remsi %ahead, %size : i32
  %sent = memref.alloc() : memref<1xi64>
  %got = memref.alloc() : memref<1xi64>
  %rank64 = arith.extsi %rank : i32 to i64
  memref.store %rank64, %sent[%c0] : memref<1xi64>
  %out = mpi.isend(%sent, %tag, %next, %world) : memref<1xi64>, i32, i32 -> !mpi.request
  %in = mpi.irecv(%got, %tag, %previous, %world) : memref<1xi64>, i32, i32 -> !mpi.request
  mpi.wait(%out) : !mpi.request
  mpi.wait(%in) : !mpi.request
  // Ranks of the same parity have a communicator, in which they add what they got.
  %two = arith.constant 2 : i32
  %color = arith.remsi %rank, %two : i32
  %part = mpi.comm_split(%world, %color, %rank) : !mpi.comm
  mpi.allreduce(%got, %got, MPI_SUM, %part) : memref<1xi64>, memref<1xi64>
  %count = arith.index_cast %size : i32 to index
  %all = memref.alloc(%count) : memref<?xi64>
  mpi.allgather(%got, %all, %world) : memref<1xi64>, memref<?xi64>
  // A rank that is not there: the status tells it.
  %status = mpi.send(%sent, %tag, %size, %world) : memref<1xi64>, i32, i32 -> !mpi.retval
  %is_wrong = mpi.retval_check %status = <MPI_ERR_RANK> : i1
  mpi.barrier(%world)
  %is_first = arith.cmpi eq, %rank, %zero : i32
  scf.if %is_first {
    scf.for %i = %c0 to %count step %c1 {
      %sum = memref.load %all[%i] : memref<?xi64>
      func.call @printI64(%sum) : (i64) -> ()
      func.call @printNewline() : () -> ()
    }
    %flag = arith.extui %is_wrong : i1 to i64
    func.call @printI64(%flag) : (i64) -> ()
    func.call @printNewline() : () -> ()
  }
  mpi.finalize
  return
}
