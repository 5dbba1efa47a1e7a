// C = A * B by tiles in workgroup memory: each block of 16 x 16 threads computes a tile of C, and
// brings the tiles of A and B that it needs there, one pair after the other. Two barriers a pair:
// until both tiles are whole, and until all have read them. Sizes need not divide by 16: what is
// outside of A and B counts as 0.
func.func @tiled_matmul(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %rows = memref.dim %C, %c0 : memref<?x?xf32>
  %columns = memref.dim %C, %c1 : memref<?x?xf32>
  %depth = memref.dim %A, %c1 : memref<?x?xf32>
  %tile_rows = arith.ceildivui %rows, %c16 : index
  %tile_columns = arith.ceildivui %columns, %c16 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %tile_columns, %gy = %tile_rows, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c16, %sy = %c16, %sz = %c1)
             workgroup(%a: memref<16x16xf32, #gpu.address_space<workgroup>>,
                       %b: memref<16x16xf32, #gpu.address_space<workgroup>>) {
    %first = arith.constant 0 : index
    %one = arith.constant 1 : index
    %width = arith.constant 16 : index
    %zero = arith.constant 0.0 : f32
    %row = affine.apply affine_map<(block, thread) -> (block * 16 + thread)>(%by, %ty)
    %column = affine.apply affine_map<(block, thread) -> (block * 16 + thread)>(%bx, %tx)
    %row_is_there = arith.cmpi ult, %row, %rows : index
    %column_is_there = arith.cmpi ult, %column, %columns : index

    %sum = scf.for %k0 = %first to %depth step %width iter_args(%partial = %zero) -> (f32) {
      %k_of_a = arith.addi %k0, %tx : index
      %k_of_b = arith.addi %k0, %ty : index
      %in_a = arith.cmpi ult, %k_of_a, %depth : index
      %in_b = arith.cmpi ult, %k_of_b, %depth : index
      %load_a = arith.andi %row_is_there, %in_a : i1
      %load_b = arith.andi %column_is_there, %in_b : i1
      %from_a = scf.if %load_a -> f32 {
        %v = memref.load %A[%row, %k_of_a] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      %from_b = scf.if %load_b -> f32 {
        %v = memref.load %B[%k_of_b, %column] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %from_a, %a[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      memref.store %from_b, %b[%ty, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %of_tile = scf.for %k = %first to %width step %one iter_args(%s = %partial) -> (f32) {
        %x = memref.load %a[%ty, %k] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %y = memref.load %b[%k, %tx] : memref<16x16xf32, #gpu.address_space<workgroup>>
        %product = arith.mulf %x, %y : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
      gpu.barrier
      scf.yield %of_tile : f32
    }

    %is_there = arith.andi %row_is_there, %column_is_there : i1
    scf.if %is_there {
      memref.store %sum, %C[%row, %column] : memref<?x?xf32>
    }
    gpu.terminator
  }
  return
}
