// Memory that a task allocates as any host code would, and that a kernel of another task writes: it is
// put where both reach it.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 9 : index
  %made, %x = async.execute -> !async.value<memref<9xf32>> {
    %m = memref.alloc() : memref<9xf32>
    async.yield %m : memref<9xf32>
  }
  %t = async.execute [%made] (%x as %a: !async.value<memref<9xf32>>) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %v = arith.constant 2.5 : f32
      memref.store %v, %a[%tx] : memref<9xf32>
      gpu.terminator
    }
    async.yield
  }
  async.await %t : !async.token
  %y = async.await %x : !async.value<memref<9xf32>>
  %any = memref.cast %y : memref<9xf32> to memref<*xf32>
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  memref.dealloc %y : memref<9xf32>
  return
}
