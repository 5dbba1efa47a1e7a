; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@aotc_is_leaving = internal thread_local global i8 0
@aotc_fail_allocation_format = internal constant [4 x i8] c"%s\0A\00"
@aotc_check_message_0 = internal constant [75 x i8] c"there is no memory for a memref<64xi32> (buffer_between_kernels.mlir:5:14)\00"
@aotc_check_message_1 = internal constant [75 x i8] c"there is no memory for a memref<64xi32> (buffer_between_kernels.mlir:6:13)\00"
@aotc_image_buffer_between_kernels_kernels = internal constant [9 x i8] c"THE IMAGE", align 64
@aotc_module_buffer_between_kernels_kernels = internal global ptr null
@aotc_modname_buffer_between_kernels_kernels = internal constant [31 x i8] c"buffer_between_kernels_kernels\00"
@aotc_builtfor_buffer_between_kernels_kernels = internal constant [6 x i8] c"sm_80\00"
@aotc_name_buffer_between_kernels_kernels.sums_kernel = internal constant [12 x i8] c"sums_kernel\00"
@aotc_name_buffer_between_kernels_kernels.sums_kernel_0 = internal constant [14 x i8] c"sums_kernel_0\00"
@aotc_kernels_buffer_between_kernels_kernels = internal constant [2 x { ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 }] [{ ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 } { ptr @aotc_name_buffer_between_kernels_kernels.sums_kernel, ptr @aotc_cpu_buffer_between_kernels_kernels_sums_kernel, ptr null, ptr null, i64 0, i64 0, [3 x i64] [i64 256, i64 1, i64 1], ptr null, i64 0 }, { ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 } { ptr @aotc_name_buffer_between_kernels_kernels.sums_kernel_0, ptr @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0, ptr null, ptr null, i64 0, i64 0, [3 x i64] [i64 256, i64 1, i64 1], ptr null, i64 0 }]
@aotc_info_buffer_between_kernels_kernels = internal constant { i32, i32, ptr, i64, ptr, ptr, ptr, i32, i32, ptr } { i32 5, i32 2, ptr @aotc_image_buffer_between_kernels_kernels, i64 9, ptr @aotc_modname_buffer_between_kernels_kernels, ptr @aotc_builtfor_buffer_between_kernels_kernels, ptr @aotc_kernels_buffer_between_kernels_kernels, i32 0, i32 0, ptr null }
@aotc_kernel_buffer_between_kernels_kernels.sums_kernel = internal global ptr null
@aotc_kernel_buffer_between_kernels_kernels.sums_kernel_0 = internal global ptr null
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_load_buffer_between_kernels_kernels, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_unload_buffer_between_kernels_kernels, ptr null }]

declare void @free(ptr)

declare ptr @malloc(i64)

define internal { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } @sums(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4) {
  %6 = call ptr @mgpuStreamCreate()
  %7 = call ptr @malloc(i64 256)
  %8 = ptrtoint ptr %7 to i64
  %9 = icmp ne i64 %8, 0
  br i1 %9, label %10, label %25

10:                                               ; preds = %5
  %11 = call ptr @mgpuMemAlloc(i64 256, ptr %6, i8 0)
  call void @aotc_ask_result_prepare()
  %12 = call ptr @mgpuMemAlloc(i64 256, ptr null, i8 1)
  %13 = insertvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } poison, ptr %12, 0
  %14 = insertvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %13, ptr %12, 1
  %15 = insertvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %14, i64 0, 2
  %16 = insertvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %15, i64 64, 3, 0
  %17 = insertvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %16, i64 1, 4, 0
  %18 = ptrtoint ptr %12 to i64
  %19 = icmp ne i64 %18, 0
  br i1 %19, label %20, label %25

