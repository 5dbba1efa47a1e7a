// Kernels of two modules take turns at one buffer; both are called alike.
module attributes {gpu.container_module} {
  gpu.module @counting {
    gpu.func @run(%x: memref<?xi64>) kernel {
      %i = gpu.thread_id x
      %value = arith.index_cast %i : index to i64
      memref.store %value, %x[%i] : memref<?xi64>
      gpu.return
    }
  }
  gpu.module @squaring {
    gpu.func @run(%x: memref<?xi64>) kernel {
      %i = gpu.thread_id x
      %value = memref.load %x[%i] : memref<?xi64>
      %square = arith.muli %value, %value : i64
      memref.store %square, %x[%i] : memref<?xi64>
      gpu.return
    }
  }
  func.func private @printMemrefI64(memref<*xi64>)

  func.func @main() {
    %c1 = arith.constant 1 : index
    %n = arith.constant 12 : index
    %x = memref.alloc(%n) : memref<?xi64>
    %any = memref.cast %x : memref<?xi64> to memref<*xi64>
    gpu.host_register %any : memref<*xi64>
    gpu.launch_func @counting::@run blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%x : memref<?xi64>)
    gpu.launch_func @squaring::@run blocks in (%c1, %c1, %c1) threads in (%n, %c1, %c1)
      args(%x : memref<?xi64>)
    func.call @printMemrefI64(%any) : (memref<*xi64>) -> ()
    gpu.host_unregister %any : memref<*xi64>
    memref.dealloc %x : memref<?xi64>
    return
  }
}
