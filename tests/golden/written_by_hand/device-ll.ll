; ModuleID = 'LLVMDialectModule'
source_filename = "LLVMDialectModule"
target triple = "nvptx64-nvidia-cuda"

@__dynamic_shmem__0 = external addrspace(3) global [0 x i8], align 128
@__wg_turn_0 = internal addrspace(3) global [32 x double] undef

define ptx_kernel void @turn(ptr %0, ptr %1, i64 %2, i64 %3, i64 %4) {
  %6 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %7 = sext i32 %6 to i64
  %8 = getelementptr inbounds nuw double, ptr %1, i64 %7
  %9 = load double, ptr %8, align 8
  %10 = getelementptr inbounds nuw double, ptr addrspace(3) @__wg_turn_0, i64 %7
  store double %9, ptr addrspace(3) %10, align 8
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %11 = sub i64 31, %7
  %12 = getelementptr inbounds nuw double, ptr addrspace(3) @__wg_turn_0, i64 %11
  %13 = load double, ptr addrspace(3) %12, align 8
  %14 = getelementptr inbounds nuw double, ptr addrspace(3) @__dynamic_shmem__0, i64 %7
  store double %13, ptr addrspace(3) %14, align 8
  %15 = load double, ptr addrspace(3) %14, align 8
  store double %15, ptr %8, align 8
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #0

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) #1

attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #1 = { convergent nocallback nounwind }

!llvm.module.flags = !{!0}

!0 = !{i32 2, !"Debug Info Version", i32 3}
