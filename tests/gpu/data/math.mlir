// Math functions, a row of y for each: libdevice's on a GPU, the C library's on the CPU.
func.func @f32(%x: memref<?xf32>, %y: memref<24x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    %row0 = arith.constant 0 : index
    %exp = math.exp %v : f32
    memref.store %exp, %y[%row0, %i] : memref<24x?xf32>
    %row1 = arith.constant 1 : index
    %exp2 = math.exp2 %v : f32
    memref.store %exp2, %y[%row1, %i] : memref<24x?xf32>
    %row2 = arith.constant 2 : index
    %log = math.log %v : f32
    memref.store %log, %y[%row2, %i] : memref<24x?xf32>
    %row3 = arith.constant 3 : index
    %log2 = math.log2 %v : f32
    memref.store %log2, %y[%row3, %i] : memref<24x?xf32>
    %row4 = arith.constant 4 : index
    %log1p = math.log1p %v : f32
    memref.store %log1p, %y[%row4, %i] : memref<24x?xf32>
    %row5 = arith.constant 5 : index
    %expm1 = math.expm1 %v : f32
    memref.store %expm1, %y[%row5, %i] : memref<24x?xf32>
    %row6 = arith.constant 6 : index
    %sin = math.sin %v : f32
    memref.store %sin, %y[%row6, %i] : memref<24x?xf32>
    %row7 = arith.constant 7 : index
    %cos = math.cos %v : f32
    memref.store %cos, %y[%row7, %i] : memref<24x?xf32>
    %row8 = arith.constant 8 : index
    %tan = math.tan %v : f32
    memref.store %tan, %y[%row8, %i] : memref<24x?xf32>
    %row9 = arith.constant 9 : index
    %atan = math.atan %v : f32
    memref.store %atan, %y[%row9, %i] : memref<24x?xf32>
    %row10 = arith.constant 10 : index
    %asin = math.asin %v : f32
    memref.store %asin, %y[%row10, %i] : memref<24x?xf32>
    %row11 = arith.constant 11 : index
    %tanh = math.tanh %v : f32
    memref.store %tanh, %y[%row11, %i] : memref<24x?xf32>
    %row12 = arith.constant 12 : index
    %sqrt = math.sqrt %v : f32
    memref.store %sqrt, %y[%row12, %i] : memref<24x?xf32>
    %row13 = arith.constant 13 : index
    %rsqrt = math.rsqrt %v : f32
    memref.store %rsqrt, %y[%row13, %i] : memref<24x?xf32>
    %row14 = arith.constant 14 : index
    %cbrt = math.cbrt %v : f32
    memref.store %cbrt, %y[%row14, %i] : memref<24x?xf32>
    %row15 = arith.constant 15 : index
    %erf = math.erf %v : f32
    memref.store %erf, %y[%row15, %i] : memref<24x?xf32>
    %row16 = arith.constant 16 : index
    %absf = math.absf %v : f32
    memref.store %absf, %y[%row16, %i] : memref<24x?xf32>
    %row17 = arith.constant 17 : index
    %floor = math.floor %v : f32
    memref.store %floor, %y[%row17, %i] : memref<24x?xf32>
    %row18 = arith.constant 18 : index
    %ceil = math.ceil %v : f32
    memref.store %ceil, %y[%row18, %i] : memref<24x?xf32>
    %row19 = arith.constant 19 : index
    %round = math.round %v : f32
    memref.store %round, %y[%row19, %i] : memref<24x?xf32>
    %row20 = arith.constant 20 : index
    %roundeven = math.roundeven %v : f32
    memref.store %roundeven, %y[%row20, %i] : memref<24x?xf32>
    %row21 = arith.constant 21 : index
    %trunc = math.trunc %v : f32
    memref.store %trunc, %y[%row21, %i] : memref<24x?xf32>
    %row22 = arith.constant 22 : index
    %power = math.powf %v, %v : f32
    memref.store %power, %y[%row22, %i] : memref<24x?xf32>
    %row23 = arith.constant 23 : index
    %atan2 = math.atan2 %v, %exp : f32
    memref.store %atan2, %y[%row23, %i] : memref<24x?xf32>
  }
  return
}

