module attributes {gpu.container_module} {
  llvm.func @sums(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64) -> !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> attributes {llvm.emit_c_interface} {
    %0 = llvm.mlir.constant(0 : index) : i64
    %1 = llvm.mlir.constant(1 : i8) : i8
    %2 = llvm.mlir.zero : !llvm.ptr
    %3 = llvm.mlir.constant(64 : index) : i64
    %4 = llvm.mlir.poison : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
    %5 = llvm.mlir.constant(1 : index) : i64
    %6 = llvm.mlir.constant(256 : index) : i64
    %7 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
    %8 = llvm.getelementptr %2[64] : (!llvm.ptr) -> !llvm.ptr, i32
    %9 = llvm.ptrtoint %8 : !llvm.ptr to i64
    %10 = llvm.call @mgpuMemAlloc(%9, %2, %1) : (i64, !llvm.ptr, i8) -> !llvm.ptr
    %11 = llvm.call @mgpuMemAlloc(%9, %2, %1) : (i64, !llvm.ptr, i8) -> !llvm.ptr
    %12 = llvm.insertvalue %11, %7[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %13 = llvm.insertvalue %11, %12[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %14 = llvm.insertvalue %0, %13[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %15 = llvm.insertvalue %3, %14[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %16 = llvm.insertvalue %5, %15[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel blocks in (%5, %5, %5) threads in (%6, %5, %5) : i64 args(%arg0 : !llvm.ptr, %arg1 : !llvm.ptr, %arg2 : i64, %arg3 : i64, %arg4 : i64, %10 : !llvm.ptr, %10 : !llvm.ptr, %0 : i64, %3 : i64, %5 : i64)
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel_0 blocks in (%5, %5, %5) threads in (%6, %5, %5) : i64 args(%10 : !llvm.ptr, %10 : !llvm.ptr, %0 : i64, %3 : i64, %5 : i64, %11 : !llvm.ptr, %11 : !llvm.ptr, %0 : i64, %3 : i64, %5 : i64)
    %17 = llvm.getelementptr inbounds|nuw %10[7] : (!llvm.ptr) -> !llvm.ptr, i32
    %18 = llvm.load %17 : !llvm.ptr -> i32
    %19 = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    llvm.call @mgpuMemFree(%10, %19) : (!llvm.ptr, !llvm.ptr) -> ()
    llvm.call @mgpuStreamSynchronize(%19) : (!llvm.ptr) -> ()
    llvm.call @mgpuStreamDestroy(%19) : (!llvm.ptr) -> ()
    %20 = llvm.insertvalue %18, %4[0] : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> 
    %21 = llvm.insertvalue %16, %20[1] : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> 
    llvm.return %21 : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
  }
  llvm.func @_mlir_ciface_sums(%arg0: !llvm.ptr, %arg1: !llvm.ptr {aotc.name = "x"}) attributes {llvm.emit_c_interface} {
    %0 = llvm.load %arg1 : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
    %1 = llvm.extractvalue %0[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %2 = llvm.extractvalue %0[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %3 = llvm.extractvalue %0[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %4 = llvm.extractvalue %0[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %5 = llvm.extractvalue %0[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %6 = llvm.call @sums(%1, %2, %3, %4, %5) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
    llvm.store %6, %arg0 : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>, !llvm.ptr
    llvm.return
  }
  gpu.binary @buffer_between_kernels_kernels <#gpu.select_object<0 : i64>> [#gpu.object<#nvvm.target, bin = "">]
  llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.func @mgpuStreamCreate() -> !llvm.ptr
  llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
  llvm.func @mgpuStreamSynchronize(!llvm.ptr)
  llvm.func @mgpuStreamDestroy(!llvm.ptr)
}

