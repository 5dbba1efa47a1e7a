// Assertions of kernels: in one whose threads wait for each other, in one whose do not, in a
// function of the device, and a trap.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @meeting(%x: memref<?xi32>, %limit: i32) kernel {
      %b = gpu.block_id x
      %d = gpu.block_dim x
      %t = gpu.thread_id x
      %c1 = arith.constant 1 : i32
      %c32 = arith.constant 32 : i32
      %first = arith.muli %b, %d : index
      %i = arith.addi %first, %t : index
      %v = memref.load %x[%i] : memref<?xi32>
      %before, %ok = gpu.shuffle xor %v, %c1, %c32 : i32
      %is_small = arith.cmpi slt, %before, %limit : i32
      cf.assert %is_small, "the neighbour is \"small\" (100%)"
      gpu.barrier
      memref.store %before, %x[%i] : memref<?xi32>
      gpu.return
    }
    func.func private @check(%v: i32, %limit: i32) -> i32 {
      %is_small = arith.cmpi slt, %v, %limit : i32
      cf.assert %is_small, "small"
      return %v : i32
    }
    gpu.func @alone(%x: memref<?xi32>, %limit: i32) kernel {
      %i = gpu.global_id x
      %v = memref.load %x[%i] : memref<?xi32>
      %checked = func.call @check(%v, %limit) : (i32, i32) -> i32
      %twice = arith.addi %checked, %v : i32
      memref.store %twice, %x[%i] : memref<?xi32>
      gpu.return
    }
    gpu.func @trapping(%x: memref<?xi32>, %limit: i32) kernel {
      %i = gpu.global_id x
      %v = memref.load %x[%i] : memref<?xi32>
      %is_large = arith.cmpi sge, %v, %limit : i32
      scf.if %is_large {
        llvm.intr.trap
      }
      gpu.return
    }
  }
  func.func @meeting(%x: memref<?xi32>, %limit: i32) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c50 = arith.constant 50 : index
    gpu.launch_func @kernels::@meeting blocks in (%c3, %c1, %c1) threads in (%c50, %c1, %c1)
      args(%x : memref<?xi32>, %limit : i32)
    return
  }
  func.func @alone(%x: memref<?xi32>, %limit: i32) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c50 = arith.constant 50 : index
    gpu.launch_func @kernels::@alone blocks in (%c3, %c1, %c1) threads in (%c50, %c1, %c1)
      args(%x : memref<?xi32>, %limit : i32)
    return
  }
  func.func @trapping(%x: memref<?xi32>, %limit: i32) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c50 = arith.constant 50 : index
    gpu.launch_func @kernels::@trapping blocks in (%c3, %c1, %c1) threads in (%c50, %c1, %c1)
      args(%x : memref<?xi32>, %limit : i32)
    return
  }
}
