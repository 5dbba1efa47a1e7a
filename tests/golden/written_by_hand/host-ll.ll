; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"

@aotc_image_device = internal constant [9 x i8] c"THE IMAGE", align 64
@aotc_module_device = internal global ptr null
@aotc_modname_device = internal constant [7 x i8] c"device\00"
@aotc_builtfor_device = internal constant [6 x i8] c"sm_80\00"
@aotc_name_device.turn = internal constant [5 x i8] c"turn\00"
@aotc_kernels_device = internal constant [1 x { ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 }] [{ ptr, ptr, ptr, ptr, i64, i64, [3 x i64], ptr, i64 } { ptr @aotc_name_device.turn, ptr @aotc_cpu_device_turn, ptr null, ptr null, i64 256, i64 0, [3 x i64] zeroinitializer, ptr null, i64 0 }]
@aotc_info_device = internal constant { i32, i32, ptr, i64, ptr, ptr, ptr, i32, i32, ptr } { i32 5, i32 1, ptr @aotc_image_device, i64 9, ptr @aotc_modname_device, ptr @aotc_builtfor_device, ptr @aotc_kernels_device, i32 0, i32 0, ptr null }
@aotc_kernel_device.turn = internal global ptr null
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_load_device, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 123, ptr @aotc_unload_device, ptr null }]

