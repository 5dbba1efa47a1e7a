; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@aotc_image_guarded_loop_kernels = internal constant [9 x i8] c"THE IMAGE", align 64
@aotc_module_guarded_loop_kernels = internal global ptr null
@aotc_modname_guarded_loop_kernels = internal constant [21 x i8] c"guarded_loop_kernels\00"
@aotc_builtfor_guarded_loop_kernels = internal constant [6 x i8] c"sm_80\00"
@aotc_name_guarded_loop_kernels_scale_kernel = internal constant [13 x i8] c"scale_kernel\00"
@aotc_kernels_guarded_loop_kernels = internal constant [1 x { ptr, ptr, ptr }] [{ ptr, ptr, ptr } { ptr @aotc_name_guarded_loop_kernels_scale_kernel, ptr @aotc_cpu_guarded_loop_kernels_scale_kernel, ptr null }]
@aotc_info_guarded_loop_kernels = internal constant { i32, i32, ptr, i64, ptr, ptr, ptr } { i32 1, i32 1, ptr @aotc_image_guarded_loop_kernels, i64 9, ptr @aotc_modname_guarded_loop_kernels, ptr @aotc_builtfor_guarded_loop_kernels, ptr @aotc_kernels_guarded_loop_kernels }
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_load_guarded_loop_kernels, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_unload_guarded_loop_kernels, ptr null }]

define internal void @scale(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, ptr %7, ptr %8, i64 %9, i64 %10, i64 %11, i64 %12, i64 %13, float %14) {
  %16 = call i64 @llvm.smax.i64(i64 %3, i64 0)
  %17 = sdiv i64 %16, 8
  %18 = mul i64 %17, 8
  %19 = icmp ne i64 %16, %18
  %20 = icmp slt i64 %16, 0
  %21 = icmp eq i1 %20, false
  %22 = and i1 %19, %21
  %23 = add i64 %17, 1
  %24 = select i1 %22, i64 %23, i64 %17
  %25 = call i64 @llvm.smax.i64(i64 %24, i64 1)
  %26 = call i64 @llvm.smin.i64(i64 %25, i64 65535)
  %27 = call ptr @mgpuStreamCreate()
  call void @aotc_launch_guarded_loop_kernels_scale_kernel(i64 4, i64 %26, i64 1, i64 32, i64 8, i64 1, i32 0, ptr %27, ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, float %14, ptr %7, ptr %8, i64 %9, i64 %10, i64 %11, i64 %12, i64 %13, i64 %16)
  call void @mgpuStreamSynchronize(ptr %27)
  call void @mgpuStreamDestroy(ptr %27)
  ret void
}

define void @_mlir_ciface_scale(ptr %0, ptr %1, float %2) {
  %4 = load { ptr, ptr, i64, [2 x i64], [2 x i64] }, ptr %0, align 8
  %5 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 0
  %6 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 1
  %7 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 2
  %8 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 3, 0
  %9 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 3, 1
  %10 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 4, 0
  %11 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %4, 4, 1
  %12 = load { ptr, ptr, i64, [2 x i64], [2 x i64] }, ptr %1, align 8
  %13 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 0
  %14 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 1
  %15 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 2
  %16 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 3, 0
  %17 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 3, 1
  %18 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 4, 0
  %19 = extractvalue { ptr, ptr, i64, [2 x i64], [2 x i64] } %12, 4, 1
  call void @scale(ptr %5, ptr %6, i64 %7, i64 %8, i64 %9, i64 %10, i64 %11, ptr %13, ptr %14, i64 %15, i64 %16, i64 %17, i64 %18, i64 %19, float %2)
  ret void
}

; Function Attrs: alwaysinline
define internal void @aotc_cpu_guarded_loop_kernels_scale_kernel_thread(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, float %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12, i64 %13, i64 %14, i64 %15, i64 %16, i64 %17, i64 %18, i64 %19, i64 %20, i64 %21, i64 %22, i64 %23, i64 %24, i64 %25, i64 %26, i64 %27) #0 {
  %29 = mul i64 %20, 8
  %30 = add i64 %29, %17
  %31 = mul i64 %23, 8
  br label %32

32:                                               ; preds = %46, %28
  %33 = phi i64 [ %47, %46 ], [ %30, %28 ]
  %34 = icmp slt i64 %33, %15
  br i1 %34, label %35, label %48

35:                                               ; preds = %32
  %36 = mul i64 %19, 32
  %37 = add i64 %36, %16
  %38 = icmp slt i64 %37, 100
  br i1 %38, label %39, label %46

39:                                               ; preds = %35
  %40 = mul nuw nsw i64 %33, 100
  %41 = add nuw nsw i64 %40, %37
  %42 = getelementptr inbounds nuw float, ptr %1, i64 %41
  %43 = load float, ptr %42, align 4, !llvm.access.group !1
  %44 = fmul float %43, %7
  %45 = getelementptr inbounds nuw float, ptr %9, i64 %41
  store float %44, ptr %45, align 4, !llvm.access.group !1
  br label %46

