// What is bound by memory, in the forms that people bring: linalg on tensors, linalg on memrefs,
// and loops.

#id = affine_map<(i) -> (i)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#point = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>

// --- Elementwise: 2^28 f32 ---------------------------------------------------------------

func.func @axpy_tensors(%a: f32, %x: tensor<268435456xf32>, %y: tensor<268435456xf32>)
    -> tensor<268435456xf32> attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<268435456xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<268435456xf32>, tensor<268435456xf32>)
      outs(%empty : tensor<268435456xf32>) {
  ^bb0(%xi: f32, %yi: f32, %out: f32):
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    linalg.yield %s : f32
  } -> tensor<268435456xf32>
  return %r : tensor<268435456xf32>
}

// relu(a * b + c), operation by operation: fused into one kernel.
func.func @relu_tensors(%a: tensor<268435456xf32>, %b: tensor<268435456xf32>,
                        %c: tensor<268435456xf32>) -> tensor<268435456xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant dense<0.0> : tensor<268435456xf32>
  %ab = arith.mulf %a, %b : tensor<268435456xf32>
  %abc = arith.addf %ab, %c : tensor<268435456xf32>
  %r = arith.maximumf %abc, %zero : tensor<268435456xf32>
  return %r : tensor<268435456xf32>
}

func.func @axpy_memrefs(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%z : memref<?xf32>) {
  ^bb0(%xi: f32, %yi: f32, %out: f32):
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    linalg.yield %s : f32
  }
  return
}

// The same as relu_tensors, on buffers whose size nobody knows.
func.func @relu_memrefs(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>,
                        %r: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  %ab = memref.alloc(%n) : memref<?xf32>
  %abc = memref.alloc(%n) : memref<?xf32>
  linalg.mul ins(%a, %b : memref<?xf32>, memref<?xf32>) outs(%ab : memref<?xf32>)
  linalg.add ins(%ab, %c : memref<?xf32>, memref<?xf32>) outs(%abc : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%abc : memref<?xf32>) outs(%r : memref<?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %y = arith.maximumf %x, %zero : f32
    linalg.yield %y : f32
  }
  memref.dealloc %ab : memref<?xf32>
  memref.dealloc %abc : memref<?xf32>
  return
}

func.func @copy_memrefs(%x: memref<268435456xf32>, %y: memref<268435456xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.copy ins(%x : memref<268435456xf32>) outs(%y : memref<268435456xf32>)
  return
}

func.func @axpy_loops(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %xi = affine.load %x[%i] : memref<?xf32>
    %yi = affine.load %y[%i] : memref<?xf32>
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    affine.store %s, %z[%i] : memref<?xf32>
  }
  return
}

// --- Rows: 8192 x 8192 f32 ---------------------------------------------------------------

func.func @softmax_tensors(%x: tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<8192x8192xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<8192x8192xf32>)
      outs(%empty : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  return %r : tensor<8192x8192xf32>
}

