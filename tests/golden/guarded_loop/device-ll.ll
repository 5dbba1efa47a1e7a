; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale_kernel(i64 %0, ptr %1, ptr %2, i64 %3, i64 %4, i64 %5, i64 %6, i64 %7, float %8, ptr %9, ptr %10, i64 %11, i64 %12, i64 %13, i64 %14, i64 %15) #0 {
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
  %27 = mul i64 %20, 32
  %28 = mul i64 %26, 32
  br label %29

29:                                               ; preds = %154, %16
  %30 = phi i64 [ %155, %154 ], [ %27, %16 ]
  %31 = icmp slt i64 %30, %0
  br i1 %31, label %32, label %156

32:                                               ; preds = %29
  %33 = add i64 %30, 8
  %34 = add i64 %30, 16
  %35 = add i64 %30, 24
  %36 = add i64 %30, %24
  %37 = add i64 %33, %24
  %38 = add i64 %34, %24
  %39 = add i64 %35, %24
  %40 = sub i64 %0, %30
  %41 = sub i64 %0, %33
  %42 = sub i64 %0, %34
  %43 = sub i64 %0, %35
  %44 = icmp slt i64 %24, %40
  %45 = icmp slt i64 %24, %41
  %46 = icmp slt i64 %24, %42
  %47 = icmp slt i64 %24, %43
  %48 = and i1 %44, %45
  %49 = and i1 %48, %46
  %50 = and i1 %49, %47
  br i1 %50, label %51, label %113

51:                                               ; preds = %32
  %52 = mul i64 %18, 32
  %53 = add i64 %52, %22
  %54 = icmp slt i64 %53, 99
  br i1 %54, label %55, label %80

55:                                               ; preds = %51
  %56 = mul nuw nsw i64 %36, 100
  %57 = add nuw nsw i64 %56, %53
  %58 = getelementptr inbounds nuw float, ptr %2, i64 %57
  %59 = load float, ptr %58, align 4
  %60 = mul nuw nsw i64 %37, 100
  %61 = add nuw nsw i64 %60, %53
  %62 = getelementptr inbounds nuw float, ptr %2, i64 %61
  %63 = load float, ptr %62, align 4
  %64 = mul nuw nsw i64 %38, 100
  %65 = add nuw nsw i64 %64, %53
  %66 = getelementptr inbounds nuw float, ptr %2, i64 %65
  %67 = load float, ptr %66, align 4
  %68 = mul nuw nsw i64 %39, 100
  %69 = add nuw nsw i64 %68, %53
  %70 = getelementptr inbounds nuw float, ptr %2, i64 %69
  %71 = load float, ptr %70, align 4
  %72 = fmul float %59, %8
  %73 = fmul float %63, %8
  %74 = fmul float %67, %8
  %75 = fmul float %71, %8
  %76 = getelementptr inbounds nuw float, ptr %10, i64 %57
  store float %72, ptr %76, align 4
  %77 = getelementptr inbounds nuw float, ptr %10, i64 %61
  store float %73, ptr %77, align 4
  %78 = getelementptr inbounds nuw float, ptr %10, i64 %65
  store float %74, ptr %78, align 4
  %79 = getelementptr inbounds nuw float, ptr %10, i64 %69
  store float %75, ptr %79, align 4
  br label %154

80:                                               ; preds = %51
  br i1 %54, label %81, label %88

81:                                               ; preds = %80
  %82 = mul nuw nsw i64 %36, 100
  %83 = add nuw nsw i64 %82, %53
  %84 = getelementptr inbounds nuw float, ptr %2, i64 %83
  %85 = load float, ptr %84, align 4
  %86 = fmul float %85, %8
  %87 = getelementptr inbounds nuw float, ptr %10, i64 %83
  store float %86, ptr %87, align 4
  br label %88

88:                                               ; preds = %81, %80
  br i1 %54, label %89, label %96

