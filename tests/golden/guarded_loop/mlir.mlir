module attributes {gpu.container_module} {
  func.func @scale(%arg0: memref<?x100xf32> {aotc.name = "x"}, %arg1: memref<?x100xf32> {aotc.name = "out"}, %arg2: f32 {aotc.name = "by"}) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %c8 = arith.constant 8 : index
    %c65535 = arith.constant 65535 : index
    %c32 = arith.constant 32 : index
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %dim = memref.dim %arg0, %c0 : memref<?x100xf32>
    %0 = arith.maxsi %dim, %c0 : index
    %1 = arith.ceildivsi %0, %c32 : index
    %2 = arith.maxsi %1, %c1 : index
    %3 = arith.minsi %2, %c65535 : index
    gpu.launch_func  @guarded_loop_kernels::@scale_kernel blocks in (%c4, %3, %c1) threads in (%c32, %c8, %c1)  args(%0 : index, %arg0 : memref<?x100xf32>, %arg2 : f32, %arg1 : memref<?x100xf32>)
    return
  }
  gpu.module @guarded_loop_kernels {
    gpu.func @scale_kernel(%arg0: index, %arg1: memref<?x100xf32>, %arg2: f32, %arg3: memref<?x100xf32>) kernel attributes {known_block_size = array<i32: 32, 8, 1>} {
      %c99 = arith.constant 99 : index
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %grid_dim_y = gpu.grid_dim y
      %0 = arith.muli %block_id_y, %c32 : index
      %1 = arith.muli %grid_dim_y, %c32 : index
      scf.for %arg4 = %0 to %arg0 step %1 {
        scf.for %arg5 = %c0 to %c32 step %c8 {
          %2 = arith.addi %arg4, %arg5 : index
          %3 = arith.addi %2, %thread_id_y : index
          %4 = arith.subi %arg0, %2 : index
          %5 = arith.cmpi slt, %thread_id_y, %4 : index
          scf.if %5 {
            %6 = arith.muli %block_id_x, %c32 : index
            %7 = arith.addi %6, %thread_id_x : index
            %8 = arith.cmpi slt, %7, %c99 : index
            scf.if %8 {
              %9 = memref.load %arg1[%3, %7] : memref<?x100xf32>
              %10 = arith.mulf %9, %arg2 : f32
              memref.store %10, %arg3[%3, %7] : memref<?x100xf32>
            }
          }
        } {aotc.points}
      } {aotc.of_block}
      gpu.return
    }
  }
}

