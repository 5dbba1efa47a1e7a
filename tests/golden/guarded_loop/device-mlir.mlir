module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.func @scale_kernel(%arg0: i64, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: i64, %arg8: f32, %arg9: !llvm.ptr, %arg10: !llvm.ptr, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 8, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 32, 8, 1>} {
    %0 = llvm.mlir.constant(100 : index) : i64
    %1 = llvm.mlir.constant(24 : index) : i64
    %2 = llvm.mlir.constant(16 : index) : i64
    %3 = llvm.mlir.constant(99 : index) : i64
    %4 = llvm.mlir.constant(32 : index) : i64
    %5 = llvm.mlir.constant(8 : index) : i64
    %6 = nvvm.read.ptx.sreg.ctaid.x : i32
    %7 = llvm.sext %6 : i32 to i64
    %8 = nvvm.read.ptx.sreg.ctaid.y : i32
    %9 = llvm.sext %8 : i32 to i64
    %10 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
    %11 = llvm.sext %10 : i32 to i64
    %12 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 8> : i32
    %13 = llvm.sext %12 : i32 to i64
    %14 = nvvm.read.ptx.sreg.nctaid.y : i32
    %15 = llvm.sext %14 : i32 to i64
    %16 = llvm.mul %9, %4 : i64
    %17 = llvm.mul %15, %4 : i64
    llvm.br ^bb1(%16 : i64)
  ^bb1(%18: i64):  // 2 preds: ^bb0, ^bb24
    %19 = llvm.icmp "slt" %18, %arg0 : i64
    llvm.cond_br %19, ^bb2, ^bb25
  ^bb2:  // pred: ^bb1
    %20 = llvm.add %18, %5 : i64
    %21 = llvm.add %18, %2 : i64
    %22 = llvm.add %18, %1 : i64
    %23 = llvm.add %18, %13 : i64
    %24 = llvm.add %20, %13 : i64
    %25 = llvm.add %21, %13 : i64
    %26 = llvm.add %22, %13 : i64
    %27 = llvm.sub %arg0, %18 : i64
    %28 = llvm.sub %arg0, %20 : i64
    %29 = llvm.sub %arg0, %21 : i64
    %30 = llvm.sub %arg0, %22 : i64
    %31 = llvm.icmp "slt" %13, %27 : i64
    %32 = llvm.icmp "slt" %13, %28 : i64
    %33 = llvm.icmp "slt" %13, %29 : i64
    %34 = llvm.icmp "slt" %13, %30 : i64
    %35 = llvm.and %31, %32 : i1
    %36 = llvm.and %35, %33 : i1
    %37 = llvm.and %36, %34 : i1
    llvm.cond_br %37, ^bb3, ^bb13
  ^bb3:  // pred: ^bb2
    %38 = llvm.mul %7, %4 : i64
    %39 = llvm.add %38, %11 : i64
    %40 = llvm.icmp "slt" %39, %3 : i64
    llvm.cond_br %40, ^bb4, ^bb5
  ^bb4:  // pred: ^bb3
    %41 = llvm.mul %23, %0 overflow<nsw, nuw> : i64
    %42 = llvm.add %41, %39 overflow<nsw, nuw> : i64
    %43 = llvm.getelementptr inbounds|nuw %arg2[%42] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %44 = llvm.load %43 : !llvm.ptr -> f32
    %45 = llvm.mul %24, %0 overflow<nsw, nuw> : i64
    %46 = llvm.add %45, %39 overflow<nsw, nuw> : i64
    %47 = llvm.getelementptr inbounds|nuw %arg2[%46] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %48 = llvm.load %47 : !llvm.ptr -> f32
    %49 = llvm.mul %25, %0 overflow<nsw, nuw> : i64
    %50 = llvm.add %49, %39 overflow<nsw, nuw> : i64
    %51 = llvm.getelementptr inbounds|nuw %arg2[%50] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %52 = llvm.load %51 : !llvm.ptr -> f32
    %53 = llvm.mul %26, %0 overflow<nsw, nuw> : i64
    %54 = llvm.add %53, %39 overflow<nsw, nuw> : i64
    %55 = llvm.getelementptr inbounds|nuw %arg2[%54] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %56 = llvm.load %55 : !llvm.ptr -> f32
    %57 = llvm.fmul %44, %arg8 : f32
    %58 = llvm.fmul %48, %arg8 : f32
    %59 = llvm.fmul %52, %arg8 : f32
    %60 = llvm.fmul %56, %arg8 : f32
    %61 = llvm.getelementptr inbounds|nuw %arg10[%42] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %57, %61 : f32, !llvm.ptr
    %62 = llvm.getelementptr inbounds|nuw %arg10[%46] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %58, %62 : f32, !llvm.ptr
    %63 = llvm.getelementptr inbounds|nuw %arg10[%50] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %59, %63 : f32, !llvm.ptr
    %64 = llvm.getelementptr inbounds|nuw %arg10[%54] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %60, %64 : f32, !llvm.ptr
    llvm.br ^bb24
  ^bb5:  // pred: ^bb3
    llvm.cond_br %40, ^bb6, ^bb7
  ^bb6:  // pred: ^bb5
    %65 = llvm.mul %23, %0 overflow<nsw, nuw> : i64
    %66 = llvm.add %65, %39 overflow<nsw, nuw> : i64
    %67 = llvm.getelementptr inbounds|nuw %arg2[%66] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %68 = llvm.load %67 : !llvm.ptr -> f32
    %69 = llvm.fmul %68, %arg8 : f32
    %70 = llvm.getelementptr inbounds|nuw %arg10[%66] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %69, %70 : f32, !llvm.ptr
    llvm.br ^bb7
  ^bb7:  // 2 preds: ^bb5, ^bb6
    llvm.cond_br %40, ^bb8, ^bb9
  ^bb8:  // pred: ^bb7
    %71 = llvm.mul %24, %0 overflow<nsw, nuw> : i64
    %72 = llvm.add %71, %39 overflow<nsw, nuw> : i64
    %73 = llvm.getelementptr inbounds|nuw %arg2[%72] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %74 = llvm.load %73 : !llvm.ptr -> f32
    %75 = llvm.fmul %74, %arg8 : f32
    %76 = llvm.getelementptr inbounds|nuw %arg10[%72] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %75, %76 : f32, !llvm.ptr
    llvm.br ^bb9
  ^bb9:  // 2 preds: ^bb7, ^bb8
    llvm.cond_br %40, ^bb10, ^bb11
  ^bb10:  // pred: ^bb9
    %77 = llvm.mul %25, %0 overflow<nsw, nuw> : i64
    %78 = llvm.add %77, %39 overflow<nsw, nuw> : i64
    %79 = llvm.getelementptr inbounds|nuw %arg2[%78] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %80 = llvm.load %79 : !llvm.ptr -> f32
    %81 = llvm.fmul %80, %arg8 : f32
    %82 = llvm.getelementptr inbounds|nuw %arg10[%78] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %81, %82 : f32, !llvm.ptr
    llvm.br ^bb11
  ^bb11:  // 2 preds: ^bb9, ^bb10
    llvm.cond_br %40, ^bb12(%39 : i64), ^bb24
  ^bb12(%83: i64):  // 2 preds: ^bb11, ^bb23
    %84 = llvm.mul %26, %0 overflow<nsw, nuw> : i64
    %85 = llvm.add %84, %83 overflow<nsw, nuw> : i64
    %86 = llvm.getelementptr inbounds|nuw %arg2[%85] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %87 = llvm.load %86 : !llvm.ptr -> f32
    %88 = llvm.fmul %87, %arg8 : f32
    %89 = llvm.getelementptr inbounds|nuw %arg10[%85] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %88, %89 : f32, !llvm.ptr
    llvm.br ^bb24
  ^bb13:  // pred: ^bb2
    llvm.cond_br %31, ^bb14, ^bb16
  ^bb14:  // pred: ^bb13
    %90 = llvm.mul %7, %4 : i64
    %91 = llvm.add %90, %11 : i64
    %92 = llvm.icmp "slt" %91, %3 : i64
    llvm.cond_br %92, ^bb15, ^bb16
  ^bb15:  // pred: ^bb14
    %93 = llvm.mul %23, %0 overflow<nsw, nuw> : i64
    %94 = llvm.add %93, %91 overflow<nsw, nuw> : i64
    %95 = llvm.getelementptr inbounds|nuw %arg2[%94] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %96 = llvm.load %95 : !llvm.ptr -> f32
    %97 = llvm.fmul %96, %arg8 : f32
    %98 = llvm.getelementptr inbounds|nuw %arg10[%94] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %97, %98 : f32, !llvm.ptr
    llvm.br ^bb16
  ^bb16:  // 3 preds: ^bb13, ^bb14, ^bb15
    llvm.cond_br %32, ^bb17, ^bb19
  ^bb17:  // pred: ^bb16
    %99 = llvm.mul %7, %4 : i64
    %100 = llvm.add %99, %11 : i64
    %101 = llvm.icmp "slt" %100, %3 : i64
    llvm.cond_br %101, ^bb18, ^bb19
  ^bb18:  // pred: ^bb17
    %102 = llvm.mul %24, %0 overflow<nsw, nuw> : i64
    %103 = llvm.add %102, %100 overflow<nsw, nuw> : i64
    %104 = llvm.getelementptr inbounds|nuw %arg2[%103] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %105 = llvm.load %104 : !llvm.ptr -> f32
    %106 = llvm.fmul %105, %arg8 : f32
    %107 = llvm.getelementptr inbounds|nuw %arg10[%103] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %106, %107 : f32, !llvm.ptr
    llvm.br ^bb19
  ^bb19:  // 3 preds: ^bb16, ^bb17, ^bb18
    llvm.cond_br %33, ^bb20, ^bb22
  ^bb20:  // pred: ^bb19
    %108 = llvm.mul %7, %4 : i64
    %109 = llvm.add %108, %11 : i64
    %110 = llvm.icmp "slt" %109, %3 : i64
    llvm.cond_br %110, ^bb21, ^bb22
  ^bb21:  // pred: ^bb20
    %111 = llvm.mul %25, %0 overflow<nsw, nuw> : i64
    %112 = llvm.add %111, %109 overflow<nsw, nuw> : i64
    %113 = llvm.getelementptr inbounds|nuw %arg2[%112] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %114 = llvm.load %113 : !llvm.ptr -> f32
    %115 = llvm.fmul %114, %arg8 : f32
    %116 = llvm.getelementptr inbounds|nuw %arg10[%112] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %115, %116 : f32, !llvm.ptr
    llvm.br ^bb22
  ^bb22:  // 3 preds: ^bb19, ^bb20, ^bb21
    llvm.cond_br %34, ^bb23, ^bb24
  ^bb23:  // pred: ^bb22
    %117 = llvm.mul %7, %4 : i64
    %118 = llvm.add %117, %11 : i64
    %119 = llvm.icmp "slt" %118, %3 : i64
    llvm.cond_br %119, ^bb12(%118 : i64), ^bb24
  ^bb24:  // 5 preds: ^bb4, ^bb11, ^bb12, ^bb22, ^bb23
    %120 = llvm.add %18, %17 : i64
    llvm.br ^bb1(%120 : i64)
  ^bb25:  // pred: ^bb1
    llvm.return
  }
}

