#access_group = #llvm.access_group<id = distinct[0]<>>
#access_group1 = #llvm.access_group<id = distinct[1]<>>
#loop_annotation = #llvm.loop_annotation<parallelAccesses = #access_group>
#loop_annotation1 = #llvm.loop_annotation<parallelAccesses = #access_group1>
module {
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_thread(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64, %arg8: i64, %arg9: i64, %arg10: i64, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64, %arg16: i64, %arg17: i64, %arg18: i64, %arg19: i64, %arg20: i64, %arg21: i64) attributes {always_inline} {
    %0 = llvm.mlir.constant(64 : index) : i64
    %1 = llvm.icmp "slt" %arg10, %0 : i64
    %2 = llvm.mlir.constant(true) : i1
    llvm.cond_br %2, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %3 = llvm.getelementptr inbounds|nuw %arg1[%arg10] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %4 = llvm.load %3 {access_groups = [#access_group]} : !llvm.ptr -> i32
    %5 = llvm.add %4, %4 : i32
    %6 = llvm.getelementptr inbounds|nuw %arg6[%arg10] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %5, %6 {access_groups = [#access_group]} : i32, !llvm.ptr
    llvm.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    llvm.return
  }
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0_thread(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64, %arg8: i64, %arg9: i64, %arg10: i64, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64, %arg16: i64, %arg17: i64, %arg18: i64, %arg19: i64, %arg20: i64, %arg21: i64) attributes {always_inline} {
    %0 = llvm.mlir.constant(64 : index) : i64
    %1 = llvm.mlir.constant(63 : index) : i64
    %2 = llvm.icmp "slt" %arg10, %0 : i64
    %3 = llvm.mlir.constant(true) : i1
    llvm.cond_br %3, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %4 = llvm.sub %1, %arg10 : i64
    %5 = llvm.getelementptr inbounds|nuw %arg1[%4] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %6 = llvm.load %5 {access_groups = [#access_group1]} : !llvm.ptr -> i32
    %7 = llvm.getelementptr inbounds|nuw %arg6[%arg10] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %6, %7 {access_groups = [#access_group1]} : i32, !llvm.ptr
    llvm.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    llvm.return
  }
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
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
    %17 = llvm.load %16 : !llvm.ptr -> !llvm.ptr
    %18 = llvm.getelementptr inbounds %arg0[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> !llvm.ptr
    %20 = llvm.load %19 : !llvm.ptr -> !llvm.ptr
    %21 = llvm.getelementptr inbounds %arg0[7] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> !llvm.ptr
    %23 = llvm.load %22 : !llvm.ptr -> i64
    %24 = llvm.getelementptr inbounds %arg0[8] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> !llvm.ptr
    %26 = llvm.load %25 : !llvm.ptr -> i64
    %27 = llvm.getelementptr inbounds %arg0[9] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> !llvm.ptr
    %29 = llvm.load %28 : !llvm.ptr -> i64
    %30 = llvm.getelementptr inbounds %arg1[0] : (!llvm.ptr) -> !llvm.ptr, i64
    %31 = llvm.load %30 : !llvm.ptr -> i64
    %32 = llvm.getelementptr inbounds %arg1[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %33 = llvm.load %32 : !llvm.ptr -> i64
    %34 = llvm.getelementptr inbounds %arg1[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %35 = llvm.load %34 : !llvm.ptr -> i64
    %36 = llvm.mlir.constant(1 : i64) : i64
    %37 = llvm.mlir.constant(1 : i64) : i64
    %38 = llvm.mlir.constant(1 : i64) : i64
    %39 = llvm.mlir.constant(256 : i64) : i64
    %40 = llvm.mlir.constant(1 : i64) : i64
    %41 = llvm.mlir.constant(1 : i64) : i64
    %42 = llvm.mlir.constant(0 : i64) : i64
    %43 = llvm.mlir.constant(1 : i64) : i64
    %44 = llvm.mlir.constant(64 : i64) : i64
    %45 = llvm.intr.smin(%44, %39) : (i64, i64) -> i64
    llvm.br ^bb1(%42 : i64)
  ^bb1(%46: i64):  // 2 preds: ^bb0, ^bb2
    %47 = llvm.icmp "slt" %46, %45 : i64
    llvm.cond_br %47, ^bb2, ^bb3
  ^bb2:  // pred: ^bb1
    llvm.call @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_thread(%2, %5, %8, %11, %14, %17, %20, %23, %26, %29, %46, %42, %42, %31, %33, %35, %36, %37, %38, %39, %40, %41) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
    %48 = llvm.add %46, %43 overflow<nsw, nuw> : i64
    llvm.br ^bb1(%48 : i64) {loop_annotation = #loop_annotation}
  ^bb3:  // pred: ^bb1
    llvm.return
  }
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
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
    %17 = llvm.load %16 : !llvm.ptr -> !llvm.ptr
    %18 = llvm.getelementptr inbounds %arg0[6] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> !llvm.ptr
    %20 = llvm.load %19 : !llvm.ptr -> !llvm.ptr
    %21 = llvm.getelementptr inbounds %arg0[7] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> !llvm.ptr
    %23 = llvm.load %22 : !llvm.ptr -> i64
    %24 = llvm.getelementptr inbounds %arg0[8] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> !llvm.ptr
    %26 = llvm.load %25 : !llvm.ptr -> i64
    %27 = llvm.getelementptr inbounds %arg0[9] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> !llvm.ptr
    %29 = llvm.load %28 : !llvm.ptr -> i64
    %30 = llvm.getelementptr inbounds %arg1[0] : (!llvm.ptr) -> !llvm.ptr, i64
    %31 = llvm.load %30 : !llvm.ptr -> i64
    %32 = llvm.getelementptr inbounds %arg1[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %33 = llvm.load %32 : !llvm.ptr -> i64
    %34 = llvm.getelementptr inbounds %arg1[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %35 = llvm.load %34 : !llvm.ptr -> i64
    %36 = llvm.mlir.constant(1 : i64) : i64
    %37 = llvm.mlir.constant(1 : i64) : i64
    %38 = llvm.mlir.constant(1 : i64) : i64
    %39 = llvm.mlir.constant(256 : i64) : i64
    %40 = llvm.mlir.constant(1 : i64) : i64
    %41 = llvm.mlir.constant(1 : i64) : i64
    %42 = llvm.mlir.constant(0 : i64) : i64
    %43 = llvm.mlir.constant(1 : i64) : i64
    %44 = llvm.mlir.constant(64 : i64) : i64
    %45 = llvm.intr.smin(%44, %39) : (i64, i64) -> i64
    llvm.br ^bb1(%42 : i64)
  ^bb1(%46: i64):  // 2 preds: ^bb0, ^bb2
    %47 = llvm.icmp "slt" %46, %45 : i64
    llvm.cond_br %47, ^bb2, ^bb3
  ^bb2:  // pred: ^bb1
    llvm.call @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0_thread(%2, %5, %8, %11, %14, %17, %20, %23, %26, %29, %46, %42, %42, %31, %33, %35, %36, %37, %38, %39, %40, %41) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
    %48 = llvm.add %46, %43 overflow<nsw, nuw> : i64
    llvm.br ^bb1(%48 : i64) {loop_annotation = #loop_annotation1}
  ^bb3:  // pred: ^bb1
    llvm.return
  }
}

