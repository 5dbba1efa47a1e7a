// TMA reads a buffer of the entry's own, which the host writes between the launches: each must see
// what was written before it, through the one descriptor.
!descriptor = !nvgpu.tensormap.descriptor<tensor = memref<16x16xf32, #gpu.address_space<workgroup>>,
                                          swizzle = none, l2promo = none, oob = zero,
                                          interleave = none>
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!tile = memref<16x16xf32, #gpu.address_space<workgroup>>

// %y is the sum of what %x was in each round: i + j * round.
func.func @tma_memory(%rounds: index, %y: memref<16x16xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %x = memref.alloc() : memref<16x16xf32>
  %any_x = memref.cast %x : memref<16x16xf32> to memref<*xf32>
  %of_x = nvgpu.tma.create.descriptor %any_x box[%c16, %c16] : memref<*xf32> -> !descriptor
  scf.for %round = %c0 to %rounds step %c1 {
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %scaled = arith.muli %j, %round : index
        %sum = arith.addi %i, %scaled : index
        %whole = arith.index_cast %sum : index to i32
        %v = arith.sitofp %whole : i32 to f32
        memref.store %v, %x[%i, %j] : memref<16x16xf32>
      }
    }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%t, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1)
               workgroup(%tile : !tile) {
      %k0 = arith.constant 0 : index
      %k1 = arith.constant 1 : index
      %k16 = arith.constant 16 : index
      %bytes = arith.constant 1024 : index
      %ticks = arith.constant 1000000 : index
      %phase = arith.constant false
      %is_first = arith.cmpi eq, %t, %k0 : index
      %full = nvgpu.mbarrier.create -> !barrier
      nvgpu.mbarrier.init %full[%k0], %k1, predicate = %is_first : !barrier
      nvvm.fence.mbarrier.init
      gpu.barrier
      nvgpu.mbarrier.arrive.expect_tx %full[%k0], %bytes, predicate = %is_first : !barrier
      nvgpu.tma.async.load %of_x[%k0, %k0], %full[%k0] to %tile, predicate = %is_first
        : !descriptor, !barrier -> !tile
      nvgpu.mbarrier.try_wait.parity %full[%k0], %phase, %ticks : !barrier
      %row = arith.divui %t, %k16 : index
      %column = arith.remui %t, %k16 : index
      %now = memref.load %tile[%row, %column] : !tile
      %before = memref.load %y[%row, %column] : memref<16x16xf32>
      %after = arith.addf %before, %now : f32
      memref.store %after, %y[%row, %column] : memref<16x16xf32>
      gpu.terminator
    }
  }
  memref.dealloc %x : memref<16x16xf32>
  return
}
