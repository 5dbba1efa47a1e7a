// Every element type that has a C form: z = x * y + x on the GPU, and total += x in place.
// `scalars` gives a kernel one of each by value.
func.func @i1(%x: memref<?xi1>, %y: memref<?xi1>, %z: memref<?xi1>, %total: memref<?xi1>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi1>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xi1>
    %b = memref.load %y[%i] : memref<?xi1>
    %t = memref.load %total[%i] : memref<?xi1>
    %product = arith.andi %a, %b : i1
    %sum = arith.xori %product, %a : i1
    memref.store %sum, %z[%i] : memref<?xi1>
    %next = arith.xori %t, %a : i1
    memref.store %next, %total[%i] : memref<?xi1>
  }
  return
}

func.func @i8(%x: memref<?xi8>, %y: memref<?xi8>, %z: memref<?xi8>, %total: memref<?xi8>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi8>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xi8>
    %b = memref.load %y[%i] : memref<?xi8>
    %t = memref.load %total[%i] : memref<?xi8>
    %product = arith.muli %a, %b : i8
    %sum = arith.addi %product, %a : i8
    memref.store %sum, %z[%i] : memref<?xi8>
    %next = arith.addi %t, %a : i8
    memref.store %next, %total[%i] : memref<?xi8>
  }
  return
}

func.func @i16(%x: memref<?xi16>, %y: memref<?xi16>, %z: memref<?xi16>, %total: memref<?xi16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi16>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xi16>
    %b = memref.load %y[%i] : memref<?xi16>
    %t = memref.load %total[%i] : memref<?xi16>
    %product = arith.muli %a, %b : i16
    %sum = arith.addi %product, %a : i16
    memref.store %sum, %z[%i] : memref<?xi16>
    %next = arith.addi %t, %a : i16
    memref.store %next, %total[%i] : memref<?xi16>
  }
  return
}

func.func @i32(%x: memref<?xi32>, %y: memref<?xi32>, %z: memref<?xi32>, %total: memref<?xi32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xi32>
    %b = memref.load %y[%i] : memref<?xi32>
    %t = memref.load %total[%i] : memref<?xi32>
    %product = arith.muli %a, %b : i32
    %sum = arith.addi %product, %a : i32
    memref.store %sum, %z[%i] : memref<?xi32>
    %next = arith.addi %t, %a : i32
    memref.store %next, %total[%i] : memref<?xi32>
  }
  return
}

func.func @i64(%x: memref<?xi64>, %y: memref<?xi64>, %z: memref<?xi64>, %total: memref<?xi64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xi64>
    %b = memref.load %y[%i] : memref<?xi64>
    %t = memref.load %total[%i] : memref<?xi64>
    %product = arith.muli %a, %b : i64
    %sum = arith.addi %product, %a : i64
    memref.store %sum, %z[%i] : memref<?xi64>
    %next = arith.addi %t, %a : i64
    memref.store %next, %total[%i] : memref<?xi64>
  }
  return
}

func.func @index(%x: memref<?xindex>, %y: memref<?xindex>, %z: memref<?xindex>, %total: memref<?xindex>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xindex>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xindex>
    %b = memref.load %y[%i] : memref<?xindex>
    %t = memref.load %total[%i] : memref<?xindex>
    %product = arith.muli %a, %b : index
    %sum = arith.addi %product, %a : index
    memref.store %sum, %z[%i] : memref<?xindex>
    %next = arith.addi %t, %a : index
    memref.store %next, %total[%i] : memref<?xindex>
  }
  return
}

func.func @f16(%x: memref<?xf16>, %y: memref<?xf16>, %z: memref<?xf16>, %total: memref<?xf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf16>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xf16>
    %b = memref.load %y[%i] : memref<?xf16>
    %t = memref.load %total[%i] : memref<?xf16>
    %product = arith.mulf %a, %b : f16
    %sum = arith.addf %product, %a : f16
    memref.store %sum, %z[%i] : memref<?xf16>
    %next = arith.addf %t, %a : f16
    memref.store %next, %total[%i] : memref<?xf16>
  }
  return
}

func.func @bf16(%x: memref<?xbf16>, %y: memref<?xbf16>, %z: memref<?xbf16>, %total: memref<?xbf16>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xbf16>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xbf16>
    %b = memref.load %y[%i] : memref<?xbf16>
    %t = memref.load %total[%i] : memref<?xbf16>
    %product = arith.mulf %a, %b : bf16
    %sum = arith.addf %product, %a : bf16
    memref.store %sum, %z[%i] : memref<?xbf16>
    %next = arith.addf %t, %a : bf16
    memref.store %next, %total[%i] : memref<?xbf16>
  }
  return
}

