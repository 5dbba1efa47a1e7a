// A buffer that a kernel wrote is copied without its rank being known, from columns to rows, and
// compared with itself.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func private @verifyMemRefF32(memref<*xf32>, memref<*xf32>) -> i64
    attributes {llvm.emit_c_interface}

func.func @copy(%from: memref<*xf32>, %to: memref<*xf32>) attributes {no_inline} {
  memref.copy %from, %to : memref<*xf32> to memref<*xf32>
  return
}

func.func @main() -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 3 : index
  %columns = arith.constant 4 : index
  %x = memref.alloc() : memref<3x4xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
    %ten = arith.constant 10 : index
    %tens = arith.muli %i, %ten : index
    %sum = arith.addi %tens, %j : index
    %whole = arith.index_cast %sum : index to i32
    %value = arith.sitofp %whole : i32 to f32
    memref.store %value, %x[%i, %j] : memref<3x4xf32>
  }
  %turned = memref.transpose %x (i, j) -> (j, i)
    : memref<3x4xf32> to memref<4x3xf32, strided<[1, 4]>>
  %y = memref.alloc() : memref<4x3xf32>
  %from = memref.cast %turned : memref<4x3xf32, strided<[1, 4]>> to memref<*xf32>
  %to = memref.cast %y : memref<4x3xf32> to memref<*xf32>
  call @copy(%from, %to) : (memref<*xf32>, memref<*xf32>) -> ()
  call @printMemrefF32(%from) : (memref<*xf32>) -> ()
  call @printMemrefF32(%to) : (memref<*xf32>) -> ()
  %errors = call @verifyMemRefF32(%to, %to) : (memref<*xf32>, memref<*xf32>) -> i64
  memref.dealloc %x : memref<3x4xf32>
  memref.dealloc %y : memref<4x3xf32>
  return %errors : i64
}
