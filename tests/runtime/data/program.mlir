// A whole program: main returns 0 when fills, copies and the launch did what they should.
module attributes {gpu.container_module} {
  gpu.module @binary {
    gpu.func @kernel(%value: i32) kernel {
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %last = arith.constant 3 : index
    %word = arith.constant 305419896 : i32
    %short = arith.constant -2 : i16
    %words = memref.alloc() : memref<4xi32>
    %shorts = memref.alloc() : memref<4xi16>
    %start = gpu.wait async
    %device_words, %1 = gpu.alloc async [%start] () : memref<4xi32>
    %device_shorts, %2 = gpu.alloc async [%1] () : memref<4xi16>
    %3 = gpu.memset async [%2] %device_words, %word : memref<4xi32>, i32
    %4 = gpu.memset async [%3] %device_shorts, %short : memref<4xi16>, i16
    %5 = gpu.memcpy async [%4] %words, %device_words : memref<4xi32>, memref<4xi32>
    %6 = gpu.memcpy async [%5] %shorts, %device_shorts : memref<4xi16>, memref<4xi16>
    %7 = gpu.launch_func async [%6] @binary::@kernel blocks in (%two, %one, %one)
        threads in (%last, %one, %one) args(%word : i32)
    %8 = gpu.dealloc async [%7] %device_words : memref<4xi32>
    %9 = gpu.dealloc async [%8] %device_shorts : memref<4xi16>
    gpu.wait [%9]
    %shared = gpu.alloc host_shared () : memref<4xi32>
    memref.store %word, %shared[%last] : memref<4xi32>
    %read = memref.load %shared[%last] : memref<4xi32>
    gpu.dealloc %shared : memref<4xi32>
    gpu.launch_func @binary::@kernel blocks in (%two, %one, %one)
        threads in (%last, %one, %one) args(%word : i32)
    %got_word = memref.load %words[%last] : memref<4xi32>
    %got_short = memref.load %shorts[%last] : memref<4xi16>
    %word_is = arith.cmpi eq, %got_word, %word : i32
    %short_is = arith.cmpi eq, %got_short, %short : i16
    %read_is = arith.cmpi eq, %read, %word : i32
    %both = arith.andi %word_is, %short_is : i1
    %all = arith.andi %both, %read_is : i1
    %code = arith.select %all, %c0, %c1 : i32
    return %code : i32
  }
}
