// Sums of the 256 elements that each block reads, in the ways that kernels have for it.

// By halves in workgroup memory, with a barrier between them, as samples/block_sums.mlir.
func.func @by_halves(%x: memref<16777216xf32>, %sums: memref<65536xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %blocks = arith.constant 65536 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1)
             workgroup(%part : memref<256xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %half = arith.constant 128 : index
    %i = affine.apply affine_map<(b, t) -> (b * 256 + t)>(%bx, %tx)
    %value = memref.load %x[%i] : memref<16777216xf32>
    memref.store %value, %part[%tx] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = scf.while (%width = %half) : (index) -> index {
      %go_on = arith.cmpi uge, %width, %one : index
      scf.condition(%go_on) %width : index
    } do {
    ^bb0(%width: index):
      %active = arith.cmpi ult, %tx, %width : index
      scf.if %active {
        %other = arith.addi %tx, %width : index
        %a = memref.load %part[%tx] : memref<256xf32, #gpu.address_space<workgroup>>
        %b = memref.load %part[%other] : memref<256xf32, #gpu.address_space<workgroup>>
        %s = arith.addf %a, %b : f32
        memref.store %s, %part[%tx] : memref<256xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %next = arith.divui %width, %two : index
      scf.yield %next : index
    }
    %is_first = arith.cmpi eq, %tx, %c0 : index
    scf.if %is_first {
      %total = memref.load %part[%c0] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %total, %sums[%bx] : memref<65536xf32>
    }
    gpu.terminator
  }
  return
}

// Each warp by shuffles, then the sums of the warps by the first thread: every thread takes every
// synchronization.
func.func @by_shuffles(%x: memref<16777216xf32>, %sums: memref<65536xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %blocks = arith.constant 65536 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1)
             workgroup(%part : memref<8xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %warps = arith.constant 8 : index
    %lanes = arith.constant 32 : i32
    %by_16 = arith.constant 16 : i32
    %by_8 = arith.constant 8 : i32
    %by_4 = arith.constant 4 : i32
    %by_2 = arith.constant 2 : i32
    %by_1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %i = affine.apply affine_map<(b, t) -> (b * 256 + t)>(%bx, %tx)
    %lane = affine.apply affine_map<(t) -> (t mod 32)>(%tx)
    %warp = affine.apply affine_map<(t) -> (t floordiv 32)>(%tx)
    %v = memref.load %x[%i] : memref<16777216xf32>
    %o16, %p16 = gpu.shuffle xor %v, %by_16, %lanes : f32
    %v16 = arith.addf %v, %o16 : f32
    %o8, %p8 = gpu.shuffle xor %v16, %by_8, %lanes : f32
    %v8 = arith.addf %v16, %o8 : f32
    %o4, %p4 = gpu.shuffle xor %v8, %by_4, %lanes : f32
    %v4 = arith.addf %v8, %o4 : f32
    %o2, %p2 = gpu.shuffle xor %v4, %by_2, %lanes : f32
    %v2 = arith.addf %v4, %o2 : f32
    %o1, %p1 = gpu.shuffle xor %v2, %by_1, %lanes : f32
    %v1 = arith.addf %v2, %o1 : f32
    %is_lane_0 = arith.cmpi eq, %lane, %c0 : index
    scf.if %is_lane_0 {
      memref.store %v1, %part[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %is_first = arith.cmpi eq, %tx, %c0 : index
    scf.if %is_first {
      %total = scf.for %w = %c0 to %warps step %one iter_args(%sum = %zero) -> (f32) {
        %s = memref.load %part[%w] : memref<8xf32, #gpu.address_space<workgroup>>
        %next = arith.addf %sum, %s : f32
        scf.yield %next : f32
      }
      memref.store %total, %sums[%bx] : memref<65536xf32>
    }
    gpu.terminator
  }
  return
}

// The same, but the first warp adds up the sums of the warps, by shuffles of its own: other
// warps do not come there.
func.func @by_first_warp(%x: memref<16777216xf32>, %sums: memref<65536xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %blocks = arith.constant 65536 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1)
             workgroup(%part : memref<8xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %warps = arith.constant 8 : index
    %warp_size = arith.constant 32 : index
    %lanes = arith.constant 32 : i32
    %by_16 = arith.constant 16 : i32
    %by_8 = arith.constant 8 : i32
    %by_4 = arith.constant 4 : i32
    %by_2 = arith.constant 2 : i32
    %by_1 = arith.constant 1 : i32
    %i = affine.apply affine_map<(b, t) -> (b * 256 + t)>(%bx, %tx)
    %lane = affine.apply affine_map<(t) -> (t mod 32)>(%tx)
    %warp = affine.apply affine_map<(t) -> (t floordiv 32)>(%tx)
    %v = memref.load %x[%i] : memref<16777216xf32>
    %o16, %p16 = gpu.shuffle xor %v, %by_16, %lanes : f32
    %v16 = arith.addf %v, %o16 : f32
    %o8, %p8 = gpu.shuffle xor %v16, %by_8, %lanes : f32
    %v8 = arith.addf %v16, %o8 : f32
    %o4, %p4 = gpu.shuffle xor %v8, %by_4, %lanes : f32
    %v4 = arith.addf %v8, %o4 : f32
    %o2, %p2 = gpu.shuffle xor %v4, %by_2, %lanes : f32
    %v2 = arith.addf %v4, %o2 : f32
    %o1, %p1 = gpu.shuffle xor %v2, %by_1, %lanes : f32
    %v1 = arith.addf %v2, %o1 : f32
    %is_lane_0 = arith.cmpi eq, %lane, %c0 : index
    scf.if %is_lane_0 {
      memref.store %v1, %part[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %is_first_warp = arith.cmpi ult, %tx, %warp_size : index
    scf.if %is_first_warp {
      %place = arith.remui %lane, %warps : index
      %s = memref.load %part[%place] : memref<8xf32, #gpu.address_space<workgroup>>
      %q4, %r4 = gpu.shuffle xor %s, %by_4, %lanes : f32
      %s4 = arith.addf %s, %q4 : f32
      %q2, %r2 = gpu.shuffle xor %s4, %by_2, %lanes : f32
      %s2 = arith.addf %s4, %q2 : f32
      %q1, %r1 = gpu.shuffle xor %s2, %by_1, %lanes : f32
      %s1 = arith.addf %s2, %q1 : f32
      %is_first = arith.cmpi eq, %tx, %c0 : index
      scf.if %is_first {
        memref.store %s1, %sums[%bx] : memref<65536xf32>
      }
    }
    gpu.terminator
  }
  return
}

// By the operation for it.
func.func @by_all_reduce(%x: memref<16777216xf32>, %sums: memref<65536xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %blocks = arith.constant 65536 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %i = affine.apply affine_map<(b, t) -> (b * 256 + t)>(%bx, %tx)
    %v = memref.load %x[%i] : memref<16777216xf32>
    %total = gpu.all_reduce add %v uniform {} : (f32) -> (f32)
    %is_first = arith.cmpi eq, %tx, %c0 : index
    scf.if %is_first {
      memref.store %total, %sums[%bx] : memref<65536xf32>
    }
    gpu.terminator
  }
  return
}
