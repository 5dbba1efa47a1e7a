// The program's arguments, behind its name; how many they are is its exit code.
func.func private @printCString(!llvm.ptr)
func.func private @printNewline()

func.func @main(%count: i32, %values: !llvm.ptr) -> i32 {
  %one = arith.constant 1 : i32
  scf.for %i = %one to %count step %one : i32 {
    %place = llvm.getelementptr %values[%i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
    %value = llvm.load %place : !llvm.ptr -> !llvm.ptr
    func.call @printCString(%value) : (!llvm.ptr) -> ()
    func.call @printNewline() : () -> ()
  }
  %given = arith.subi %count, %one : i32
  return %given : i32
}
