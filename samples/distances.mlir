// Squared distances of points (a row of four numbers each) from a center, in the vector dialect: a
// transfer to bring a row, arithmetic on it, and a reduction.
func.func @distances(%points: memref<?x4xf32>, %center: memref<4xf32>, %result: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %points, %c0 : memref<?x4xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %point = vector.transfer_read %points[%i, %c0], %zero {in_bounds = [true]}
        : memref<?x4xf32>, vector<4xf32>
    %middle = vector.transfer_read %center[%c0], %zero {in_bounds = [true]}
        : memref<4xf32>, vector<4xf32>
    %difference = arith.subf %point, %middle : vector<4xf32>
    %sum = vector.contract {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>,
                                             affine_map<(k) -> ()>],
                            iterator_types = ["reduction"], kind = #vector.kind<add>}
        %difference, %difference, %zero : vector<4xf32>, vector<4xf32> into f32
    memref.store %sum, %result[%i] : memref<?xf32>
  }
  return
}