20:                                               ; preds = %10
  call void @aotc_launch_buffer_between_kernels_kernels.sums_kernel(i64 1, i64 1, i64 1, i64 256, i64 1, i64 1, i32 0, ptr %6, ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, ptr %11, ptr %11, i64 0, i64 64, i64 1)
  call void @aotc_launch_buffer_between_kernels_kernels.sums_kernel_0(i64 1, i64 1, i64 1, i64 256, i64 1, i64 1, i32 0, ptr %6, ptr %11, ptr %11, i64 0, i64 64, i64 1, ptr %12, ptr %12, i64 0, i64 64, i64 1)
  call void @mgpuMemcpy(ptr %7, ptr %11, i64 256, ptr %6)
  call void @mgpuStreamSynchronize(ptr %6)
  %21 = getelementptr inbounds nuw i32, ptr %7, i32 7
  %22 = load i32, ptr %21, align 4
  call void @mgpuMemFree(ptr %11, ptr %6)
  call void @free(ptr %7)
  %23 = insertvalue { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } poison, i32 %22, 0
  %24 = insertvalue { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } %23, { ptr, ptr, i64, [1 x i64], [1 x i64] } %17, 1
  call void @mgpuStreamSynchronize(ptr %6)
  call void @mgpuStreamDestroy(ptr %6)
  ret { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } %24

25:                                               ; preds = %10, %5
  %26 = phi ptr [ @aotc_check_message_1, %10 ], [ @aotc_check_message_0, %5 ]
  call void @aotc_fail_allocation(ptr %26)
  br label %27

27:                                               ; preds = %25
  call void @mgpuStreamSynchronize(ptr %6)
  call void @mgpuStreamDestroy(ptr %6)
  ret { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } zeroinitializer
}

define void @_mlir_ciface_sums(ptr %0, ptr %1) {
  store i8 0, ptr @aotc_is_leaving, align 1
  %3 = load { ptr, ptr, i64, [1 x i64], [1 x i64] }, ptr %1, align 8
  %4 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %3, 0
  %5 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %3, 1
  %6 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %3, 2
  %7 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %3, 3, 0
  %8 = extractvalue { ptr, ptr, i64, [1 x i64], [1 x i64] } %3, 4, 0
  %9 = call { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } @sums(ptr %4, ptr %5, i64 %6, i64 %7, i64 %8)
  store { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } %9, ptr %0, align 8
  ret void
}

declare extern_weak void @aotc_result_prepare()

declare ptr @mgpuStreamCreate()

declare ptr @mgpuMemAlloc(i64, ptr, i8)

declare void @mgpuStreamSynchronize(ptr)

declare void @mgpuStreamDestroy(ptr)

declare void @mgpuMemcpy(ptr, ptr, i64, ptr)

declare void @mgpuMemFree(ptr, ptr)

declare void @abort()

declare i32 @dprintf(i32, ptr, ...)

declare extern_weak void @aotc_allocation_failed(ptr)

; Function Attrs: cold
define internal void @aotc_fail_allocation(ptr %0) #0 {
  %2 = icmp ne ptr @aotc_allocation_failed, null
  br i1 %2, label %3, label %4

3:                                                ; preds = %1
  call void @aotc_allocation_failed(ptr %0)
  store i8 1, ptr @aotc_is_leaving, align 1
  ret void

4:                                                ; preds = %1
  %5 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @aotc_fail_allocation_format, ptr %0)
  call void @abort()
  unreachable
}

define internal void @aotc_ask_result_prepare() {
  %1 = icmp ne ptr @aotc_result_prepare, null
  br i1 %1, label %2, label %3

2:                                                ; preds = %0
  call void @aotc_result_prepare()
  ret void

3:                                                ; preds = %0
  ret void
}

