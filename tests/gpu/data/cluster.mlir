// Clusters (from sm_90 on): their ids and sizes, their barrier, their blocks' memory, 16 blocks.
module attributes {gpu.container_module} {
  // Clusters of 2 x 2: each block says which of them it is in, how many there are, its place.
  func.func @places(%x: memref<4x4x6xi32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @clusters::@places clusters in (%c2, %c2, %c1)
        blocks in (%c4, %c4, %c1) threads in (%c32, %c1, %c1) args(%x: memref<4x4x6xi32>)
    return
  }
  gpu.module @clusters {
    gpu.func @places(%x: memref<4x4x6xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %cluster_x = gpu.cluster_id x
      %cluster_y = gpu.cluster_id y
      %clusters_x = gpu.cluster_dim x
      %place_x = gpu.cluster_block_id x
      %place_y = gpu.cluster_block_id y
      %size_x = gpu.cluster_dim_blocks x
      %0 = arith.index_cast %cluster_x : index to i32
      %1 = arith.index_cast %cluster_y : index to i32
      %2 = arith.index_cast %clusters_x : index to i32
      %3 = arith.index_cast %place_x : index to i32
      %4 = arith.index_cast %place_y : index to i32
      %5 = arith.index_cast %size_x : index to i32
      memref.store %0, %x[%by, %bx, %c0] : memref<4x4x6xi32>
      memref.store %1, %x[%by, %bx, %c1] : memref<4x4x6xi32>
      memref.store %2, %x[%by, %bx, %c2] : memref<4x4x6xi32>
      memref.store %3, %x[%by, %bx, %c3] : memref<4x4x6xi32>
      memref.store %4, %x[%by, %bx, %c4] : memref<4x4x6xi32>
      memref.store %5, %x[%by, %bx, %c5] : memref<4x4x6xi32>
      gpu.return
    }
  }

  // Each thread puts a number into its block's memory, and takes that of the next block of its
  // cluster, of four, from there. No block ends before the others have read.
  func.func @around(%x: memref<8x32xi32>, %y: memref<8x32xi32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %start = gpu.wait async
    %done = gpu.launch async [%start]
        clusters(%cx, %cy, %cz) in (%ncx = %c4, %ncy = %c1, %ncz = %c1)
        blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
        workgroup(%mine : memref<32xi32, #gpu.address_space<workgroup>>) {
      %one = arith.constant 1 : index
      %four = arith.constant 4 : index
      %v = memref.load %x[%bx, %t] : memref<8x32xi32>
      memref.store %v, %mine[%t] : memref<32xi32, #gpu.address_space<workgroup>>
      nvvm.cluster.arrive
      nvvm.cluster.wait
      %place = gpu.cluster_block_id x
      %after = arith.addi %place, %one : index
      %next = arith.remui %after, %four : index
      %rank = arith.index_cast %next : index to i32
      %start_of_mine = memref.extract_aligned_pointer_as_index %mine
        : memref<32xi32, #gpu.address_space<workgroup>> -> index
      %address = arith.index_cast %start_of_mine : index to i64
      %pointer = llvm.inttoptr %address : i64 to !llvm.ptr<3>
      %theirs = nvvm.mapa %pointer, %rank : !llvm.ptr<3> -> !llvm.ptr<7>
      %i = arith.index_cast %t : index to i64
      %element = llvm.getelementptr %theirs[%i] : (!llvm.ptr<7>, i64) -> !llvm.ptr<7>, i32
      %w = llvm.load %element : !llvm.ptr<7> -> i32
      memref.store %w, %y[%bx, %t] : memref<8x32xi32>
      nvvm.cluster.arrive
      nvvm.cluster.wait
      gpu.terminator
    }
    gpu.wait [%done]
    return
  }

  // More blocks than every GPU with clusters takes: the runtime allows what this one does.
  func.func @sixteen(%x: memref<32xi32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    gpu.launch clusters(%cx, %cy, %cz) in (%ncx = %c16, %ncy = %c1, %ncz = %c1)
        blocks(%bx, %by, %bz) in (%gx = %c32, %gy = %c1, %gz = %c1)
        threads(%t, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %place = gpu.cluster_block_id x
      %v = arith.index_cast %place : index to i32
      memref.store %v, %x[%bx] : memref<32xi32>
      gpu.terminator
    }
    return
  }
}