define internal void @turn(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4) {
  %6 = call ptr @mgpuStreamCreate()
  call void @aotc_launch_device.turn(i64 1, i64 1, i64 1, i64 32, i64 1, i64 1, i32 256, ptr %6, ptr %0, ptr %1, i64 %2, i64 %3, i64 %4)
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

define internal void @aotc_cpu_device_turn(ptr nonnull %0, ptr nonnull %1) {
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
  %17 = load i64, ptr %1, align 4
  %18 = getelementptr i8, ptr %1, i32 8
  %19 = load i64, ptr %18, align 4
  %20 = getelementptr i8, ptr %1, i32 16
  %21 = load i64, ptr %20, align 4
  %22 = getelementptr i8, ptr %1, i32 24
  %23 = load i64, ptr %22, align 4
  %24 = getelementptr i8, ptr %1, i32 32
  %25 = load i64, ptr %24, align 4
  %26 = getelementptr i8, ptr %1, i32 40
  %27 = load i64, ptr %26, align 4
  %28 = getelementptr i8, ptr %1, i32 48
  %29 = load i64, ptr %28, align 4
  %30 = getelementptr i8, ptr %1, i32 56
  %31 = load i64, ptr %30, align 4
  %32 = getelementptr i8, ptr %1, i32 64
  %33 = load i64, ptr %32, align 4
  %34 = mul i64 %29, %31
  %35 = mul i64 %34, %33
  %36 = add i64 %35, 31
  %37 = udiv i64 %36, 32
  %38 = getelementptr i8, ptr %1, i32 96
  %39 = load ptr, ptr %38, align 8
  %40 = mul i64 %37, 2048
  %41 = getelementptr i8, ptr %1, i32 72
  %42 = load ptr, ptr %41, align 8
  %43 = getelementptr i8, ptr %1, i32 80
  %44 = load i64, ptr %43, align 4
  %45 = getelementptr i8, ptr %1, i32 88
  %46 = load ptr, ptr %45, align 8
  %47 = mul i64 %37, 32
  br label %48

48:                                               ; preds = %2
  br label %49

49:                                               ; preds = %48
  br label %52

50:                                               ; preds = %56
  br label %75

51:                                               ; preds = %79
  ret void

52:                                               ; preds = %61, %49
  %53 = phi i64 [ %62, %61 ], [ 0, %49 ]
  %54 = icmp slt i64 %53, %33
  br i1 %54, label %55, label %56

55:                                               ; preds = %52
  br label %57

56:                                               ; preds = %52
  br label %50

57:                                               ; preds = %67, %55
  %58 = phi i64 [ %68, %67 ], [ 0, %55 ]
  %59 = icmp slt i64 %58, %31
  br i1 %59, label %60, label %61

60:                                               ; preds = %57
  br label %63

61:                                               ; preds = %57
  %62 = add i64 %53, 1
  br label %52

63:                                               ; preds = %73, %60
  %64 = phi i64 [ %74, %73 ], [ 0, %60 ]
  %65 = icmp slt i64 %64, %29
  br i1 %65, label %66, label %67

66:                                               ; preds = %63
  br label %69

67:                                               ; preds = %63
  %68 = add i64 %58, 1
  br label %57

69:                                               ; preds = %66
  %70 = getelementptr inbounds nuw double, ptr %7, i64 %64
  %71 = load double, ptr %70, align 8, !llvm.access.group !1
  %72 = getelementptr inbounds nuw double, ptr %46, i64 %64
  store double %71, ptr %72, align 8, !llvm.access.group !1
  br label %73

73:                                               ; preds = %69
  %74 = add i64 %64, 1
  br label %63, !llvm.loop !2

75:                                               ; preds = %84, %50
  %76 = phi i64 [ %85, %84 ], [ 0, %50 ]
  %77 = icmp slt i64 %76, %33
  br i1 %77, label %78, label %79

78:                                               ; preds = %75
  br label %80

79:                                               ; preds = %75
  br label %51

80:                                               ; preds = %91, %78
  %81 = phi i64 [ %92, %91 ], [ 0, %78 ]
  %82 = icmp slt i64 %81, %31
  br i1 %82, label %83, label %84

83:                                               ; preds = %80
  br label %86

84:                                               ; preds = %80
  %85 = add i64 %76, 1
  br label %75

86:                                               ; preds = %100, %83
  %87 = phi i64 [ %101, %100 ], [ 0, %83 ]
  %88 = icmp slt i64 %87, %29
  br i1 %88, label %89, label %91

89:                                               ; preds = %86
  %90 = getelementptr inbounds nuw double, ptr %7, i64 %87
  br label %93

91:                                               ; preds = %86
  %92 = add i64 %81, 1
  br label %80

93:                                               ; preds = %89
  %94 = sub i64 31, %87
  %95 = getelementptr inbounds nuw double, ptr %46, i64 %94
  %96 = load double, ptr %95, align 8, !llvm.access.group !8
  %97 = getelementptr inbounds nuw double, ptr %42, i64 %87
  store double %96, ptr %97, align 8, !llvm.access.group !8
  %98 = load double, ptr %97, align 8, !llvm.access.group !8
  store double %98, ptr %90, align 8, !llvm.access.group !8
  br label %99

99:                                               ; preds = %93
  br label %100

100:                                              ; preds = %99
  %101 = add i64 %87, 1
  br label %86, !llvm.loop !9
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

define internal void @aotc_launch_device.turn(i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12) {
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
  %26 = load atomic ptr, ptr @aotc_kernel_device.turn monotonic, align 8
  %27 = icmp ne ptr %26, null
  br i1 %27, label %31, label %28

28:                                               ; preds = %13
  %29 = load ptr, ptr @aotc_module_device, align 8
  %30 = call ptr @mgpuModuleGetFunction(ptr %29, ptr @aotc_name_device.turn)
  store atomic ptr %30, ptr @aotc_kernel_device.turn monotonic, align 8
  br label %31

31:                                               ; preds = %28, %13
  %32 = phi ptr [ %30, %28 ], [ %26, %13 ]
  call void @mgpuLaunchKernel(ptr %32, i64 %0, i64 %1, i64 %2, i64 %3, i64 %4, i64 %5, i32 %6, ptr %7, ptr %15, ptr null, i64 5)
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
module asm ".ascii \22,\5C\22name\5C\22:\5C\22written_by_hand\5C\22\22"
module asm ".ascii \22,\5C\22library\5C\22:\5C\22written_by_hand\5C\22\22"
module asm ".ascii \22,\5C\22functions\5C\22:{\5C\22status\5C\22:\5C\22written_by_hand_status\5C\22,\5C\22last_error\5C\22:\5C\22written_by_hand_last_error\5C\22,\5C\22clear_error\5C\22:\5C\22written_by_hand_clear_error\5C\22,\5C\22set_device\5C\22:\5C\22written_by_hand_set_device\5C\22,\5C\22set_error_hook\5C\22:\5C\22written_by_hand_set_error_hook\5C\22,\5C\22free\5C\22:\5C\22written_by_hand_free\5C\22,\5C\22free_async\5C\22:\5C\22written_by_hand_free_async\5C\22,\5C\22copy\5C\22:\5C\22written_by_hand_copy\5C\22,\5C\22set_allocator\5C\22:\5C\22written_by_hand_set_allocator\5C\22,\5C\22set_workspace\5C\22:\5C\22written_by_hand_set_workspace\5C\22,\5C\22unload\5C\22:\5C\22written_by_hand_unload\5C\22}\22"
module asm ".ascii \22,\5C\22aotc\5C\22:\5C\22VERSION\5C\22\22"
module asm ".ascii \22,\5C\22target\5C\22:\5C\22x86_64-linux-gnu.2.28\5C\22\22"
module asm ".ascii \22,\5C\22entries\5C\22:[{\5C\22name\5C\22:\5C\22turn\5C\22,\5C\22arguments\5C\22:[{\5C\22name\5C\22:\5C\22x\5C\22,\5C\22type\5C\22:\5C\22memref<32xf64>\5C\22,\5C\22dtype\5C\22:\5C\22f64\5C\22,\5C\22shape\5C\22:[32],\5C\22strides\5C\22:null,\5C\22offset\5C\22:0,\5C\22is_read\5C\22:true,\5C\22is_written\5C\22:true,\5C\22memory\5C\22:\5C\22device\5C\22,\5C\22is_owned\5C\22:false,\5C\22aliases\5C\22:null,\5C\22state\5C\22:null,\5C\22result\5C\22:null}],\5C\22results\5C\22:[],\5C\22touches_memory_on_host\5C\22:false,\5C\22why_not_async\5C\22:null,\5C\22workspace_bytes\5C\22:0,\5C\22functions\5C\22:{\5C\22call\5C\22:\5C\22turn\5C\22,\5C\22async\5C\22:\5C\22turn_async\5C\22,\5C\22memref\5C\22:\5C\22turn_memref\5C\22,\5C\22c_interface\5C\22:\5C\22_mlir_ciface_turn\5C\22},\5C\22state\5C\22:null,\5C\22call\5C\22:null,\5C\22sparse\5C\22:[]}]\22"
module asm ".ascii \22,\5C\22kernels\5C\22:[{\5C\22module\5C\22:\5C\22device\5C\22,\5C\22name\5C\22:\5C\22turn\5C\22,\5C\22built_for\5C\22:[\5C\22sm_80\5C\22],\5C\22why_no_cpu_form\5C\22:null,\5C\22resources\5C\22:[{\5C\22chip\5C\22:\5C\22sm_80\5C\22,\5C\22registers\5C\22:16,\5C\22shared_bytes\5C\22:256,\5C\22stack_bytes\5C\22:8,\5C\22spill_stores\5C\22:4,\5C\22spill_loads\5C\22:12,\5C\22barriers\5C\22:1}]}]\22"
module asm ".ascii \22,\5C\22optimization\5C\22:3\22"
module asm ".ascii \22,\5C\22tools\5C\22:VERSIONS
module asm ".ascii \22,\5C\22weights\5C\22:null\22"
module asm ".ascii \22,\5C\22state\5C\22:[]\22"
module asm ".ascii \22}\22"
module asm "2:"
module asm ".p2align 2"
module asm ".popsection"
