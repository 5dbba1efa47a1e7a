// y = a * x + y as it is after outlining: a gpu.module with its kernel, and a launch of so many
// blocks of 128 threads as the length needs.
module attributes {gpu.container_module} {
  gpu.module @saxpy_kernels {
    gpu.func @saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      %i = gpu.global_id x
      %is_there = arith.cmpi ult, %i, %n : index
      scf.if %is_there {
        %v = memref.load %x[%i] : memref<?xf32>
        %w = memref.load %y[%i] : memref<?xf32>
        %product = arith.mulf %a, %v : f32
        %sum = arith.addf %product, %w : f32
        memref.store %sum, %y[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
  func.func @saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>)
      attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %threads = arith.constant 128 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %needed = arith.ceildivui %n, %threads : index
    // A launch has a block at least.
    %blocks = arith.maxui %needed, %c1 : index
    gpu.launch_func @saxpy_kernels::@saxpy
        blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1)
        args(%a : f32, %x : memref<?xf32>, %y : memref<?xf32>)
    return
  }
}
