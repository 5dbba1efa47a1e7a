; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale_kernel(i64 %0, ptr %1, ptr %2, i64 %3, i64 %4, i64 %5, i64 %6, i64 %7, float %8, ptr %9, ptr %10, i64 %11, i64 %12, i64 %13, i64 %14, i64 %15) #0 {
  %17 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %18 = sext i32 %17 to i64
  %19 = call range(i32 0, 25) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %20 = sext i32 %19 to i64
  %21 = call range(i32 0, 10) i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %22 = sext i32 %21 to i64
  %23 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %24 = sext i32 %23 to i64
  %25 = mul i64 %18, 10
  %26 = mul i64 %24, 10
  br label %27

27:                                               ; preds = %87, %16
  %28 = phi i64 [ %88, %87 ], [ %25, %16 ]
  %29 = icmp slt i64 %28, %0
  br i1 %29, label %30, label %89

30:                                               ; preds = %27
  %31 = add i64 %28, %22
  %32 = icmp slt i64 %31, %0
  br i1 %32, label %33, label %87

33:                                               ; preds = %30
  %34 = mul i64 %20, 4
  %35 = ptrtoint ptr %2 to i64
  %36 = and i64 %35, 15
  %37 = ptrtoint ptr %10 to i64
  %38 = and i64 %37, 15
  %39 = and i64 %34, 3
  %40 = or i64 %36, %38
  %41 = or i64 %40, %39
  %42 = or i64 %41, %39
  %43 = icmp eq i64 %42, 0
  br i1 %43, label %44, label %62

44:                                               ; preds = %33
  %45 = mul i64 %31, 100
  %46 = add i64 %45, %34
  %47 = getelementptr float, ptr %2, i64 %46
  %48 = load <4 x float>, ptr %47, align 16
  %49 = extractelement <4 x float> %48, i64 0
  %50 = extractelement <4 x float> %48, i64 1
  %51 = extractelement <4 x float> %48, i64 2
  %52 = extractelement <4 x float> %48, i64 3
  %53 = fmul float %49, %8
  %54 = fmul float %50, %8
  %55 = fmul float %51, %8
  %56 = fmul float %52, %8
  %57 = insertelement <4 x float> poison, float %53, i64 0
  %58 = insertelement <4 x float> %57, float %54, i64 1
  %59 = insertelement <4 x float> %58, float %55, i64 2
  %60 = insertelement <4 x float> %59, float %56, i64 3
  %61 = getelementptr float, ptr %10, i64 %46
  store <4 x float> %60, ptr %61, align 16
  br label %87

62:                                               ; preds = %33
  %63 = add i64 %20, 25
  %64 = add i64 %20, 50
  %65 = add i64 %20, 75
  %66 = mul nuw nsw i64 %31, 100
  %67 = add nuw nsw i64 %66, %20
  %68 = getelementptr inbounds nuw float, ptr %2, i64 %67
  %69 = load float, ptr %68, align 4
  %70 = add nuw nsw i64 %66, %63
  %71 = getelementptr inbounds nuw float, ptr %2, i64 %70
  %72 = load float, ptr %71, align 4
  %73 = add nuw nsw i64 %66, %64
  %74 = getelementptr inbounds nuw float, ptr %2, i64 %73
  %75 = load float, ptr %74, align 4
  %76 = add nuw nsw i64 %66, %65
  %77 = getelementptr inbounds nuw float, ptr %2, i64 %76
  %78 = load float, ptr %77, align 4
  %79 = fmul float %69, %8
  %80 = fmul float %72, %8
  %81 = fmul float %75, %8
  %82 = fmul float %78, %8
  %83 = getelementptr inbounds nuw float, ptr %10, i64 %67
  store float %79, ptr %83, align 4
  %84 = getelementptr inbounds nuw float, ptr %10, i64 %70
  store float %80, ptr %84, align 4
  %85 = getelementptr inbounds nuw float, ptr %10, i64 %73
  store float %81, ptr %85, align 4
  %86 = getelementptr inbounds nuw float, ptr %10, i64 %76
  store float %82, ptr %86, align 4
  br label %87

87:                                               ; preds = %44, %62, %30
  %88 = add i64 %28, %26
  br label %27

89:                                               ; preds = %27
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 65535) i32 @llvm.nvvm.read.ptx.sreg.ctaid.y() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.y() #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 1, 65536) i32 @llvm.nvvm.read.ptx.sreg.nctaid.y() #1

attributes #0 = { "nvvm.maxntid"="25,10,1" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
