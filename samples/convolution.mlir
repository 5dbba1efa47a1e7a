// A 2-D convolution of an image, rows by columns by channels, in linalg on memrefs. The
// result has two rows and two columns less than the image.
func.func @convolution(%image: memref<1x?x?x3xf32>, %filter: memref<3x3x3x8xf32>,
                       %result: memref<1x?x?x8xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%result : memref<1x?x?x8xf32>)
  linalg.conv_2d_nhwc_hwcf
      ins(%image, %filter : memref<1x?x?x3xf32>, memref<3x3x3x8xf32>)
      outs(%result : memref<1x?x?x8xf32>)
  return
}
