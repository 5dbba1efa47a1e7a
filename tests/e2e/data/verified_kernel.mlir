// A kernel written by hand, which writes one element for each thread.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @count(%x: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %value = arith.index_cast %i : index to i32
      memref.store %value, %x[%i] : memref<?xi32>
      gpu.return
    }
  }
  func.func @count(%x: memref<?xi32>, %blocks: index) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@count blocks in (%blocks, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%x : memref<?xi32>)
    return
  }
}
