// C = A · B on Hopper's tensor cores, f16 in and f32 out (--chip sm_90a). A block of one warpgroup
// makes a tile of 128 x 128; its first thread fetches A's and B's tiles by TMA, four ahead.
//
// TMA fills with zeros what a tile has outside of A and B, and the edge of C is not written where
// there is none: only the rows of A and B must begin at multiples of 16 bytes, so that K and N are
// multiples of 8. No size may be 0.
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, #gpu.address_space<workgroup>>,
                                     swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero,
                                     interleave = none>
// A row of 128 bytes is the widest that is swizzled: B's tile comes in two halves.
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>,
                                     swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero,
                                     interleave = none>
!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>
!a_operand = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16, #gpu.address_space<workgroup>>>
!b_operand = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf16, #gpu.address_space<workgroup>>>
!shared = memref<?xi8, #gpu.address_space<workgroup>>
!a_tile = memref<128x64xf16, #gpu.address_space<workgroup>>
!b_half = memref<64x64xf16, #gpu.address_space<workgroup>>
!b_tile = memref<64x128xf16, #gpu.address_space<workgroup>>
!c_tile = memref<128x128xf32, #gpu.address_space<workgroup>>

func.func @warpgroup_gemm(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  // Four stages of 32 KiB; C's tile has room in two of them.
  %bytes = arith.constant 131072 : i32
  %m = memref.dim %C, %c0 : memref<?x?xf32>
  %n = memref.dim %C, %c1 : memref<?x?xf32>
  %k = memref.dim %A, %c1 : memref<?x?xf16>
  %tiles_down = arith.ceildivui %m, %c128 : index
  %tiles_across = arith.ceildivui %n, %c128 : index
  %steps = arith.ceildivui %k, %c64 : index
  %any_a = memref.cast %A : memref<?x?xf16> to memref<*xf16>
  %any_b = memref.cast %B : memref<?x?xf16> to memref<*xf16>
  %a_map = nvgpu.tma.create.descriptor %any_a box[%c128, %c64] : memref<*xf16> -> !a_map
  %b_map = nvgpu.tma.create.descriptor %any_b box[%c64, %c64] : memref<*xf16> -> !b_map

  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles_down, %gy = %tiles_across, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %ahead = arith.constant 3 : index
    %stages = arith.constant 4 : index
    %depth = arith.constant 64 : index
    %size = arith.constant 128 : index
    %stage_bytes = arith.constant 32768 : index
    %b_offset = arith.constant 16384 : index
    %half_offset = arith.constant 24576 : index
    %ticks = arith.constant 10000000 : index
    %row = arith.muli %bx, %size : index
    %column = arith.muli %by, %size : index
    %half_column = arith.addi %column, %depth : index
    %shared = gpu.dynamic_shared_memory : !shared
    %full = nvgpu.mbarrier.create -> !barriers
    %is_first = arith.cmpi eq, %t, %zero : index
    scf.for %stage = %zero to %stages step %one {
      nvgpu.mbarrier.init %full[%stage], %one, predicate = %is_first : !barriers
    }
    nvvm.fence.mbarrier.init
    gpu.barrier

    scf.for %step = %zero to %ahead step %one {
      %is_there = arith.cmpi ult, %step, %steps : index
      %fetches = arith.andi %is_first, %is_there : i1
      %place = arith.muli %step, %stage_bytes : index
      %b_place = arith.addi %place, %b_offset : index
      %half_place = arith.addi %place, %half_offset : index
      %a = memref.view %shared[%place][] : !shared to !a_tile
      %b = memref.view %shared[%b_place][] : !shared to !b_half
      %b_rest = memref.view %shared[%half_place][] : !shared to !b_half
      %at = arith.muli %step, %depth : index
      nvgpu.mbarrier.arrive.expect_tx %full[%step], %stage_bytes, predicate = %fetches : !barriers
      nvgpu.tma.async.load %a_map[%at, %row], %full[%step] to %a, predicate = %fetches
        : !a_map, !barriers -> !a_tile
      nvgpu.tma.async.load %b_map[%column, %at], %full[%step] to %b, predicate = %fetches
        : !b_map, !barriers -> !b_half
      nvgpu.tma.async.load %b_map[%half_column, %at], %full[%step] to %b_rest, predicate = %fetches
        : !b_map, !barriers -> !b_half
    }
    %nothing = nvgpu.warpgroup.mma.init.accumulator -> !sums
    %sums = scf.for %step = %zero to %steps step %one iter_args(%so_far = %nothing) -> (!sums) {
      // A barrier's phase changes each time its stage is full.
      %stage = arith.remui %step, %stages : index
      %round = arith.divui %step, %stages : index
      %parity = arith.remui %round, %two : index
      %is_odd = arith.cmpi eq, %parity, %one : index
      nvgpu.mbarrier.try_wait.parity %full[%stage], %is_odd, %ticks : !barriers
      %place = arith.muli %stage, %stage_bytes : index
      %b_place = arith.addi %place, %b_offset : index
      %a = memref.view %shared[%place][] : !shared to !a_tile
      %b = memref.view %shared[%b_place][] : !shared to !b_tile
      %left = nvgpu.warpgroup.generate.descriptor %a, %a_map : !a_tile, !a_map -> !a_operand
      %right = nvgpu.warpgroup.generate.descriptor %b, %b_map : !b_tile, !b_map -> !b_operand
      // Goes on when the product before is done, and this one has begun.
      %next = nvgpu.warpgroup.mma %left, %right, %so_far {transposeB}
        : !a_operand, !b_operand, !sums -> !sums
      // In all warps: then nobody reads that one's stage, and it is filled again.
      gpu.barrier
      %later = arith.addi %step, %ahead : index
      %is_there = arith.cmpi ult, %later, %steps : index
      %fetches = arith.andi %is_first, %is_there : i1
      %free = arith.remui %later, %stages : index
      %free_place = arith.muli %free, %stage_bytes : index
      %free_b = arith.addi %free_place, %b_offset : index
      %free_half = arith.addi %free_place, %half_offset : index
      %a_next = memref.view %shared[%free_place][] : !shared to !a_tile
      %b_next = memref.view %shared[%free_b][] : !shared to !b_half
      %b_rest = memref.view %shared[%free_half][] : !shared to !b_half
      %at = arith.muli %later, %depth : index
      nvgpu.mbarrier.arrive.expect_tx %full[%free], %stage_bytes, predicate = %fetches : !barriers
      nvgpu.tma.async.load %a_map[%at, %row], %full[%free] to %a_next, predicate = %fetches
        : !a_map, !barriers -> !a_tile
      nvgpu.tma.async.load %b_map[%column, %at], %full[%free] to %b_next, predicate = %fetches
        : !b_map, !barriers -> !b_half
      nvgpu.tma.async.load %b_map[%half_column, %at], %full[%free] to %b_rest, predicate = %fetches
        : !b_map, !barriers -> !b_half
      scf.yield %next : !sums
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.barrier

    // Through shared memory, so that neighbours write neighbours.
    %tile = memref.view %shared[%zero][] : !shared to !c_tile
    nvgpu.warpgroup.mma.store %sums, %tile : !sums to !c_tile
    gpu.barrier
    %c_column = arith.addi %column, %t : index
    %has_column = arith.cmpi ult, %c_column, %n : index
    scf.if %has_column {
      scf.for %i = %zero to %size step %one {
        %c_row = arith.addi %row, %i : index
        %has_row = arith.cmpi ult, %c_row, %m : index
        scf.if %has_row {
          %sum = memref.load %tile[%i, %t] : !c_tile
          memref.store %sum, %C[%c_row, %c_column] : memref<?x?xf32>
        }
      }
    }
    gpu.terminator
  }
  return
}