func.func @f32(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>, %total: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xf32>
    %b = memref.load %y[%i] : memref<?xf32>
    %t = memref.load %total[%i] : memref<?xf32>
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %product, %a : f32
    memref.store %sum, %z[%i] : memref<?xf32>
    %next = arith.addf %t, %a : f32
    memref.store %next, %total[%i] : memref<?xf32>
  }
  return
}

func.func @f64(%x: memref<?xf64>, %y: memref<?xf64>, %z: memref<?xf64>, %total: memref<?xf64>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %y[%i] : memref<?xf64>
    %t = memref.load %total[%i] : memref<?xf64>
    %product = arith.mulf %a, %b : f64
    %sum = arith.addf %product, %a : f64
    memref.store %sum, %z[%i] : memref<?xf64>
    %next = arith.addf %t, %a : f64
    memref.store %next, %total[%i] : memref<?xf64>
  }
  return
}

func.func @c64(%x: memref<?xcomplex<f32>>, %y: memref<?xcomplex<f32>>, %z: memref<?xcomplex<f32>>, %total: memref<?xcomplex<f32>>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xcomplex<f32>>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xcomplex<f32>>
    %b = memref.load %y[%i] : memref<?xcomplex<f32>>
    %t = memref.load %total[%i] : memref<?xcomplex<f32>>
    %product = complex.mul %a, %b : complex<f32>
    %sum = complex.add %product, %a : complex<f32>
    memref.store %sum, %z[%i] : memref<?xcomplex<f32>>
    %next = complex.add %t, %a : complex<f32>
    memref.store %next, %total[%i] : memref<?xcomplex<f32>>
  }
  return
}

func.func @c128(%x: memref<?xcomplex<f64>>, %y: memref<?xcomplex<f64>>, %z: memref<?xcomplex<f64>>, %total: memref<?xcomplex<f64>>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xcomplex<f64>>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.load %x[%i] : memref<?xcomplex<f64>>
    %b = memref.load %y[%i] : memref<?xcomplex<f64>>
    %t = memref.load %total[%i] : memref<?xcomplex<f64>>
    %product = complex.mul %a, %b : complex<f64>
    %sum = complex.add %product, %a : complex<f64>
    memref.store %sum, %z[%i] : memref<?xcomplex<f64>>
    %next = complex.add %t, %a : complex<f64>
    memref.store %next, %total[%i] : memref<?xcomplex<f64>>
  }
  return
}

func.func @scalars(%a: i1, %b: i8, %c: i16, %d: i32, %e: i64, %f: f16,
                   %g: bf16, %h: f32, %i: f64, %j: index,
                   %all: memref<10x10xf64>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 10 : index
  scf.parallel (%column) = (%c0) to (%n) step (%c1) {
    %row0 = arith.constant 0 : index
    %wide0 = arith.uitofp %a : i1 to f64
    memref.store %wide0, %all[%row0, %column] : memref<10x10xf64>
    %row1 = arith.constant 1 : index
    %wide1 = arith.sitofp %b : i8 to f64
    memref.store %wide1, %all[%row1, %column] : memref<10x10xf64>
    %row2 = arith.constant 2 : index
    %wide2 = arith.sitofp %c : i16 to f64
    memref.store %wide2, %all[%row2, %column] : memref<10x10xf64>
    %row3 = arith.constant 3 : index
    %wide3 = arith.sitofp %d : i32 to f64
    memref.store %wide3, %all[%row3, %column] : memref<10x10xf64>
    %row4 = arith.constant 4 : index
    %wide4 = arith.sitofp %e : i64 to f64
    memref.store %wide4, %all[%row4, %column] : memref<10x10xf64>
    %row5 = arith.constant 5 : index
    %wide5 = arith.extf %f : f16 to f64
    memref.store %wide5, %all[%row5, %column] : memref<10x10xf64>
    %row6 = arith.constant 6 : index
    %wide6 = arith.extf %g : bf16 to f64
    memref.store %wide6, %all[%row6, %column] : memref<10x10xf64>
    %row7 = arith.constant 7 : index
    %wide7 = arith.extf %h : f32 to f64
    memref.store %wide7, %all[%row7, %column] : memref<10x10xf64>
    %row8 = arith.constant 8 : index
    %wide8 = arith.addf %i, %i : f64
    memref.store %wide8, %all[%row8, %column] : memref<10x10xf64>
    %row9 = arith.constant 9 : index
    %int9 = arith.index_cast %j : index to i64
    %wide9 = arith.sitofp %int9 : i64 to f64
    memref.store %wide9, %all[%row9, %column] : memref<10x10xf64>
  }
  return
}