46:                                               ; preds = %39, %35
  %47 = add i64 %33, %31
  br label %32

48:                                               ; preds = %32
  ret void
}

define internal void @aotc_cpu_guarded_loop_kernels_scale_kernel(ptr nonnull %0, ptr nonnull %1) {
  %3 = getelementptr inbounds ptr, ptr %0, i32 0
  %4 = load ptr, ptr %3, align 8
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr inbounds ptr, ptr %0, i32 1
  %7 = load ptr, ptr %6, align 8
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %0, i32 2
  %10 = load ptr, ptr %9, align 8
  %11 = load i64, ptr %10, align 4
  %12 = getelementptr inbounds ptr, ptr %0, i32 3
  %13 = load ptr, ptr %12, align 8
  %14 = load i64, ptr %13, align 4
  %15 = getelementptr inbounds ptr, ptr %0, i32 4
  %16 = load ptr, ptr %15, align 8
  %17 = load i64, ptr %16, align 4
  %18 = getelementptr inbounds ptr, ptr %0, i32 5
  %19 = load ptr, ptr %18, align 8
  %20 = load i64, ptr %19, align 4
  %21 = getelementptr inbounds ptr, ptr %0, i32 6
  %22 = load ptr, ptr %21, align 8
  %23 = load i64, ptr %22, align 4
  %24 = getelementptr inbounds ptr, ptr %0, i32 7
  %25 = load ptr, ptr %24, align 8
  %26 = load float, ptr %25, align 4
  %27 = getelementptr inbounds ptr, ptr %0, i32 8
  %28 = load ptr, ptr %27, align 8
  %29 = load ptr, ptr %28, align 8
  %30 = getelementptr inbounds ptr, ptr %0, i32 9
  %31 = load ptr, ptr %30, align 8
  %32 = load ptr, ptr %31, align 8
  %33 = getelementptr inbounds ptr, ptr %0, i32 10
  %34 = load ptr, ptr %33, align 8
  %35 = load i64, ptr %34, align 4
  %36 = getelementptr inbounds ptr, ptr %0, i32 11
  %37 = load ptr, ptr %36, align 8
  %38 = load i64, ptr %37, align 4
  %39 = getelementptr inbounds ptr, ptr %0, i32 12
  %40 = load ptr, ptr %39, align 8
  %41 = load i64, ptr %40, align 4
  %42 = getelementptr inbounds ptr, ptr %0, i32 13
  %43 = load ptr, ptr %42, align 8
  %44 = load i64, ptr %43, align 4
  %45 = getelementptr inbounds ptr, ptr %0, i32 14
  %46 = load ptr, ptr %45, align 8
  %47 = load i64, ptr %46, align 4
  %48 = getelementptr inbounds ptr, ptr %0, i32 15
  %49 = load ptr, ptr %48, align 8
  %50 = load i64, ptr %49, align 4
  %51 = getelementptr inbounds i64, ptr %1, i32 0
  %52 = load i64, ptr %51, align 4
  %53 = getelementptr inbounds i64, ptr %1, i32 1
  %54 = load i64, ptr %53, align 4
  %55 = getelementptr inbounds i64, ptr %1, i32 2
  %56 = load i64, ptr %55, align 4
  %57 = getelementptr inbounds i64, ptr %1, i32 3
  %58 = load i64, ptr %57, align 4
  %59 = getelementptr inbounds i64, ptr %1, i32 4
  %60 = load i64, ptr %59, align 4
  %61 = getelementptr inbounds i64, ptr %1, i32 5
  %62 = load i64, ptr %61, align 4
  br label %63

63:                                               ; preds = %72, %2
  %64 = phi i64 [ %73, %72 ], [ 0, %2 ]
  %65 = icmp slt i64 %64, 8
  br i1 %65, label %66, label %74

66:                                               ; preds = %63
  br label %67

67:                                               ; preds = %70, %66
  %68 = phi i64 [ %71, %70 ], [ 0, %66 ]
  %69 = icmp slt i64 %68, 32
  br i1 %69, label %70, label %72

70:                                               ; preds = %67
  call void @aotc_cpu_guarded_loop_kernels_scale_kernel_thread(ptr %5, ptr %8, i64 %11, i64 %14, i64 %17, i64 %20, i64 %23, float %26, ptr %29, ptr %32, i64 %35, i64 %38, i64 %41, i64 %44, i64 %47, i64 %50, i64 %68, i64 %64, i64 0, i64 %52, i64 %54, i64 %56, i64 %58, i64 %60, i64 %62, i64 32, i64 8, i64 1)
  %71 = add nuw nsw i64 %68, 1
  br label %67, !llvm.loop !2

72:                                               ; preds = %67
  %73 = add nuw nsw i64 %64, 1
  br label %63

74:                                               ; preds = %63
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

define internal void @aotc_load_guarded_loop_kernels() {
  %1 = call ptr @mgpuModuleLoad(ptr @aotc_image_guarded_loop_kernels, i64 9)
  store ptr %1, ptr @aotc_module_guarded_loop_kernels, align 8
  %2 = icmp ne ptr @aotc_module_register, null
  br i1 %2, label %3, label %4

3:                                                ; preds = %0
  call void @aotc_module_register(ptr @aotc_info_guarded_loop_kernels)
  br label %4

4:                                                ; preds = %3, %0
  ret void
}

define internal void @aotc_unload_guarded_loop_kernels() {
  %1 = load ptr, ptr @aotc_module_guarded_loop_kernels, align 8
  call void @mgpuModuleUnload(ptr %1)
  ret void
}

define internal void @aotc_launch_guarded_loop_kernels_scale_kernel(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12, i64 %13, i64 %14, float %15, ptr %16, ptr %17, i64 %18, i64 %19, i64 %20, i64 %21, i64 %22, i64 %23) {
  %25 = alloca { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, i64 1, align 8
  %26 = alloca ptr, i64 16, align 8
  %27 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 0
  store ptr %8, ptr %27, align 8
  %28 = getelementptr ptr, ptr %26, i32 0
  store ptr %27, ptr %28, align 8
  %29 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 1
  store ptr %9, ptr %29, align 8
  %30 = getelementptr ptr, ptr %26, i32 1
  store ptr %29, ptr %30, align 8
  %31 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 2
  store i64 %10, ptr %31, align 4
  %32 = getelementptr ptr, ptr %26, i32 2
  store ptr %31, ptr %32, align 8
  %33 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 3
  store i64 %11, ptr %33, align 4
  %34 = getelementptr ptr, ptr %26, i32 3
  store ptr %33, ptr %34, align 8
  %35 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 4
  store i64 %12, ptr %35, align 4
  %36 = getelementptr ptr, ptr %26, i32 4
  store ptr %35, ptr %36, align 8
  %37 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 5
  store i64 %13, ptr %37, align 4
  %38 = getelementptr ptr, ptr %26, i32 5
  store ptr %37, ptr %38, align 8
  %39 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 6
  store i64 %14, ptr %39, align 4
  %40 = getelementptr ptr, ptr %26, i32 6
  store ptr %39, ptr %40, align 8
  %41 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 7
  store float %15, ptr %41, align 4
  %42 = getelementptr ptr, ptr %26, i32 7
  store ptr %41, ptr %42, align 8
  %43 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 8
  store ptr %16, ptr %43, align 8
  %44 = getelementptr ptr, ptr %26, i32 8
  store ptr %43, ptr %44, align 8
  %45 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 9
  store ptr %17, ptr %45, align 8
  %46 = getelementptr ptr, ptr %26, i32 9
  store ptr %45, ptr %46, align 8
  %47 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 10
  store i64 %18, ptr %47, align 4
  %48 = getelementptr ptr, ptr %26, i32 10
  store ptr %47, ptr %48, align 8
  %49 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 11
  store i64 %19, ptr %49, align 4
  %50 = getelementptr ptr, ptr %26, i32 11
  store ptr %49, ptr %50, align 8
  %51 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 12
  store i64 %20, ptr %51, align 4
  %52 = getelementptr ptr, ptr %26, i32 12
  store ptr %51, ptr %52, align 8
  %53 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 13
  store i64 %21, ptr %53, align 4
  %54 = getelementptr ptr, ptr %26, i32 13
  store ptr %53, ptr %54, align 8
  %55 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 14
  store i64 %22, ptr %55, align 4
  %56 = getelementptr ptr, ptr %26, i32 14
  store ptr %55, ptr %56, align 8
  %57 = getelementptr { ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 15
  store i64 %23, ptr %57, align 4
  %58 = getelementptr ptr, ptr %26, i32 15
  store ptr %57, ptr %58, align 8
  %59 = load ptr, ptr @aotc_module_guarded_loop_kernels, align 8
  %60 = call ptr @mgpuModuleGetFunction(ptr %59, ptr @aotc_name_guarded_loop_kernels_scale_kernel)
  call void @mgpuLaunchKernel(ptr %60, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %26, ptr null, i64 16)
  ret void
}

define hidden void @aotc_call_scale(ptr %0) {
  %2 = getelementptr ptr, ptr %0, i32 0
  %3 = load ptr, ptr %2, align 8
  %4 = getelementptr ptr, ptr %0, i32 1
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr ptr, ptr %0, i32 2
  %7 = load ptr, ptr %6, align 8
  %8 = load float, ptr %7, align 4
  call void @_mlir_ciface_scale(ptr %3, ptr %5, float %8)
  ret void
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #1

attributes #0 = { alwaysinline }
attributes #1 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !{}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.parallel_accesses", !1}
