// Functions that are tasks: one allocates, with a token beside the memory, and one launches.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
async.func @allocate(%n: index) -> (!async.token, !async.value<memref<?xf32>>) {
  %memory = memref.alloc(%n) : memref<?xf32>
  return %memory : memref<?xf32>
}
async.func @fill(%x: memref<?xf32>, %v: f32) -> !async.token {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    memref.store %v, %x[%tx] : memref<?xf32>
    gpu.terminator
  }
  return
}
func.func @main() {
  %n = arith.constant 6 : index
  %v = arith.constant 1.5 : f32
  %t, %value = async.call @allocate(%n) : (index) -> (!async.token, !async.value<memref<?xf32>>)
  async.await %t : !async.token
  %x = async.await %value : !async.value<memref<?xf32>>
  %f = async.call @fill(%x, %v) : (memref<?xf32>, f32) -> !async.token
  async.await %f : !async.token
  %u = memref.cast %x : memref<?xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  memref.dealloc %x : memref<?xf32>
  return
}
