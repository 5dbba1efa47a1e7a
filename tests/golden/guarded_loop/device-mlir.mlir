module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.func @scale_kernel(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: i64, %arg6: i64, %arg7: f32, %arg8: !llvm.ptr, %arg9: !llvm.ptr, %arg10: i64, %arg11: i64, %arg12: i64, %arg13: i64, %arg14: i64, %arg15: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 8, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 32, 8, 1>} {
    %0 = llvm.mlir.constant(100 : index) : i64
    %1 = llvm.mlir.constant(32 : index) : i64
    %2 = llvm.mlir.constant(8 : index) : i64
    %3 = nvvm.read.ptx.sreg.ctaid.x : i32
    %4 = llvm.sext %3 : i32 to i64
    %5 = nvvm.read.ptx.sreg.ctaid.y : i32
    %6 = llvm.sext %5 : i32 to i64
    %7 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
    %8 = llvm.sext %7 : i32 to i64
    %9 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 8> : i32
    %10 = llvm.sext %9 : i32 to i64
    %11 = nvvm.read.ptx.sreg.nctaid.y : i32
    %12 = llvm.sext %11 : i32 to i64
    %13 = llvm.mul %6, %2 : i64
    %14 = llvm.add %13, %10 : i64
    %15 = llvm.mul %12, %2 : i64
    llvm.br ^bb1(%14 : i64)
  ^bb1(%16: i64):  // 2 preds: ^bb0, ^bb4
    %17 = llvm.icmp "slt" %16, %arg15 : i64
    llvm.cond_br %17, ^bb2, ^bb5
  ^bb2:  // pred: ^bb1
    %18 = llvm.mul %4, %1 : i64
    %19 = llvm.add %18, %8 : i64
    %20 = llvm.icmp "slt" %19, %0 : i64
    llvm.cond_br %20, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    %21 = llvm.mul %16, %0 overflow<nsw, nuw> : i64
    %22 = llvm.add %21, %19 overflow<nsw, nuw> : i64
    %23 = llvm.getelementptr inbounds|nuw %arg1[%22] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %24 = llvm.load %23 : !llvm.ptr -> f32
    %25 = llvm.fmul %24, %arg7 : f32
    %26 = llvm.getelementptr inbounds|nuw %arg9[%22] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %25, %26 : f32, !llvm.ptr
    llvm.br ^bb4
  ^bb4:  // 2 preds: ^bb2, ^bb3
    %27 = llvm.add %16, %15 : i64
    llvm.br ^bb1(%27 : i64)
  ^bb5:  // pred: ^bb1
    llvm.return
  }
}

