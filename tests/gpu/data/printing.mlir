// gpu.printf, from threads that tell who they are.
func.func @hello(%count: index, %x: f64) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %count, %sy = %c1, %sz = %c1) {
    gpu.printf "thread %lld says %f\n", %tx, %x : index, f64
    gpu.terminator
  }
  return
}
