// Memory of every kind, copies, fills, registration, the default device.
module {
  func.func @stream_ordered(%a: memref<?xf32>, %n: index, %word: f32, %half: f16) {
    %start = gpu.wait async
    %words, %1 = gpu.alloc async [%start] (%n) : memref<?xf32>
    %halves, %2 = gpu.alloc async [%1] (%n) : memref<?xf16>
    %3 = gpu.memset async [%2] %words, %word : memref<?xf32>, f32
    %4 = gpu.memset async [%3] %halves, %half : memref<?xf16>, f16
    %5 = gpu.memcpy async [%4] %words, %a : memref<?xf32>, memref<?xf32>
    %other = gpu.wait async
    %joined = gpu.wait async [%5, %other]
    %6 = gpu.dealloc async [%joined] %words : memref<?xf32>
    %7 = gpu.dealloc async [%6] %halves : memref<?xf16>
    gpu.wait [%7]
    return
  }
  func.func @host_shared(%n: index) {
    %shared = gpu.alloc host_shared (%n) : memref<?xf64>
    gpu.dealloc %shared : memref<?xf64>
    return
  }
  func.func @registered(%a: memref<*xf32>) {
    gpu.host_register %a : memref<*xf32>
    gpu.host_unregister %a : memref<*xf32>
    return
  }
  func.func @device(%ordinal: i32) {
    gpu.set_default_device %ordinal
    return
  }
}
