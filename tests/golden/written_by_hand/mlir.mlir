module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @turn(%arg0: memref<32xf64>) workgroup(%arg1 : memref<32xf64, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c31 = arith.constant 31 : index
      %thread_id_x = gpu.thread_id x
      %0 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %view = memref.view %0[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf64, #gpu.address_space<workgroup>>
      %1 = memref.load %arg0[%thread_id_x] : memref<32xf64>
      memref.store %1, %arg1[%thread_id_x] : memref<32xf64, #gpu.address_space<workgroup>>
      gpu.barrier
      %2 = arith.subi %c31, %thread_id_x : index
      %3 = memref.load %arg1[%2] : memref<32xf64, #gpu.address_space<workgroup>>
      memref.store %3, %view[%thread_id_x] : memref<32xf64, #gpu.address_space<workgroup>>
      %4 = memref.load %view[%thread_id_x] : memref<32xf64, #gpu.address_space<workgroup>>
      memref.store %4, %arg0[%thread_id_x] : memref<32xf64>
      gpu.return
    }
  }
  func.func @turn(%arg0: memref<32xf64> {aotc.name = "x"}) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c256_i32 = arith.constant 256 : i32
    gpu.launch_func  @device::@turn blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)  dynamic_shared_memory_size %c256_i32 args(%arg0 : memref<32xf64>)
    return
  }
}

