module attributes {gpu.container_module} {
  func.func @scale(%arg0: memref<?x100xf32> {aotc.name = "x"}, %arg1: memref<?x100xf32> {aotc.name = "out"}, %arg2: f32 {aotc.name = "by"}) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %c65535 = arith.constant 65535 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %dim = memref.dim %arg0, %c0 : memref<?x100xf32>
    %0 = arith.maxsi %dim, %c0 : index
    %1 = arith.ceildivsi %0, %c8 : index
    %2 = arith.maxsi %1, %c1 : index
    %3 = arith.minsi %2, %c65535 : index
    gpu.launch_func  @guarded_loop_kernels::@scale_kernel blocks in (%c4, %3, %c1) threads in (%c32, %c8, %c1)  args(%arg0 : memref<?x100xf32>, %arg2 : f32, %arg1 : memref<?x100xf32>, %0 : index)
    return
  }
  gpu.module @guarded_loop_kernels {
    gpu.func @scale_kernel(%arg0: memref<?x100xf32>, %arg1: f32, %arg2: memref<?x100xf32>, %arg3: index) kernel attributes {known_block_size = array<i32: 32, 8, 1>} {
      %c100 = arith.constant 100 : index
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %grid_dim_y = gpu.grid_dim y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.muli %grid_dim_y, %c8 : index
      scf.for %arg4 = %1 to %arg3 step %2 {
        %3 = arith.muli %block_id_x, %c32 : index
        %4 = arith.addi %3, %thread_id_x : index
        %5 = arith.cmpi slt, %4, %c100 : index
        scf.if %5 {
          %6 = memref.load %arg0[%arg4, %4] : memref<?x100xf32>
          %7 = arith.mulf %6, %arg1 : f32
          memref.store %7, %arg2[%arg4, %4] : memref<?x100xf32>
        }
      }
      gpu.return
    }
  }
}