define internal void @aotc_cpu_buffer_between_kernels_kernels_sums_kernel(ptr nonnull %0, ptr nonnull %1) {
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %0, i32 8
  %6 = load ptr, ptr %5, align 8
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr i8, ptr %0, i32 16
  %9 = load ptr, ptr %8, align 8
  %10 = load i64, ptr %9, align 4
  %11 = getelementptr i8, ptr %0, i32 24
  %12 = load ptr, ptr %11, align 8
  %13 = load i64, ptr %12, align 4
  %14 = getelementptr i8, ptr %0, i32 32
  %15 = load ptr, ptr %14, align 8
  %16 = load i64, ptr %15, align 4
  %17 = getelementptr i8, ptr %0, i32 40
  %18 = load ptr, ptr %17, align 8
  %19 = load ptr, ptr %18, align 8
  %20 = getelementptr i8, ptr %0, i32 48
  %21 = load ptr, ptr %20, align 8
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr i8, ptr %0, i32 56
  %24 = load ptr, ptr %23, align 8
  %25 = load i64, ptr %24, align 4
  %26 = getelementptr i8, ptr %0, i32 64
  %27 = load ptr, ptr %26, align 8
  %28 = load i64, ptr %27, align 4
  %29 = getelementptr i8, ptr %0, i32 72
  %30 = load ptr, ptr %29, align 8
  %31 = load i64, ptr %30, align 4
  %32 = load i64, ptr %1, align 4
  %33 = getelementptr i8, ptr %1, i32 8
  %34 = load i64, ptr %33, align 4
  %35 = getelementptr i8, ptr %1, i32 16
  %36 = load i64, ptr %35, align 4
  %37 = getelementptr i8, ptr %1, i32 96
  %38 = load ptr, ptr %37, align 8
  %39 = getelementptr i8, ptr %1, i32 72
  %40 = load ptr, ptr %39, align 8
  %41 = getelementptr i8, ptr %1, i32 80
  %42 = load i64, ptr %41, align 4
  %43 = getelementptr i8, ptr %1, i32 88
  %44 = load ptr, ptr %43, align 8
  br label %45

45:                                               ; preds = %2
  br label %46

46:                                               ; preds = %45
  br label %48

47:                                               ; preds = %52
  ret void

48:                                               ; preds = %63, %46
  %49 = phi i64 [ %64, %63 ], [ 0, %46 ]
  %50 = icmp slt i64 %49, 64
  br i1 %50, label %51, label %52

51:                                               ; preds = %48
  br label %53

52:                                               ; preds = %48
  br label %47

53:                                               ; preds = %51
  %54 = icmp slt i64 %49, 64
  br i1 true, label %56, label %55

55:                                               ; preds = %53
  br label %61

56:                                               ; preds = %53
  %57 = getelementptr inbounds nuw i32, ptr %7, i64 %49
  %58 = load i32, ptr %57, align 4, !llvm.access.group !1
  %59 = add i32 %58, %58
  %60 = getelementptr inbounds nuw i32, ptr %22, i64 %49
  store i32 %59, ptr %60, align 4, !llvm.access.group !1
  br label %61

61:                                               ; preds = %56, %55
  br label %62

62:                                               ; preds = %61
  br label %63

63:                                               ; preds = %62
  %64 = add i64 %49, 1
  br label %48, !llvm.loop !2
}

