// Each warp sums one row of x: its lanes take every 32nd element, and add up what they have by
// shuffles, with no memory and no barrier between them. Four rows to a block.
func.func @row_sums(%x: memref<?x?xf32>, %sums: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  %blocks = arith.ceildivui %rows, %c4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%lane, %warp, %tz) in (%sx = %c32, %sy = %c4, %sz = %c1) {
    %row = affine.apply affine_map<(block, warp) -> (block * 4 + warp)>(%bx, %warp)
    // The same for all lanes of a warp, so they all are here or none is.
    %is_there = arith.cmpi ult, %row, %rows : index
    scf.if %is_there {
      %first = arith.constant 0 : index
      %step = arith.constant 32 : index
      %zero = arith.constant 0.0 : f32
      %mine = scf.for %i = %lane to %columns step %step iter_args(%s = %zero) -> (f32) {
        %v = memref.load %x[%row, %i] : memref<?x?xf32>
        %next = arith.addf %s, %v : f32
        scf.yield %next : f32
      }
      %width = arith.constant 32 : i32
      %d16 = arith.constant 16 : i32
      %d8 = arith.constant 8 : i32
      %d4 = arith.constant 4 : i32
      %d2 = arith.constant 2 : i32
      %d1 = arith.constant 1 : i32
      %v16, %ok16 = gpu.shuffle xor %mine, %d16, %width : f32
      %s16 = arith.addf %mine, %v16 : f32
      %v8, %ok8 = gpu.shuffle xor %s16, %d8, %width : f32
      %s8 = arith.addf %s16, %v8 : f32
      %v4, %ok4 = gpu.shuffle xor %s8, %d4, %width : f32
      %s4 = arith.addf %s8, %v4 : f32
      %v2, %ok2 = gpu.shuffle xor %s4, %d2, %width : f32
      %s2 = arith.addf %s4, %v2 : f32
      %v1, %ok1 = gpu.shuffle xor %s2, %d1, %width : f32
      %s1 = arith.addf %s2, %v1 : f32
      %is_first = arith.cmpi eq, %lane, %first : index
      scf.if %is_first {
        memref.store %s1, %sums[%row] : memref<?xf32>
      }
    }
    gpu.terminator
  }
  return
}