func.func @softmax_parallel(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
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
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %next = arith.addf %s, %e : f32
      scf.yield %next : f32
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %q = arith.divf %e, %sum : f32
      memref.store %q, %y[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

func.func @softmax_memrefs(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}

func.func @softmax_loops(%x: memref<8192x8192xf32>, %y: memref<8192x8192xf32>)
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  affine.for %i = 0 to 8192 {
    %max = affine.for %j = 0 to 8192 iter_args(%m = %least) -> (f32) {
      %v = affine.load %x[%i, %j] : memref<8192x8192xf32>
      %next = arith.maximumf %m, %v : f32
      affine.yield %next : f32
    }
    %sum = affine.for %j = 0 to 8192 iter_args(%s = %zero) -> (f32) {
      %v = affine.load %x[%i, %j] : memref<8192x8192xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %next = arith.addf %s, %e : f32
      affine.yield %next : f32
    }
    affine.for %j = 0 to 8192 {
      %v = affine.load %x[%i, %j] : memref<8192x8192xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %q = arith.divf %e, %sum : f32
      affine.store %q, %y[%i, %j] : memref<8192x8192xf32>
    }
  }
  return
}

func.func @layer_norm_tensors(%x: tensor<8192x8192xf32>, %scale: tensor<8192xf32>,
                              %bias: tensor<8192xf32>) -> tensor<8192x8192xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 8192.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %rows = tensor.empty() : tensor<8192xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : tensor<8192xf32>) -> tensor<8192xf32>
  %sum = linalg.reduce {arith.addf} ins(%x : tensor<8192x8192xf32>)
      outs(%zeros : tensor<8192xf32>) dimensions = [1]
  %squares = linalg.generic {indexing_maps = [#point, #row, #row],
                             iterator_types = ["parallel", "reduction"]}
      ins(%x, %sum : tensor<8192x8192xf32>, tensor<8192xf32>) outs(%zeros : tensor<8192xf32>) {
  ^bb0(%v: f32, %s: f32, %out: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %dd = arith.mulf %d, %d : f32
    %next = arith.addf %out, %dd : f32
    linalg.yield %next : f32
  } -> tensor<8192xf32>
  %empty = tensor.empty() : tensor<8192x8192xf32>
  %r = linalg.generic {indexing_maps = [#point, #row, #row, #column, #column, #point],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %squares, %scale, %bias : tensor<8192x8192xf32>, tensor<8192xf32>,
          tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>)
      outs(%empty : tensor<8192x8192xf32>) {
  ^bb0(%v: f32, %s: f32, %q: f32, %g: f32, %b: f32, %out: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %variance = arith.divf %q, %n : f32
    %positive = arith.addf %variance, %epsilon : f32
    %factor = math.rsqrt %positive : f32
    %normal = arith.mulf %d, %factor : f32
    %scaled = arith.mulf %normal, %g : f32
    %shifted = arith.addf %scaled, %b : f32
    linalg.yield %shifted : f32
  } -> tensor<8192x8192xf32>
  return %r : tensor<8192x8192xf32>
}

// --- Sums: 2^30 f32 ----------------------------------------------------------------------

func.func @sum_tensors(%x: tensor<1073741824xf32>) -> tensor<f32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce {arith.addf} ins(%x : tensor<1073741824xf32>) outs(%start : tensor<f32>)
      dimensions = [0]
  return %r : tensor<f32>
}

func.func @sum_loops(%x: memref<?xf32>, %r: memref<f32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %sum = affine.for %i = 0 to %n iter_args(%s = %zero) -> (f32) {
    %v = affine.load %x[%i] : memref<?xf32>
    %next = arith.addf %s, %v : f32
    affine.yield %next : f32
  }
  affine.store %sum, %r[] : memref<f32>
  return
}

func.func @sum_parallel(%x: memref<?xf32>, %r: memref<f32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%left: f32, %right: f32):
      %s = arith.addf %left, %right : f32
      scf.reduce.return %s : f32
    }
  }
  memref.store %sum, %r[] : memref<f32>
  return
}

// --- Transposes: 8192 x 8192 and 16384 x 16384 f32 ---------------------------------------

func.func @transpose_tensors(%x: tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    attributes {llvm.emit_c_interface} {
  %empty = tensor.empty() : tensor<8192x8192xf32>
  %r = linalg.transpose ins(%x : tensor<8192x8192xf32>) outs(%empty : tensor<8192x8192xf32>)
      permutation = [1, 0]
  return %r : tensor<8192x8192xf32>
}

func.func @transpose_memrefs(%x: memref<16384x16384xf32>, %y: memref<16384x16384xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [#turned, #point], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<16384x16384xf32>) outs(%y : memref<16384x16384xf32>) {
  ^bb0(%v: f32, %out: f32):
    linalg.yield %v : f32
  }
  return
}

func.func @transpose_loops(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
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
