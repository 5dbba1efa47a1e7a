// A product of 16 x 4 by 4 x 8 in registered host memory: the module's schedule makes it one
// mma.sync of a warp (in tf32, which has these small integers).
func.func private @printMemrefF32(memref<*xf32>)

func.func private @fill(%x: memref<?x?xf32>, %first: i32, %step: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %rows step %c1 {
    scf.for %j = %c0 to %columns step %c1 {
      %scaled = arith.muli %i, %columns : index
      %place = arith.addi %scaled, %j : index
      %number = arith.index_cast %place : index to i32
      %part = arith.remsi %number, %step : i32
      %sum = arith.addi %part, %first : i32
      %v = arith.sitofp %sum : i32 to f32
      memref.store %v, %x[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

func.func @main() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %minus3 = arith.constant -3 : i32
  %0 = arith.constant 0 : i32
  %7 = arith.constant 7 : i32
  %5 = arith.constant 5 : i32
  %a = memref.alloc() : memref<16x4xf32>
  %b = memref.alloc() : memref<4x8xf32>
  %c = memref.alloc() : memref<16x8xf32>
  %dynamic_a = memref.cast %a : memref<16x4xf32> to memref<?x?xf32>
  %dynamic_b = memref.cast %b : memref<4x8xf32> to memref<?x?xf32>
  %dynamic_c = memref.cast %c : memref<16x8xf32> to memref<?x?xf32>
  call @fill(%dynamic_a, %0, %7) : (memref<?x?xf32>, i32, i32) -> ()
  call @fill(%dynamic_b, %minus3, %5) : (memref<?x?xf32>, i32, i32) -> ()
  call @fill(%dynamic_c, %0, %5) : (memref<?x?xf32>, i32, i32) -> ()
  %any_a = memref.cast %a : memref<16x4xf32> to memref<*xf32>
  %any_b = memref.cast %b : memref<4x8xf32> to memref<*xf32>
  %any_c = memref.cast %c : memref<16x8xf32> to memref<*xf32>
  gpu.host_register %any_a : memref<*xf32>
  gpu.host_register %any_b : memref<*xf32>
  gpu.host_register %any_c : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%a, %b : memref<16x4xf32>, memref<4x8xf32>) outs(%c : memref<16x8xf32>)
    gpu.terminator
  }
  call @printMemrefF32(%any_b) : (memref<*xf32>) -> ()
  call @printMemrefF32(%any_c) : (memref<*xf32>) -> ()
  gpu.host_unregister %any_a : memref<*xf32>
  gpu.host_unregister %any_b : memref<*xf32>
  gpu.host_unregister %any_c : memref<*xf32>
  memref.dealloc %a : memref<16x4xf32>
  memref.dealloc %b : memref<4x8xf32>
  memref.dealloc %c : memref<16x8xf32>
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_matmul_as_mma_sync %products : (!transform.any_op) -> ()
    transform.yield
  }
}
