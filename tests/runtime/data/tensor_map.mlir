// A TMA descriptor.
!descriptor = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b,
                                          l2promo = none, oob = zero, interleave = none>
module {
  func.func @describe(%a: memref<128x64xf16>) {
    %box = arith.constant 64 : index
    %unranked = memref.cast %a : memref<128x64xf16> to memref<*xf16>
    %map = nvgpu.tma.create.descriptor %unranked box[%box, %box] : memref<*xf16> -> !descriptor
    return
  }
}
