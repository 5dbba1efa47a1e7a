// A function that is called launches, with sizes that are known when it runs; what it gets and what
// it leaves is printed.
func.func private @printMemrefF64(memref<*xf64>) attributes {llvm.emit_c_interface}

func.func @scale(%x: memref<?x?xf64>, %factor: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf64>
  %columns = memref.dim %x, %c1 : memref<?x?xf64>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %rows, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %columns, %sy = %c1, %sz = %c1) {
    %old = memref.load %x[%bx, %tx] : memref<?x?xf64>
    %new = arith.mulf %old, %factor : f64
    memref.store %new, %x[%bx, %tx] : memref<?x?xf64>
    gpu.terminator
  }
  return
}

func.func @main() {
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %value = arith.constant 1.25 : f64
  %half = arith.constant 0.5 : f64
  %third = arith.constant 0.333333333333 : f64
  %x = memref.alloc(%c2, %c5) : memref<?x?xf64>
  linalg.fill ins(%value : f64) outs(%x : memref<?x?xf64>)
  %any = memref.cast %x : memref<?x?xf64> to memref<*xf64>
  call @scale(%x, %half) : (memref<?x?xf64>, f64) -> ()
  call @printMemrefF64(%any) : (memref<*xf64>) -> ()
  call @scale(%x, %third) : (memref<?x?xf64>, f64) -> ()
  call @printMemrefF64(%any) : (memref<*xf64>) -> ()
  memref.dealloc %x : memref<?x?xf64>
  return
}
