// A gemm of two warpgroups (sm_90a): one fetches the tiles of four stages by TMA, and the other
// multiplies them. Sizes are multiples of 128, 128 and 64. `full` tells the consumers that TMA has
// filled a stage, `empty` tells the producer that all of them are done with it.
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!four = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>
!bytes = memref<?xi8, #gpu.address_space<workgroup>>
!a_tile = memref<128x64xf16, #gpu.address_space<workgroup>>
!b_half = memref<64x64xf16, #gpu.address_space<workgroup>>
!b_tile = memref<64x128xf16, #gpu.address_space<workgroup>>
!d_part = memref<128x128xf32, strided<[?, 1], offset: ?>>
!a_operand = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16, 3>>
!b_operand = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf16, 3>>

func.func @specialized(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %d: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %bytes = arith.constant 131072 : i32
  %m = memref.dim %d, %c0 : memref<?x?xf32>
  %n = memref.dim %d, %c1 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf16>
  %rows = arith.divui %m, %c128 : index
  %columns = arith.divui %n, %c128 : index
  %steps = arith.divui %k, %c64 : index
  %any_a = memref.cast %a : memref<?x?xf16> to memref<*xf16>
  %any_b = memref.cast %b : memref<?x?xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c128, %c64] : memref<*xf16> -> !a_map
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !b_map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %columns, %gy = %rows, %gz = %c1)
      threads(%t, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1)
      dynamic_shared_memory_size %bytes {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %k4 = arith.constant 4 : index
    %k64 = arith.constant 64 : index
    %k128 = arith.constant 128 : index
    %stage_bytes = arith.constant 32768 : index
    %b_at = arith.constant 16384 : index
    %half_at = arith.constant 24576 : index
    %ticks = arith.constant 10000000 : index
    %first_row = arith.muli %by, %k128 : index
    %first_column = arith.muli %bx, %k128 : index
    %next_column = arith.addi %first_column, %k64 : index
    %shared = gpu.dynamic_shared_memory : !bytes
    %full = nvgpu.mbarrier.create -> !four
    %empty = nvgpu.mbarrier.create -> !four
    %is_first = arith.cmpi eq, %t, %k0 : index
    scf.for %i = %k0 to %k4 step %k1 {
      nvgpu.mbarrier.init %full[%i], %k1, predicate = %is_first : !four
      nvgpu.mbarrier.init %empty[%i], %k128, predicate = %is_first : !four
    }
    nvvm.fence.mbarrier.init
    gpu.barrier
    %produces = arith.cmpi uge, %t, %k128 : index
    scf.if %produces {
      nvvm.setmaxregister decrease 40
      %one = arith.cmpi eq, %t, %k128 : index
      scf.if %one {
        scf.for %i = %k0 to %steps step %k1 {
          %stage = arith.remui %i, %k4 : index
          %round = arith.divui %i, %k4 : index
          %odd = arith.remui %round, %k2 : index
          // Of a fresh barrier, the phase before is done.
          %phase = arith.cmpi eq, %odd, %k0 : index
          nvgpu.mbarrier.try_wait.parity %empty[%stage], %phase, %ticks : !four
          %at = arith.muli %stage, %stage_bytes : index
          %bat = arith.addi %at, %b_at : index
          %hat = arith.addi %at, %half_at : index
          %depth = arith.muli %i, %k64 : index
          %as = memref.view %shared[%at][] : !bytes to !a_tile
          %b0 = memref.view %shared[%bat][] : !bytes to !b_half
          %b1 = memref.view %shared[%hat][] : !bytes to !b_half
          nvgpu.mbarrier.arrive.expect_tx %full[%stage], %stage_bytes : !four
          nvgpu.tma.async.load %a_map[%depth, %first_row], %full[%stage] to %as
            : !a_map, !four -> !a_tile
          nvgpu.tma.async.load %b_map[%first_column, %depth], %full[%stage] to %b0
            : !b_map, !four -> !b_half
          nvgpu.tma.async.load %b_map[%next_column, %depth], %full[%stage] to %b1
            : !b_map, !four -> !b_half
        }
      }
    } else {
      nvvm.setmaxregister increase 232
      %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
      %sums = scf.for %i = %k0 to %steps step %k1 iter_args(%acc = %zero) -> (!sums) {
        %stage = arith.remui %i, %k4 : index
        %round = arith.divui %i, %k4 : index
        %odd = arith.remui %round, %k2 : index
        %phase = arith.cmpi eq, %odd, %k1 : index
        nvgpu.mbarrier.try_wait.parity %full[%stage], %phase, %ticks : !four
        %at = arith.muli %stage, %stage_bytes : index
        %bat = arith.addi %at, %b_at : index
        %as = memref.view %shared[%at][] : !bytes to !a_tile
        %bs = memref.view %shared[%bat][] : !bytes to !b_tile
        %da = nvgpu.warpgroup.generate.descriptor %as, %a_map : !a_tile, !a_map -> !a_operand
        %db = nvgpu.warpgroup.generate.descriptor %bs, %b_map : !b_tile, !b_map -> !b_operand
        %next = nvgpu.warpgroup.mma %da, %db, %acc {transposeB}
        : !a_operand, !b_operand, !sums -> !sums
        // The product before this one is done.
        %has_before = arith.cmpi ugt, %i, %k0 : index
        scf.if %has_before {
          %before = arith.addi %i, %k3 : index
          %before_stage = arith.remui %before, %k4 : index
          %token = nvgpu.mbarrier.arrive %empty[%before_stage] : !four -> !nvgpu.mbarrier.token
        }
        scf.yield %next : !sums
      }
      nvvm.wgmma.wait.group.sync.aligned 0
      %part = memref.subview %d[%first_row, %first_column][128, 128][1, 1]
        : memref<?x?xf32> to !d_part
      nvgpu.warpgroup.mma.store %sums, %part : !sums to !d_part
    }
    gpu.terminator
  }
  return
}
