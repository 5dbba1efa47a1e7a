// Tasks of the async dialect: two copy to the GPU, side by side; one waits for both and adds; one
// copies back. The memory goes from task to task.
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 7 : index
  %two = arith.constant 2 : i32
  %forty = arith.constant 40 : i32
  %x = memref.alloc() : memref<7xi32>
  %y = memref.alloc() : memref<7xi32>
  linalg.fill ins(%two : i32) outs(%x : memref<7xi32>)
  linalg.fill ins(%forty : i32) outs(%y : memref<7xi32>)

  %x_copied, %x_there = async.execute -> !async.value<memref<7xi32>> {
    %there = gpu.alloc () : memref<7xi32>
    gpu.memcpy %there, %x : memref<7xi32>, memref<7xi32>
    async.yield %there : memref<7xi32>
  }
  %y_copied, %y_there = async.execute -> !async.value<memref<7xi32>> {
    %there = gpu.alloc () : memref<7xi32>
    gpu.memcpy %there, %y : memref<7xi32>, memref<7xi32>
    async.yield %there : memref<7xi32>
  }
  %added = async.execute [%x_copied, %y_copied]
      (%x_there as %a: !async.value<memref<7xi32>>, %y_there as %b: !async.value<memref<7xi32>>) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %left = memref.load %a[%tx] : memref<7xi32>
      %right = memref.load %b[%tx] : memref<7xi32>
      %sum = arith.addi %left, %right : i32
      memref.store %sum, %b[%tx] : memref<7xi32>
      gpu.terminator
    }
    async.yield
  }
  %copied_back = async.execute [%added]
      (%x_there as %a: !async.value<memref<7xi32>>, %y_there as %b: !async.value<memref<7xi32>>) {
    gpu.memcpy %y, %b : memref<7xi32>, memref<7xi32>
    gpu.dealloc %a : memref<7xi32>
    gpu.dealloc %b : memref<7xi32>
    async.yield
  }
  async.await %copied_back : !async.token
  %any = memref.cast %y : memref<7xi32> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %x : memref<7xi32>
  memref.dealloc %y : memref<7xi32>
  return
}
