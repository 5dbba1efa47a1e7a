// Two copies into workgroup memory that the module's schedule makes TMA loads, with all that
// belongs to them: descriptors, a barrier, one thread that asks, all that wait.
memref.global "private" @left : memref<64x8xf32, #gpu.address_space<workgroup>>
memref.global "private" @right : memref<8x128xf32, #gpu.address_space<workgroup>>

func.func @tma_schedule(%x: memref<64x8xf32>, %y: memref<8x128xf32>, %z: memref<64x128xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %f0 = arith.constant 0.0 : f32
    %left = memref.get_global @left : memref<64x8xf32, #gpu.address_space<workgroup>>
    %right = memref.get_global @right : memref<8x128xf32, #gpu.address_space<workgroup>>
    linalg.copy ins(%x : memref<64x8xf32>)
                outs(%left : memref<64x8xf32, #gpu.address_space<workgroup>>)
    linalg.copy ins(%y : memref<8x128xf32>)
                outs(%right : memref<8x128xf32, #gpu.address_space<workgroup>>)
    scf.for %i = %c0 to %c64 step %one {
      %sum = scf.for %k = %c0 to %c8 step %one iter_args(%so_far = %f0) -> (f32) {
        %a = memref.load %left[%i, %k] : memref<64x8xf32, #gpu.address_space<workgroup>>
        %b = memref.load %right[%k, %t] : memref<8x128xf32, #gpu.address_space<workgroup>>
        %ab = arith.mulf %a, %b : f32
        %next = arith.addf %so_far, %ab : f32
        scf.yield %next : f32
      }
      memref.store %sum, %z[%i, %t] : memref<64x128xf32>
    }
    gpu.terminator
  }
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %copies = transform.structured.match ops{["linalg.copy"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_copy_as_tma %copies : (!transform.any_op) -> ()
    transform.yield
  }
}
