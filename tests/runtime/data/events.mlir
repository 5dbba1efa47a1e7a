// Work of several threads that waits for each other: tokens become events.
module attributes {gpu.container_module} {
  gpu.module @binary {
    gpu.func @kernel(%a: memref<?xf32>) kernel {
      gpu.return
    }
  }
  func.func @fork(%n: index) {
    %t1, %r = async.execute -> !async.value<memref<?xf32>> {
      %b = gpu.alloc (%n) : memref<?xf32>
      gpu.launch_func @binary::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
          args(%b : memref<?xf32>)
      async.yield %b : memref<?xf32>
    }
    %t2 = async.execute [%t1] (%r as %x : !async.value<memref<?xf32>>) {
      gpu.launch_func @binary::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
          args(%x : memref<?xf32>)
      async.yield
    }
    %t3 = async.execute [%t1] (%r as %x : !async.value<memref<?xf32>>) {
      gpu.launch_func @binary::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
          args(%x : memref<?xf32>)
      async.yield
    }
    async.await %t2 : !async.token
    async.await %t3 : !async.token
    return
  }
}