define internal void @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0(ptr nonnull %0, ptr nonnull %1) {
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %0, i32 8
  %6 = load ptr, ptr %5, align 8
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr i8, ptr %0, i32 16
  %9 = load ptr, ptr %8, align 8
  %10 = load i64, ptr %9, align 4
  %11 = getelementptr i8, ptr %0, i32 24
  %12 = load ptr, ptr %11, align 8
  %13 = load i64, ptr %12, align 4
  %14 = getelementptr i8, ptr %0, i32 32
  %15 = load ptr, ptr %14, align 8
  %16 = load i64, ptr %15, align 4
  %17 = getelementptr i8, ptr %0, i32 40
  %18 = load ptr, ptr %17, align 8
  %19 = load ptr, ptr %18, align 8
  %20 = getelementptr i8, ptr %0, i32 48
  %21 = load ptr, ptr %20, align 8
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr i8, ptr %0, i32 56
  %24 = load ptr, ptr %23, align 8
  %25 = load i64, ptr %24, align 4
  %26 = getelementptr i8, ptr %0, i32 64
  %27 = load ptr, ptr %26, align 8
  %28 = load i64, ptr %27, align 4
  %29 = getelementptr i8, ptr %0, i32 72
  %30 = load ptr, ptr %29, align 8
  %31 = load i64, ptr %30, align 4
  %32 = load i64, ptr %1, align 4
  %33 = getelementptr i8, ptr %1, i32 8
  %34 = load i64, ptr %33, align 4
  %35 = getelementptr i8, ptr %1, i32 16
  %36 = load i64, ptr %35, align 4
  %37 = getelementptr i8, ptr %1, i32 96
  %38 = load ptr, ptr %37, align 8
  %39 = getelementptr i8, ptr %1, i32 72
  %40 = load ptr, ptr %39, align 8
  %41 = getelementptr i8, ptr %1, i32 80
  %42 = load i64, ptr %41, align 4
  %43 = getelementptr i8, ptr %1, i32 88
  %44 = load ptr, ptr %43, align 8
  br label %45

45:                                               ; preds = %2
  br label %46

46:                                               ; preds = %45
  br label %48

47:                                               ; preds = %52
  ret void

48:                                               ; preds = %63, %46
  %49 = phi i64 [ %64, %63 ], [ 0, %46 ]
  %50 = icmp slt i64 %49, 64
  br i1 %50, label %51, label %52

51:                                               ; preds = %48
  br label %53

52:                                               ; preds = %48
  br label %47

53:                                               ; preds = %51
  %54 = icmp slt i64 %49, 64
  br i1 true, label %56, label %55

55:                                               ; preds = %53
  br label %61

56:                                               ; preds = %53
  %57 = sub i64 63, %49
  %58 = getelementptr inbounds nuw i32, ptr %7, i64 %57
  %59 = load i32, ptr %58, align 4, !llvm.access.group !8
  %60 = getelementptr inbounds nuw i32, ptr %22, i64 %49
  store i32 %59, ptr %60, align 4, !llvm.access.group !8
  br label %61

61:                                               ; preds = %56, %55
  br label %62

62:                                               ; preds = %61
  br label %63

63:                                               ; preds = %62
  %64 = add i64 %49, 1
  br label %48, !llvm.loop !9
}

declare ptr @mgpuModuleLoad(ptr, i64)

declare void @mgpuModuleUnload(ptr)

declare ptr @mgpuModuleGetFunction(ptr, ptr)

declare void @mgpuLaunchKernel(ptr, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr, i64)

declare void @mgpuLaunchClusterKernel(ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr)

declare void @mgpuLaunchKernelCooperative(ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, ptr, ptr, ptr)

declare extern_weak void @aotc_concurrent_launch_prepare(ptr, i64)

declare extern_weak void @aotc_module_register(ptr)

declare extern_weak i32 @aotc_status_get()

declare extern_weak i1 @aotc_is_stopped()

declare extern_weak void @aotc_assertion_failed(ptr)

declare extern_weak ptr @aotc_constant_get(ptr)

declare extern_weak ptr @aotc_constant_get_packed(ptr, i64)

