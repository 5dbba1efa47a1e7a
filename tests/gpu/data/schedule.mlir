// Kernels that the module's own schedule (transform.nvgpu) turns into what tensor cores and
// asynchronous copies do: on GPUs from Ampere on, and on the CPU.
func.func @f32(%a: memref<16x4xf32>, %b: memref<4x8xf32>, %c: memref<16x8xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%a, %b : memref<16x4xf32>, memref<4x8xf32>) outs(%c : memref<16x8xf32>)
    gpu.terminator
  }
  return
}

func.func @f16(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf16>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    linalg.matmul ins(%a, %b : memref<16x16xf16>, memref<16x8xf16>) outs(%c : memref<16x8xf16>)
    gpu.terminator
  }
  return
}

// Column sums: a loop whose copies are fetched some rounds ahead.
func.func @pipelined(%x: memref<16x128xf32>, %sums: memref<128xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%rows : memref<4x128xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %f0 = arith.constant 0.0 : f32
    %nothing = arith.constant dense<0.0> : vector<4xf32>
    %at = arith.muli %t, %c4 : index
    %all = scf.for %i = %c0 to %c16 step %one iter_args(%so_far = %nothing) -> (vector<4xf32>) {
      %place = arith.remui %i, %c4 : index
      %token = nvgpu.device_async_copy %x[%i, %at], %rows[%place, %at], 4 {bypassL1}
        : memref<16x128xf32> to memref<4x128xf32, #gpu.address_space<workgroup>>
      %group = nvgpu.device_async_create_group %token
      nvgpu.device_async_wait %group
      %row = vector.transfer_read %rows[%place, %at], %f0 {in_bounds = [true]}
        : memref<4x128xf32, #gpu.address_space<workgroup>>, vector<4xf32>
      %next = arith.addf %so_far, %row : vector<4xf32>
      scf.yield %next : vector<4xf32>
    }
    vector.store %all, %sums[%at] : memref<128xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}

// Turns 32 pieces of 4 around: the copies become cp.async.
func.func @asynchronous(%x: memref<128xf32>, %y: memref<128xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%row : memref<128xf32, #gpu.address_space<workgroup>>) {
    %c4 = arith.constant 4 : index
    %c124 = arith.constant 124 : index
    %f0 = arith.constant 0.0 : f32
    %at = arith.muli %t, %c4 : index
    %piece = vector.transfer_read %x[%at], %f0 {in_bounds = [true]}
      : memref<128xf32>, vector<4xf32>
    vector.transfer_write %piece, %row[%at] {in_bounds = [true]}
      : vector<4xf32>, memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %from = arith.subi %c124, %at : index
    %other = vector.load %row[%from] : memref<128xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    vector.store %other, %y[%at] : memref<128xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["linalg.matmul"]} in %root
      : (!transform.any_op) -> !transform.any_op
    transform.nvgpu.rewrite_matmul_as_mma_sync %products : (!transform.any_op) -> ()
    %function = transform.structured.match ops{["func.func"]}
      attributes {sym_name = "asynchronous"} in %root : (!transform.any_op) -> !transform.any_op
    %grouped = transform.nvgpu.create_async_groups %function {bypass_l1}
      : (!transform.any_op) -> !transform.any_op
    %loop = transform.structured.match ops{["scf.for"]} in %root
      : (!transform.any_op) -> !transform.any_op
    %piped = transform.nvgpu.pipeline_shared_memory_copies failures(propagate) %loop {depth = 4}
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
