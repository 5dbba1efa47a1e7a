// Reductions over a block, of every kind that has a name and of one that is written out: a block to
// each row of a table whose entry in column i of row r is 5 * r + 3 * i + 1.
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kinds = arith.constant 8 : index
  %rows = arith.constant 3 : index
  %columns = arith.constant 40 : index
  %table = memref.alloc() : memref<3x40xi32>
  scf.for %r = %c0 to %rows step %c1 {
    scf.for %i = %c0 to %columns step %c1 {
      %c3 = arith.constant 3 : index
      %c5 = arith.constant 5 : index
      %five = arith.muli %r, %c5 : index
      %three = arith.muli %i, %c3 : index
      %sum = arith.addi %five, %three : index
      %entry = arith.addi %sum, %c1 : index
      %value = arith.index_cast %entry : index to i32
      memref.store %value, %table[%r, %i] : memref<3x40xi32>
    }
  }
  %results = memref.alloc() : memref<8x3xi32>
  %table_any = memref.cast %table : memref<3x40xi32> to memref<*xi32>
  %results_any = memref.cast %results : memref<8x3xi32> to memref<*xi32>
  gpu.host_register %table_any : memref<*xi32>
  gpu.host_register %results_any : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %columns, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %k4 = arith.constant 4 : index
    %k5 = arith.constant 5 : index
    %k6 = arith.constant 6 : index
    %k7 = arith.constant 7 : index
    %v = memref.load %table[%bx, %tx] : memref<3x40xi32>
    %add = gpu.all_reduce add %v uniform {} : (i32) -> i32
    memref.store %add, %results[%k0, %bx] : memref<8x3xi32>
    // Of odd numbers, so that the product does not end in 32 zeros.
    %bit = arith.constant 1 : i32
    %odd = arith.ori %v, %bit : i32
    %mul = gpu.all_reduce mul %odd uniform {} : (i32) -> i32
    memref.store %mul, %results[%k1, %bx] : memref<8x3xi32>
    %min = gpu.all_reduce minsi %v uniform {} : (i32) -> i32
    memref.store %min, %results[%k2, %bx] : memref<8x3xi32>
    %max = gpu.all_reduce maxsi %v uniform {} : (i32) -> i32
    memref.store %max, %results[%k3, %bx] : memref<8x3xi32>
    %bits = arith.constant 0x510 : i32
    %with_bits = arith.ori %v, %bits : i32
    %and = gpu.all_reduce and %with_bits uniform {} : (i32) -> i32
    memref.store %and, %results[%k4, %bx] : memref<8x3xi32>
    %or = gpu.all_reduce or %v uniform {} : (i32) -> i32
    memref.store %or, %results[%k5, %bx] : memref<8x3xi32>
    %xor = gpu.all_reduce xor %v uniform {} : (i32) -> i32
    memref.store %xor, %results[%k6, %bx] : memref<8x3xi32>
    %written_out = gpu.all_reduce %v uniform {
    ^bb0(%left: i32, %right: i32):
      %both = arith.addi %left, %right : i32
      gpu.yield %both : i32
    } : (i32) -> i32
    memref.store %written_out, %results[%k7, %bx] : memref<8x3xi32>
    gpu.terminator
  }
  call @printMemrefI32(%results_any) : (memref<*xi32>) -> ()
  gpu.host_unregister %table_any : memref<*xi32>
  gpu.host_unregister %results_any : memref<*xi32>
  memref.dealloc %table : memref<3x40xi32>
  memref.dealloc %results : memref<8x3xi32>
  return
}
