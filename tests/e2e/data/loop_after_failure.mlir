// A loop until a kernel with tokens writes 10: the kernel fails at 3.
module attributes {gpu.container_module} {
  gpu.module @counting {
    gpu.func @count(%x: memref<1xi32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %old = memref.load %x[%i] : memref<1xi32>
      %new = arith.addi %old, %one : i32
      %is_good = arith.cmpi ne, %new, %three : i32
      cf.assert %is_good, "three"
      memref.store %new, %x[%i] : memref<1xi32>
      gpu.return
    }
  }
  func.func @tokens(%x: memref<1xi32>) attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ten = arith.constant 10 : i32
    scf.while : () -> () {
      %before = gpu.wait async
      %after = gpu.launch_func async [%before] @counting::@count
        blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<1xi32>)
      gpu.wait [%after]
      %v = memref.load %x[%c0] : memref<1xi32>
      %goes_on = arith.cmpi slt, %v, %ten : i32
      scf.condition(%goes_on)
    } do {
      scf.yield
    }
    return
  }
}
