// Memory by hand: gpu.alloc, gpu.memset, gpu.memcpy and gpu.dealloc around kernels of a
// hand-written gpu.module, in order, as a chain of tokens, and as two chains that meet.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @triple(%x: memref<1000xf32>) kernel {
      %three = arith.constant 3.0 : f32
      %n = arith.constant 1000 : index
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %width = gpu.block_dim x
      %first = arith.muli %b, %width : index
      %i = arith.addi %first, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %v = memref.load %x[%i] : memref<1000xf32>
        %tripled = arith.mulf %v, %three : f32
        memref.store %tripled, %x[%i] : memref<1000xf32>
      }
      gpu.return
    }
    gpu.func @add(%x: memref<1000xf32>, %y: memref<1000xf32>) kernel {
      %n = arith.constant 1000 : index
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %width = gpu.block_dim x
      %first = arith.muli %b, %width : index
      %i = arith.addi %first, %t : index
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %v = memref.load %x[%i] : memref<1000xf32>
        %w = memref.load %y[%i] : memref<1000xf32>
        %sum = arith.addf %v, %w : f32
        memref.store %sum, %y[%i] : memref<1000xf32>
      }
      gpu.return
    }
  }

  func.func @in_order(%x: memref<1000xf32>, %y: memref<1000xf32>)
      attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %one = arith.constant 1.0 : f32
    %device = gpu.alloc () : memref<1000xf32>
    %offset = gpu.alloc () : memref<1000xf32>
    gpu.memcpy %device, %x : memref<1000xf32>, memref<1000xf32>
    gpu.memset %offset, %one : memref<1000xf32>, f32
    gpu.launch_func @kernels::@triple blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%device: memref<1000xf32>)
    gpu.launch_func @kernels::@add blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%offset: memref<1000xf32>, %device: memref<1000xf32>)
    gpu.memcpy %y, %device : memref<1000xf32>, memref<1000xf32>
    gpu.dealloc %offset : memref<1000xf32>
    gpu.dealloc %device : memref<1000xf32>
    return
  }

  func.func @one_chain(%x: memref<1000xf32>, %y: memref<1000xf32>)
      attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %start = gpu.wait async
    %device, %t1 = gpu.alloc async [%start] () : memref<1000xf32>
    %t2 = gpu.memcpy async [%t1] %device, %x : memref<1000xf32>, memref<1000xf32>
    %t3 = gpu.launch_func async [%t2] @kernels::@triple
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%device: memref<1000xf32>)
    %t4 = gpu.launch_func async [%t3] @kernels::@triple
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%device: memref<1000xf32>)
    %t5 = gpu.memcpy async [%t4] %y, %device : memref<1000xf32>, memref<1000xf32>
    %t6 = gpu.dealloc async [%t5] %device : memref<1000xf32>
    gpu.wait [%t6]
    return
  }

  // Tripled on one stream, tripled twice on another, added when both are done.
  func.func @two_chains(%x: memref<1000xf32>, %y: memref<1000xf32>)
      attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %left = gpu.alloc () : memref<1000xf32>
    %right = gpu.alloc () : memref<1000xf32>
    %a0 = gpu.wait async
    %b0 = gpu.wait async
    %a1 = gpu.memcpy async [%a0] %left, %x : memref<1000xf32>, memref<1000xf32>
    %b1 = gpu.memcpy async [%b0] %right, %x : memref<1000xf32>, memref<1000xf32>
    %a2 = gpu.launch_func async [%a1] @kernels::@triple
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%left: memref<1000xf32>)
    %b2 = gpu.launch_func async [%b1] @kernels::@triple
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%right: memref<1000xf32>)
    %b3 = gpu.launch_func async [%b2] @kernels::@triple
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1) args(%right: memref<1000xf32>)
    %both = gpu.wait async [%a2, %b3]
    %sum = gpu.launch_func async [%both] @kernels::@add
        blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%left: memref<1000xf32>, %right: memref<1000xf32>)
    %done = gpu.memcpy async [%sum] %y, %right : memref<1000xf32>, memref<1000xf32>
    gpu.wait [%done]
    gpu.dealloc %left : memref<1000xf32>
    gpu.dealloc %right : memref<1000xf32>
    return
  }

  // Between host memory and the device's: what the host wrote, and what it reads back.
  func.func @through_host_memory(%scale: f32) -> f32 attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c256 = arith.constant 256 : index
    %n = arith.constant 1000 : index
    %zero = arith.constant 0.0 : f32
    %host = memref.alloc() : memref<1000xf32>
    scf.for %i = %c0 to %n step %c1 {
      %whole = arith.index_cast %i : index to i32
      %real = arith.sitofp %whole : i32 to f32
      %v = arith.mulf %real, %scale : f32
      memref.store %v, %host[%i] : memref<1000xf32>
    }
    %device = gpu.alloc () : memref<1000xf32>
    gpu.memcpy %device, %host : memref<1000xf32>, memref<1000xf32>
    gpu.launch_func @kernels::@triple blocks in (%c4, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%device: memref<1000xf32>)
    gpu.memcpy %host, %device : memref<1000xf32>, memref<1000xf32>
    gpu.dealloc %device : memref<1000xf32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%partial = %zero) -> (f32) {
      %v = memref.load %host[%i] : memref<1000xf32>
      %next = arith.addf %partial, %v : f32
      scf.yield %next : f32
    }
    memref.dealloc %host : memref<1000xf32>
    return %sum : f32
  }
}
