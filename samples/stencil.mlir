// One step of heat diffusion in f64: each inner point moves towards the mean of its four
// neighbours; the border is copied. The sizes do not divide by those of a block.
func.func @heat(%old: memref<500x730xf64>, %new: memref<500x730xf64>, %rate: f64)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i, %j) = (0, 0) to (500, 730) {
    %value = affine.load %old[%i, %j] : memref<500x730xf64>
    affine.store %value, %new[%i, %j] : memref<500x730xf64>
  }
  affine.parallel (%i, %j) = (1, 1) to (499, 729) {
    %center = affine.load %old[%i, %j] : memref<500x730xf64>
    %north = affine.load %old[%i - 1, %j] : memref<500x730xf64>
    %south = affine.load %old[%i + 1, %j] : memref<500x730xf64>
    %west = affine.load %old[%i, %j - 1] : memref<500x730xf64>
    %east = affine.load %old[%i, %j + 1] : memref<500x730xf64>
    %four = arith.constant 4.0 : f64
    %ns = arith.addf %north, %south : f64
    %we = arith.addf %west, %east : f64
    %around = arith.addf %ns, %we : f64
    %here = arith.mulf %four, %center : f64
    %difference = arith.subf %around, %here : f64
    %change = arith.mulf %rate, %difference : f64
    %value = arith.addf %center, %change : f64
    affine.store %value, %new[%i, %j] : memref<500x730xf64>
  }
  return
}
