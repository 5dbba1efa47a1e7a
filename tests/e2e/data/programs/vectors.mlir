// vector.print of what kernels computed, of every element type that it has a word for.
func.func @main() -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 6 : index
  %x = memref.alloc() : memref<6xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %whole = arith.index_cast %i : index to i32
    %number = arith.sitofp %whole : i32 to f32
    %three = arith.constant 3.0 : f32
    %value = arith.divf %number, %three : f32
    memref.store %value, %x[%i] : memref<6xf32>
  }
  %v = vector.load %x[%c0] : memref<6xf32>, vector<6xf32>
  vector.print %v : vector<6xf32>
  %table = vector.shape_cast %v : vector<6xf32> to vector<3x2xf32>
  vector.print %table : vector<3x2xf32>
  %f64 = arith.extf %v : vector<6xf32> to vector<6xf64>
  vector.print %f64 : vector<6xf64>
  %f16 = arith.truncf %v : vector<6xf32> to vector<6xf16>
  vector.print %f16 : vector<6xf16>
  %bf16 = arith.truncf %v : vector<6xf32> to vector<6xbf16>
  vector.print %bf16 : vector<6xbf16>
  %i8 = arith.fptosi %v : vector<6xf32> to vector<6xi8>
  vector.print %i8 : vector<6xi8>
  %one = arith.constant dense<1.0> : vector<6xf32>
  %is_less = arith.cmpf olt, %v, %one : vector<6xf32>
  vector.print %is_less : vector<6xi1>
  vector.print %n : index
  vector.print str "that was all\0A"
  memref.dealloc %x : memref<6xf32>
  return %n : index
}
