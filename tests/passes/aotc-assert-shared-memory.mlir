// RUN: aotc-assert-shared-memory
// A launch gives its kernel the dynamic shared memory that it uses: 260 bytes, up to its view's end
// in the function that it calls; at least one where the end is not known; nothing is asserted of a
// kernel that may do without it, by a condition around the call or a loop that may be empty.
module attributes {gpu.container_module} {
gpu.module @device {
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  func.func @read(%i: index) -> f32 {
    %c4 = arith.constant 4 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %memory[%c4][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
    %x = memref.load %tile[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    return %x : f32
  }
  gpu.func @view(%out: memref<64xf32>) kernel {
    %i = gpu.thread_id x
    %x = func.call @read(%i) : (index) -> f32
    memref.store %x, %out[%i] : memref<64xf32>
    gpu.return
  }
  gpu.func @maybe(%out: memref<64xf32>, %flag: i1) kernel {
    %i = gpu.thread_id x
    scf.if %flag {
      %x = func.call @read(%i) : (index) -> f32
      memref.store %x, %out[%i] : memref<64xf32>
    }
    gpu.return
  }
  gpu.func @second(%out: memref<64xf32>, %flag: i1) kernel {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %i = gpu.thread_id x
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %small = memref.view %memory[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64xf32, #gpu.address_space<workgroup>>
    %large = memref.view %memory[%c256][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1024xf32, #gpu.address_space<workgroup>>
    %x = memref.load %small[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    scf.if %flag {
      memref.store %x, %large[%i] : memref<1024xf32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
  gpu.func @loop(%out: memref<64xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %tile = memref.view %memory[%c0][%n] : memref<?xi8, #gpu.address_space<workgroup>> to memref<?xf32, #gpu.address_space<workgroup>>
    scf.for %i = %c0 to %n step %c1 {
      %x = memref.load %tile[%i] : memref<?xf32, #gpu.address_space<workgroup>>
      memref.store %x, %out[%i] : memref<64xf32>
    }
    gpu.return
  }
  gpu.func @pointer(%out: memref<64xf32>) kernel {
    %i = gpu.thread_id x
    %start = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %x = llvm.load %start : !llvm.ptr<3> -> f32
    memref.store %x, %out[%i] : memref<64xf32>
    gpu.return
  }
  gpu.func @size(%out: memref<index>) kernel {
    %c0 = arith.constant 0 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %size = memref.dim %memory, %c0 : memref<?xi8, #gpu.address_space<workgroup>>
    memref.store %size, %out[] : memref<index>
    gpu.return
  }
}
func.func @f(%out: memref<64xf32>, %size: memref<index>, %bytes: i32, %flag: i1, %n: index) {
  %c1 = arith.constant 1 : index
  %c260 = arith.constant 260 : i32
  gpu.launch_func @device::@view blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %c260 args(%out : memref<64xf32>)
  gpu.launch_func @device::@size blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%size : memref<index>)
  gpu.launch_func @device::@view blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%out : memref<64xf32>)
  gpu.launch_func @device::@pointer blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%out : memref<64xf32>)
  gpu.launch_func @device::@maybe blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%out : memref<64xf32>, %flag : i1)
  gpu.launch_func @device::@loop blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%out : memref<64xf32>, %n : index)
  gpu.launch_func @device::@second blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %bytes args(%out : memref<64xf32>, %flag : i1)
  return
}
}

// CHECK-LABEL: func.func @f(
// CHECK-NOT:     cf.assert
// CHECK:         gpu.launch_func @device::@view
// CHECK-NOT:     cf.assert
// CHECK:         gpu.launch_func @device::@size
// CHECK:         %[[LEAST:.*]] = arith.constant 260 : i32
// CHECK-NEXT:    %[[IS_ENOUGH:.*]] = arith.cmpi sge, %arg2, %[[LEAST]] : i32
// CHECK-NEXT:    cf.assert %[[IS_ENOUGH]], "'view' uses dynamic shared memory: dynamic_shared_memory_size is at least 260"
// CHECK-NEXT:    gpu.launch_func @device::@view
// CHECK:         %[[NEVER:.*]] = arith.constant false
// CHECK-NEXT:    cf.assert %[[NEVER]], "'pointer' uses dynamic shared memory: dynamic_shared_memory_size is at least 1"
// CHECK-NEXT:    gpu.launch_func @device::@pointer
// CHECK-NOT:     cf.assert
// CHECK:         gpu.launch_func @device::@maybe
// CHECK-NOT:     cf.assert
// CHECK:         gpu.launch_func @device::@loop
// CHECK:         cf.assert %{{.*}}, "'second' uses dynamic shared memory: dynamic_shared_memory_size is at least 256"
// CHECK-NEXT:    gpu.launch_func @device::@second
