// C = A * B by tiles in workgroup memory: each block computes a square of C, and takes the tiles
// of A and B that it needs one pair after the other. Two barriers a pair: until a tile is
// whole, and until all have read it.

func.func @tiles_of_16(%A: memref<1024x1024xf32>, %B: memref<1024x1024xf32>,
                       %C: memref<1024x1024xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %tile = arith.constant 16 : index
  %tiles = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %tiles, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %tile, %sy = %tile, %sz = %c1)
             workgroup(%a : memref<16x16xf32, #gpu.address_space<workgroup>>,
                       %b : memref<16x16xf32, #gpu.address_space<workgroup>>) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %step = arith.constant 1 : index
    %width = arith.constant 16 : index
    %n = arith.constant 1024 : index
    %row = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%by, %ty)
    %column = affine.apply affine_map<(b, t) -> (b * 16 + t)>(%bx, %tx)
    %sum = scf.for %first = %c0 to %n step %width iter_args(%partial = %zero) -> (f32) {
      %k_a = arith.addi %first, %tx : index
      %k_b = arith.addi %first, %ty : index
      %from_a = memref.load %A[%row, %k_a] : memref<1024x1024xf32>
      %from_b = memref.load %B[%k_b, %column] : memref<1024x1024xf32>
      memref.store %from_a, %a[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      memref.store %from_b, %b[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %of_tile = scf.for %k = %c0 to %width step %step iter_args(%s = %partial) -> (f32) {
        %x = memref.load %a[%ty, %k] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %y = memref.load %b[%k, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %product = arith.mulf %x, %y : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
      gpu.barrier
      scf.yield %of_tile : f32
    }
    memref.store %sum, %C[%row, %column] : memref<1024x1024xf32>
    gpu.terminator
  }
  return
}

func.func @tiles_of_32(%A: memref<1024x1024xf32>, %B: memref<1024x1024xf32>,
                       %C: memref<1024x1024xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %tile = arith.constant 32 : index
  %tiles = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tiles, %gy = %tiles, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %tile, %sy = %tile, %sz = %c1)
             workgroup(%a : memref<32x32xf32, #gpu.address_space<workgroup>>,
                       %b : memref<32x32xf32, #gpu.address_space<workgroup>>) {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %step = arith.constant 1 : index
    %width = arith.constant 32 : index
    %n = arith.constant 1024 : index
    %row = affine.apply affine_map<(b, t) -> (b * 32 + t)>(%by, %ty)
    %column = affine.apply affine_map<(b, t) -> (b * 32 + t)>(%bx, %tx)
    %sum = scf.for %first = %c0 to %n step %width iter_args(%partial = %zero) -> (f32) {
      %k_a = arith.addi %first, %tx : index
      %k_b = arith.addi %first, %ty : index
      %from_a = memref.load %A[%row, %k_a] : memref<1024x1024xf32>
      %from_b = memref.load %B[%k_b, %column] : memref<1024x1024xf32>
      memref.store %from_a, %a[%ty, %tx] : memref<32x32xf32, #gpu.address_space<workgroup>>
      memref.store %from_b, %b[%ty, %tx] : memref<32x32xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %of_tile = scf.for %k = %c0 to %width step %step iter_args(%s = %partial) -> (f32) {
        %x = memref.load %a[%ty, %k] : memref<32x32xf32, #gpu.address_space<workgroup>>
        %y = memref.load %b[%k, %tx] : memref<32x32xf32, #gpu.address_space<workgroup>>
        %product = arith.mulf %x, %y : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
      gpu.barrier
      scf.yield %of_tile : f32
    }
    memref.store %sum, %C[%row, %column] : memref<1024x1024xf32>
    gpu.terminator
  }
  return
}
