// What threads of a block and blocks of a grid do together, beyond what lanes exchange.

// Products by atomics: no machine has them as an instruction.
func.func @products(%x: memref<64xi32>, %f: memref<64xf32>, %ints: memref<2xi32>,
                    %floats: memref<2xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %i = affine.apply affine_map<(b, t) -> (b * 32 + t)>(%bx, %tx)
    %parity = affine.apply affine_map<(t) -> (t mod 2)>(%tx)
    %v = memref.load %x[%i] : memref<64xi32>
    %w = memref.load %f[%i] : memref<64xf32>
    %old = memref.atomic_rmw muli %v, %ints[%parity] : (i32, memref<2xi32>) -> i32
    %was = memref.atomic_rmw mulf %w, %floats[%parity] : (f32, memref<2xf32>) -> f32
    gpu.terminator
  }
  return
}

// A ragged tile in workgroup memory: the transfers go beyond its rows, which hold 8.
func.func @ragged(%x: memref<32x8xf32>, %read: memref<32x8xf32>, %written: memref<32x8xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%a: memref<32x8xf32, #gpu.address_space<workgroup>>,
                       %b: memref<32x8xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %none = arith.constant -1.0 : f32
    %row = vector.load %x[%tx, %c0] : memref<32x8xf32>, vector<8xf32>
    vector.store %row, %a[%tx, %c0]
      : memref<32x8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %row, %b[%tx, %c0]
      : memref<32x8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.transfer_write %row, %b[%tx, %c3]
      : vector<8xf32>, memref<32x8xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %part = vector.transfer_read %a[%tx, %c3], %none
      : memref<32x8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %part, %read[%tx, %c0] : memref<32x8xf32>, vector<8xf32>
    %all = vector.load %b[%tx, %c0]
      : memref<32x8xf32, #gpu.address_space<workgroup>>, vector<8xf32>
    vector.store %all, %written[%tx, %c0] : memref<32x8xf32>, vector<8xf32>
    gpu.terminator
  }
  return
}

// Each block adds up a part; the one that is done last adds the parts. It must see what the others
// wrote before they counted themselves.
func.func @last_block(%x: memref<?xi64>, %parts: memref<?xi64>, %count: memref<1xi32>,
                      %sum: memref<1xi64>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %n = memref.dim %x, %c0 : memref<?xi64>
  %blocks = arith.divui %n, %c128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1)
             workgroup(%before: memref<1xi32, #gpu.address_space<workgroup>>) {
    %zero = arith.constant 0 : index
    %step = arith.constant 128 : index
    %one = arith.constant 1 : i32
    %nothing = arith.constant 0 : i64
    %i = affine.apply affine_map<(b, t) -> (b * 128 + t)>(%bx, %tx)
    %v = memref.load %x[%i] : memref<?xi64>
    %part = gpu.all_reduce add %v uniform {} : (i64) -> i64
    %is_first = arith.cmpi eq, %tx, %zero : index
    scf.if %is_first {
      memref.store %part, %parts[%bx] : memref<?xi64>
      nvvm.memory.barrier #nvvm.mem_scope<gpu>
      %done = memref.atomic_rmw addi %one, %count[%zero] : (i32, memref<1xi32>) -> i32
      memref.store %done, %before[%zero] : memref<1xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %done = memref.load %before[%zero] : memref<1xi32, #gpu.address_space<workgroup>>
    %all = arith.index_cast %gx : index to i32
    %others = arith.subi %all, %one : i32
    %is_last = arith.cmpi eq, %done, %others : i32
    scf.if %is_last {
      nvvm.memory.barrier #nvvm.mem_scope<gpu>
      %mine = scf.for %j = %tx to %gx step %step iter_args(%s = %nothing) -> i64 {
        %p = memref.load %parts[%j] : memref<?xi64>
        %next = arith.addi %p, %s : i64
        scf.yield %next : i64
      }
      %total = gpu.all_reduce add %mine uniform {} : (i64) -> i64
      scf.if %is_first {
        memref.store %total, %sum[%zero] : memref<1xi64>
      }
    }
    gpu.terminator
  }
  return
}

