// Clusters of two blocks (from sm_90 on): each block says its place in its cluster.
module attributes {gpu.container_module} {
  gpu.module @clusters {
    gpu.func @places(%x: memref<8x2xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %b = gpu.block_id x
      %place = gpu.cluster_block_id x
      %size = gpu.cluster_dim_blocks x
      %place_value = arith.index_cast %place : index to i32
      %size_value = arith.index_cast %size : index to i32
      memref.store %place_value, %x[%b, %c0] : memref<8x2xi32>
      memref.store %size_value, %x[%b, %c1] : memref<8x2xi32>
      gpu.return
    }
  }
  func.func @places(%x: memref<8x2xi32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @clusters::@places clusters in (%c2, %c1, %c1)
        blocks in (%c8, %c1, %c1) threads in (%c32, %c1, %c1) args(%x: memref<8x2xi32>)
    return
  }
}
