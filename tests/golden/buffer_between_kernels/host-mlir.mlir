module attributes {gpu.container_module} {
  llvm.func @free(!llvm.ptr)
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @sums(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64) -> !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> attributes {aotc.one_stream, aotc.workspace_bytes = 256 : i64, llvm.emit_c_interface} {
    %0 = llvm.mlir.constant(1 : i8) : i8
    %1 = llvm.mlir.constant(0 : i8) : i8
    %2 = llvm.mlir.zero : !llvm.ptr
    %3 = llvm.mlir.constant(64 : index) : i64
    %4 = llvm.mlir.poison : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
    %5 = llvm.mlir.constant(1 : index) : i64
    %6 = llvm.mlir.constant(256 : index) : i64
    %7 = llvm.mlir.constant(0 : index) : i64
    %8 = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
    %9 = llvm.getelementptr %2[64] : (!llvm.ptr) -> !llvm.ptr, i32
    %10 = llvm.ptrtoint %9 : !llvm.ptr to i64
    %11 = llvm.call @malloc(%10) : (i64) -> !llvm.ptr
    %12 = llvm.ptrtoint %11 : !llvm.ptr to i64
    %13 = llvm.icmp "ne" %12, %7 : i64
    llvm.call @aotc_check(%13) {aotc.for_memory, aotc.message = "there is no memory for a memref<64xi32> (buffer_between_kernels.mlir:5:14)"} : (i1) -> ()
    %14 = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    %15 = llvm.call @mgpuMemAlloc(%10, %14, %1) : (i64, !llvm.ptr, i8) -> !llvm.ptr
    llvm.call @mgpuStreamSynchronize(%14) : (!llvm.ptr) -> ()
    llvm.call @mgpuStreamDestroy(%14) : (!llvm.ptr) -> ()
    llvm.call @aotc_result_prepare() : () -> ()
    %16 = llvm.call @mgpuMemAlloc(%10, %2, %0) : (i64, !llvm.ptr, i8) -> !llvm.ptr
    %17 = llvm.insertvalue %16, %8[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %18 = llvm.insertvalue %16, %17[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %19 = llvm.insertvalue %7, %18[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %20 = llvm.insertvalue %3, %19[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %21 = llvm.insertvalue %5, %20[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %22 = llvm.ptrtoint %16 : !llvm.ptr to i64
    %23 = llvm.icmp "ne" %22, %7 : i64
    llvm.call @aotc_check(%23) {aotc.for_memory, aotc.message = "there is no memory for a memref<64xi32> (buffer_between_kernels.mlir:6:13)"} : (i1) -> ()
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel blocks in (%5, %5, %5) threads in (%6, %5, %5) : i64 args(%arg0 : !llvm.ptr, %arg1 : !llvm.ptr, %arg2 : i64, %arg3 : i64, %arg4 : i64, %15 : !llvm.ptr, %15 : !llvm.ptr, %7 : i64, %3 : i64, %5 : i64)
    gpu.launch_func  @buffer_between_kernels_kernels::@sums_kernel_0 blocks in (%5, %5, %5) threads in (%6, %5, %5) : i64 args(%15 : !llvm.ptr, %15 : !llvm.ptr, %7 : i64, %3 : i64, %5 : i64, %16 : !llvm.ptr, %16 : !llvm.ptr, %7 : i64, %3 : i64, %5 : i64)
    %24 = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    llvm.call @mgpuMemcpy(%11, %15, %10, %24) : (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
    llvm.call @mgpuStreamSynchronize(%24) : (!llvm.ptr) -> ()
    llvm.call @mgpuStreamDestroy(%24) : (!llvm.ptr) -> ()
    llvm.call @aotc_wait() : () -> ()
    %25 = llvm.getelementptr inbounds|nuw %11[7] : (!llvm.ptr) -> !llvm.ptr, i32
    %26 = llvm.load %25 : !llvm.ptr -> i32
    %27 = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
    llvm.call @mgpuMemFree(%15, %27) : (!llvm.ptr, !llvm.ptr) -> ()
    llvm.call @mgpuStreamSynchronize(%27) : (!llvm.ptr) -> ()
    llvm.call @mgpuStreamDestroy(%27) : (!llvm.ptr) -> ()
    llvm.call @free(%11) : (!llvm.ptr) -> ()
    %28 = llvm.insertvalue %26, %4[0] : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> 
    %29 = llvm.insertvalue %21, %28[1] : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)> 
    llvm.return %29 : !llvm.struct<(i32, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
  }
  llvm.func @_mlir_ciface_sums(%arg0: !llvm.ptr, %arg1: !llvm.ptr {aotc.name = "x"}) attributes {aotc.one_stream, aotc.workspace_bytes = 256 : i64, llvm.emit_c_interface} {
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
  llvm.func @aotc_wait() attributes {sym_visibility = "private"}
  gpu.binary @buffer_between_kernels_kernels <#gpu.select_object<0 : i64>> [#gpu.object<#nvvm.target, bin = "">]
  llvm.func @aotc_result_prepare() attributes {sym_visibility = "private"}
  llvm.func @aotc_check(i1)
  llvm.func @mgpuStreamCreate() -> !llvm.ptr
  llvm.func @mgpuMemAlloc(i64, !llvm.ptr, i8) -> !llvm.ptr
  llvm.func @mgpuStreamSynchronize(!llvm.ptr)
  llvm.func @mgpuStreamDestroy(!llvm.ptr)
  llvm.func @mgpuMemcpy(!llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
}

