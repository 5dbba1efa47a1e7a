// Launches of every kind, with the image as a binary and as text for the driver's compiler.
module attributes {gpu.container_module} {
  gpu.module @binary {
    gpu.func @kernel(%a: memref<?xf32>) kernel {
      gpu.return
    }
  }
  gpu.module @assembly {
    gpu.func @kernel(%a: memref<?xf32>) kernel {
      gpu.return
    }
  }
  func.func @synchronous(%a: memref<?xf32>, %n: index, %bytes: i32) {
    gpu.launch_func @binary::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
        dynamic_shared_memory_size %bytes args(%a : memref<?xf32>)
    gpu.launch_func @assembly::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%a : memref<?xf32>)
    return
  }
  func.func @asynchronous(%a: memref<?xf32>, %n: index) {
    %first = gpu.wait async
    %second = gpu.launch_func async [%first] @binary::@kernel
        blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<?xf32>)
    gpu.wait [%second]
    return
  }
  func.func @clusters(%a: memref<?xf32>, %n: index) {
    %two = arith.constant 2 : index
    gpu.launch_func @binary::@kernel clusters in (%two, %two, %two)
        blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%a : memref<?xf32>)
    return
  }
  func.func @cooperative(%a: memref<?xf32>, %n: index) {
    %two = arith.constant 2 : index
    gpu.launch_func @binary::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) cooperative
        args(%a : memref<?xf32>)
    gpu.launch_func @binary::@kernel clusters in (%two, %two, %two)
        blocks in (%n, %n, %n) threads in (%n, %n, %n) cooperative args(%a : memref<?xf32>)
    return
  }
}
