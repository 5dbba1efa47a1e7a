#access_group = #llvm.access_group<id = distinct[0]<>>
#loop_annotation = #llvm.loop_annotation<mustProgress = true>
#loop_unroll = #llvm.loop_unroll<disable = true>
#loop_vectorize = #llvm.loop_vectorize<followupVectorized = #loop_annotation>
#loop_annotation1 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll, parallelAccesses = #access_group>
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
    llvm.br ^bb3(%84 : i64)
  ^bb3(%86: i64):  // 2 preds: ^bb2, ^bb8
    %87 = llvm.icmp "slt" %86, %1 : i64
    llvm.cond_br %87, ^bb5, ^bb4
  ^bb4:  // pred: ^bb3
    llvm.br ^bb11
  ^bb5:  // pred: ^bb3
    llvm.br ^bb6(%82 : i64)
  ^bb6(%88: i64):  // 2 preds: ^bb5, ^bb10
    %89 = llvm.icmp "slt" %88, %81 : i64
    llvm.cond_br %89, ^bb9, ^bb7
  ^bb7:  // pred: ^bb6
    llvm.br ^bb8
  ^bb8:  // pred: ^bb7
    %90 = llvm.add %86, %85 : i64
    llvm.br ^bb3(%90 : i64)
  ^bb9:  // pred: ^bb6
    %91 = llvm.add %86, %88 : i64
    %92 = llvm.sub %1, %91 : i64
    %93 = llvm.mlir.constant(0 : i64) : i64
    %94 = llvm.mlir.constant(0 : i64) : i64
    %95 = llvm.mlir.constant(0 : i64) : i64
    %96 = llvm.intr.smin(%59, %92) : (i64, i64) -> i64
    llvm.br ^bb12(%95 : i64)
  ^bb10:  // pred: ^bb14
    %97 = llvm.add %88, %80 : i64
    llvm.br ^bb6(%97 : i64)
  ^bb11:  // pred: ^bb4
    llvm.return
  ^bb12(%98: i64):  // 2 preds: ^bb9, ^bb17
    %99 = llvm.icmp "slt" %98, %96 : i64
    llvm.cond_br %99, ^bb13, ^bb14
  ^bb13:  // pred: ^bb12
    %100 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb15(%100 : i64)
  ^bb14:  // pred: ^bb12
    llvm.br ^bb10
  ^bb15(%101: i64):  // 2 preds: ^bb13, ^bb25
    %102 = llvm.icmp "slt" %101, %58 : i64
    llvm.cond_br %102, ^bb16, ^bb17
  ^bb16:  // pred: ^bb15
    llvm.br ^bb18
  ^bb17:  // pred: ^bb15
    %103 = llvm.mlir.constant(1 : i64) : i64
    %104 = llvm.add %98, %103 : i64
    llvm.br ^bb12(%104 : i64)
  ^bb18:  // pred: ^bb16
    %105 = llvm.add %91, %98 : i64
    %106 = llvm.icmp "slt" %98, %92 : i64
    llvm.br ^bb20
  ^bb19:  // no predecessors
    llvm.br ^bb24
  ^bb20:  // pred: ^bb18
    %107 = llvm.mul %47, %81 : i64
    %108 = llvm.add %107, %101 : i64
    %109 = llvm.icmp "slt" %108, %83 : i64
    llvm.cond_br %109, ^bb22, ^bb21
  ^bb21:  // pred: ^bb20
    llvm.br ^bb23
  ^bb22:  // pred: ^bb20
    %110 = llvm.mul %105, %79 overflow<nsw, nuw> : i64
    %111 = llvm.add %110, %108 overflow<nsw, nuw> : i64
    %112 = llvm.getelementptr inbounds|nuw %7[%111] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %113 = llvm.load %112 {access_groups = [#access_group]} : !llvm.ptr -> f32
    %114 = llvm.fmul %113, %25 : f32
    %115 = llvm.getelementptr inbounds|nuw %31[%111] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %114, %115 {access_groups = [#access_group]} : f32, !llvm.ptr
    llvm.br ^bb23
  ^bb23:  // 2 preds: ^bb21, ^bb22
    llvm.br ^bb24
  ^bb24:  // 2 preds: ^bb19, ^bb23
    llvm.br ^bb25
  ^bb25:  // pred: ^bb24
    %116 = llvm.mlir.constant(1 : i64) : i64
    %117 = llvm.add %101, %116 : i64
    llvm.br ^bb15(%117 : i64) {loop_annotation = #loop_annotation1}
  }
}

