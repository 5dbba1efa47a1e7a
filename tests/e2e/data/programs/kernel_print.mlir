// A kernel says something on its way; the host says something before and behind it.
func.func private @printCString(!llvm.ptr)
llvm.mlir.global constant @before("before\0A\00")
llvm.mlir.global constant @behind("behind\0A\00")

func.func @main() {
  %c1 = arith.constant 1 : index
  %before = llvm.mlir.addressof @before : !llvm.ptr
  %behind = llvm.mlir.addressof @behind : !llvm.ptr
  call @printCString(%before) : (!llvm.ptr) -> ()
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %answer = arith.constant 42 : i32
    %half = arith.constant 0.5 : f64
    gpu.printf "in the kernel: %d and %f\n", %answer, %half : i32, f64
    gpu.terminator
  }
  call @printCString(%behind) : (!llvm.ptr) -> ()
  return
}
