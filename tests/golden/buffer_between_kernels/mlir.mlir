module attributes {gpu.container_module} {
  func.func @sums(%arg0: memref<64xi32> {aotc.name = "x"}) -> (i32, memref<64xi32>) attributes {aotc.one_stream, aotc.workspace_bytes = 256 : i64, llvm.emit_c_interface} {
    %c256 = arith.constant 256 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %alloc = memref.alloc() : memref<64xi32>
    %0 = gpu.wait async
    %memref, %asyncToken = gpu.alloc async [%0] () : memref<64xi32>
    gpu.wait [%asyncToken]
    %memref_0 = gpu.alloc  host_shared () {aotc.result} : memref<64xi32>
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%arg0 : memref<64xi32>, %memref : memref<64xi32>)
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel_0 blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%memref : memref<64xi32>, %memref_0 : memref<64xi32>)
    %1 = gpu.wait async
    %2 = gpu.memcpy async [%1] %alloc, %memref : memref<64xi32>, memref<64xi32>
    gpu.wait [%2]
    call @aotc_wait() : () -> ()
    %3 = memref.load %alloc[%c7] : memref<64xi32>
    %4 = gpu.wait async
    %5 = gpu.dealloc async [%4] %memref : memref<64xi32>
    gpu.wait [%5]
    memref.dealloc %alloc : memref<64xi32>
    return %3, %memref_0 : i32, memref<64xi32>
  }
  gpu.module @buffer_between_kernels_kernels {
    gpu.func @sums_kernel(%arg0: memref<64xi32>, %arg1: memref<64xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c64 = arith.constant 64 : index
      %thread_id_x = gpu.thread_id x
      %0 = arith.cmpi slt, %thread_id_x, %c64 : index
      scf.if %0 {
        %1 = memref.load %arg0[%thread_id_x] : memref<64xi32>
        %2 = arith.addi %1, %1 : i32
        memref.store %2, %arg1[%thread_id_x] : memref<64xi32>
      }
      gpu.return
    }
    gpu.func @sums_kernel_0(%arg0: memref<64xi32>, %arg1: memref<64xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c64 = arith.constant 64 : index
      %c63 = arith.constant 63 : index
      %thread_id_x = gpu.thread_id x
      %0 = arith.cmpi slt, %thread_id_x, %c64 : index
      scf.if %0 {
        %1 = arith.subi %c63, %thread_id_x : index
        %2 = memref.load %arg0[%1] : memref<64xi32>
        memref.store %2, %arg1[%thread_id_x] : memref<64xi32>
      }
      gpu.return
    }
  }
  func.func private @aotc_wait()
}

