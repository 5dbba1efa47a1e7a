; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@aotc_image_guarded_loop_kernels = internal constant [9 x i8] c"THE IMAGE", align 64
@aotc_module_guarded_loop_kernels = internal global ptr null
@aotc_modname_guarded_loop_kernels = internal constant [21 x i8] c"guarded_loop_kernels\00"
@aotc_builtfor_guarded_loop_kernels = internal constant [6 x i8] c"sm_80\00"
@aotc_name_guarded_loop_kernels.scale_kernel = internal constant [13 x i8] c"scale_kernel\00"
@aotc_kernels_guarded_loop_kernels = internal constant [1 x { ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 }] [{ ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 } { ptr @aotc_name_guarded_loop_kernels.scale_kernel, ptr @aotc_cpu_guarded_loop_kernels_scale_kernel, ptr null, ptr null, i64 0, i64 0, [3 x i64] [i64 32, i64 8, i64 1], ptr null, i64 0 }]
@aotc_info_guarded_loop_kernels = internal constant { i32, i32, ptr, i64, ptr, ptr, ptr, i32, i32, ptr } { i32 5, i32 1, ptr @aotc_image_guarded_loop_kernels, i64 9, ptr @aotc_modname_guarded_loop_kernels, ptr @aotc_builtfor_guarded_loop_kernels, ptr @aotc_kernels_guarded_loop_kernels, i32 0, i32 0, ptr null }
@aotc_kernel_guarded_loop_kernels.scale_kernel = internal global ptr null
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_load_guarded_loop_kernels, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_unload_guarded_loop_kernels, ptr null }]

