// A kernel written by hand: each block of 256 threads sums its part of x in workgroup memory,
// by halves, with a barrier between them.
func.func @block_sums(%x: memref<65536xf32>, %sums: memref<256xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c256, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1)
             workgroup(%part : memref<256xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %half = arith.constant 128 : index
    %first = arith.muli %bx, %sx : index
    %i = arith.addi %first, %tx : index
    %value = memref.load %x[%i] : memref<65536xf32>
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
      memref.store %total, %sums[%bx] : memref<256xf32>
    }
    gpu.terminator
  }
  return
}
