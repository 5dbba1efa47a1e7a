// Kernels on two streams: both halves of a buffer are written at the same time, and a third kernel
// waits for both.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %all = arith.constant 8 : index
  %x = gpu.alloc host_shared () : memref<8xf32>
  %left = gpu.wait async
  %right = gpu.wait async
  %left_done = gpu.launch async [%left]
      blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %value = arith.constant 0.25 : f32
    memref.store %value, %x[%tx] : memref<8xf32>
    gpu.terminator
  }
  %right_done = gpu.launch async [%right]
      blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %four = arith.constant 4 : index
    %value = arith.constant -3.0 : f32
    %place = arith.addi %tx, %four : index
    memref.store %value, %x[%place] : memref<8xf32>
    gpu.terminator
  }
  %both = gpu.wait async [%left_done, %right_done]
  %doubled = gpu.launch async [%both]
      blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %all, %sy = %c1, %sz = %c1) {
    %old = memref.load %x[%tx] : memref<8xf32>
    %new = arith.addf %old, %old : f32
    memref.store %new, %x[%tx] : memref<8xf32>
    gpu.terminator
  }
  gpu.wait [%doubled]
  %any = memref.cast %x : memref<8xf32> to memref<*xf32>
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  gpu.dealloc %x : memref<8xf32>
  return
}