// Threads choose alike, each on its way, and wait for each other before they go on with what they
// chose: in a warp that exchanges values, then in a loop along a row. Behind the next barrier each
// thread still has it.
func.func private @choose(%x: memref<4xi64>, %y: memref<256xi64>, %place: index, %which: index)
    -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %is_first = arith.cmpi eq, %which, %c0 : index
  %chosen = scf.if %is_first -> i64 {
    %first = memref.load %x[%c0] : memref<4xi64>
    memref.store %first, %y[%place] : memref<256xi64>
    scf.yield %first : i64
  } else {
    %other = memref.load %x[%c1] : memref<4xi64>
    scf.yield %other : i64
  }
  gpu.barrier
  return %chosen : i64
}

func.func @choices(%x: memref<4xi64>, %y: memref<256xi64>, %in_warps: memref<256xi64>,
                   %in_rows: memref<256xi64>, %which: index) attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : index
  %size = arith.constant 64 : index
  %height = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %height, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %height, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %nothing = arith.constant 0 : i64
    %i = affine.apply affine_map<(b, x, y) -> (b * 128 + y * 64 + x)>(%bx, %tx, %ty)
    %in_warp = func.call @choose(%x, %y, %i, %which)
      : (memref<4xi64>, memref<256xi64>, index, index) -> i64
    %number = arith.index_cast %tx : index to i64
    %lanes = gpu.subgroup_reduce add %number : (i64) -> i64
    gpu.barrier
    %a = arith.addi %lanes, %in_warp : i64
    memref.store %a, %in_warps[%i] : memref<256xi64>
    %in_row = func.call @choose(%x, %y, %i, %which)
      : (memref<4xi64>, memref<256xi64>, index, index) -> i64
    %turns = arith.addi %which, %c4 : index
    %sum = scf.for %k = %c0 to %turns step %c1 iter_args(%s = %nothing) -> i64 {
      %v = memref.load %in_warps[%i] : memref<256xi64>
      %next = arith.addi %s, %v : i64
      scf.yield %next : i64
    }
    gpu.barrier
    %b = arith.addi %sum, %in_row : i64
    memref.store %b, %in_rows[%i] : memref<256xi64>
    gpu.terminator
  }
  return
}

// All threads take one of two ways, one with a barrier, and both lead straight into a loop: one of
// warps that exchange values, then one along a row.
func.func @ways(%x: memref<4xi64>, %y: memref<256xi64>, %in_warps: memref<256xi64>,
                %in_rows: memref<256xi64>, %which: index) attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : index
  %size = arith.constant 64 : index
  %height = arith.constant 2 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %height, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %height, %sz = %one) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %i = affine.apply affine_map<(b, x, y) -> (b * 128 + y * 64 + x)>(%bx, %tx, %ty)
    %number = arith.index_cast %tx : index to i64
    %turns = arith.addi %which, %c4 : index
    %is_first = arith.cmpi eq, %which, %c0 : index
    cf.cond_br %is_first, ^wait, ^pass
  ^wait:
    gpu.barrier
    %first = memref.load %x[%c0] : memref<4xi64>
    cf.br ^warps(%c0, %first : index, i64)
  ^pass:
    %other = memref.load %x[%c1] : memref<4xi64>
    cf.br ^warps(%c0, %other : index, i64)
  ^warps(%k: index, %s: i64):
    %goes_on = arith.cmpi slt, %k, %turns : index
    cf.cond_br %goes_on, ^exchange, ^behind
  ^exchange:
    %turn = arith.index_cast %k : index to i64
    %mine = arith.muli %number, %turn : i64
    %lanes = gpu.subgroup_reduce add %mine : (i64) -> i64
    %s_next = arith.addi %s, %lanes : i64
    %k_next = arith.addi %k, %c1 : index
    cf.br ^warps(%k_next, %s_next : index, i64)
  ^behind:
    memref.store %s, %in_warps[%i] : memref<256xi64>
    gpu.barrier
    cf.cond_br %is_first, ^wait_again, ^pass_again
  ^wait_again:
    gpu.barrier
    cf.br ^rows(%c0, %s : index, i64)
  ^pass_again:
    cf.br ^rows(%c1, %number : index, i64)
  ^rows(%l: index, %r: i64):
    %goes_along = arith.cmpi slt, %l, %turns : index
    cf.cond_br %goes_along, ^along, ^end
  ^along:
    %row_turn = arith.index_cast %l : index to i64
    %v = memref.load %y[%i] : memref<256xi64>
    %part = arith.muli %v, %row_turn : i64
    %r_next = arith.addi %r, %part : i64
    %l_next = arith.addi %l, %c1 : index
    cf.br ^rows(%l_next, %r_next : index, i64)
  ^end:
    memref.store %r, %in_rows[%i] : memref<256xi64>
    gpu.terminator
  }
  return
}

