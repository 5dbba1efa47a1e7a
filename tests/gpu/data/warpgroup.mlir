// Gemms of one warpgroup as people write them (sm_90a): `predicated`, where an elected thread of
// the first warp fetches all there is by TMA, guarded by predicates, and `specialized`, where a
// warpgroup of its own produces the tiles of four stages and another consumes them.
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!two = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!four = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>
!bytes = memref<?xi8, #gpu.address_space<workgroup>>
!a_tile = memref<128x64xf16, #gpu.address_space<workgroup>>
!b_half = memref<64x64xf16, #gpu.address_space<workgroup>>
!b_tile = memref<64x128xf16, #gpu.address_space<workgroup>>
!a_stages = memref<2x128x64xf16, #gpu.address_space<workgroup>>
!b_stages = memref<2x64x128xf16, #gpu.address_space<workgroup>>
!a_stage = memref<128x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
!b_stage = memref<64x128xf16, strided<[128, 1], offset: ?>, #gpu.address_space<workgroup>>
!d_tile = memref<128x128xf32, 3>
!d_part = memref<128x128xf32, strided<[?, 1], offset: ?>>
!a_operand = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16, 3>>
!b_operand = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf16, 3>>

memref.global "private" @result : memref<0xf32, 3> {alignment = 16 : i64}

func.func @predicated(%a: memref<128x128xf16>, %b: memref<128x128xf16>, %d: memref<128x128xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 65536 : i32
  %start = gpu.wait async
  %a_there, %t0 = gpu.alloc async [%start] () : memref<128x128xf16>
  %b_there, %t1 = gpu.alloc async [%t0] () : memref<128x128xf16>
  %d_there, %t2 = gpu.alloc async [%t1] () : memref<128x128xf32>
  %t3 = gpu.memcpy async [%t2] %a_there, %a : memref<128x128xf16>, memref<128x128xf16>
  %t4 = gpu.memcpy async [%t3] %b_there, %b : memref<128x128xf16>, memref<128x128xf16>
  %any_a = memref.cast %a_there : memref<128x128xf16> to memref<*xf16>
  %any_b = memref.cast %b_there : memref<128x128xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c128, %c64] : memref<*xf16> -> !a_map
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !b_map
  gpu.wait [%t4]
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1)
      dynamic_shared_memory_size %bytes {
    %out = memref.assume_alignment %d_there, 16 : memref<128x128xf32>
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k4 = arith.constant 4 : index
    %k32 = arith.constant 32 : index
    %k64 = arith.constant 64 : index
    %k128 = arith.constant 128 : index
    %stage_bytes = arith.constant 32768 : index
    %a_bytes = arith.constant 16384 : index
    %b_at = arith.constant 32768 : index
    %half_bytes = arith.constant 8192 : index
    %ticks = arith.constant 10000000 : index
    %shared = gpu.dynamic_shared_memory : !bytes
    %as = memref.view %shared[%k0][] : !bytes to !a_stages
    %bs = memref.view %shared[%b_at][] : !bytes to !b_stages
    %full = nvgpu.mbarrier.create -> !two
    %all = arith.constant -1 : i32
    %i0 = arith.constant 0 : i32
    %last_lane = arith.constant 31 : i32
    %elected = nvvm.elect.sync -> i1
    %warp = arith.divui %t, %k32 : index
    %warp_number = index.casts %warp : index to i32
    %warp_of_all = nvvm.shfl.sync idx %all, %warp_number, %i0, %last_lane : i32 -> i32
    %first_warp = arith.cmpi eq, %warp_of_all, %i0 : i32
    %one = arith.andi %first_warp, %elected : i1
    nvgpu.mbarrier.init %full[%k0], %k1, predicate = %one : !two
    nvgpu.mbarrier.init %full[%k1], %k1, predicate = %one : !two
    gpu.barrier
    nvgpu.tma.prefetch.descriptor %a_map, predicate = %one : !a_map
    nvgpu.tma.prefetch.descriptor %b_map, predicate = %one : !b_map
    scf.for %stage = %k0 to %k2 step %k1 {
      %a_off = arith.muli %stage, %a_bytes : index
      %b_off0 = arith.addi %a_off, %b_at : index
      %b_off1 = arith.addi %b_off0, %half_bytes : index
      %a0 = memref.view %shared[%a_off][] : !bytes to !a_tile
      %b0 = memref.view %shared[%b_off0][] : !bytes to !b_half
      %b1 = memref.view %shared[%b_off1][] : !bytes to !b_half
      %depth = arith.muli %stage, %k64 : index
      nvgpu.mbarrier.arrive.expect_tx %full[%stage], %stage_bytes, predicate = %one : !two
      nvgpu.tma.async.load %a_map[%depth, %k0], %full[%stage] to %a0, predicate = %one
        : !a_map, !two -> !a_tile
      nvgpu.tma.async.load %b_map[%k0, %depth], %full[%stage] to %b0, predicate = %one
        : !b_map, !two -> !b_half
      nvgpu.tma.async.load %b_map[%k64, %depth], %full[%stage] to %b1, predicate = %one
        : !b_map, !two -> !b_half
    }
    %zero = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %sums = scf.for %i = %k0 to %k2 step %k1 iter_args(%acc = %zero) -> (!sums) {
      %even = arith.constant 0 : i1
      nvgpu.mbarrier.try_wait.parity %full[%i], %even, %ticks : !two
      %ai = memref.subview %as[%i, 0, 0][1, 128, 64][1, 1, 1] : !a_stages to !a_stage
      %bi = memref.subview %bs[%i, 0, 0][1, 64, 128][1, 1, 1] : !b_stages to !b_stage
      %da = nvgpu.warpgroup.generate.descriptor %ai, %a_map : !a_stage, !a_map -> !a_operand
      %db = nvgpu.warpgroup.generate.descriptor %bi, %b_map : !b_stage, !b_map -> !b_operand
      %next = nvgpu.warpgroup.mma %da, %db, %acc {transposeB}
        : !a_operand, !b_operand, !sums -> !sums
      scf.yield %next : !sums
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.barrier
    %g = memref.get_global @result : memref<0xf32, 3>
    %tile = memref.reinterpret_cast %g to offset: [0], sizes: [128, 128], strides: [128, 1]
      : memref<0xf32, 3> to !d_tile
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to !d_tile
    gpu.barrier
    %lane = arith.remui %t, %k32 : index
    %column = arith.muli %lane, %k4 : index
    scf.for %row = %warp to %k128 step %k4 {
      %v = vector.load %tile[%row, %column] : !d_tile, vector<4xf32>
      vector.store %v, %out[%row, %column] : memref<128x128xf32>, vector<4xf32>
    }
    gpu.terminator
  }
  %t5 = gpu.wait async
  %t6 = gpu.memcpy async [%t5] %d, %d_there : memref<128x128xf32>, memref<128x128xf32>
  %t7 = gpu.dealloc async [%t6] %a_there : memref<128x128xf16>
  %t8 = gpu.dealloc async [%t7] %b_there : memref<128x128xf16>
  %t9 = gpu.dealloc async [%t8] %d_there : memref<128x128xf32>
  gpu.wait [%t9]
  return
}

// Sizes are multiples of 128, 128 and 64. `full` tells the consumers that TMA has filled a stage,
// `empty` tells the producer that all of them are done with it.
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
