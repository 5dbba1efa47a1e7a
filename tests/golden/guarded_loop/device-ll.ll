; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale_kernel(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, i64 %5, i64 %6, float %7, ptr %8, ptr %9, i64 %10, i64 %11, i64 %12, i64 %13, i64 %14, i64 %15) #0 {
  %17 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %18 = sext i32 %17 to i64
  %19 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %20 = sext i32 %19 to i64
  %21 = call range(i32 0, 32) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %22 = sext i32 %21 to i64
  %23 = call range(i32 0, 8) i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %24 = sext i32 %23 to i64
  %25 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %26 = sext i32 %25 to i64
  %27 = mul i64 %20, 8
  %28 = add i64 %27, %24
  %29 = mul i64 %26, 8
  br label %30

30:                                               ; preds = %44, %16
  %31 = phi i64 [ %45, %44 ], [ %28, %16 ]
  %32 = icmp slt i64 %31, %15
  br i1 %32, label %33, label %46

33:                                               ; preds = %30
  %34 = mul i64 %18, 32
  %35 = add i64 %34, %22
  %36 = icmp slt i64 %35, 100
  br i1 %36, label %37, label %44

37:                                               ; preds = %33
  %38 = mul nuw nsw i64 %31, 100
  %39 = add nuw nsw i64 %38, %35
  %40 = getelementptr inbounds nuw float, ptr %1, i64 %39
  %41 = load float, ptr %40, align 4
  %42 = fmul float %41, %7
  %43 = getelementptr inbounds nuw float, ptr %9, i64 %39
  store float %42, ptr %43, align 4
  br label %44

44:                                               ; preds = %37, %33
  %45 = add i64 %31, %29
  br label %30

46:                                               ; preds = %30
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 2147483647) i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 65535) i32 @llvm.nvvm.read.ptx.sreg.ctaid.y() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.y() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 1, 65536) i32 @llvm.nvvm.read.ptx.sreg.nctaid.y() #1

attributes #0 = { "nvvm.maxntid"="32,8,1" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
