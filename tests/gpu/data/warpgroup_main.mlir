// A warpgroup's gemm of 128 x 128 x 128, f16 in and f32 out, in a program that checks it against
// linalg.matmul (sm_90a). An elected thread fetches all tiles by TMA, guarded by predicates.
!a_map = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!b_map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b,
                                     l2promo = none, oob = zero, interleave = none>
!two = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
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
!a_operand = !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16, 3>>
!b_operand = !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf16, 3>>

memref.global "private" @result : memref<0xf32, 3> {alignment = 16 : i64}

func.func private @predicated(%a: memref<128x128xf16>, %b: memref<128x128xf16>,
                              %d: memref<128x128xf32>) {
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

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %n0 = arith.constant 0 : i32
  %n1 = arith.constant 1 : i32
  %n4 = arith.constant 4 : i32
  %n9 = arith.constant 9 : i32
  %n13 = arith.constant 13 : i32
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<128x128xf16>
  %b = memref.alloc() : memref<128x128xf16>
  %d = memref.alloc() : memref<128x128xf32>
  %expected = memref.alloc() : memref<128x128xf32>
  // Small integers, whose sums are exact.
  scf.for %i = %c0 to %c128 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %scaled = arith.muli %i, %c128 : index
      %place = arith.addi %scaled, %j : index
      %number = arith.index_cast %place : index to i32
      %ninths = arith.remsi %number, %n9 : i32
      %left = arith.subi %ninths, %n4 : i32
      %thirteenths = arith.remsi %number, %n13 : i32
      %right = arith.subi %thirteenths, %n4 : i32
      %of_a = arith.sitofp %left : i32 to f16
      %of_b = arith.sitofp %right : i32 to f16
      memref.store %of_a, %a[%i, %j] : memref<128x128xf16>
      memref.store %of_b, %b[%i, %j] : memref<128x128xf16>
      memref.store %zero, %expected[%i, %j] : memref<128x128xf32>
    }
  }
  call @predicated(%a, %b, %d)
    : (memref<128x128xf16>, memref<128x128xf16>, memref<128x128xf32>) -> ()
  linalg.matmul ins(%a, %b : memref<128x128xf16>, memref<128x128xf16>)
                outs(%expected : memref<128x128xf32>)
  %right, %wrong = scf.for %i = %c0 to %c128 step %c1
      iter_args(%right_before = %n0, %wrong_before = %n0) -> (i32, i32) {
    %right_row, %wrong_row = scf.for %j = %c0 to %c128 step %c1
        iter_args(%r = %right_before, %w = %wrong_before) -> (i32, i32) {
      %got = memref.load %d[%i, %j] : memref<128x128xf32>
      %wanted = memref.load %expected[%i, %j] : memref<128x128xf32>
      %is_right = arith.cmpf oeq, %got, %wanted : f32
      %hit = arith.select %is_right, %n1, %n0 : i32
      %miss = arith.select %is_right, %n0, %n1 : i32
      %r_next = arith.addi %r, %hit : i32
      %w_next = arith.addi %w, %miss : i32
      scf.yield %r_next, %w_next : i32, i32
    }
    scf.yield %right_row, %wrong_row : i32, i32
  }
  vector.print str "right: "
  vector.print %right : i32
  vector.print str "wrong: "
  vector.print %wrong : i32
  %last = memref.load %d[%c1, %c1] : memref<128x128xf32>
  vector.print %last : f32
  memref.dealloc %a : memref<128x128xf16>
  memref.dealloc %b : memref<128x128xf16>
  memref.dealloc %d : memref<128x128xf32>
  memref.dealloc %expected : memref<128x128xf32>
  return
}
