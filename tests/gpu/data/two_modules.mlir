// Two gpu.modules whose kernels have one name, and a gpu.launch beside them.
module attributes {gpu.container_module} {
  gpu.module @first {
    gpu.func @fill(%x: memref<64xi32>) kernel {
      %v = arith.constant 11 : i32
      %i = gpu.thread_id x
      memref.store %v, %x[%i] : memref<64xi32>
      gpu.return
    }
  }
  gpu.module @second {
    gpu.func @fill(%x: memref<64xi32>) kernel {
      %v = arith.constant 22 : i32
      %i = gpu.thread_id x
      memref.store %v, %x[%i] : memref<64xi32>
      gpu.return
    }
  }
  func.func @fill_three(%x: memref<64xi32>, %y: memref<64xi32>, %z: memref<64xi32>)
      attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @first::@fill blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x: memref<64xi32>)
    gpu.launch_func @second::@fill blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%y: memref<64xi32>)
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
      %v = arith.constant 33 : i32
      memref.store %v, %z[%tx] : memref<64xi32>
      gpu.terminator
    }
    return
  }
}
