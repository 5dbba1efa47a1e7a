module attributes {gpu.container_module} {
  func.func @scale(%arg0: memref<?x100xf32> {aotc.name = "x"}, %arg1: memref<?x100xf32> {aotc.name = "out"}, %arg2: f32 {aotc.name = "by"}) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %c25 = arith.constant 25 : index
    %c65535 = arith.constant 65535 : index
    %c10 = arith.constant 10 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %dim = memref.dim %arg0, %c0 : memref<?x100xf32>
    %0 = arith.maxsi %dim, %c0 : index
    %1 = arith.ceildivsi %0, %c10 : index
    %2 = arith.maxsi %1, %c1 : index
    %3 = arith.minsi %2, %c65535 : index
    gpu.launch_func  @guarded_loop_kernels::@scale_kernel blocks in (%c1, %3, %c1) threads in (%c25, %c10, %c1)  args(%0 : index, %arg0 : memref<?x100xf32>, %arg2 : f32, %arg1 : memref<?x100xf32>)
    return
  }
  gpu.module @guarded_loop_kernels {
    gpu.func @scale_kernel(%arg0: index, %arg1: memref<?x100xf32>, %arg2: f32, %arg3: memref<?x100xf32>) kernel attributes {known_block_size = array<i32: 25, 10, 1>} {
      %c100 = arith.constant 100 : index
      %c0 = arith.constant 0 : index
      %c10 = arith.constant 10 : index
      %c25 = arith.constant 25 : index
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %grid_dim_y = gpu.grid_dim y
      %0 = arith.muli %block_id_y, %c10 : index
      %1 = arith.muli %grid_dim_y, %c10 : index
      scf.for %arg4 = %0 to %arg0 step %1 {
        %2 = arith.addi %arg4, %thread_id_y : index
        %3 = arith.cmpi slt, %2, %arg0 : index
        scf.if %3 {
          scf.for %arg5 = %c0 to %c100 step %c25 {
            %4 = arith.addi %arg5, %thread_id_x : index
            %5 = memref.load %arg1[%2, %4] : memref<?x100xf32>
            %6 = arith.mulf %5, %arg2 : f32
            memref.store %6, %arg3[%2, %4] : memref<?x100xf32>
          } {aotc.neighbours, aotc.points}
        }
      }
      gpu.return
    }
  }
}

