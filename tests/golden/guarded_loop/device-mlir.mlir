module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.func @scale_kernel(%arg0: i64, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: i64, %arg8: f32, %arg9: !llvm.ptr, %arg10: !llvm.ptr, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 8, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 32, 8, 1>} {
    %0 = llvm.mlir.constant(24 : index) : i64
    %1 = llvm.mlir.constant(16 : index) : i64
    %2 = llvm.mlir.constant(8 : index) : i64
    %3 = llvm.mlir.constant(100 : index) : i64
    %4 = llvm.mlir.constant(32 : index) : i64
    %5 = nvvm.read.ptx.sreg.ctaid.x : i32
    %6 = llvm.sext %5 : i32 to i64
    %7 = nvvm.read.ptx.sreg.ctaid.y : i32
    %8 = llvm.sext %7 : i32 to i64
    %9 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
    %10 = llvm.sext %9 : i32 to i64
    %11 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 8> : i32
    %12 = llvm.sext %11 : i32 to i64
    %13 = nvvm.read.ptx.sreg.nctaid.y : i32
    %14 = llvm.sext %13 : i32 to i64
    %15 = llvm.mul %8, %4 : i64
    %16 = llvm.mul %14, %4 : i64
    llvm.br ^bb1(%15 : i64)
  ^bb1(%17: i64):  // 2 preds: ^bb0, ^bb24
    %18 = llvm.icmp "slt" %17, %arg0 : i64
    llvm.cond_br %18, ^bb2, ^bb25
  ^bb2:  // pred: ^bb1
    %19 = llvm.add %17, %2 : i64
    %20 = llvm.add %17, %1 : i64
    %21 = llvm.add %17, %0 : i64
    %22 = llvm.add %17, %12 : i64
    %23 = llvm.add %19, %12 : i64
    %24 = llvm.add %20, %12 : i64
    %25 = llvm.add %21, %12 : i64
    %26 = llvm.sub %arg0, %17 : i64
    %27 = llvm.sub %arg0, %19 : i64
    %28 = llvm.sub %arg0, %20 : i64
    %29 = llvm.sub %arg0, %21 : i64
    %30 = llvm.icmp "slt" %12, %26 : i64
    %31 = llvm.icmp "slt" %12, %27 : i64
    %32 = llvm.icmp "slt" %12, %28 : i64
    %33 = llvm.icmp "slt" %12, %29 : i64
    %34 = llvm.and %30, %31 : i1
    %35 = llvm.and %34, %32 : i1
    %36 = llvm.and %35, %33 : i1
    llvm.cond_br %36, ^bb3, ^bb13
  ^bb3:  // pred: ^bb2
    %37 = llvm.mul %6, %4 : i64
    %38 = llvm.add %37, %10 : i64
    %39 = llvm.icmp "slt" %38, %3 : i64
    llvm.cond_br %39, ^bb4, ^bb5
  ^bb4:  // pred: ^bb3
    %40 = llvm.mul %22, %3 overflow<nsw, nuw> : i64
    %41 = llvm.add %40, %38 overflow<nsw, nuw> : i64
    %42 = llvm.getelementptr inbounds|nuw %arg2[%41] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %43 = llvm.load %42 : !llvm.ptr -> f32
    %44 = llvm.mul %23, %3 overflow<nsw, nuw> : i64
    %45 = llvm.add %44, %38 overflow<nsw, nuw> : i64
    %46 = llvm.getelementptr inbounds|nuw %arg2[%45] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %47 = llvm.load %46 : !llvm.ptr -> f32
    %48 = llvm.mul %24, %3 overflow<nsw, nuw> : i64
    %49 = llvm.add %48, %38 overflow<nsw, nuw> : i64
    %50 = llvm.getelementptr inbounds|nuw %arg2[%49] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %51 = llvm.load %50 : !llvm.ptr -> f32
    %52 = llvm.mul %25, %3 overflow<nsw, nuw> : i64
    %53 = llvm.add %52, %38 overflow<nsw, nuw> : i64
    %54 = llvm.getelementptr inbounds|nuw %arg2[%53] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %55 = llvm.load %54 : !llvm.ptr -> f32
    %56 = llvm.fmul %43, %arg8 : f32
    %57 = llvm.fmul %47, %arg8 : f32
    %58 = llvm.fmul %51, %arg8 : f32
    %59 = llvm.fmul %55, %arg8 : f32
    %60 = llvm.getelementptr inbounds|nuw %arg10[%41] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %56, %60 : f32, !llvm.ptr
    %61 = llvm.getelementptr inbounds|nuw %arg10[%45] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %57, %61 : f32, !llvm.ptr
    %62 = llvm.getelementptr inbounds|nuw %arg10[%49] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %58, %62 : f32, !llvm.ptr
    %63 = llvm.getelementptr inbounds|nuw %arg10[%53] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %59, %63 : f32, !llvm.ptr
    llvm.br ^bb24
  ^bb5:  // pred: ^bb3
    llvm.cond_br %39, ^bb6, ^bb7
  ^bb6:  // pred: ^bb5
    %64 = llvm.mul %22, %3 overflow<nsw, nuw> : i64
    %65 = llvm.add %64, %38 overflow<nsw, nuw> : i64
    %66 = llvm.getelementptr inbounds|nuw %arg2[%65] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %67 = llvm.load %66 : !llvm.ptr -> f32
    %68 = llvm.fmul %67, %arg8 : f32
    %69 = llvm.getelementptr inbounds|nuw %arg10[%65] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %68, %69 : f32, !llvm.ptr
    llvm.br ^bb7
  ^bb7:  // 2 preds: ^bb5, ^bb6
    llvm.cond_br %39, ^bb8, ^bb9
  ^bb8:  // pred: ^bb7
    %70 = llvm.mul %23, %3 overflow<nsw, nuw> : i64
    %71 = llvm.add %70, %38 overflow<nsw, nuw> : i64
    %72 = llvm.getelementptr inbounds|nuw %arg2[%71] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %73 = llvm.load %72 : !llvm.ptr -> f32
    %74 = llvm.fmul %73, %arg8 : f32
    %75 = llvm.getelementptr inbounds|nuw %arg10[%71] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %74, %75 : f32, !llvm.ptr
    llvm.br ^bb9
  ^bb9:  // 2 preds: ^bb7, ^bb8
    llvm.cond_br %39, ^bb10, ^bb11
  ^bb10:  // pred: ^bb9
    %76 = llvm.mul %24, %3 overflow<nsw, nuw> : i64
    %77 = llvm.add %76, %38 overflow<nsw, nuw> : i64
    %78 = llvm.getelementptr inbounds|nuw %arg2[%77] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %79 = llvm.load %78 : !llvm.ptr -> f32
    %80 = llvm.fmul %79, %arg8 : f32
    %81 = llvm.getelementptr inbounds|nuw %arg10[%77] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %80, %81 : f32, !llvm.ptr
    llvm.br ^bb11
  ^bb11:  // 2 preds: ^bb9, ^bb10
    llvm.cond_br %39, ^bb12(%38 : i64), ^bb24
  ^bb12(%82: i64):  // 2 preds: ^bb11, ^bb23
    %83 = llvm.mul %25, %3 overflow<nsw, nuw> : i64
    %84 = llvm.add %83, %82 overflow<nsw, nuw> : i64
    %85 = llvm.getelementptr inbounds|nuw %arg2[%84] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %86 = llvm.load %85 : !llvm.ptr -> f32
    %87 = llvm.fmul %86, %arg8 : f32
    %88 = llvm.getelementptr inbounds|nuw %arg10[%84] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %87, %88 : f32, !llvm.ptr
    llvm.br ^bb24
  ^bb13:  // pred: ^bb2
    llvm.cond_br %30, ^bb14, ^bb16
  ^bb14:  // pred: ^bb13
    %89 = llvm.mul %6, %4 : i64
    %90 = llvm.add %89, %10 : i64
    %91 = llvm.icmp "slt" %90, %3 : i64
    llvm.cond_br %91, ^bb15, ^bb16
  ^bb15:  // pred: ^bb14
    %92 = llvm.mul %22, %3 overflow<nsw, nuw> : i64
    %93 = llvm.add %92, %90 overflow<nsw, nuw> : i64
    %94 = llvm.getelementptr inbounds|nuw %arg2[%93] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %95 = llvm.load %94 : !llvm.ptr -> f32
    %96 = llvm.fmul %95, %arg8 : f32
    %97 = llvm.getelementptr inbounds|nuw %arg10[%93] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %96, %97 : f32, !llvm.ptr
    llvm.br ^bb16
  ^bb16:  // 3 preds: ^bb13, ^bb14, ^bb15
    llvm.cond_br %31, ^bb17, ^bb19
  ^bb17:  // pred: ^bb16
    %98 = llvm.mul %6, %4 : i64
    %99 = llvm.add %98, %10 : i64
    %100 = llvm.icmp "slt" %99, %3 : i64
    llvm.cond_br %100, ^bb18, ^bb19
  ^bb18:  // pred: ^bb17
    %101 = llvm.mul %23, %3 overflow<nsw, nuw> : i64
    %102 = llvm.add %101, %99 overflow<nsw, nuw> : i64
    %103 = llvm.getelementptr inbounds|nuw %arg2[%102] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %104 = llvm.load %103 : !llvm.ptr -> f32
    %105 = llvm.fmul %104, %arg8 : f32
    %106 = llvm.getelementptr inbounds|nuw %arg10[%102] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %105, %106 : f32, !llvm.ptr
    llvm.br ^bb19
  ^bb19:  // 3 preds: ^bb16, ^bb17, ^bb18
    llvm.cond_br %32, ^bb20, ^bb22
  ^bb20:  // pred: ^bb19
    %107 = llvm.mul %6, %4 : i64
    %108 = llvm.add %107, %10 : i64
    %109 = llvm.icmp "slt" %108, %3 : i64
    llvm.cond_br %109, ^bb21, ^bb22
  ^bb21:  // pred: ^bb20
    %110 = llvm.mul %24, %3 overflow<nsw, nuw> : i64
    %111 = llvm.add %110, %108 overflow<nsw, nuw> : i64
    %112 = llvm.getelementptr inbounds|nuw %arg2[%111] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %113 = llvm.load %112 : !llvm.ptr -> f32
    %114 = llvm.fmul %113, %arg8 : f32
    %115 = llvm.getelementptr inbounds|nuw %arg10[%111] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %114, %115 : f32, !llvm.ptr
    llvm.br ^bb22
  ^bb22:  // 3 preds: ^bb19, ^bb20, ^bb21
    llvm.cond_br %33, ^bb23, ^bb24
  ^bb23:  // pred: ^bb22
    %116 = llvm.mul %6, %4 : i64
    %117 = llvm.add %116, %10 : i64
    %118 = llvm.icmp "slt" %117, %3 : i64
    llvm.cond_br %118, ^bb12(%117 : i64), ^bb24
  ^bb24:  // 5 preds: ^bb4, ^bb11, ^bb12, ^bb22, ^bb23
    %119 = llvm.add %17, %16 : i64
    llvm.br ^bb1(%119 : i64)
  ^bb25:  // pred: ^bb1
    llvm.return
  }
}