func.func @f64(%x: memref<?xf64>, %y: memref<24x?xf64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xf64>
    %row0 = arith.constant 0 : index
    %exp = math.exp %v : f64
    memref.store %exp, %y[%row0, %i] : memref<24x?xf64>
    %row1 = arith.constant 1 : index
    %exp2 = math.exp2 %v : f64
    memref.store %exp2, %y[%row1, %i] : memref<24x?xf64>
    %row2 = arith.constant 2 : index
    %log = math.log %v : f64
    memref.store %log, %y[%row2, %i] : memref<24x?xf64>
    %row3 = arith.constant 3 : index
    %log2 = math.log2 %v : f64
    memref.store %log2, %y[%row3, %i] : memref<24x?xf64>
    %row4 = arith.constant 4 : index
    %log1p = math.log1p %v : f64
    memref.store %log1p, %y[%row4, %i] : memref<24x?xf64>
    %row5 = arith.constant 5 : index
    %expm1 = math.expm1 %v : f64
    memref.store %expm1, %y[%row5, %i] : memref<24x?xf64>
    %row6 = arith.constant 6 : index
    %sin = math.sin %v : f64
    memref.store %sin, %y[%row6, %i] : memref<24x?xf64>
    %row7 = arith.constant 7 : index
    %cos = math.cos %v : f64
    memref.store %cos, %y[%row7, %i] : memref<24x?xf64>
    %row8 = arith.constant 8 : index
    %tan = math.tan %v : f64
    memref.store %tan, %y[%row8, %i] : memref<24x?xf64>
    %row9 = arith.constant 9 : index
    %atan = math.atan %v : f64
    memref.store %atan, %y[%row9, %i] : memref<24x?xf64>
    %row10 = arith.constant 10 : index
    %asin = math.asin %v : f64
    memref.store %asin, %y[%row10, %i] : memref<24x?xf64>
    %row11 = arith.constant 11 : index
    %tanh = math.tanh %v : f64
    memref.store %tanh, %y[%row11, %i] : memref<24x?xf64>
    %row12 = arith.constant 12 : index
    %sqrt = math.sqrt %v : f64
    memref.store %sqrt, %y[%row12, %i] : memref<24x?xf64>
    %row13 = arith.constant 13 : index
    %rsqrt = math.rsqrt %v : f64
    memref.store %rsqrt, %y[%row13, %i] : memref<24x?xf64>
    %row14 = arith.constant 14 : index
    %cbrt = math.cbrt %v : f64
    memref.store %cbrt, %y[%row14, %i] : memref<24x?xf64>
    %row15 = arith.constant 15 : index
    %erf = math.erf %v : f64
    memref.store %erf, %y[%row15, %i] : memref<24x?xf64>
    %row16 = arith.constant 16 : index
    %absf = math.absf %v : f64
    memref.store %absf, %y[%row16, %i] : memref<24x?xf64>
    %row17 = arith.constant 17 : index
    %floor = math.floor %v : f64
    memref.store %floor, %y[%row17, %i] : memref<24x?xf64>
    %row18 = arith.constant 18 : index
    %ceil = math.ceil %v : f64
    memref.store %ceil, %y[%row18, %i] : memref<24x?xf64>
    %row19 = arith.constant 19 : index
    %round = math.round %v : f64
    memref.store %round, %y[%row19, %i] : memref<24x?xf64>
    %row20 = arith.constant 20 : index
    %roundeven = math.roundeven %v : f64
    memref.store %roundeven, %y[%row20, %i] : memref<24x?xf64>
    %row21 = arith.constant 21 : index
    %trunc = math.trunc %v : f64
    memref.store %trunc, %y[%row21, %i] : memref<24x?xf64>
    %row22 = arith.constant 22 : index
    %power = math.powf %v, %v : f64
    memref.store %power, %y[%row22, %i] : memref<24x?xf64>
    %row23 = arith.constant 23 : index
    %atan2 = math.atan2 %v, %exp : f64
    memref.store %atan2, %y[%row23, %i] : memref<24x?xf64>
  }
  return
}
