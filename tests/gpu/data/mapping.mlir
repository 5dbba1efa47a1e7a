// What loops are mapped to: rows by a block or a warp, totals in two kernels, tiles.

func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %max = scf.for %j = %c0 to %columns step %c1 iter_args(%m = %least) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %next = arith.maximumf %m, %v : f32
      scf.yield %next : f32
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      memref.store %e, %y[%i, %j] : memref<?x?xf32>
    }
    %sum = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
      %e = memref.load %y[%i, %j] : memref<?x?xf32>
      scf.reduce(%e : f32) {
      ^bb0(%l: f32, %r: f32):
        %s = arith.addf %l, %r : f32
        scf.reduce.return %s : f32
      }
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %e = memref.load %y[%i, %j] : memref<?x?xf32>
      %q = arith.divf %e, %sum : f32
      memref.store %q, %y[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

// y = x + its row's sum; then z = y, each row from its end: elements of other threads.
func.func @backwards(%x: memref<33x1025xf32>, %y: memref<33x1025xf32>, %z: memref<33x1025xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 33 : index
  %columns = arith.constant 1025 : index
  %end = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<33x1025xf32>
      %next = arith.addf %s, %v : f32
      scf.yield %next : f32
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<33x1025xf32>
      %w = arith.addf %v, %sum : f32
      memref.store %w, %y[%i, %j] : memref<33x1025xf32>
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %k = arith.subi %end, %j : index
      %w = memref.load %y[%i, %k] : memref<33x1025xf32>
      memref.store %w, %z[%i, %j] : memref<33x1025xf32>
    }
  }
  return
}

// A warp for each row: a mean, and what is above it.
func.func @above_mean(%x: memref<1000x31xf64>, %y: memref<1000x31xf64>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f64
  %n = arith.constant 31.0 : f64
  affine.for %i = 0 to 1000 {
    %sum = affine.for %j = 0 to 31 iter_args(%s = %zero) -> (f64) {
      %v = affine.load %x[%i, %j] : memref<1000x31xf64>
      %next = arith.addf %s, %v : f64
      affine.yield %next : f64
    }
    %mean = arith.divf %sum, %n : f64
    affine.for %j = 0 to 31 {
      %v = affine.load %x[%i, %j] : memref<1000x31xf64>
      %d = arith.subf %v, %mean : f64
      affine.store %d, %y[%i, %j] : memref<1000x31xf64>
    }
  }
  return
}

func.func @sum(%x: memref<?xf32>, %r: memref<f32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %v = affine.load %x[%i] : memref<?xf32>
    %s = affine.load %r[] : memref<f32>
    %next = arith.addf %s, %v : f32
    affine.store %next, %r[] : memref<f32>
  }
  return
}

func.func @largest(%x: memref<?xi32>, %r: memref<i32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %least = arith.constant -2147483648 : i32
  %n = memref.dim %x, %c0 : memref<?xi32>
  %max = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%least) -> i32 {
    %v = memref.load %x[%i] : memref<?xi32>
    scf.reduce(%v : i32) {
    ^bb0(%left: i32, %right: i32):
      %m = arith.maxsi %left, %right : i32
      scf.reduce.return %m : i32
    }
  }
  memref.store %max, %r[] : memref<i32>
  return
}

func.func @turn(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to %columns {
      %v = affine.load %x[%i, %j] : memref<?x?xf32>
      affine.store %v, %y[%j, %i] : memref<?x?xf32>
    }
  }
  return
}

// Blocks that somebody asked for.
func.func @blocks(%x: memref<?xf32>, %y: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %old = memref.load %y[%i] : memref<?xf32>
    %w = arith.addf %v, %old : f32
    memref.store %w, %y[%i] : memref<?xf32>
  } {aotc.block = array<i32: 32, 4, 2>}
  return
}
