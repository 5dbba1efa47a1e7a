// Buffers that are not packed rows: an offset and padding, columns first, strides that arrive
// with the memref. And three dimensions that divide by nothing.
func.func @padded(%x: memref<37x53xf32, strided<[64, 1], offset: 5>>,
                  %y: memref<37x53xf32, strided<[1, 37]>>)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i, %j) = (0, 0) to (37, 53) {
    %v = affine.load %x[%i, %j] : memref<37x53xf32, strided<[64, 1], offset: 5>>
    %doubled = arith.addf %v, %v : f32
    affine.store %doubled, %y[%i, %j] : memref<37x53xf32, strided<[1, 37]>>
  }
  return
}

func.func @any_layout(%x: memref<?x?xf64, strided<[?, ?], offset: ?>>,
                      %y: memref<?x?xf64, strided<[?, ?], offset: ?>>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf64, strided<[?, ?], offset: ?>>
  %n = memref.dim %x, %c1 : memref<?x?xf64, strided<[?, ?], offset: ?>>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf64, strided<[?, ?], offset: ?>>
    memref.store %v, %y[%j, %i] : memref<?x?xf64, strided<[?, ?], offset: ?>>
  }
  return
}

func.func @box(%x: memref<?x?x?xi32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %l = memref.dim %x, %c0 : memref<?x?x?xi32>
  %m = memref.dim %x, %c1 : memref<?x?x?xi32>
  %n = memref.dim %x, %c2 : memref<?x?x?xi32>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%l, %m, %n) step (%c1, %c1, %c1) {
    %rows = arith.muli %i, %m : index
    %row = arith.addi %rows, %j : index
    %places = arith.muli %row, %n : index
    %place = arith.addi %places, %k : index
    %v = arith.index_cast %place : index to i32
    memref.store %v, %x[%i, %j, %k] : memref<?x?x?xi32>
  }
  return
}

func.func @point(%x: memref<f32>, %y: memref<1xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    %v = memref.load %x[] : memref<f32>
    memref.store %v, %y[%i] : memref<1xf32>
  }
  return
}

// More rows than a grid of blocks reaches along y.
func.func @tall(%x: memref<?x?xi8>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xi8>
  %n = memref.dim %x, %c1 : memref<?x?xi8>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %sum = arith.addi %i, %j : index
    %v = arith.index_cast %sum : index to i8
    memref.store %v, %x[%i, %j] : memref<?x?xi8>
  }
  return
}
