// A product of two tiles of 16 x 16 on tensor cores, f16 in and f32 out, in memory that is
// allocated, copied and freed by hand, along one chain of tokens.
func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %2 = arith.constant 2 : i32
  %5 = arith.constant 5 : i32
  %x = memref.alloc() : memref<16x16xf16>
  %y = memref.alloc() : memref<16x16xf32>
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %j = %c0 to %c16 step %c1 {
      %scaled = arith.muli %i, %c16 : index
      %place = arith.addi %scaled, %j : index
      %number = arith.index_cast %place : index to i32
      %part = arith.remsi %number, %5 : i32
      %shifted = arith.subi %part, %2 : i32
      %of_x = arith.sitofp %shifted : i32 to f16
      %of_y = arith.sitofp %number : i32 to f32
      memref.store %of_x, %x[%i, %j] : memref<16x16xf16>
      memref.store %of_y, %y[%i, %j] : memref<16x16xf32>
    }
  }
  %start = gpu.wait async
  %there, %t0 = gpu.alloc async [%start] () : memref<16x16xf16>
  %sum, %t1 = gpu.alloc async [%t0] () : memref<16x16xf32>
  %t2 = gpu.memcpy async [%t1] %there, %x : memref<16x16xf16>, memref<16x16xf16>
  %t3 = gpu.memcpy async [%t2] %sum, %y : memref<16x16xf32>, memref<16x16xf32>
  %t4 = gpu.launch async [%t3] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %a = gpu.subgroup_mma_load_matrix %there[%c0, %c0] {leadDimension = 16 : index}
      : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    // x times its own transpose.
    %b = gpu.subgroup_mma_load_matrix %there[%c0, %c0] {leadDimension = 16 : index, transpose}
      : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %c = gpu.subgroup_mma_load_matrix %sum[%c0, %c0] {leadDimension = 16 : index}
      : memref<16x16xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
    %d = gpu.subgroup_mma_compute %a, %b, %c
      : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp">
      -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %d, %sum[%c0, %c0] {leadDimension = 16 : index}
      : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.terminator
  }
  %t5 = gpu.memcpy async [%t4] %y, %sum : memref<16x16xf32>, memref<16x16xf32>
  %t6 = gpu.dealloc async [%t5] %there : memref<16x16xf16>
  %t7 = gpu.dealloc async [%t6] %sum : memref<16x16xf32>
  gpu.wait [%t7]
  %any_y = memref.cast %y : memref<16x16xf32> to memref<*xf32>
  call @printMemrefF32(%any_y) : (memref<*xf32>) -> ()
  memref.dealloc %x : memref<16x16xf16>
  memref.dealloc %y : memref<16x16xf32>
  return
}
