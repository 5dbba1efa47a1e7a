// What `--verify` finds: on the host, in kernels of loops, in bodies of linalg operations.
func.func @gather(%x: memref<?xf32>, %at: memref<?xindex>, %y: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %y, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %j = memref.load %at[%i] : memref<?xindex>
    %v = memref.load %x[%j] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  return
}
func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {llvm.emit_c_interface} {
  affine.for %i = 0 to %n {
    %v = affine.load %x[%i] : memref<?xf32>
    affine.store %v, %y[%i] : memref<?xf32>
  }
  return
}
func.func @sum(%x: memref<?xf32>, %y: memref<1xf32>, %n: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %both = arith.addf %a, %b : f32
      scf.reduce.return %both : f32
    }
  }
  memref.store %sum, %y[%c0] : memref<1xf32>
  return
}
func.func @take(%x: tensor<?xf32>, %at: tensor<?xindex>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %at, %c0 : tensor<?xindex>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]
    } ins(%at : tensor<?xindex>) outs(%empty : tensor<?xf32>) {
  ^bb0(%i: index, %old: f32):
    %v = tensor.extract %x[%i] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func private @of_eight(%x: memref<?xf32>) -> memref<8xf32> {
  %cast = memref.cast %x : memref<?xf32> to memref<8xf32>
  return %cast : memref<8xf32>
}
func.func @cast(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c7 = arith.constant 7 : index
  %zero = arith.constant 0.0 : f32
  %cast = call @of_eight(%x) : (memref<?xf32>) -> memref<8xf32>
  memref.store %zero, %cast[%c7] : memref<8xf32>
  return
}
// An index of each dimension may be wrong, in each of several accesses.
func.func @shift(%m: memref<?x?xf32>, %down: index, %right: index, %y: memref<2x4xf32>)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i, %j) = (0, 0) to (2, 4) {
    %v = affine.load %m[%i + symbol(%down), %j + symbol(%right)] : memref<?x?xf32>
    %w = affine.load %m[%i, %j] : memref<?x?xf32>
    %s = arith.addf %v, %w : f32
    affine.store %s, %y[%i, %j] : memref<2x4xf32>
  }
  return
}
func.func @window(%x: memref<?x?xf32>, %at: index, %count: index, %step: index) -> index attributes {llvm.emit_c_interface} {
  %window = memref.subview %x[%at, 1] [%count, 2] [%step, 1]
    : memref<?x?xf32> to memref<?x2xf32, strided<[?, 1], offset: ?>>
  %zero = arith.constant 0 : index
  %n = memref.dim %window, %zero : memref<?x2xf32, strided<[?, 1], offset: ?>>
  return %n : index
}
func.func @size(%x: memref<?x?xf32>, %number: index) -> index attributes {llvm.emit_c_interface} {
  %n = memref.dim %x, %number : memref<?x?xf32>
  return %n : index
}
