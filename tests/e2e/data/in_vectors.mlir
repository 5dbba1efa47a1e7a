#a = affine_map<(i,j,k) -> (i,k)>
#b = affine_map<(i,j,k) -> (k,j)>
#c = affine_map<(i,j,k) -> (i,j)>
func.func @contract(%A: memref<16x8xf32>, %B: memref<8x16xf32>, %C: memref<16x16xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %a = vector.transfer_read %A[%c0, %c0], %z : memref<16x8xf32>, vector<16x8xf32>
  %b = vector.transfer_read %B[%c0, %c0], %z : memref<8x16xf32>, vector<8x16xf32>
  %c = vector.transfer_read %C[%c0, %c0], %z : memref<16x16xf32>, vector<16x16xf32>
  %d = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<16x8xf32>, vector<8x16xf32> into vector<16x16xf32>
  vector.transfer_write %d, %C[%c0, %c0] : vector<16x16xf32>, memref<16x16xf32>
  return
}
func.func @row_sums(%A: memref<1024x64xf32>, %B: memref<1024xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %z = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = vector.transfer_read %A[%i, %c0], %z : memref<1024x64xf32>, vector<1x64xf32>
    %acc = arith.constant dense<0.0> : vector<1xf32>
    %s = vector.multi_reduction <add>, %a, %acc [1] : vector<1x64xf32> to vector<1xf32>
    vector.transfer_write %s, %B[%i] : vector<1xf32>, memref<1024xf32>
  }
  return
}