89:                                               ; preds = %88
  %90 = mul nuw nsw i64 %37, 100
  %91 = add nuw nsw i64 %90, %53
  %92 = getelementptr inbounds nuw float, ptr %2, i64 %91
  %93 = load float, ptr %92, align 4
  %94 = fmul float %93, %8
  %95 = getelementptr inbounds nuw float, ptr %10, i64 %91
  store float %94, ptr %95, align 4
  br label %96

96:                                               ; preds = %89, %88
  br i1 %54, label %97, label %104

97:                                               ; preds = %96
  %98 = mul nuw nsw i64 %38, 100
  %99 = add nuw nsw i64 %98, %53
  %100 = getelementptr inbounds nuw float, ptr %2, i64 %99
  %101 = load float, ptr %100, align 4
  %102 = fmul float %101, %8
  %103 = getelementptr inbounds nuw float, ptr %10, i64 %99
  store float %102, ptr %103, align 4
  br label %104

104:                                              ; preds = %97, %96
  br i1 %54, label %105, label %154

105:                                              ; preds = %104, %150
  %106 = phi i64 [ %152, %150 ], [ %53, %104 ]
  %107 = mul nuw nsw i64 %39, 100
  %108 = add nuw nsw i64 %107, %106
  %109 = getelementptr inbounds nuw float, ptr %2, i64 %108
  %110 = load float, ptr %109, align 4
  %111 = fmul float %110, %8
  %112 = getelementptr inbounds nuw float, ptr %10, i64 %108
  store float %111, ptr %112, align 4
  br label %154

113:                                              ; preds = %32
  br i1 %44, label %114, label %125

114:                                              ; preds = %113
  %115 = mul i64 %18, 32
  %116 = add i64 %115, %22
  %117 = icmp slt i64 %116, 99
  br i1 %117, label %118, label %125

118:                                              ; preds = %114
  %119 = mul nuw nsw i64 %36, 100
  %120 = add nuw nsw i64 %119, %116
  %121 = getelementptr inbounds nuw float, ptr %2, i64 %120
  %122 = load float, ptr %121, align 4
  %123 = fmul float %122, %8
  %124 = getelementptr inbounds nuw float, ptr %10, i64 %120
  store float %123, ptr %124, align 4
  br label %125

125:                                              ; preds = %118, %114, %113
  br i1 %45, label %126, label %137

126:                                              ; preds = %125
  %127 = mul i64 %18, 32
  %128 = add i64 %127, %22
  %129 = icmp slt i64 %128, 99
  br i1 %129, label %130, label %137

130:                                              ; preds = %126
  %131 = mul nuw nsw i64 %37, 100
  %132 = add nuw nsw i64 %131, %128
  %133 = getelementptr inbounds nuw float, ptr %2, i64 %132
  %134 = load float, ptr %133, align 4
  %135 = fmul float %134, %8
  %136 = getelementptr inbounds nuw float, ptr %10, i64 %132
  store float %135, ptr %136, align 4
  br label %137

137:                                              ; preds = %130, %126, %125
  br i1 %46, label %138, label %149

138:                                              ; preds = %137
  %139 = mul i64 %18, 32
  %140 = add i64 %139, %22
  %141 = icmp slt i64 %140, 99
  br i1 %141, label %142, label %149

142:                                              ; preds = %138
  %143 = mul nuw nsw i64 %38, 100
  %144 = add nuw nsw i64 %143, %140
  %145 = getelementptr inbounds nuw float, ptr %2, i64 %144
  %146 = load float, ptr %145, align 4
  %147 = fmul float %146, %8
  %148 = getelementptr inbounds nuw float, ptr %10, i64 %144
  store float %147, ptr %148, align 4
  br label %149

149:                                              ; preds = %142, %138, %137
  br i1 %47, label %150, label %154

150:                                              ; preds = %149
  %151 = mul i64 %18, 32
  %152 = add i64 %151, %22
  %153 = icmp slt i64 %152, 99
  br i1 %153, label %105, label %154

154:                                              ; preds = %55, %105, %104, %150, %149
  %155 = add i64 %30, %28
  br label %29

156:                                              ; preds = %29
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
