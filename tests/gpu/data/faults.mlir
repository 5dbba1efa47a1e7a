// Kernels that fail. `stray` writes `distance` elements behind x; 0 is inside.
func.func @stray(%x: memref<256xf32>, %distance: index) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1.0 : f32
    %place = arith.addi %tx, %distance : index
    memref.store %one, %x[%place] : memref<256xf32>
    gpu.terminator
  }
  return
}

// The host goes on behind the kernel that fails: it launches another, and reads a buffer.
func.func @stray_and_on(%distance: index) -> f32 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %x = memref.alloc() : memref<256xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1.0 : f32
    %place = arith.addi %tx, %distance : index
    memref.store %one, %x[%place] : memref<256xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
    %two = arith.constant 2.0 : f32
    memref.store %two, %x[%tx] : memref<256xf32>
    gpu.terminator
  }
  %v = memref.load %x[%c0] : memref<256xf32>
  memref.dealloc %x : memref<256xf32>
  return %v : f32
}

// More threads than a block may have: the driver refuses the launch. 256 is good.
func.func @crowd(%x: memref<256xf32>, %threads: index) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1.0 : f32
    %c256 = arith.constant 256 : index
    %inside = arith.cmpi ult, %tx, %c256 : index
    scf.if %inside {
      memref.store %one, %x[%tx] : memref<256xf32>
    }
    gpu.terminator
  }
  return
}