define internal void @scale(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, ptr %7, ptr %8, i64 %9, i64 %10, i64 %11, i64 %12, i64 %13, float %14) {
  %16 = call ptr @mgpuStreamCreate()
  %17 = call i64 @llvm.smax.i64(i64 %3, i64 0)
  %18 = sdiv i64 %17, 32
  %19 = mul i64 %18, 32
  %20 = icmp ne i64 %17, %19
  %21 = icmp slt i64 %17, 0
  %22 = icmp eq i1 %21, false
  %23 = and i1 %20, %22
  %24 = add i64 %18, 1
  %25 = select i1 %23, i64 %24, i64 %18
  %26 = call i64 @llvm.smax.i64(i64 %25, i64 1)
  %27 = call i64 @llvm.smin.i64(i64 %26, i64 65535)
  call void @aotc_launch_guarded_loop_kernels.scale_kernel(i64 4, i64 %27, i64 1, i64 32, i64 8, i64 1, i32 0, ptr %16, i64 %17, ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, float %14, ptr %7, ptr %8, i64 %9, i64 %10, i64 %11, i64 %12, i64 %13)
  call void @mgpuStreamSynchronize(ptr %16)
  call void @mgpuStreamDestroy(ptr %16)
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

define internal void @aotc_cpu_guarded_loop_kernels_scale_kernel(ptr nonnull %0, ptr nonnull %1) {
  %3 = load ptr, ptr %0, align 8
  %4 = load i64, ptr %3, align 4
  %5 = getelementptr i8, ptr %0, i32 8
  %6 = load ptr, ptr %5, align 8
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr i8, ptr %0, i32 16
  %9 = load ptr, ptr %8, align 8
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr i8, ptr %0, i32 24
  %12 = load ptr, ptr %11, align 8
  %13 = load i64, ptr %12, align 4
  %14 = getelementptr i8, ptr %0, i32 32
  %15 = load ptr, ptr %14, align 8
  %16 = load i64, ptr %15, align 4
  %17 = getelementptr i8, ptr %0, i32 40
  %18 = load ptr, ptr %17, align 8
  %19 = load i64, ptr %18, align 4
  %20 = getelementptr i8, ptr %0, i32 48
  %21 = load ptr, ptr %20, align 8
  %22 = load i64, ptr %21, align 4
  %23 = getelementptr i8, ptr %0, i32 56
  %24 = load ptr, ptr %23, align 8
  %25 = load i64, ptr %24, align 4
  %26 = getelementptr i8, ptr %0, i32 64
  %27 = load ptr, ptr %26, align 8
  %28 = load float, ptr %27, align 4
  %29 = getelementptr i8, ptr %0, i32 72
  %30 = load ptr, ptr %29, align 8
  %31 = load ptr, ptr %30, align 8
  %32 = getelementptr i8, ptr %0, i32 80
  %33 = load ptr, ptr %32, align 8
  %34 = load ptr, ptr %33, align 8
  %35 = getelementptr i8, ptr %0, i32 88
  %36 = load ptr, ptr %35, align 8
  %37 = load i64, ptr %36, align 4
  %38 = getelementptr i8, ptr %0, i32 96
  %39 = load ptr, ptr %38, align 8
  %40 = load i64, ptr %39, align 4
  %41 = getelementptr i8, ptr %0, i32 104
  %42 = load ptr, ptr %41, align 8
  %43 = load i64, ptr %42, align 4
  %44 = getelementptr i8, ptr %0, i32 112
  %45 = load ptr, ptr %44, align 8
  %46 = load i64, ptr %45, align 4
  %47 = getelementptr i8, ptr %0, i32 120
  %48 = load ptr, ptr %47, align 8
  %49 = load i64, ptr %48, align 4
  %50 = load i64, ptr %1, align 4
  %51 = getelementptr i8, ptr %1, i32 8
  %52 = load i64, ptr %51, align 4
  %53 = getelementptr i8, ptr %1, i32 16
  %54 = load i64, ptr %53, align 4
  %55 = getelementptr i8, ptr %1, i32 24
  %56 = load i64, ptr %55, align 4
  %57 = getelementptr i8, ptr %1, i32 32
  %58 = load i64, ptr %57, align 4
  %59 = getelementptr i8, ptr %1, i32 40
  %60 = load i64, ptr %59, align 4
  %61 = getelementptr i8, ptr %1, i32 96
  %62 = load ptr, ptr %61, align 8
  %63 = getelementptr i8, ptr %1, i32 72
  %64 = load ptr, ptr %63, align 8
  %65 = getelementptr i8, ptr %1, i32 80
  %66 = load i64, ptr %65, align 4
  %67 = getelementptr i8, ptr %1, i32 88
  %68 = load ptr, ptr %67, align 8
  br label %69

69:                                               ; preds = %2
  br label %70

70:                                               ; preds = %69
  %71 = mul i64 %52, 32
  %72 = mul i64 %58, 32
  br label %73

73:                                               ; preds = %82, %70
  %74 = phi i64 [ %83, %82 ], [ %71, %70 ]
  %75 = icmp slt i64 %74, %4
  br i1 %75, label %77, label %76

76:                                               ; preds = %73
  br label %90

77:                                               ; preds = %73
  br label %78

78:                                               ; preds = %88, %77
  %79 = phi i64 [ %89, %88 ], [ 0, %77 ]
  %80 = icmp slt i64 %79, 32
  br i1 %80, label %84, label %81

81:                                               ; preds = %78
  br label %82

82:                                               ; preds = %81
  %83 = add i64 %74, %72
  br label %73

84:                                               ; preds = %78
  %85 = add i64 %74, %79
  %86 = sub i64 %4, %85
  %87 = call i64 @llvm.smin.i64(i64 8, i64 %86)
  br label %91

88:                                               ; preds = %95
  %89 = add i64 %79, 8
  br label %78

90:                                               ; preds = %76
  ret void

91:                                               ; preds = %100, %84
  %92 = phi i64 [ %101, %100 ], [ 0, %84 ]
  %93 = icmp slt i64 %92, %87
  br i1 %93, label %94, label %95

94:                                               ; preds = %91
  br label %96

95:                                               ; preds = %91
  br label %88

96:                                               ; preds = %119, %94
  %97 = phi i64 [ %120, %119 ], [ 0, %94 ]
  %98 = icmp slt i64 %97, 32
  br i1 %98, label %99, label %100

99:                                               ; preds = %96
  br label %102

100:                                              ; preds = %96
  %101 = add i64 %92, 1
  br label %91

102:                                              ; preds = %99
  %103 = add i64 %85, %92
  %104 = icmp slt i64 %92, %86
  br label %105

105:                                              ; preds = %102
  %106 = mul i64 %50, 32
  %107 = add i64 %106, %97
  %108 = icmp slt i64 %107, 99
  br i1 %108, label %110, label %109

109:                                              ; preds = %105
  br label %117

110:                                              ; preds = %105
  %111 = mul nuw nsw i64 %103, 100
  %112 = add nuw nsw i64 %111, %107
  %113 = getelementptr inbounds nuw float, ptr %10, i64 %112
  %114 = load float, ptr %113, align 4, !llvm.access.group !1
  %115 = fmul float %114, %28
  %116 = getelementptr inbounds nuw float, ptr %34, i64 %112
  store float %115, ptr %116, align 4, !llvm.access.group !1
  br label %117

117:                                              ; preds = %110, %109
  br label %118

118:                                              ; preds = %117
  br label %119

119:                                              ; preds = %118
  %120 = add i64 %97, 1
  br label %96, !llvm.loop !2
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

declare extern_weak void @aotc_concurrent_launch_prepare(ptr, i64)

declare extern_weak void @aotc_module_register(ptr)

declare extern_weak i32 @aotc_status_get()

declare extern_weak i1 @aotc_is_stopped()

declare extern_weak void @aotc_assertion_failed(ptr)

declare extern_weak void @aotc_allocation_failed(ptr)

declare extern_weak ptr @aotc_constant_get(ptr)

declare extern_weak ptr @aotc_constant_get_packed(ptr, i64)

declare extern_weak ptr @aotc_constant_get_transposed(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_words(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_halves(ptr, i64)

declare extern_weak ptr @aotc_constant_get_grouped_bytes(ptr, i64)

declare extern_weak ptr @aotc_constant_get_winograd(ptr, i64)

declare extern_weak void @aotc_constant_release(ptr)

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

define internal void @aotc_launch_guarded_loop_kernels.scale_kernel(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, i64 %8, ptr %9, ptr %10, i64 %11, i64 %12, i64 %13, i64 %14, i64 %15, float %16, ptr %17, ptr %18, i64 %19, i64 %20, i64 %21, i64 %22, i64 %23) {
  %25 = alloca { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, i64 1, align 8
  %26 = alloca ptr, i64 16, align 8
  %27 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 0
  store i64 %8, ptr %27, align 4
  %28 = getelementptr ptr, ptr %26, i32 0
  store ptr %27, ptr %28, align 8
  %29 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 1
  store ptr %9, ptr %29, align 8
  %30 = getelementptr ptr, ptr %26, i32 1
  store ptr %29, ptr %30, align 8
  %31 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 2
  store ptr %10, ptr %31, align 8
  %32 = getelementptr ptr, ptr %26, i32 2
  store ptr %31, ptr %32, align 8
  %33 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 3
  store i64 %11, ptr %33, align 4
  %34 = getelementptr ptr, ptr %26, i32 3
  store ptr %33, ptr %34, align 8
  %35 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 4
  store i64 %12, ptr %35, align 4
  %36 = getelementptr ptr, ptr %26, i32 4
  store ptr %35, ptr %36, align 8
  %37 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 5
  store i64 %13, ptr %37, align 4
  %38 = getelementptr ptr, ptr %26, i32 5
  store ptr %37, ptr %38, align 8
  %39 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 6
  store i64 %14, ptr %39, align 4
  %40 = getelementptr ptr, ptr %26, i32 6
  store ptr %39, ptr %40, align 8
  %41 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 7
  store i64 %15, ptr %41, align 4
  %42 = getelementptr ptr, ptr %26, i32 7
  store ptr %41, ptr %42, align 8
  %43 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 8
  store float %16, ptr %43, align 4
  %44 = getelementptr ptr, ptr %26, i32 8
  store ptr %43, ptr %44, align 8
  %45 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 9
  store ptr %17, ptr %45, align 8
  %46 = getelementptr ptr, ptr %26, i32 9
  store ptr %45, ptr %46, align 8
  %47 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 10
  store ptr %18, ptr %47, align 8
  %48 = getelementptr ptr, ptr %26, i32 10
  store ptr %47, ptr %48, align 8
  %49 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 11
  store i64 %19, ptr %49, align 4
  %50 = getelementptr ptr, ptr %26, i32 11
  store ptr %49, ptr %50, align 8
  %51 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 12
  store i64 %20, ptr %51, align 4
  %52 = getelementptr ptr, ptr %26, i32 12
  store ptr %51, ptr %52, align 8
  %53 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 13
  store i64 %21, ptr %53, align 4
  %54 = getelementptr ptr, ptr %26, i32 13
  store ptr %53, ptr %54, align 8
  %55 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 14
  store i64 %22, ptr %55, align 4
  %56 = getelementptr ptr, ptr %26, i32 14
  store ptr %55, ptr %56, align 8
  %57 = getelementptr { i64, ptr, ptr, i64, i64, i64, i64, i64, float, ptr, ptr, i64, i64, i64, i64, i64 }, ptr %25, i32 0, i32 15
  store i64 %23, ptr %57, align 4
  %58 = getelementptr ptr, ptr %26, i32 15
  store ptr %57, ptr %58, align 8
  %59 = load atomic ptr, ptr @aotc_kernel_guarded_loop_kernels.scale_kernel monotonic, align 8
  %60 = icmp ne ptr %59, null
  br i1 %60, label %64, label %61

61:                                               ; preds = %24
  %62 = load ptr, ptr @aotc_module_guarded_loop_kernels, align 8
  %63 = call ptr @mgpuModuleGetFunction(ptr %62, ptr @aotc_name_guarded_loop_kernels.scale_kernel)
  store atomic ptr %63, ptr @aotc_kernel_guarded_loop_kernels.scale_kernel monotonic, align 8
  br label %64

64:                                               ; preds = %61, %24
  %65 = phi ptr [ %63, %61 ], [ %59, %24 ]
  call void @mgpuLaunchKernel(ptr %65, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %26, ptr null, i64 16)
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
declare i64 @llvm.smax.i64(i64, i64) #0

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #0

attributes #0 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !{}
!2 = distinct !{!2, !3, !6, !7}
!3 = !{!"llvm.loop.vectorize.followup_vectorized", !4}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.mustprogress"}
!6 = !{!"llvm.loop.unroll.disable"}
!7 = !{!"llvm.loop.parallel_accesses", !1}

module asm ".pushsection .note.aotc,\22a\22,%note"
module asm ".p2align 2"
module asm ".long 5"
module asm ".long 2f-1f"
module asm ".long 1"
module asm ".asciz \22aotc\22"
module asm ".p2align 2"
module asm "1:"
module asm ".ascii \22{\5C\22manifest_version\5C\22:2\22"
module asm ".ascii \22,\5C\22name\5C\22:\5C\22guarded_loop\5C\22\22"
module asm ".ascii \22,\5C\22library\5C\22:\5C\22guarded_loop\5C\22\22"
module asm ".ascii \22,\5C\22functions\5C\22:{\5C\22status\5C\22:\5C\22guarded_loop_status\5C\22,\5C\22last_error\5C\22:\5C\22guarded_loop_last_error\5C\22,\5C\22clear_error\5C\22:\5C\22guarded_loop_clear_error\5C\22,\5C\22set_device\5C\22:\5C\22guarded_loop_set_device\5C\22,\5C\22set_error_hook\5C\22:\5C\22guarded_loop_set_error_hook\5C\22,\5C\22free\5C\22:\5C\22guarded_loop_free\5C\22,\5C\22free_async\5C\22:\5C\22guarded_loop_free_async\5C\22,\5C\22copy\5C\22:\5C\22guarded_loop_copy\5C\22,\5C\22set_allocator\5C\22:\5C\22guarded_loop_set_allocator\5C\22,\5C\22set_workspace\5C\22:\5C\22guarded_loop_set_workspace\5C\22,\5C\22unload\5C\22:\5C\22guarded_loop_unload\5C\22}\22"
module asm ".ascii \22,\5C\22aotc\5C\22:\5C\22VERSION\5C\22\22"
module asm ".ascii \22,\5C\22target\5C\22:\5C\22x86_64-linux-gnu.2.28\5C\22\22"
module asm ".ascii \22,\5C\22entries\5C\22:[{\5C\22name\5C\22:\5C\22scale\5C\22,\5C\22arguments\5C\22:[{\5C\22name\5C\22:\5C\22x\5C\22,\5C\22type\5C\22:\5C\22memref<?x100xf32>\5C\22,\5C\22dtype\5C\22:\5C\22f32\5C\22,\5C\22shape\5C\22:[null,100],\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:false,\5C\22memory\5C\22:\5C\22device\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:null},{\5C\22name\5C\22:\5C\22out\5C\22,\5C\22type\5C\22:\5C\22memref<?x100xf32>\5C\22,\5C\22dtype\5C\22:\5C\22f32\5C\22,\5C\22shape\5C\22:[null,100],\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:false,\5C\22is_written\5C\22:true,\5C\22memory\5C\22:\5C\22device\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:null},{\5C\22name\5C\22:\5C\22by\5C\22,\5C\22type\5C\22:\5C\22f32\5C\22,\5C\22dtype\5C\22:\5C\22f32\5C\22,\5C\22shape\5C\22:null,\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:false,\5C\22memory\5C\22:\5C\22host\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:null}],\5C\22results\5C\22:[],\5C\22touches_memory_on_host\5C\22:false,\5C\22why_not_async\5C\22:null,\5C\22workspace_bytes\5C\22:0,\5C\22functions\5C\22:{\5C\22call\5C\22:\5C\22scale\5C\22,\5C\22async\5C\22:\5C\22scale_async\5C\22,\5C\22memref\5C\22:\5C\22scale_memref\5C\22,\5C\22c_interface\5C\22:\5C\22_mlir_ciface_scale\5C\22},\5C\22state\5C\22:null,\5C\22call\5C\22:null,\5C\22sparse\5C\22:[]}]\22"
module asm ".ascii \22,\5C\22kernels\5C\22:[{\5C\22module\5C\22:\5C\22guarded_loop_kernels\5C\22,\5C\22name\5C\22:\5C\22scale_kernel\5C\22,\5C\22built_for\5C\22:[\5C\22sm_80\5C\22],\5C\22why_no_cpu_form\5C\22:null,\5C\22resources\5C\22:[{\5C\22chip\5C\22:\5C\22sm_80\5C\22,\5C\22registers\5C\22:16,\5C\22shared_bytes\5C\22:256,\5C\22stack_bytes\5C\22:8,\5C\22spill_stores\5C\22:4,\5C\22spill_loads\5C\22:12,\5C\22barriers\5C\22:1}]}]\22"
module asm ".ascii \22,\5C\22optimization\5C\22:3\22"
module asm ".ascii \22,\5C\22tools\5C\22:VERSIONS
module asm ".ascii \22,\5C\22weights\5C\22:null\22"
module asm ".ascii \22,\5C\22state\5C\22:[]\22"
module asm ".ascii \22}\22"
module asm "2:"
module asm ".p2align 2"
module asm ".popsection"