// Named barriers. Two warps of a block write a buffer that two others read, round by round: they
// wait until it is full, or empty, and only say so when it is their own part that is done.
func.func @rounds(%x: memref<64xi64>, %y: memref<192xi64>, %rounds: index)
    attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %size = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %three, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)
             workgroup(%buffer : memref<64xi64, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i64
    %full = arith.constant 1 : i32
    %empty = arith.constant 2 : i32
    %all = arith.constant 128 : i32
    %is_writer = arith.cmpi ult, %tx, %c64 : index
    scf.if %is_writer {
      %v = memref.load %x[%tx] : memref<64xi64>
      scf.for %k = %c0 to %rounds step %c1 {
        %round = arith.index_cast %k : index to i64
        %block = arith.index_cast %bx : index to i64
        %turn = arith.addi %round, %block : i64
        %value = arith.muli %v, %turn : i64
        nvvm.barrier id = %empty number_of_threads = %all
        memref.store %value, %buffer[%tx] : memref<64xi64, #gpu.address_space<workgroup>>
        nvvm.barrier.arrive id = %full number_of_threads = %all
      }
    } else {
      %mine = arith.subi %tx, %c64 : index
      %from = arith.subi %c63, %mine : index
      %s = scf.for %k = %c0 to %rounds step %c1 iter_args(%sum = %zero) -> i64 {
        nvvm.barrier.arrive id = %empty number_of_threads = %all
        nvvm.barrier id = %full number_of_threads = %all
        %value = memref.load %buffer[%from] : memref<64xi64, #gpu.address_space<workgroup>>
        %shifted = arith.addi %sum, %sum : i64
        %next = arith.addi %shifted, %value : i64
        scf.yield %next : i64
      }
      %i = affine.apply affine_map<(b, t) -> (b * 64 + t)>(%bx, %mine)
      memref.store %s, %y[%i] : memref<192xi64>
    }
    gpu.terminator
  }
  return
}

// The halves of a block meet at barriers of their own, each as often as it needs.
func.func @halves(%x: memref<128xi64>, %y: memref<128xi64>, %rounds: index)
    attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : index
  %size = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)
             workgroup(%buffer : memref<128xi64, #gpu.address_space<workgroup>>) {
    %warps = arith.constant 2 : i32
    %left = gpu.initialize_named_barrier %warps : i32 -> !gpu.named_barrier
    %right = gpu.initialize_named_barrier %warps : i32 -> !gpu.named_barrier
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %three = arith.constant 3 : i64
    %first = memref.load %x[%tx] : memref<128xi64>
    %next = arith.addi %tx, %c1 : index
    %is_left = arith.cmpi ult, %tx, %c64 : index
    %result = scf.if %is_left -> i64 {
      %from = arith.remui %next, %c64 : index
      %v = scf.for %k = %c0 to %rounds step %c1 iter_args(%old = %first) -> i64 {
        memref.store %old, %buffer[%tx] : memref<128xi64, #gpu.address_space<workgroup>>
        gpu.barrier named(%left : !gpu.named_barrier)
        %other = memref.load %buffer[%from] : memref<128xi64, #gpu.address_space<workgroup>>
        %tripled = arith.muli %old, %three : i64
        %new = arith.addi %tripled, %other : i64
        gpu.barrier named(%left : !gpu.named_barrier)
        scf.yield %new : i64
      }
      scf.yield %v : i64
    } else {
      %in_half = arith.remui %next, %c64 : index
      %from = arith.addi %in_half, %c64 : index
      %more = arith.addi %rounds, %c2 : index
      %v = scf.for %k = %c0 to %more step %c1 iter_args(%old = %first) -> i64 {
        memref.store %old, %buffer[%tx] : memref<128xi64, #gpu.address_space<workgroup>>
        gpu.barrier named(%right : !gpu.named_barrier)
        %other = memref.load %buffer[%from] : memref<128xi64, #gpu.address_space<workgroup>>
        %tripled = arith.muli %old, %three : i64
        %new = arith.addi %tripled, %other : i64
        gpu.barrier named(%right : !gpu.named_barrier)
        scf.yield %new : i64
      }
      scf.yield %v : i64
    }
    memref.store %result, %y[%tx] : memref<128xi64>
    gpu.terminator
  }
  return
}
