#id = affine_map<(i) -> (i)>
func.func @chain(%A: memref<?xf32>, %B: memref<?xf32>, %T: memref<?xf32>) attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%A : memref<?xf32>) outs(%T : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = arith.mulf %a, %a : f32
    linalg.yield %x : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%T : memref<?xf32>) outs(%B : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  }
  return
}
func.func @conv(%I: memref<1x10x10x3xf32>, %K: memref<3x3x3x8xf32>, %O: memref<1x8x8x8xf32>) attributes {llvm.emit_c_interface} {
  linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%I, %K : memref<1x10x10x3xf32>, memref<3x3x3x8xf32>) outs(%O : memref<1x8x8x8xf32>)
  return
}
func.func @pool(%I: memref<1x10x10x3xf32>, %O: memref<1x5x5x3xf32>) attributes {llvm.emit_c_interface} {
  %w = memref.alloc() : memref<2x2xf32>
  linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%I, %w : memref<1x10x10x3xf32>, memref<2x2xf32>) outs(%O : memref<1x5x5x3xf32>)
  memref.dealloc %w : memref<2x2xf32>
  return
}
func.func @dot(%x: memref<?xf32>, %y: memref<?xf32>, %o: memref<f32>) attributes {llvm.emit_c_interface} {
  linalg.dot ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%o : memref<f32>)
  return
}
func.func @transpose(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.transpose ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) permutation = [1, 0]
  return
}
func.func @bcast(%x: memref<?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.broadcast ins(%x : memref<?xf32>) outs(%y : memref<?x?xf32>) dimensions = [0]
  return
}
func.func @contract(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.contract indexing_maps = [affine_map<(m,n,k) -> (m,k)>, affine_map<(m,n,k) -> (k,n)>, affine_map<(m,n,k) -> (m,n)>] ins(%x, %y : memref<?x?xf32>, memref<?x?xf32>) outs(%z : memref<?x?xf32>)
  return
}
