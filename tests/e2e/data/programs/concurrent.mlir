// Two kernels on two streams wait for each other: each adds 1 and goes on when it reads 2.
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @meet(%met: memref<i32>, %out: memref<2xi32>, %place: index) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %before = memref.atomic_rmw addi %c1, %met[] : (i32, memref<i32>) -> i32
    scf.while : () -> () {
      %now = memref.atomic_rmw addi %c0, %met[] : (i32, memref<i32>) -> i32
      %waits = arith.cmpi slt, %now, %c2 : i32
      scf.condition(%waits)
    } do {
      scf.yield
    }
    %number = arith.index_cast %place : index to i32
    %seen = memref.atomic_rmw addi %c0, %met[] : (i32, memref<i32>) -> i32
    %value = arith.addi %number, %seen : i32
    memref.store %value, %out[%place] : memref<2xi32>
    gpu.return
  }
}

func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %met = gpu.alloc host_shared () : memref<i32>
  %out = gpu.alloc host_shared () : memref<2xi32>
  memref.store %zero, %met[] : memref<i32>
  %first = gpu.wait async
  %second = gpu.wait async
  %one = gpu.launch_func async [%first] @kernels::@meet
      blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%met : memref<i32>, %out : memref<2xi32>, %c0 : index)
  %two = gpu.launch_func async [%second] @kernels::@meet
      blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%met : memref<i32>, %out : memref<2xi32>, %c1 : index)
  gpu.wait [%one, %two]
  %any = memref.cast %out : memref<2xi32> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  gpu.dealloc %met : memref<i32>
  gpu.dealloc %out : memref<2xi32>
  return
}
}
