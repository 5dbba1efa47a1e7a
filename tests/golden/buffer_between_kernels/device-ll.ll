; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @sums_kernel(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, ptr %5, ptr %6, i64 %7, i64 %8, i64 %9) #0 {
  %11 = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %12 = sext i32 %11 to i64
  %13 = icmp slt i64 %12, 64
  br i1 %13, label %14, label %19

14:                                               ; preds = %10
  %15 = getelementptr inbounds nuw i32, ptr %1, i64 %12
  %16 = load i32, ptr %15, align 4
  %17 = add i32 %16, %16
  %18 = getelementptr inbounds nuw i32, ptr %6, i64 %12
  store i32 %17, ptr %18, align 4
  br label %19

19:                                               ; preds = %14, %10
  ret void
}

define ptx_kernel void @sums_kernel_0(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4, ptr %5, ptr %6, i64 %7, i64 %8, i64 %9) #0 {
  %11 = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %12 = sext i32 %11 to i64
  %13 = icmp slt i64 %12, 64
  br i1 %13, label %14, label %19

14:                                               ; preds = %10
  %15 = sub i64 63, %12
  %16 = getelementptr inbounds nuw i32, ptr %1, i64 %15
  %17 = load i32, ptr %16, align 4
  %18 = getelementptr inbounds nuw i32, ptr %6, i64 %12
  store i32 %17, ptr %18, align 4
  br label %19

19:                                               ; preds = %14, %10
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { "nvvm.maxntid"="256,1,1" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
