// A program that is in the LLVM dialect already, all but the launch: its main calls the runtime as
// upstream's lowering does. The exit code is the sum of the squares of 0 to 999, modulo 97.
module attributes {gpu.container_module} {
  gpu.module @device {
    llvm.func @square(%x: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel} {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %b = nvvm.read.ptx.sreg.ctaid.x : i32
      %width = nvvm.read.ptx.sreg.ntid.x : i32
      %first = llvm.mul %b, %width : i32
      %i = llvm.add %first, %t : i32
      %is_inside = llvm.icmp "slt" %i, %n : i32
      llvm.cond_br %is_inside, ^inside, ^end
    ^inside:
      %place = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %place : !llvm.ptr<1> -> i32
      %squared = llvm.mul %v, %v : i32
      llvm.store %squared, %place : i32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
      llvm.return
    }
  }

  llvm.func @main() -> i32 {
    %0 = llvm.mlir.constant(0 : i32) : i32
    %1 = llvm.mlir.constant(1 : i32) : i32
    %97 = llvm.mlir.constant(97 : i32) : i32
    %n = llvm.mlir.constant(1000 : i32) : i32
    %bytes = llvm.mlir.constant(4000 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %blocks = llvm.mlir.constant(4 : i64) : i64
    %threads = llvm.mlir.constant(256 : i64) : i64
    %is_shared = llvm.mlir.constant(0 : i8) : i8
    %x = llvm.alloca %n x i32 : (i32) -> !llvm.ptr
    llvm.br ^fill(%0 : i32)
  ^fill(%i: i32):
    %place = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    llvm.store %i, %place : i32, !llvm.ptr
    %next = llvm.add %i, %1 : i32
    %goes_on = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %goes_on, ^fill(%next : i32), ^launch
  ^launch:
    %stream = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    %there = llvm.call @mgpuMemAlloc(%bytes, %stream, %is_shared)
      : (i64, !llvm.ptr, i8) -> !llvm.ptr
    llvm.call @mgpuMemcpy(%there, %x, %bytes, %stream)
      : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
    gpu.launch_func <%stream : !llvm.ptr> @device::@square
        blocks in (%blocks, %one, %one) threads in (%threads, %one, %one) : i64
        args(%there : !llvm.ptr, %n : i32)
    llvm.call @mgpuMemcpy(%x, %there, %bytes, %stream)
      : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
    llvm.call @mgpuStreamSynchronize(%stream) : (!llvm.ptr) -> ()
    llvm.call @mgpuMemFree(%there, %stream) : (!llvm.ptr, !llvm.ptr) -> ()
    llvm.call @mgpuStreamDestroy(%stream) : (!llvm.ptr) -> ()
    llvm.br ^add(%0, %0 : i32, i32)
  ^add(%j: i32, %sum: i32):
    %element = llvm.getelementptr %x[%j] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %v = llvm.load %element : !llvm.ptr -> i32
    %more = llvm.add %sum, %v : i32
    %after = llvm.add %j, %1 : i32
    %adds = llvm.icmp "slt" %after, %n : i32
    llvm.cond_br %adds, ^add(%after, %more : i32, i32), ^end
  ^end:
    %code = llvm.srem %more, %97 : i32
    llvm.return %code : i32
  }

  llvm.func @mgpuStreamCreate() -> !llvm.ptr
  llvm.func @mgpuStreamSynchronize(!llvm.ptr)
  llvm.func @mgpuStreamDestroy(!llvm.ptr)
  llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
  llvm.func @mgpuMemcpy(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
}