declare extern_weak ptr @aotc_constant_get_transposed(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_words(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_halves(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_bytes(ptr, i64)

declare extern_weak ptr @aotc_constant_get_winograd(ptr, i64)

declare extern_weak void @aotc_constant_release(ptr)

define internal void @aotc_load_buffer_between_kernels_kernels() {
  %1 = call ptr @mgpuModuleLoad(ptr @aotc_image_buffer_between_kernels_kernels, i64 9)
  store ptr %1, ptr @aotc_module_buffer_between_kernels_kernels, align 8
  %2 = icmp ne ptr @aotc_module_register, null
  br i1 %2, label %3, label %4

3:                                                ; preds = %0
  call void @aotc_module_register(ptr @aotc_info_buffer_between_kernels_kernels)
  br label %4

4:                                                ; preds = %3, %0
  ret void
}

define internal void @aotc_unload_buffer_between_kernels_kernels() {
  %1 = load ptr, ptr @aotc_module_buffer_between_kernels_kernels, align 8
  call void @mgpuModuleUnload(ptr %1)
  ret void
}

define internal void @aotc_launch_buffer_between_kernels_kernels.sums_kernel(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12, ptr %13, ptr %14, i64 %15, i64 %16, i64 %17) {
  %19 = alloca { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, i64 1, align 8
  %20 = alloca ptr, i64 10, align 8
  %21 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 0
  store ptr %8, ptr %21, align 8
  %22 = getelementptr ptr, ptr %20, i32 0
  store ptr %21, ptr %22, align 8
  %23 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 1
  store ptr %9, ptr %23, align 8
  %24 = getelementptr ptr, ptr %20, i32 1
  store ptr %23, ptr %24, align 8
  %25 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 2
  store i64 %10, ptr %25, align 4
  %26 = getelementptr ptr, ptr %20, i32 2
  store ptr %25, ptr %26, align 8
  %27 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 3
  store i64 %11, ptr %27, align 4
  %28 = getelementptr ptr, ptr %20, i32 3
  store ptr %27, ptr %28, align 8
  %29 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 4
  store i64 %12, ptr %29, align 4
  %30 = getelementptr ptr, ptr %20, i32 4
  store ptr %29, ptr %30, align 8
  %31 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 5
  store ptr %13, ptr %31, align 8
  %32 = getelementptr ptr, ptr %20, i32 5
  store ptr %31, ptr %32, align 8
  %33 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 6
  store ptr %14, ptr %33, align 8
  %34 = getelementptr ptr, ptr %20, i32 6
  store ptr %33, ptr %34, align 8
  %35 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 7
  store i64 %15, ptr %35, align 4
  %36 = getelementptr ptr, ptr %20, i32 7
  store ptr %35, ptr %36, align 8
  %37 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 8
  store i64 %16, ptr %37, align 4
  %38 = getelementptr ptr, ptr %20, i32 8
  store ptr %37, ptr %38, align 8
  %39 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 9
  store i64 %17, ptr %39, align 4
  %40 = getelementptr ptr, ptr %20, i32 9
  store ptr %39, ptr %40, align 8
  %41 = load atomic ptr, ptr @aotc_kernel_buffer_between_kernels_kernels.sums_kernel monotonic, align 8
  %42 = icmp ne ptr %41, null
  br i1 %42, label %46, label %43

43:                                               ; preds = %18
  %44 = load ptr, ptr @aotc_module_buffer_between_kernels_kernels, align 8
  %45 = call ptr @mgpuModuleGetFunction(ptr %44, ptr @aotc_name_buffer_between_kernels_kernels.sums_kernel)
  store atomic ptr %45, ptr @aotc_kernel_buffer_between_kernels_kernels.sums_kernel monotonic, align 8
  br label %46

46:                                               ; preds = %43, %18
  %47 = phi ptr [ %45, %43 ], [ %41, %18 ]
  call void @mgpuLaunchKernel(ptr %47, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %20, ptr null, i64 10)
  ret void
}

define internal void @aotc_launch_buffer_between_kernels_kernels.sums_kernel_0(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12, ptr %13, ptr %14, i64 %15, i64 %16, i64 %17) {
  %19 = alloca { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, i64 1, align 8
  %20 = alloca ptr, i64 10, align 8
  %21 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 0
  store ptr %8, ptr %21, align 8
  %22 = getelementptr ptr, ptr %20, i32 0
  store ptr %21, ptr %22, align 8
  %23 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 1
  store ptr %9, ptr %23, align 8
  %24 = getelementptr ptr, ptr %20, i32 1
  store ptr %23, ptr %24, align 8
  %25 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 2
  store i64 %10, ptr %25, align 4
  %26 = getelementptr ptr, ptr %20, i32 2
  store ptr %25, ptr %26, align 8
  %27 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 3
  store i64 %11, ptr %27, align 4
  %28 = getelementptr ptr, ptr %20, i32 3
  store ptr %27, ptr %28, align 8
  %29 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 4
  store i64 %12, ptr %29, align 4
  %30 = getelementptr ptr, ptr %20, i32 4
  store ptr %29, ptr %30, align 8
  %31 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 5
  store ptr %13, ptr %31, align 8
  %32 = getelementptr ptr, ptr %20, i32 5
  store ptr %31, ptr %32, align 8
  %33 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 6
  store ptr %14, ptr %33, align 8
  %34 = getelementptr ptr, ptr %20, i32 6
  store ptr %33, ptr %34, align 8
  %35 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 7
  store i64 %15, ptr %35, align 4
  %36 = getelementptr ptr, ptr %20, i32 7
  store ptr %35, ptr %36, align 8
  %37 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 8
  store i64 %16, ptr %37, align 4
  %38 = getelementptr ptr, ptr %20, i32 8
  store ptr %37, ptr %38, align 8
  %39 = getelementptr { ptr, ptr, i64, i64, i64, ptr, ptr, i64, i64, i64 }, ptr %19, i32 0, i32 9
  store i64 %17, ptr %39, align 4
  %40 = getelementptr ptr, ptr %20, i32 9
  store ptr %39, ptr %40, align 8
  %41 = load atomic ptr, ptr @aotc_kernel_buffer_between_kernels_kernels.sums_kernel_0 monotonic, align 8
  %42 = icmp ne ptr %41, null
  br i1 %42, label %46, label %43

43:                                               ; preds = %18
  %44 = load ptr, ptr @aotc_module_buffer_between_kernels_kernels, align 8
  %45 = call ptr @mgpuModuleGetFunction(ptr %44, ptr @aotc_name_buffer_between_kernels_kernels.sums_kernel_0)
  store atomic ptr %45, ptr @aotc_kernel_buffer_between_kernels_kernels.sums_kernel_0 monotonic, align 8
  br label %46

46:                                               ; preds = %43, %18
  %47 = phi ptr [ %45, %43 ], [ %41, %18 ]
  call void @mgpuLaunchKernel(ptr %47, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %20, ptr null, i64 10)
  ret void
}

define hidden void @aotc_call_sums(ptr %0) {
  %2 = alloca { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } }, i64 1, align 8
  %3 = getelementptr ptr, ptr %0, i32 0
  %4 = load ptr, ptr %3, align 8
  call void @_mlir_ciface_sums(ptr %2, ptr %4)
  %5 = load { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } }, ptr %2, align 8
  %6 = extractvalue { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } %5, 0
  %7 = getelementptr ptr, ptr %0, i32 1
  %8 = load ptr, ptr %7, align 8
  store i32 %6, ptr %8, align 4
  %9 = extractvalue { i32, { ptr, ptr, i64, [1 x i64], [1 x i64] } } %5, 1
  %10 = getelementptr ptr, ptr %0, i32 2
  %11 = load ptr, ptr %10, align 8
  store { ptr, ptr, i64, [1 x i64], [1 x i64] } %9, ptr %11, align 8
  ret void
}

attributes #0 = { cold }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !{}
!2 = distinct !{!2, !3, !6, !7}
!3 = !{!"llvm.loop.vectorize.followup_vectorized", !4}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.mustprogress"}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = !{!"llvm.loop.parallel_accesses", !1}
!8 = distinct !{}
!9 = distinct !{!9, !3, !6, !10}
!10 = !{!"llvm.loop.parallel_accesses", !8}

module asm ".pushsection .note.aotc,\22a\22,%note"
module asm ".p2align 2"
module asm ".long 5"
module asm ".long 2f-1f"
module asm ".long 1"
module asm ".asciz \22aotc\22"
module asm ".p2align 2"
module asm "1:"
module asm ".ascii \22{\5C\22manifest_version\5C\22:2\22"
module asm ".ascii \22,\5C\22name\5C\22:\5C\22buffer_between_kernels\5C\22\22"
module asm ".ascii \22,\5C\22library\5C\22:\5C\22buffer_between_kernels\5C\22\22"
module asm ".ascii \22,\5C\22functions\5C\22:{\5C\22status\5C\22:\5C\22buffer_between_kernels_status\5C\22,\5C\22last_error\5C\22:\5C\22buffer_between_kernels_last_error\5C\22,\5C\22clear_error\5C\22:\5C\22buffer_between_kernels_clear_error\5C\22,\5C\22set_device\5C\22:\5C\22buffer_between_kernels_set_device\5C\22,\5C\22set_error_hook\5C\22:\5C\22buffer_between_kernels_set_error_hook\5C\22,\5C\22free\5C\22:\5C\22buffer_between_kernels_free\5C\22,\5C\22free_async\5C\22:\5C\22buffer_between_kernels_free_async\5C\22,\5C\22copy\5C\22:\5C\22buffer_between_kernels_copy\5C\22,\5C\22set_allocator\5C\22:\5C\22buffer_between_kernels_set_allocator\5C\22,\5C\22set_workspace\5C\22:\5C\22buffer_between_kernels_set_workspace\5C\22,\5C\22unload\5C\22:\5C\22buffer_between_kernels_unload\5C\22}\22"
module asm ".ascii \22,\5C\22aotc\5C\22:\5C\22VERSION\5C\22\22"
module asm ".ascii \22,\5C\22target\5C\22:\5C\22x86_64-linux-gnu.2.28\5C\22\22"
module asm ".ascii \22,\5C\22entries\5C\22:[{\5C\22name\5C\22:\5C\22sums\5C\22,\5C\22arguments\5C\22:[{\5C\22name\5C\22:\5C\22x\5C\22,\5C\22type\5C\22:\5C\22memref<64xi32>\5C\22,\5C\22dtype\5C\22:\5C\22i32\5C\22,\5C\22shape\5C\22:[64],\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:false,\5C\22memory\5C\22:\5C\22device\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:null}],\5C\22results\5C\22:[{\5C\22name\5C\22:\5C\22result0\5C\22,\5C\22type\5C\22:\5C\22i32\5C\22,\5C\22dtype\5C\22:\5C\22i32\5C\22,\5C\22shape\5C\22:null,\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:false,\5C\22memory\5C\22:\5C\22host\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:0},{\5C\22name\5C\22:\5C\22result1\5C\22,\5C\22type\5C\22:\5C\22memref<64xi32>\5C\22,\5C\22dtype\5C\22:\5C\22i32\5C\22,\5C\22shape\5C\22:[64],\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:false,\5C\22memory\5C\22:\5C\22caller\5C\22,\5C\22is_owned\5C\22:true,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:1}],\5C\22touches_memory_on_host\5C\22:true,\5C\22why_not_async\5C\22:\5C\22its host code reads or writes memory, and so must wait for its kernels\5C\22,\5C\22workspace_bytes\5C\22:256,\5C\22functions\5C\22:{\5C\22call\5C\22:\5C\22sums\5C\22,\5C\22memref\5C\22:\5C\22sums_memref\5C\22,\5C\22c_interface\5C\22:\5C\22_mlir_ciface_sums\5C\22,\5C\22workspace_size\5C\22:\5C\22sums_workspace_size\5C\22},\5C\22state\5C\22:null,\5C\22call\5C\22:null,\5C\22sparse\5C\22:[]}]\22"
module asm ".ascii \22,\5C\22kernels\5C\22:[{\5C\22module\5C\22:\5C\22buffer_between_kernels_kernels\5C\22,\5C\22name\5C\22:\5C\22sums_kernel\5C\22,\5C\22built_for\5C\22:[\5C\22sm_80\5C\22],\5C\22why_no_cpu_form\5C\22:null,\5C\22resources\5C\22:[{\5C\22chip\5C\22:\5C\22sm_80\5C\22,\5C\22registers\5C\22:16,\5C\22shared_bytes\5C\22:256,\5C\22stack_bytes\5C\22:8,\5C\22spill_stores\5C\22:4,\5C\22spill_loads\5C\22:12,\5C\22barriers\5C\22:1}]},{\5C\22module\5C\22:\5C\22buffer_between_kernels_kernels\5C\22,\5C\22name\5C\22:\5C\22sums_kernel_0\5C\22,\5C\22built_for\5C\22:[\5C\22sm_80\5C\22],\5C\22why_no_cpu_form\5C\22:null,\5C\22resources\5C\22:[{\5C\22chip\5C\22:\5C\22sm_80\5C\22,\5C\22registers\5C\22:16,\5C\22shared_bytes\5C\22:256,\5C\22stack_bytes\5C\22:8,\5C\22spill_stores\5C\22:4,\5C\22spill_loads\5C\22:12,\5C\22barriers\5C\22:1}]}]\22"
module asm ".ascii \22,\5C\22optimization\5C\22:3\22"
module asm ".ascii \22,\5C\22tools\5C\22:VERSIONS
module asm ".ascii \22,\5C\22weights\5C\22:null\22"
module asm ".ascii \22,\5C\22state\5C\22:[]\22"
module asm ".ascii \22}\22"
module asm "2:"
module asm ".p2align 2"
module asm ".popsection"
