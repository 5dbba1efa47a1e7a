#access_group = #llvm.access_group<id = distinct[0]<>>
#loop_annotation = #llvm.loop_annotation<parallelAccesses = #access_group>
module {
  llvm.func internal @aotc_cpu_guarded_loop_kernels_scale_kernel_thread(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: f32, %arg8: !llvm.ptr, %arg9: !llvm.ptr, %arg10: i64, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64, %arg16: i64, %arg17: i64, %arg18: i64, %arg19: i64, %arg20: i64, %arg21: i64, %arg22: i64, %arg23: i64, %arg24: i64, %arg25: i64, %arg26: i64, %arg27: i64) attributes {always_inline} {
    %0 = llvm.mlir.constant(8 : index) : i64
    %1 = llvm.mlir.constant(32 : index) : i64
    %2 = llvm.mlir.constant(100 : index) : i64
    %3 = llvm.mul %arg20, %0 : i64
    %4 = llvm.add %3, %arg17 : i64
    %5 = llvm.mul %arg23, %0 : i64
    llvm.br ^bb1(%4 : i64)
  ^bb1(%6: i64):  // 2 preds: ^bb0, ^bb4
    %7 = llvm.icmp "slt" %6, %arg15 : i64
    llvm.cond_br %7, ^bb2, ^bb5
  ^bb2:  // pred: ^bb1
    %8 = llvm.mul %arg19, %1 : i64
    %9 = llvm.add %8, %arg16 : i64
    %10 = llvm.icmp "slt" %9, %2 : i64
    llvm.cond_br %10, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    %11 = llvm.mul %6, %2 overflow<nsw, nuw> : i64
    %12 = llvm.add %11, %9 overflow<nsw, nuw> : i64
    %13 = llvm.getelementptr inbounds|nuw %arg1[%12] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %14 = llvm.load %13 {access_groups = [#access_group]} : !llvm.ptr -> f32
    %15 = llvm.fmul %14, %arg7 : f32
    %16 = llvm.getelementptr inbounds|nuw %arg9[%12] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %15, %16 {access_groups = [#access_group]} : f32, !llvm.ptr
    llvm.br ^bb4
  ^bb4:  // 2 preds: ^bb2, ^bb3
    %17 = llvm.add %6, %5 : i64
    llvm.br ^bb1(%17 : i64)
  ^bb5:  // pred: ^bb1
    llvm.return
  }
  llvm.func internal @aotc_cpu_guarded_loop_kernels_scale_kernel(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
    %0 = llvm.getelementptr inbounds %arg0[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
    %3 = llvm.getelementptr inbounds %arg0[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %4 = llvm.load %3 : !llvm.ptr -> !llvm.ptr
    %5 = llvm.load %4 : !llvm.ptr -> !llvm.ptr
    %6 = llvm.getelementptr inbounds %arg0[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %7 = llvm.load %6 : !llvm.ptr -> !llvm.ptr
    %8 = llvm.load %7 : !llvm.ptr -> i64
    %9 = llvm.getelementptr inbounds %arg0[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %10 = llvm.load %9 : !llvm.ptr -> !llvm.ptr
    %11 = llvm.load %10 : !llvm.ptr -> i64
    %12 = llvm.getelementptr inbounds %arg0[4] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %13 = llvm.load %12 : !llvm.ptr -> !llvm.ptr
    %14 = llvm.load %13 : !llvm.ptr -> i64
    %15 = llvm.getelementptr inbounds %arg0[5] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.load %16 : !llvm.ptr -> i64
    %18 = llvm.getelementptr inbounds %arg0[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> !llvm.ptr
    %20 = llvm.load %19 : !llvm.ptr -> i64
    %21 = llvm.getelementptr inbounds %arg0[7] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> !llvm.ptr
    %23 = llvm.load %22 : !llvm.ptr -> f32
    %24 = llvm.getelementptr inbounds %arg0[8] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> !llvm.ptr
    %26 = llvm.load %25 : !llvm.ptr -> !llvm.ptr
    %27 = llvm.getelementptr inbounds %arg0[9] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> !llvm.ptr
    %29 = llvm.load %28 : !llvm.ptr -> !llvm.ptr
    %30 = llvm.getelementptr inbounds %arg0[10] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %31 = llvm.load %30 : !llvm.ptr -> !llvm.ptr
    %32 = llvm.load %31 : !llvm.ptr -> i64
    %33 = llvm.getelementptr inbounds %arg0[11] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %34 = llvm.load %33 : !llvm.ptr -> !llvm.ptr
    %35 = llvm.load %34 : !llvm.ptr -> i64
    %36 = llvm.getelementptr inbounds %arg0[12] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %37 = llvm.load %36 : !llvm.ptr -> !llvm.ptr
    %38 = llvm.load %37 : !llvm.ptr -> i64
    %39 = llvm.getelementptr inbounds %arg0[13] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %40 = llvm.load %39 : !llvm.ptr -> !llvm.ptr
    %41 = llvm.load %40 : !llvm.ptr -> i64
    %42 = llvm.getelementptr inbounds %arg0[14] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %43 = llvm.load %42 : !llvm.ptr -> !llvm.ptr
    %44 = llvm.load %43 : !llvm.ptr -> i64
    %45 = llvm.getelementptr inbounds %arg0[15] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %46 = llvm.load %45 : !llvm.ptr -> !llvm.ptr
    %47 = llvm.load %46 : !llvm.ptr -> i64
    %48 = llvm.getelementptr inbounds %arg1[0] : (!llvm.ptr) -> !llvm.ptr, i64
    %49 = llvm.load %48 : !llvm.ptr -> i64
    %50 = llvm.getelementptr inbounds %arg1[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %51 = llvm.load %50 : !llvm.ptr -> i64
    %52 = llvm.getelementptr inbounds %arg1[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %53 = llvm.load %52 : !llvm.ptr -> i64
    %54 = llvm.getelementptr inbounds %arg1[3] : (!llvm.ptr) -> !llvm.ptr, i64
    %55 = llvm.load %54 : !llvm.ptr -> i64
    %56 = llvm.getelementptr inbounds %arg1[4] : (!llvm.ptr) -> !llvm.ptr, i64
    %57 = llvm.load %56 : !llvm.ptr -> i64
    %58 = llvm.getelementptr inbounds %arg1[5] : (!llvm.ptr) -> !llvm.ptr, i64
    %59 = llvm.load %58 : !llvm.ptr -> i64
    %60 = llvm.mlir.constant(32 : i64) : i64
    %61 = llvm.mlir.constant(8 : i64) : i64
    %62 = llvm.mlir.constant(1 : i64) : i64
    %63 = llvm.mlir.constant(0 : i64) : i64
    %64 = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^bb1(%63 : i64)
  ^bb1(%65: i64):  // 2 preds: ^bb0, ^bb5
    %66 = llvm.icmp "slt" %65, %61 : i64
    llvm.cond_br %66, ^bb2, ^bb6
  ^bb2:  // pred: ^bb1
    llvm.br ^bb3(%63 : i64)
  ^bb3(%67: i64):  // 2 preds: ^bb2, ^bb4
    %68 = llvm.icmp "slt" %67, %60 : i64
    llvm.cond_br %68, ^bb4, ^bb5
  ^bb4:  // pred: ^bb3
    llvm.call @aotc_cpu_guarded_loop_kernels_scale_kernel_thread(%2, %5, %8, %11, %14, %17, %20, %23, %26, %29, %32, %35, %38, %41, %44, %47, %67, %65, %63, %49, %51, %53, %55, %57, %59, %60, %61, %62) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, f32, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
    %69 = llvm.add %67, %64 overflow<nsw, nuw> : i64
    llvm.br ^bb3(%69 : i64) {loop_annotation = #loop_annotation}
  ^bb5:  // pred: ^bb3
    %70 = llvm.add %65, %64 overflow<nsw, nuw> : i64
    llvm.br ^bb1(%70 : i64)
  ^bb6:  // pred: ^bb1
    llvm.return
  }
}

