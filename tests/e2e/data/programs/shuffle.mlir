// Lanes of a warp exchange their numbers, in each of the four ways; where there is nobody to take a
// number from, they say -1.
func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c1 = arith.constant 1 : index
  %ways = arith.constant 4 : index
  %lanes = arith.constant 13 : index
  %seen = gpu.alloc host_shared () : memref<4x13xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %lanes, %sy = %c1, %sz = %c1) {
    %k0 = arith.constant 0 : index
    %k1 = arith.constant 1 : index
    %k2 = arith.constant 2 : index
    %k3 = arith.constant 3 : index
    %lane = arith.index_cast %tx : index to i32
    %own = arith.sitofp %lane : i32 to f32
    %nobody = arith.constant -1.0 : f32
    %width = arith.constant 13 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %x, %x_is = gpu.shuffle xor %own, %two, %width : f32
    %u, %u_is = gpu.shuffle up %own, %three, %width : f32
    %d, %d_is = gpu.shuffle down %own, %three, %width : f32
    %i, %i_is = gpu.shuffle idx %own, %two, %width : f32
    %x_or = arith.select %x_is, %x, %nobody : f32
    %u_or = arith.select %u_is, %u, %nobody : f32
    %d_or = arith.select %d_is, %d, %nobody : f32
    %i_or = arith.select %i_is, %i, %nobody : f32
    memref.store %x_or, %seen[%k0, %tx] : memref<4x13xf32>
    memref.store %u_or, %seen[%k1, %tx] : memref<4x13xf32>
    memref.store %d_or, %seen[%k2, %tx] : memref<4x13xf32>
    memref.store %i_or, %seen[%k3, %tx] : memref<4x13xf32>
    gpu.terminator
  }
  %any = memref.cast %seen : memref<4x13xf32> to memref<*xf32>
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  gpu.dealloc %seen : memref<4x13xf32>
  return
}
