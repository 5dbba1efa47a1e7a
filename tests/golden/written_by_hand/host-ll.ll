; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@aotc_image_device = internal constant [9 x i8] c"THE IMAGE", align 64
@aotc_module_device = internal global ptr null
@aotc_modname_device = internal constant [7 x i8] c"device\00"
@aotc_builtfor_device = internal constant [6 x i8] c"sm_80\00"
@aotc_name_device_turn = internal constant [5 x i8] c"turn\00"
@aotc_why_device_turn = internal constant [94 x i8] c"gpu.func at written_by_hand.mlir:5:5: workgroup (shared) memory does not exist on the CPU yet\00"
@aotc_kernels_device = internal constant [1 x { ptr, ptr, ptr }] [{ ptr, ptr, ptr } { ptr @aotc_name_device_turn, ptr null, ptr @aotc_why_device_turn }]
@aotc_info_device = internal constant { i32, i32, ptr, i64, ptr, ptr, ptr } { i32 1, i32 1, ptr @aotc_image_device, i64 9, ptr @aotc_modname_device, ptr @aotc_builtfor_device, ptr @aotc_kernels_device }
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_load_device, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_unload_device, ptr null }]

define internal void @turn(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4) {
  %6 = call ptr @mgpuStreamCreate()
  call void @aotc_launch_device_turn(i64 1, i64 1, i64 1, i64 32, i64 1, i64 1, i32 256, ptr %6, ptr %0, ptr %1, i64 %2, i64 %3, i64 %4)
  call void @mgpuStreamSynchronize(ptr %6)
  call void @mgpuStreamDestroy(ptr %6)
  ret void
}

define void @_mlir_ciface_turn(ptr %0) {
  %2 = load { ptr, ptr, i64, [1 x i64], [1 x i64] }, ptr %0, align 8
  %3 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %2, 0
  %4 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %2, 1
  %5 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %2, 2
  %6 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %2, 3, 0
  %7 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %2, 4, 0
  call void @turn(ptr %3, ptr %4, i64 %5, i64 %6, i64 %7)
  ret void
}

declare ptr @mgpuMemAlloc(i64, ptr, i8)

declare void @mgpuMemFree(ptr, ptr)

declare ptr @mgpuModuleLoad(ptr, i64)

declare void @mgpuModuleUnload(ptr)

declare ptr @mgpuModuleGetFunction(ptr, ptr)

declare ptr @mgpuStreamCreate()

declare void @mgpuStreamSynchronize(ptr)

declare void @mgpuStreamDestroy(ptr)

declare void @mgpuLaunchKernel(ptr, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr, i64)

declare void @mgpuLaunchClusterKernel(ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr)

declare void @mgpuLaunchKernelCooperative(ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr)

declare extern_weak void @aotc_module_register(ptr)

declare extern_weak i32 @aotc_status_get()

declare extern_weak void @aotc_assertion_failed(ptr)

define internal void @aotc_load_device() {
  %1 = call ptr @mgpuModuleLoad(ptr @aotc_image_device, i64 9)
  store ptr %1, ptr @aotc_module_device, align 8
  %2 = icmp ne ptr @aotc_module_register, null
  br i1 %2, label %3, label %4

3:                                                ; preds = %0
  call void @aotc_module_register(ptr @aotc_info_device)
  br label %4

4:                                                ; preds = %3, %0
  ret void
}

define internal void @aotc_unload_device() {
  %1 = load ptr, ptr @aotc_module_device, align 8
  call void @mgpuModuleUnload(ptr %1)
  ret void
}

define internal void @aotc_launch_device_turn(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12) {
  %14 = alloca { ptr, ptr, i64, i64, i64 }, i64 1, align 8
  %15 = alloca ptr, i64 5, align 8
  %16 = getelementptr { ptr, ptr, i64, i64, i64 }, ptr %14, i32 0, i32 0
  store ptr %8, ptr %16, align 8
  %17 = getelementptr ptr, ptr %15, i32 0
  store ptr %16, ptr %17, align 8
  %18 = getelementptr { ptr, ptr, i64, i64, i64 }, ptr %14, i32 0, i32 1
  store ptr %9, ptr %18, align 8
  %19 = getelementptr ptr, ptr %15, i32 1
  store ptr %18, ptr %19, align 8
  %20 = getelementptr { ptr, ptr, i64, i64, i64 }, ptr %14, i32 0, i32 2
  store i64 %10, ptr %20, align 4
  %21 = getelementptr ptr, ptr %15, i32 2
  store ptr %20, ptr %21, align 8
  %22 = getelementptr { ptr, ptr, i64, i64, i64 }, ptr %14, i32 0, i32 3
  store i64 %11, ptr %22, align 4
  %23 = getelementptr ptr, ptr %15, i32 3
  store ptr %22, ptr %23, align 8
  %24 = getelementptr { ptr, ptr, i64, i64, i64 }, ptr %14, i32 0, i32 4
  store i64 %12, ptr %24, align 4
  %25 = getelementptr ptr, ptr %15, i32 4
  store ptr %24, ptr %25, align 8
  %26 = load ptr, ptr @aotc_module_device, align 8
  %27 = call ptr @mgpuModuleGetFunction(ptr %26, ptr @aotc_name_device_turn)
  call void @mgpuLaunchKernel(ptr %27, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %15, ptr null, i64 5)
  ret void
}

define hidden void @aotc_call_turn(ptr %0) {
  %2 = getelementptr ptr, ptr %0, i32 0
  %3 = load ptr, ptr %2, align 8
  call void @_mlir_ciface_turn(ptr %3)
  ret void
}

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
