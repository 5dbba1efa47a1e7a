// Static and dynamic workgroup memory in one kernel. Each block writes all of both before the
// barrier and reads other threads' parts behind it: memory that overlaps would show. The odd
// byte buffer makes the static part end where nothing wider is aligned.
module attributes {gpu.container_module} {
  gpu.module @blocks {
    gpu.func @mirror(%x: memref<?xf64>, %y: memref<?xf64>)
        workgroup(%bytes: memref<129xi8, #gpu.address_space<workgroup>>,
                  %fixed: memref<128xf64, #gpu.address_space<workgroup>>) kernel {
      %c0 = arith.constant 0 : index
      %last = arith.constant 127 : index
      %thousand = arith.constant 1000.0 : f64
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %width = gpu.block_dim x
      %first = arith.muli %b, %width : index
      %i = arith.addi %first, %t : index
      %dynamic = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %more = memref.view %dynamic[%c0][] : memref<?xi8, #gpu.address_space<workgroup>>
          to memref<128xf64, #gpu.address_space<workgroup>>
      %v = memref.load %x[%i] : memref<?xf64>
      %scaled = arith.mulf %v, %thousand : f64
      %byte = arith.index_cast %t : index to i8
      memref.store %byte, %bytes[%t] : memref<129xi8, #gpu.address_space<workgroup>>
      memref.store %v, %fixed[%t] : memref<128xf64, #gpu.address_space<workgroup>>
      memref.store %scaled, %more[%t] : memref<128xf64, #gpu.address_space<workgroup>>
      gpu.barrier
      %other = arith.subi %last, %t : index
      %one = memref.load %fixed[%other] : memref<128xf64, #gpu.address_space<workgroup>>
      %two = memref.load %more[%other] : memref<128xf64, #gpu.address_space<workgroup>>
      %three = memref.load %bytes[%other] : memref<129xi8, #gpu.address_space<workgroup>>
      %three_wide = arith.sitofp %three : i8 to f64
      %sum = arith.addf %one, %two : f64
      %all = arith.addf %sum, %three_wide : f64
      memref.store %all, %y[%i] : memref<?xf64>
      gpu.return
    }
  }
  // `bytes` of dynamic memory: 1024 are used. From 48 KiB on, a kernel must be allowed to.
  func.func @mirror(%x: memref<?xf64>, %y: memref<?xf64>, %blocks: index, %bytes: i32)
      attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %threads = arith.constant 128 : index
    gpu.launch_func @blocks::@mirror blocks in (%blocks, %c1, %c1)
        threads in (%threads, %c1, %c1) dynamic_shared_memory_size %bytes
        args(%x: memref<?xf64>, %y: memref<?xf64>)
    return
  }
}
