// A gpu.module written by hand, with static and dynamic workgroup memory and a barrier: the
// dynamic part is an external array, and there is no CPU form.
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @turn(%x: memref<32xf64>)
        workgroup(%kept: memref<32xf64, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %c31 = arith.constant 31 : index
      %t = gpu.thread_id x
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %moved = memref.view %bytes[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
             to memref<32xf64, #gpu.address_space<workgroup>>
      %v = memref.load %x[%t] : memref<32xf64>
      memref.store %v, %kept[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      gpu.barrier
      %other = arith.subi %c31, %t : index
      %w = memref.load %kept[%other] : memref<32xf64, #gpu.address_space<workgroup>>
      memref.store %w, %moved[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      %r = memref.load %moved[%t] : memref<32xf64, #gpu.address_space<workgroup>>
      memref.store %r, %x[%t] : memref<32xf64>
      gpu.return
    }
  }
  func.func @turn(%x: memref<32xf64>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %bytes = arith.constant 256 : i32
    gpu.launch_func @device::@turn blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%x : memref<32xf64>)
    return
  }
}
