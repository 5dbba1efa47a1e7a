// A hundred tasks on the host, awaited as one group; values that tasks wait for and pass on; and a
// function that is a task itself.
func.func private @printI64(i64)
func.func private @printNewline()

async.func @triple(%x: i64) -> !async.value<i64> {
  %three = arith.constant 3 : i64
  %result = arith.muli %x, %three : i64
  return %result : i64
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant 100 : index
  %zero = arith.constant 0 : i64
  %squares = memref.alloc() : memref<100xi64>
  %group = async.create_group %count : !async.group
  scf.for %i = %c0 to %count step %c1 {
    %token = async.execute {
      %value = arith.index_cast %i : index to i64
      %square = arith.muli %value, %value : i64
      memref.store %square, %squares[%i] : memref<100xi64>
      async.yield
    }
    %rank = async.add_to_group %token, %group : !async.token
  }
  async.await_all %group
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%partial = %zero) -> (i64) {
    %square = memref.load %squares[%i] : memref<100xi64>
    %next = arith.addi %partial, %square : i64
    scf.yield %next : i64
  }
  call @printI64(%sum) : (i64) -> ()
  call @printNewline() : () -> ()

  %first, %one = async.execute -> !async.value<i64> {
    %value = arith.constant 1 : i64
    async.yield %value : i64
  }
  %second, %two = async.execute [%first] (%one as %known: !async.value<i64>)
      -> !async.value<i64> {
    %value = arith.addi %known, %known : i64
    async.yield %value : i64
  }
  %result = async.await %two : !async.value<i64>
  %tripled = async.call @triple(%result) : (i64) -> !async.value<i64>
  %last = async.await %tripled : !async.value<i64>
  call @printI64(%last) : (i64) -> ()
  call @printNewline() : () -> ()
  memref.dealloc %squares : memref<100xi64>
  return
}
