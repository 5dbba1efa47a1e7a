// Memory that host and kernels share: buffers that both touch in turn, host memory that is
// registered, a constant table, results that the entry allocates, a small buffer on the stack.
memref.global "private" constant @table : memref<8xi32> = dense<[3, 1, 4, 1, 5, 9, 2, 6]>

// The host doubles what the kernel added to, `rounds` times over.
func.func @in_turn(%x: memref<?xi64>, %rounds: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi64>
  scf.for %round = %c0 to %rounds step %c1 {
    %add = arith.index_cast %round : index to i64
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xi64>
      %sum = arith.addi %v, %add : i64
      memref.store %sum, %x[%i] : memref<?xi64>
    }
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %x[%i] : memref<?xi64>
      %doubled = arith.addi %v, %v : i64
      memref.store %doubled, %x[%i] : memref<?xi64>
    }
  }
  return
}

func.func @registered(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %doubled = arith.addf %v, %v : f32
    memref.store %doubled, %x[%i] : memref<?xf32>
  }
  gpu.host_unregister %any : memref<*xf32>
  return
}

// The buffer is the entry's own: it is written by the host, and summed by it behind the kernel.
func.func @registered_here(%n: index) -> i64 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %buffer = memref.alloc(%n) : memref<?xi64>
  %any = memref.cast %buffer : memref<?xi64> to memref<*xi64>
  gpu.host_register %any : memref<*xi64>
  scf.for %i = %c0 to %n step %c1 {
    %v = arith.index_cast %i : index to i64
    memref.store %v, %buffer[%i] : memref<?xi64>
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %buffer[%i] : memref<?xi64>
    %square = arith.muli %v, %v : i64
    memref.store %square, %buffer[%i] : memref<?xi64>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%partial = %zero) -> (i64) {
    %v = memref.load %buffer[%i] : memref<?xi64>
    %next = arith.addi %partial, %v : i64
    scf.yield %next : i64
  }
  gpu.host_unregister %any : memref<*xi64>
  memref.dealloc %buffer : memref<?xi64>
  return %sum : i64
}

func.func @from_table(%x: memref<?xi32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %table = memref.get_global @table : memref<8xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %place = arith.remui %i, %c8 : index
    %v = memref.load %table[%place] : memref<8xi32>
    memref.store %v, %x[%i] : memref<?xi32>
  }
  return
}

// One result that a kernel wrote, one that only the host knows.
func.func @returned(%n: index) -> (memref<?xi32>, memref<?xf64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant 0.5 : f64
  %a = memref.alloc(%n) : memref<?xi32>
  %b = memref.alloc(%n) : memref<?xf64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = arith.index_cast %i : index to i32
    memref.store %v, %a[%i] : memref<?xi32>
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %half, %b[%i] : memref<?xf64>
  }
  return %a, %b : memref<?xi32>, memref<?xf64>
}

func.func @on_the_stack(%first: i32) -> i32 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 300 : index
  %zero = arith.constant 0 : i32
  %buffer = memref.alloca() : memref<300xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = arith.index_cast %i : index to i32
    %sum = arith.addi %v, %first : i32
    memref.store %sum, %buffer[%i] : memref<300xi32>
  }
  %total = scf.for %i = %c0 to %n step %c1 iter_args(%partial = %zero) -> (i32) {
    %v = memref.load %buffer[%i] : memref<300xi32>
    %next = arith.addi %partial, %v : i32
    scf.yield %next : i32
  }
  return %total : i32
}
