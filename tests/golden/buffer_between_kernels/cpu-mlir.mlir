#access_group = #llvm.access_group<id = distinct[0]<>>
#access_group1 = #llvm.access_group<id = distinct[1]<>>
#loop_annotation = #llvm.loop_annotation<mustProgress = true>
#loop_unroll = #llvm.loop_unroll<disable = true>
#loop_vectorize = #llvm.loop_vectorize<followupVectorized = #loop_annotation>
#loop_annotation1 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll, parallelAccesses = #access_group>
#loop_annotation2 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll, parallelAccesses = #access_group1>
module {
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
    %0 = llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    %2 = llvm.getelementptr %arg0[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %3 = llvm.load %2 : !llvm.ptr -> !llvm.ptr
    %4 = llvm.load %3 : !llvm.ptr -> !llvm.ptr
    %5 = llvm.getelementptr %arg0[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %6 = llvm.load %5 : !llvm.ptr -> !llvm.ptr
    %7 = llvm.load %6 : !llvm.ptr -> i64
    %8 = llvm.getelementptr %arg0[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %9 = llvm.load %8 : !llvm.ptr -> !llvm.ptr
    %10 = llvm.load %9 : !llvm.ptr -> i64
    %11 = llvm.getelementptr %arg0[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %12 = llvm.load %11 : !llvm.ptr -> !llvm.ptr
    %13 = llvm.load %12 : !llvm.ptr -> i64
    %14 = llvm.getelementptr %arg0[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %15 = llvm.load %14 : !llvm.ptr -> !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.getelementptr %arg0[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %18 = llvm.load %17 : !llvm.ptr -> !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> !llvm.ptr
    %20 = llvm.getelementptr %arg0[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %21 = llvm.load %20 : !llvm.ptr -> !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> i64
    %23 = llvm.getelementptr %arg0[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %24 = llvm.load %23 : !llvm.ptr -> !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> i64
    %26 = llvm.getelementptr %arg0[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %27 = llvm.load %26 : !llvm.ptr -> !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> i64
    %29 = llvm.load %arg1 : !llvm.ptr -> i64
    %30 = llvm.getelementptr %arg1[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %31 = llvm.load %30 : !llvm.ptr -> i64
    %32 = llvm.getelementptr %arg1[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %33 = llvm.load %32 : !llvm.ptr -> i64
    %34 = llvm.mlir.constant(1 : i64) : i64
    %35 = llvm.mlir.constant(1 : i64) : i64
    %36 = llvm.mlir.constant(1 : i64) : i64
    %37 = llvm.mlir.constant(256 : i64) : i64
    %38 = llvm.mlir.constant(1 : i64) : i64
    %39 = llvm.mlir.constant(1 : i64) : i64
    %40 = llvm.mlir.constant(256 : i64) : i64
    %41 = llvm.mlir.constant(256 : i64) : i64
    %42 = llvm.mlir.constant(31 : i64) : i64
    %43 = llvm.mlir.constant(287 : i64) : i64
    %44 = llvm.mlir.constant(32 : i64) : i64
    %45 = llvm.mlir.constant(8 : i64) : i64
    %46 = llvm.getelementptr %arg1[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %47 = llvm.load %46 : !llvm.ptr -> !llvm.ptr
    %48 = llvm.mlir.constant(2048 : i64) : i64
    %49 = llvm.mlir.constant(16384 : i64) : i64
    %50 = llvm.getelementptr %arg1[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %51 = llvm.load %50 : !llvm.ptr -> !llvm.ptr
    %52 = llvm.getelementptr %arg1[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %53 = llvm.load %52 : !llvm.ptr -> i64
    %54 = llvm.getelementptr %arg1[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %55 = llvm.load %54 : !llvm.ptr -> !llvm.ptr
    %56 = llvm.mlir.constant(32 : i64) : i64
    %57 = llvm.mlir.constant(256 : i64) : i64
    llvm.br ^bb1
  ^bb1:  // pred: ^bb0
    llvm.br ^bb2
  ^bb2:  // pred: ^bb1
    %58 = llvm.mlir.constant(64 : index) : i64
    %59 = llvm.mlir.constant(true) : i1
    %60 = llvm.mlir.constant(0 : i64) : i64
    %61 = llvm.mlir.constant(0 : i64) : i64
    %62 = llvm.mlir.constant(0 : i64) : i64
    %63 = llvm.mlir.constant(64 : i64) : i64
    %64 = llvm.mlir.constant(64 : i64) : i64
    %65 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb4(%65 : i64)
  ^bb3:  // pred: ^bb6
    llvm.return
  ^bb4(%66: i64):  // 2 preds: ^bb2, ^bb12
    %67 = llvm.icmp "slt" %66, %64 : i64
    llvm.cond_br %67, ^bb5, ^bb6
  ^bb5:  // pred: ^bb4
    llvm.br ^bb7
  ^bb6:  // pred: ^bb4
    llvm.br ^bb3
  ^bb7:  // pred: ^bb5
    %68 = llvm.icmp "slt" %66, %58 : i64
    llvm.cond_br %59, ^bb9, ^bb8
  ^bb8:  // pred: ^bb7
    llvm.br ^bb10
  ^bb9:  // pred: ^bb7
    %69 = llvm.getelementptr inbounds|nuw %4[%66] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %70 = llvm.load %69 {access_groups = [#access_group]} : !llvm.ptr -> i32
    %71 = llvm.add %70, %70 : i32
    %72 = llvm.getelementptr inbounds|nuw %19[%66] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %71, %72 {access_groups = [#access_group]} : i32, !llvm.ptr
    llvm.br ^bb10
  ^bb10:  // 2 preds: ^bb8, ^bb9
    llvm.br ^bb11
  ^bb11:  // pred: ^bb10
    llvm.br ^bb12
  ^bb12:  // pred: ^bb11
    %73 = llvm.mlir.constant(1 : i64) : i64
    %74 = llvm.add %66, %73 : i64
    llvm.br ^bb4(%74 : i64) {loop_annotation = #loop_annotation1}
  }
  llvm.func internal @aotc_cpu_buffer_between_kernels_kernels_sums_kernel_0(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
    %0 = llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    %2 = llvm.getelementptr %arg0[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %3 = llvm.load %2 : !llvm.ptr -> !llvm.ptr
    %4 = llvm.load %3 : !llvm.ptr -> !llvm.ptr
    %5 = llvm.getelementptr %arg0[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %6 = llvm.load %5 : !llvm.ptr -> !llvm.ptr
    %7 = llvm.load %6 : !llvm.ptr -> i64
    %8 = llvm.getelementptr %arg0[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %9 = llvm.load %8 : !llvm.ptr -> !llvm.ptr
    %10 = llvm.load %9 : !llvm.ptr -> i64
    %11 = llvm.getelementptr %arg0[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %12 = llvm.load %11 : !llvm.ptr -> !llvm.ptr
    %13 = llvm.load %12 : !llvm.ptr -> i64
    %14 = llvm.getelementptr %arg0[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %15 = llvm.load %14 : !llvm.ptr -> !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.getelementptr %arg0[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %18 = llvm.load %17 : !llvm.ptr -> !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> !llvm.ptr
    %20 = llvm.getelementptr %arg0[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %21 = llvm.load %20 : !llvm.ptr -> !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> i64
    %23 = llvm.getelementptr %arg0[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %24 = llvm.load %23 : !llvm.ptr -> !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> i64
    %26 = llvm.getelementptr %arg0[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %27 = llvm.load %26 : !llvm.ptr -> !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> i64
    %29 = llvm.load %arg1 : !llvm.ptr -> i64
    %30 = llvm.getelementptr %arg1[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %31 = llvm.load %30 : !llvm.ptr -> i64
    %32 = llvm.getelementptr %arg1[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %33 = llvm.load %32 : !llvm.ptr -> i64
    %34 = llvm.mlir.constant(1 : i64) : i64
    %35 = llvm.mlir.constant(1 : i64) : i64
    %36 = llvm.mlir.constant(1 : i64) : i64
    %37 = llvm.mlir.constant(256 : i64) : i64
    %38 = llvm.mlir.constant(1 : i64) : i64
    %39 = llvm.mlir.constant(1 : i64) : i64
    %40 = llvm.mlir.constant(256 : i64) : i64
    %41 = llvm.mlir.constant(256 : i64) : i64
    %42 = llvm.mlir.constant(31 : i64) : i64
    %43 = llvm.mlir.constant(287 : i64) : i64
    %44 = llvm.mlir.constant(32 : i64) : i64
    %45 = llvm.mlir.constant(8 : i64) : i64
    %46 = llvm.getelementptr %arg1[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %47 = llvm.load %46 : !llvm.ptr -> !llvm.ptr
    %48 = llvm.mlir.constant(2048 : i64) : i64
    %49 = llvm.mlir.constant(16384 : i64) : i64
    %50 = llvm.getelementptr %arg1[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %51 = llvm.load %50 : !llvm.ptr -> !llvm.ptr
    %52 = llvm.getelementptr %arg1[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %53 = llvm.load %52 : !llvm.ptr -> i64
    %54 = llvm.getelementptr %arg1[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %55 = llvm.load %54 : !llvm.ptr -> !llvm.ptr
    %56 = llvm.mlir.constant(32 : i64) : i64
    %57 = llvm.mlir.constant(256 : i64) : i64
    llvm.br ^bb1
  ^bb1:  // pred: ^bb0
    llvm.br ^bb2
  ^bb2:  // pred: ^bb1
    %58 = llvm.mlir.constant(63 : index) : i64
    %59 = llvm.mlir.constant(64 : index) : i64
    %60 = llvm.mlir.constant(true) : i1
    %61 = llvm.mlir.constant(0 : i64) : i64
    %62 = llvm.mlir.constant(0 : i64) : i64
    %63 = llvm.mlir.constant(0 : i64) : i64
    %64 = llvm.mlir.constant(64 : i64) : i64
    %65 = llvm.mlir.constant(64 : i64) : i64
    %66 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb4(%66 : i64)
  ^bb3:  // pred: ^bb6
    llvm.return
  ^bb4(%67: i64):  // 2 preds: ^bb2, ^bb12
    %68 = llvm.icmp "slt" %67, %65 : i64
    llvm.cond_br %68, ^bb5, ^bb6
  ^bb5:  // pred: ^bb4
    llvm.br ^bb7
  ^bb6:  // pred: ^bb4
    llvm.br ^bb3
  ^bb7:  // pred: ^bb5
    %69 = llvm.icmp "slt" %67, %59 : i64
    llvm.cond_br %60, ^bb9, ^bb8
  ^bb8:  // pred: ^bb7
    llvm.br ^bb10
  ^bb9:  // pred: ^bb7
    %70 = llvm.sub %58, %67 : i64
    %71 = llvm.getelementptr inbounds|nuw %4[%70] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %72 = llvm.load %71 {access_groups = [#access_group1]} : !llvm.ptr -> i32
    %73 = llvm.getelementptr inbounds|nuw %19[%67] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %72, %73 {access_groups = [#access_group1]} : i32, !llvm.ptr
    llvm.br ^bb10
  ^bb10:  // 2 preds: ^bb8, ^bb9
    llvm.br ^bb11
  ^bb11:  // pred: ^bb10
    llvm.br ^bb12
  ^bb12:  // pred: ^bb11
    %74 = llvm.mlir.constant(1 : i64) : i64
    %75 = llvm.add %67, %74 : i64
    llvm.br ^bb4(%75 : i64) {loop_annotation = #loop_annotation2}
  }
}

