// Kernels that reverse 64 numbers in dynamic shared memory, of which the launch says the size.
#workgroup = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
gpu.module @device {
  memref.global "private" @none : memref<0xf32, #workgroup> {alignment = 16 : i64}
  memref.global "private" @fixed : memref<64xf32, #workgroup>
  gpu.func @view(%x: memref<64xf32>, %start: index) kernel {
    %c63 = arith.constant 63 : index
    %i = gpu.thread_id x
    %j = arith.subi %c63, %i : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #workgroup>
    %tile = memref.view %memory[%start][] : memref<?xi8, #workgroup> to memref<64xf32, #workgroup>
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %tile[%j] : memref<64xf32, #workgroup>
    gpu.barrier
    %b = memref.load %tile[%i] : memref<64xf32, #workgroup>
    memref.store %b, %x[%i] : memref<64xf32>
    gpu.return
  }
  gpu.func @global(%x: memref<64xf32>) kernel {
    %c63 = arith.constant 63 : index
    %i = gpu.thread_id x
    %j = arith.subi %c63, %i : index
    %memory = memref.get_global @none : memref<0xf32, #workgroup>
    %tile = memref.reinterpret_cast %memory to offset: [20000], sizes: [64], strides: [1]
      : memref<0xf32, #workgroup> to memref<64xf32, strided<[1], offset: 20000>, #workgroup>
    %fixed = memref.get_global @fixed : memref<64xf32, #workgroup>
    %a = memref.load %x[%i] : memref<64xf32>
    memref.store %a, %fixed[%i] : memref<64xf32, #workgroup>
    memref.store %a, %tile[%j] : memref<64xf32, strided<[1], offset: 20000>, #workgroup>
    gpu.barrier
    %b = memref.load %tile[%i] : memref<64xf32, strided<[1], offset: 20000>, #workgroup>
    memref.store %b, %x[%i] : memref<64xf32>
    gpu.return
  }
}
func.func @view(%x: memref<64xf32>, %bytes: i32) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %start = arith.constant 80000 : index
  gpu.launch_func @device::@view blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%x : memref<64xf32>, %start : index)
  return
}
func.func @global(%x: memref<64xf32>, %bytes: i32) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @device::@global blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%x : memref<64xf32>)
  return
}
}
