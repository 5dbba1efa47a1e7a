// A task whose assertions depend on the number of the program's arguments: none fails in a function
// that it calls from a loop, two fail in a branch of its own.
func.func private @printI64(i64)
func.func private @printNewline()
func.func @checked(%x: i64) -> i64 attributes {no_inline} {
  %zero = arith.constant 0 : i64
  %holds = arith.cmpi ne, %x, %zero : i64
  cf.assert %holds, "x is not zero"
  %ten = arith.constant 10 : i64
  %y = arith.divsi %ten, %x : i64
  return %y : i64
}
func.func @main(%count: i32, %values: !llvm.ptr) -> i32 {
  %one = arith.constant 1 : i32
  %n = arith.subi %count, %one : i32
  %x = arith.extsi %n : i32 to i64
  %done, %value = async.execute -> !async.value<i64> {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i64
    %five = arith.constant 5 : i64
    %is_small = arith.cmpi slt, %x, %five : i64
    scf.if %is_small {
      %two = arith.constant 2 : i64
      %holds = arith.cmpi ne, %x, %two : i64
      cf.assert %holds, "x is not two"
    }
    %s = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %z) -> i64 {
      %y = func.call @checked(%x) : (i64) -> i64
      %b = arith.addi %a, %y : i64
      scf.yield %b : i64
    }
    async.yield %s : i64
  }
  %y = async.await %value : !async.value<i64>
  call @printI64(%y) : (i64) -> ()
  call @printNewline() : () -> ()
  %code = arith.constant 0 : i32
  return %code : i32
}
