module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.func @scale_kernel(%arg0: i64, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: i64, %arg8: f32, %arg9: !llvm.ptr, %arg10: !llvm.ptr, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 25, 10, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 25, 10, 1>} {
    %0 = llvm.mlir.poison : vector<4xf32>
    %1 = llvm.mlir.constant(3 : i64) : i64
    %2 = llvm.mlir.constant(2 : i64) : i64
    %3 = llvm.mlir.constant(1 : i64) : i64
    %4 = llvm.mlir.constant(0 : i64) : i64
    %5 = llvm.mlir.constant(100 : index) : i64
    %6 = llvm.mlir.constant(3 : index) : i64
    %7 = llvm.mlir.constant(15 : index) : i64
    %8 = llvm.mlir.constant(4 : index) : i64
    %9 = llvm.mlir.constant(75 : index) : i64
    %10 = llvm.mlir.constant(50 : index) : i64
    %11 = llvm.mlir.constant(0 : index) : i64
    %12 = llvm.mlir.constant(10 : index) : i64
    %13 = llvm.mlir.constant(25 : index) : i64
    %14 = nvvm.read.ptx.sreg.ctaid.y : i32
    %15 = llvm.sext %14 : i32 to i64
    %16 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 25> : i32
    %17 = llvm.sext %16 : i32 to i64
    %18 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 10> : i32
    %19 = llvm.sext %18 : i32 to i64
    %20 = nvvm.read.ptx.sreg.nctaid.y : i32
    %21 = llvm.sext %20 : i32 to i64
    %22 = llvm.mul %15, %12 : i64
    %23 = llvm.mul %21, %12 : i64
    llvm.br ^bb1(%22 : i64)
  ^bb1(%24: i64):  // 2 preds: ^bb0, ^bb6
    %25 = llvm.icmp "slt" %24, %arg0 : i64
    llvm.cond_br %25, ^bb2, ^bb7
  ^bb2:  // pred: ^bb1
    %26 = llvm.add %24, %19 : i64
    %27 = llvm.icmp "slt" %26, %arg0 : i64
    llvm.cond_br %27, ^bb3, ^bb6
  ^bb3:  // pred: ^bb2
    %28 = llvm.mul %17, %8 : i64
    %29 = llvm.ptrtoint %arg2 : !llvm.ptr to i64
    %30 = llvm.and %29, %7 : i64
    %31 = llvm.ptrtoint %arg10 : !llvm.ptr to i64
    %32 = llvm.and %31, %7 : i64
    %33 = llvm.and %28, %6 : i64
    %34 = llvm.or %30, %32 : i64
    %35 = llvm.or %34, %33 : i64
    %36 = llvm.or %35, %33 : i64
    %37 = llvm.icmp "eq" %36, %11 : i64
    llvm.cond_br %37, ^bb4, ^bb5
  ^bb4:  // pred: ^bb3
    %38 = llvm.mul %26, %5 : i64
    %39 = llvm.add %38, %28 : i64
    %40 = llvm.getelementptr %arg2[%39] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %41 = llvm.load %40 {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
    %42 = llvm.extractelement %41[%4 : i64] : vector<4xf32>
    %43 = llvm.extractelement %41[%3 : i64] : vector<4xf32>
    %44 = llvm.extractelement %41[%2 : i64] : vector<4xf32>
    %45 = llvm.extractelement %41[%1 : i64] : vector<4xf32>
    %46 = llvm.fmul %42, %arg8 : f32
    %47 = llvm.fmul %43, %arg8 : f32
    %48 = llvm.fmul %44, %arg8 : f32
    %49 = llvm.fmul %45, %arg8 : f32
    %50 = llvm.insertelement %46, %0[%4 : i64] : vector<4xf32>
    %51 = llvm.insertelement %47, %50[%3 : i64] : vector<4xf32>
    %52 = llvm.insertelement %48, %51[%2 : i64] : vector<4xf32>
    %53 = llvm.insertelement %49, %52[%1 : i64] : vector<4xf32>
    %54 = llvm.getelementptr %arg10[%39] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %53, %54 {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
    llvm.br ^bb6
  ^bb5:  // pred: ^bb3
    %55 = llvm.add %17, %13 : i64
    %56 = llvm.add %17, %10 : i64
    %57 = llvm.add %17, %9 : i64
    %58 = llvm.mul %26, %5 overflow<nsw, nuw> : i64
    %59 = llvm.add %58, %17 overflow<nsw, nuw> : i64
    %60 = llvm.getelementptr inbounds|nuw %arg2[%59] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %61 = llvm.load %60 : !llvm.ptr -> f32
    %62 = llvm.add %58, %55 overflow<nsw, nuw> : i64
    %63 = llvm.getelementptr inbounds|nuw %arg2[%62] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %64 = llvm.load %63 : !llvm.ptr -> f32
    %65 = llvm.add %58, %56 overflow<nsw, nuw> : i64
    %66 = llvm.getelementptr inbounds|nuw %arg2[%65] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %67 = llvm.load %66 : !llvm.ptr -> f32
    %68 = llvm.add %58, %57 overflow<nsw, nuw> : i64
    %69 = llvm.getelementptr inbounds|nuw %arg2[%68] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %70 = llvm.load %69 : !llvm.ptr -> f32
    %71 = llvm.fmul %61, %arg8 : f32
    %72 = llvm.fmul %64, %arg8 : f32
    %73 = llvm.fmul %67, %arg8 : f32
    %74 = llvm.fmul %70, %arg8 : f32
    %75 = llvm.getelementptr inbounds|nuw %arg10[%59] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %71, %75 : f32, !llvm.ptr
    %76 = llvm.getelementptr inbounds|nuw %arg10[%62] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %72, %76 : f32, !llvm.ptr
    %77 = llvm.getelementptr inbounds|nuw %arg10[%65] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %73, %77 : f32, !llvm.ptr
    %78 = llvm.getelementptr inbounds|nuw %arg10[%68] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %74, %78 : f32, !llvm.ptr
    llvm.br ^bb6
  ^bb6:  // 3 preds: ^bb2, ^bb4, ^bb5
    %79 = llvm.add %24, %23 : i64
    llvm.br ^bb1(%79 : i64)
  ^bb7:  // pred: ^bb1
    llvm.return
  }
}

