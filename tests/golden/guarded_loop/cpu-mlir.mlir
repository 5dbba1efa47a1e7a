#access_group = #llvm.access_group<id = distinct[0]<>>
#loop_unroll = #llvm.loop_unroll<full = true>
#loop_unroll1 = #llvm.loop_unroll<disable = true>
#loop_annotation = #llvm.loop_annotation<unroll = #loop_unroll>
#loop_vectorize = #llvm.loop_vectorize<followupVectorized = #loop_annotation>
#loop_annotation1 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll1, parallelAccesses = #access_group>
module {
  llvm.func internal @aotc_cpu_guarded_loop_kernels_scale_kernel(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
    %0 = llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
    %1 = llvm.load %0 : !llvm.ptr -> i64
    %2 = llvm.getelementptr %arg0[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %3 = llvm.load %2 : !llvm.ptr -> !llvm.ptr
    %4 = llvm.load %3 : !llvm.ptr -> !llvm.ptr
    %5 = llvm.getelementptr %arg0[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %6 = llvm.load %5 : !llvm.ptr -> !llvm.ptr
    %7 = llvm.load %6 : !llvm.ptr -> !llvm.ptr
    %8 = llvm.getelementptr %arg0[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %9 = llvm.load %8 : !llvm.ptr -> !llvm.ptr
    %10 = llvm.load %9 : !llvm.ptr -> i64
    %11 = llvm.getelementptr %arg0[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %12 = llvm.load %11 : !llvm.ptr -> !llvm.ptr
    %13 = llvm.load %12 : !llvm.ptr -> i64
    %14 = llvm.getelementptr %arg0[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %15 = llvm.load %14 : !llvm.ptr -> !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> i64
    %17 = llvm.getelementptr %arg0[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %18 = llvm.load %17 : !llvm.ptr -> !llvm.ptr
    %19 = llvm.load %18 : !llvm.ptr -> i64
    %20 = llvm.getelementptr %arg0[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %21 = llvm.load %20 : !llvm.ptr -> !llvm.ptr
    %22 = llvm.load %21 : !llvm.ptr -> i64
    %23 = llvm.getelementptr %arg0[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %24 = llvm.load %23 : !llvm.ptr -> !llvm.ptr
    %25 = llvm.load %24 : !llvm.ptr -> f32
    %26 = llvm.getelementptr %arg0[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %27 = llvm.load %26 : !llvm.ptr -> !llvm.ptr
    %28 = llvm.load %27 : !llvm.ptr -> !llvm.ptr
    %29 = llvm.getelementptr %arg0[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %30 = llvm.load %29 : !llvm.ptr -> !llvm.ptr
    %31 = llvm.load %30 : !llvm.ptr -> !llvm.ptr
    %32 = llvm.getelementptr %arg0[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %33 = llvm.load %32 : !llvm.ptr -> !llvm.ptr
    %34 = llvm.load %33 : !llvm.ptr -> i64
    %35 = llvm.getelementptr %arg0[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %36 = llvm.load %35 : !llvm.ptr -> !llvm.ptr
    %37 = llvm.load %36 : !llvm.ptr -> i64
    %38 = llvm.getelementptr %arg0[104] : (!llvm.ptr) -> !llvm.ptr, i8
    %39 = llvm.load %38 : !llvm.ptr -> !llvm.ptr
    %40 = llvm.load %39 : !llvm.ptr -> i64
    %41 = llvm.getelementptr %arg0[112] : (!llvm.ptr) -> !llvm.ptr, i8
    %42 = llvm.load %41 : !llvm.ptr -> !llvm.ptr
    %43 = llvm.load %42 : !llvm.ptr -> i64
    %44 = llvm.getelementptr %arg0[120] : (!llvm.ptr) -> !llvm.ptr, i8
    %45 = llvm.load %44 : !llvm.ptr -> !llvm.ptr
    %46 = llvm.load %45 : !llvm.ptr -> i64
    %47 = llvm.load %arg1 : !llvm.ptr -> i64
    %48 = llvm.getelementptr %arg1[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %49 = llvm.load %48 : !llvm.ptr -> i64
    %50 = llvm.getelementptr %arg1[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %51 = llvm.load %50 : !llvm.ptr -> i64
    %52 = llvm.getelementptr %arg1[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %53 = llvm.load %52 : !llvm.ptr -> i64
    %54 = llvm.getelementptr %arg1[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %55 = llvm.load %54 : !llvm.ptr -> i64
    %56 = llvm.getelementptr %arg1[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %57 = llvm.load %56 : !llvm.ptr -> i64
    %58 = llvm.mlir.constant(32 : i64) : i64
    %59 = llvm.mlir.constant(8 : i64) : i64
    %60 = llvm.mlir.constant(1 : i64) : i64
    %61 = llvm.mlir.constant(256 : i64) : i64
    %62 = llvm.mlir.constant(256 : i64) : i64
    %63 = llvm.mlir.constant(31 : i64) : i64
    %64 = llvm.mlir.constant(287 : i64) : i64
    %65 = llvm.mlir.constant(32 : i64) : i64
    %66 = llvm.mlir.constant(8 : i64) : i64
    %67 = llvm.getelementptr %arg1[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %68 = llvm.load %67 : !llvm.ptr -> !llvm.ptr
    %69 = llvm.mlir.constant(2048 : i64) : i64
    %70 = llvm.mlir.constant(16384 : i64) : i64
    %71 = llvm.getelementptr %arg1[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %72 = llvm.load %71 : !llvm.ptr -> !llvm.ptr
    %73 = llvm.getelementptr %arg1[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %74 = llvm.load %73 : !llvm.ptr -> i64
    %75 = llvm.getelementptr %arg1[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %76 = llvm.load %75 : !llvm.ptr -> !llvm.ptr
    %77 = llvm.mlir.constant(32 : i64) : i64
    %78 = llvm.mlir.constant(256 : i64) : i64
    llvm.br ^bb1
  ^bb1:  // pred: ^bb0
    llvm.br ^bb2
  ^bb2:  // pred: ^bb1
    %79 = llvm.mlir.constant(100 : index) : i64
    %80 = llvm.mlir.constant(8 : index) : i64
    %81 = llvm.mlir.constant(32 : index) : i64
    %82 = llvm.mlir.constant(0 : index) : i64
    %83 = llvm.mlir.constant(99 : index) : i64
    %84 = llvm.mul %49, %81 : i64
    %85 = llvm.mul %55, %81 : i64
    %86 = llvm.mlir.constant(0 : i64) : i64
    %87 = llvm.mlir.constant(0 : i64) : i64
    %88 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb4(%88 : i64)
  ^bb3:  // pred: ^bb6
    llvm.return
  ^bb4(%89: i64):  // 2 preds: ^bb2, ^bb17
    %90 = llvm.icmp "slt" %89, %59 : i64
    llvm.cond_br %90, ^bb5, ^bb6
  ^bb5:  // pred: ^bb4
    %91 = llvm.mlir.constant(0 : i64) : i64
    %92 = llvm.mlir.constant(32 : i64) : i64
    %93 = llvm.mlir.constant(0 : i64) : i64
    %94 = llvm.mlir.constant(32 : i64) : i64
    %95 = llvm.mlir.constant(0 : i64) : i64
    %96 = llvm.mlir.constant(32 : i64) : i64
    llvm.br ^bb7
  ^bb6:  // pred: ^bb4
    llvm.br ^bb3
  ^bb7:  // pred: ^bb5
    llvm.br ^bb8(%84 : i64)
  ^bb8(%97: i64):  // 2 preds: ^bb7, ^bb12
    %98 = llvm.icmp "slt" %97, %1 : i64
    llvm.cond_br %98, ^bb10, ^bb9
  ^bb9:  // pred: ^bb8
    llvm.br ^bb17
  ^bb10:  // pred: ^bb8
    llvm.br ^bb11(%82 : i64)
  ^bb11(%99: i64):  // 2 preds: ^bb10, ^bb16
    %100 = llvm.icmp "slt" %99, %81 : i64
    llvm.cond_br %100, ^bb13, ^bb12
  ^bb12:  // pred: ^bb11
    %101 = llvm.add %97, %85 : i64
    llvm.br ^bb8(%101 : i64)
  ^bb13:  // pred: ^bb11
    %102 = llvm.add %97, %99 : i64
    %103 = llvm.add %102, %89 : i64
    %104 = llvm.sub %1, %102 : i64
    %105 = llvm.icmp "slt" %89, %104 : i64
    llvm.cond_br %105, ^bb15, ^bb14
  ^bb14:  // pred: ^bb13
    llvm.br ^bb16
  ^bb15:  // pred: ^bb13
    %106 = llvm.mul %47, %81 : i64
    %107 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb18(%107 : i64)
  ^bb16:  // 2 preds: ^bb14, ^bb20
    %108 = llvm.add %99, %80 : i64
    llvm.br ^bb11(%108 : i64)
  ^bb17:  // pred: ^bb9
    %109 = llvm.mlir.constant(1 : i64) : i64
    %110 = llvm.add %89, %109 : i64
    llvm.br ^bb4(%110 : i64)
  ^bb18(%111: i64):  // 2 preds: ^bb15, ^bb25
    %112 = llvm.icmp "slt" %111, %96 : i64
    llvm.cond_br %112, ^bb19, ^bb20
  ^bb19:  // pred: ^bb18
    llvm.br ^bb21
  ^bb20:  // pred: ^bb18
    llvm.br ^bb16
  ^bb21:  // pred: ^bb19
    %113 = llvm.add %106, %111 : i64
    %114 = llvm.icmp "slt" %113, %83 : i64
    llvm.cond_br %114, ^bb23, ^bb22
  ^bb22:  // pred: ^bb21
    llvm.br ^bb24
  ^bb23:  // pred: ^bb21
    %115 = llvm.mul %103, %79 overflow<nsw, nuw> : i64
    %116 = llvm.add %115, %113 overflow<nsw, nuw> : i64
    %117 = llvm.getelementptr inbounds|nuw %7[%116] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %118 = llvm.load %117 {access_groups = [#access_group]} : !llvm.ptr -> f32
    %119 = llvm.fmul %118, %25 : f32
    %120 = llvm.getelementptr inbounds|nuw %31[%116] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %119, %120 {access_groups = [#access_group]} : f32, !llvm.ptr
    llvm.br ^bb24
  ^bb24:  // 2 preds: ^bb22, ^bb23
    llvm.br ^bb25
  ^bb25:  // pred: ^bb24
    %121 = llvm.mlir.constant(1 : i64) : i64
    %122 = llvm.add %111, %121 : i64
    llvm.br ^bb18(%122 : i64) {loop_annotation = #loop_annotation1}
  }
}

