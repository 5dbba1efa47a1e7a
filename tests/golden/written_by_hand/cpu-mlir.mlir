#access_group = #llvm.access_group<id = distinct[0]<>>
#access_group1 = #llvm.access_group<id = distinct[1]<>>
#loop_annotation = #llvm.loop_annotation<mustProgress = true>
#loop_unroll = #llvm.loop_unroll<disable = true>
#loop_vectorize = #llvm.loop_vectorize<followupVectorized = #loop_annotation>
#loop_annotation1 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll, parallelAccesses = #access_group>
#loop_annotation2 = #llvm.loop_annotation<vectorize = #loop_vectorize, unroll = #loop_unroll, parallelAccesses = #access_group1>
module {
  llvm.func internal @aotc_cpu_device_turn(%arg0: !llvm.ptr {llvm.nonnull}, %arg1: !llvm.ptr {llvm.nonnull}) {
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
    %14 = llvm.load %arg1 : !llvm.ptr -> i64
    %15 = llvm.getelementptr %arg1[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %16 = llvm.load %15 : !llvm.ptr -> i64
    %17 = llvm.getelementptr %arg1[16] : (!llvm.ptr) -> !llvm.ptr, i8
    %18 = llvm.load %17 : !llvm.ptr -> i64
    %19 = llvm.getelementptr %arg1[24] : (!llvm.ptr) -> !llvm.ptr, i8
    %20 = llvm.load %19 : !llvm.ptr -> i64
    %21 = llvm.getelementptr %arg1[32] : (!llvm.ptr) -> !llvm.ptr, i8
    %22 = llvm.load %21 : !llvm.ptr -> i64
    %23 = llvm.getelementptr %arg1[40] : (!llvm.ptr) -> !llvm.ptr, i8
    %24 = llvm.load %23 : !llvm.ptr -> i64
    %25 = llvm.getelementptr %arg1[48] : (!llvm.ptr) -> !llvm.ptr, i8
    %26 = llvm.load %25 : !llvm.ptr -> i64
    %27 = llvm.getelementptr %arg1[56] : (!llvm.ptr) -> !llvm.ptr, i8
    %28 = llvm.load %27 : !llvm.ptr -> i64
    %29 = llvm.getelementptr %arg1[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %30 = llvm.load %29 : !llvm.ptr -> i64
    %31 = llvm.mul %26, %28 : i64
    %32 = llvm.mul %31, %30 : i64
    %33 = llvm.mlir.constant(31 : i64) : i64
    %34 = llvm.add %32, %33 : i64
    %35 = llvm.mlir.constant(32 : i64) : i64
    %36 = llvm.udiv %34, %35 : i64
    %37 = llvm.getelementptr %arg1[96] : (!llvm.ptr) -> !llvm.ptr, i8
    %38 = llvm.load %37 : !llvm.ptr -> !llvm.ptr
    %39 = llvm.mlir.constant(2048 : i64) : i64
    %40 = llvm.mul %36, %39 : i64
    %41 = llvm.getelementptr %arg1[72] : (!llvm.ptr) -> !llvm.ptr, i8
    %42 = llvm.load %41 : !llvm.ptr -> !llvm.ptr
    %43 = llvm.getelementptr %arg1[80] : (!llvm.ptr) -> !llvm.ptr, i8
    %44 = llvm.load %43 : !llvm.ptr -> i64
    %45 = llvm.getelementptr %arg1[88] : (!llvm.ptr) -> !llvm.ptr, i8
    %46 = llvm.load %45 : !llvm.ptr -> !llvm.ptr
    %47 = llvm.mlir.constant(32 : i64) : i64
    %48 = llvm.mul %36, %47 : i64
    llvm.br ^bb1
  ^bb1:  // pred: ^bb0
    llvm.br ^bb2
  ^bb2:  // pred: ^bb1
    %49 = llvm.mlir.constant(31 : index) : i64
    %50 = llvm.mlir.constant(0 : i64) : i64
    %51 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb5(%51 : i64)
  ^bb3:  // pred: ^bb7
    %52 = llvm.mlir.constant(0 : i64) : i64
    %53 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb16(%53 : i64)
  ^bb4:  // pred: ^bb18
    llvm.return
  ^bb5(%54: i64):  // 2 preds: ^bb2, ^bb10
    %55 = llvm.icmp "slt" %54, %30 : i64
    llvm.cond_br %55, ^bb6, ^bb7
  ^bb6:  // pred: ^bb5
    %56 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb8(%56 : i64)
  ^bb7:  // pred: ^bb5
    llvm.br ^bb3
  ^bb8(%57: i64):  // 2 preds: ^bb6, ^bb13
    %58 = llvm.icmp "slt" %57, %28 : i64
    llvm.cond_br %58, ^bb9, ^bb10
  ^bb9:  // pred: ^bb8
    %59 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb11(%59 : i64)
  ^bb10:  // pred: ^bb8
    %60 = llvm.mlir.constant(1 : i64) : i64
    %61 = llvm.add %54, %60 : i64
    llvm.br ^bb5(%61 : i64)
  ^bb11(%62: i64):  // 2 preds: ^bb9, ^bb15
    %63 = llvm.icmp "slt" %62, %26 : i64
    llvm.cond_br %63, ^bb12, ^bb13
  ^bb12:  // pred: ^bb11
    llvm.br ^bb14
  ^bb13:  // pred: ^bb11
    %64 = llvm.mlir.constant(1 : i64) : i64
    %65 = llvm.add %57, %64 : i64
    llvm.br ^bb8(%65 : i64)
  ^bb14:  // pred: ^bb12
    %66 = llvm.getelementptr inbounds|nuw %4[%62] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    %67 = llvm.load %66 {access_groups = [#access_group]} : !llvm.ptr -> f64
    %68 = llvm.getelementptr inbounds|nuw %46[%62] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    llvm.store %67, %68 {access_groups = [#access_group]} : f64, !llvm.ptr
    llvm.br ^bb15
  ^bb15:  // pred: ^bb14
    %69 = llvm.mlir.constant(1 : i64) : i64
    %70 = llvm.add %62, %69 : i64
    llvm.br ^bb11(%70 : i64) {loop_annotation = #loop_annotation1}
  ^bb16(%71: i64):  // 2 preds: ^bb3, ^bb21
    %72 = llvm.icmp "slt" %71, %30 : i64
    llvm.cond_br %72, ^bb17, ^bb18
  ^bb17:  // pred: ^bb16
    %73 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb19(%73 : i64)
  ^bb18:  // pred: ^bb16
    llvm.br ^bb4
  ^bb19(%74: i64):  // 2 preds: ^bb17, ^bb24
    %75 = llvm.icmp "slt" %74, %28 : i64
    llvm.cond_br %75, ^bb20, ^bb21
  ^bb20:  // pred: ^bb19
    %76 = llvm.mlir.constant(0 : i64) : i64
    llvm.br ^bb22(%76 : i64)
  ^bb21:  // pred: ^bb19
    %77 = llvm.mlir.constant(1 : i64) : i64
    %78 = llvm.add %71, %77 : i64
    llvm.br ^bb16(%78 : i64)
  ^bb22(%79: i64):  // 2 preds: ^bb20, ^bb27
    %80 = llvm.icmp "slt" %79, %26 : i64
    llvm.cond_br %80, ^bb23, ^bb24
  ^bb23:  // pred: ^bb22
    %81 = llvm.getelementptr inbounds|nuw %4[%79] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    llvm.br ^bb25
  ^bb24:  // pred: ^bb22
    %82 = llvm.mlir.constant(1 : i64) : i64
    %83 = llvm.add %74, %82 : i64
    llvm.br ^bb19(%83 : i64)
  ^bb25:  // pred: ^bb23
    %84 = llvm.sub %49, %79 : i64
    %85 = llvm.getelementptr inbounds|nuw %46[%84] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    %86 = llvm.load %85 {access_groups = [#access_group1]} : !llvm.ptr -> f64
    %87 = llvm.getelementptr inbounds|nuw %42[%79] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    llvm.store %86, %87 {access_groups = [#access_group1]} : f64, !llvm.ptr
    %88 = llvm.load %87 {access_groups = [#access_group1]} : !llvm.ptr -> f64
    llvm.store %88, %81 {access_groups = [#access_group1]} : f64, !llvm.ptr
    llvm.br ^bb26
  ^bb26:  // pred: ^bb25
    llvm.br ^bb27
  ^bb27:  // pred: ^bb26
    %89 = llvm.mlir.constant(1 : i64) : i64
    %90 = llvm.add %79, %89 : i64
    llvm.br ^bb22(%90 : i64) {loop_annotation = #loop_annotation2}
  }
}

