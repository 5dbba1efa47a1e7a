module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.mlir.global internal constant @assert_func_0("(unknown)\00") {addr_space = 0 : i32}
  llvm.mlir.global internal constant @assert_file_0("rows.py\00") {addr_space = 0 : i32}
  llvm.mlir.global internal constant @assert_message_0("an index is out of bounds\00") {addr_space = 0 : i32}
  llvm.func @__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) attributes {passthrough = ["noreturn"]}
  llvm.func @rows_kernel(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64, %arg8: i64, %arg9: i64, %arg10: i64, %arg11: i64, %arg12: !llvm.ptr, %arg13: !llvm.ptr, %arg14: i64, %arg15: i64, %arg16: i64, %arg17: i64, %arg18: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 32, 8, 1>, gpu.known_grid_size = array<i32: 8, 2048, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 32, 8, 1>} {
    %0 = llvm.mlir.constant(256 : index) : i64
    %1 = llvm.mlir.constant(1 : i64) : i64
    %2 = llvm.mlir.constant(3 : i32) : i32
    %3 = llvm.mlir.addressof @assert_func_0 : !llvm.ptr
    %4 = llvm.mlir.addressof @assert_file_0 : !llvm.ptr
    %5 = llvm.mlir.addressof @assert_message_0 : !llvm.ptr
    %6 = llvm.mlir.constant(32 : index) : i64
    %7 = llvm.mlir.constant(0 : i64) : i64
    %8 = llvm.mlir.constant(65536 : i64) : i64
    %9 = llvm.mlir.constant(65536 : index) : i64
    %10 = llvm.mlir.constant(0 : index) : i64
    %11 = llvm.mlir.constant(8 : index) : i64
    %12 = llvm.mlir.constant(16 : index) : i64
    %13 = llvm.mlir.constant(24 : index) : i64
    %14 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 8> : i32
    %15 = llvm.sext %14 : i32 to i64
    %16 = nvvm.read.ptx.sreg.ctaid.y range <i32, 0, 2048> : i32
    %17 = llvm.sext %16 : i32 to i64
    %18 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
    %19 = llvm.sext %18 : i32 to i64
    %20 = nvvm.read.ptx.sreg.tid.y range <i32, 0, 8> : i32
    %21 = llvm.sext %20 : i32 to i64
    %22 = llvm.mul %17, %6 : i64
    %23 = llvm.add %22, %11 : i64
    %24 = llvm.add %22, %12 : i64
    %25 = llvm.add %22, %13 : i64
    %26 = llvm.add %22, %21 : i64
    %27 = llvm.add %23, %21 : i64
    %28 = llvm.add %24, %21 : i64
    %29 = llvm.add %25, %21 : i64
    %30 = llvm.mul %15, %6 : i64
    %31 = llvm.add %30, %19 : i64
    %32 = llvm.getelementptr inbounds|nuw %arg1[%26] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %33 = llvm.load %32 : !llvm.ptr -> i64
    %34 = llvm.getelementptr inbounds|nuw %arg1[%27] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %35 = llvm.load %34 : !llvm.ptr -> i64
    %36 = llvm.getelementptr inbounds|nuw %arg1[%28] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %37 = llvm.load %36 : !llvm.ptr -> i64
    %38 = llvm.getelementptr inbounds|nuw %arg1[%29] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %39 = llvm.load %38 : !llvm.ptr -> i64
    %40 = llvm.icmp "slt" %33, %7 : i64
    %41 = llvm.icmp "slt" %35, %7 : i64
    %42 = llvm.icmp "slt" %37, %7 : i64
    %43 = llvm.icmp "slt" %39, %7 : i64
    %44 = llvm.add %33, %8 : i64
    %45 = llvm.add %35, %8 : i64
    %46 = llvm.add %37, %8 : i64
    %47 = llvm.add %39, %8 : i64
    %48 = llvm.select %40, %44, %33 : i1, i64
    %49 = llvm.select %41, %45, %35 : i1, i64
    %50 = llvm.select %42, %46, %37 : i1, i64
    %51 = llvm.select %43, %47, %39 : i1, i64
    %52 = llvm.icmp "ult" %48, %9 : i64
    %53 = llvm.icmp "ult" %49, %9 : i64
    %54 = llvm.icmp "ult" %50, %9 : i64
    %55 = llvm.icmp "ult" %51, %9 : i64
    %56 = llvm.select %52, %48, %10 : i1, i64
    %57 = llvm.select %53, %49, %10 : i1, i64
    %58 = llvm.select %54, %50, %10 : i1, i64
    %59 = llvm.select %55, %51, %10 : i1, i64
    llvm.cond_br %52, ^bb2, ^bb1
  ^bb1:  // pred: ^bb0
    %60 = llvm.getelementptr %5[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<26 x i8>
    %61 = llvm.getelementptr %4[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<8 x i8>
    %62 = llvm.getelementptr %3[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<10 x i8>
    llvm.call @__assertfail(%60, %61, %2, %62, %1) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) -> ()
    llvm.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    llvm.cond_br %53, ^bb4, ^bb3
  ^bb3:  // pred: ^bb2
    %63 = llvm.getelementptr %5[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<26 x i8>
    %64 = llvm.getelementptr %4[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<8 x i8>
    %65 = llvm.getelementptr %3[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<10 x i8>
    llvm.call @__assertfail(%63, %64, %2, %65, %1) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) -> ()
    llvm.br ^bb4
  ^bb4:  // 2 preds: ^bb2, ^bb3
    llvm.cond_br %54, ^bb6, ^bb5
  ^bb5:  // pred: ^bb4
    %66 = llvm.getelementptr %5[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<26 x i8>
    %67 = llvm.getelementptr %4[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<8 x i8>
    %68 = llvm.getelementptr %3[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<10 x i8>
    llvm.call @__assertfail(%66, %67, %2, %68, %1) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) -> ()
    llvm.br ^bb6
  ^bb6:  // 2 preds: ^bb4, ^bb5
    llvm.cond_br %55, ^bb8, ^bb7
  ^bb7:  // pred: ^bb6
    %69 = llvm.getelementptr %5[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<26 x i8>
    %70 = llvm.getelementptr %4[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<8 x i8>
    %71 = llvm.getelementptr %3[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<10 x i8>
    llvm.call @__assertfail(%69, %70, %2, %71, %1) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) -> ()
    llvm.br ^bb8
  ^bb8:  // 2 preds: ^bb6, ^bb7
    %72 = llvm.mul %56, %0 overflow<nsw, nuw> : i64
    %73 = llvm.add %72, %31 overflow<nsw, nuw> : i64
    %74 = llvm.getelementptr inbounds|nuw %arg6[%73] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %75 = llvm.load %74 : !llvm.ptr -> f32
    %76 = llvm.mul %57, %0 overflow<nsw, nuw> : i64
    %77 = llvm.add %76, %31 overflow<nsw, nuw> : i64
    %78 = llvm.getelementptr inbounds|nuw %arg6[%77] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %79 = llvm.load %78 : !llvm.ptr -> f32
    %80 = llvm.mul %58, %0 overflow<nsw, nuw> : i64
    %81 = llvm.add %80, %31 overflow<nsw, nuw> : i64
    %82 = llvm.getelementptr inbounds|nuw %arg6[%81] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %83 = llvm.load %82 : !llvm.ptr -> f32
    %84 = llvm.mul %59, %0 overflow<nsw, nuw> : i64
    %85 = llvm.add %84, %31 overflow<nsw, nuw> : i64
    %86 = llvm.getelementptr inbounds|nuw %arg6[%85] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %87 = llvm.load %86 : !llvm.ptr -> f32
    %88 = llvm.mul %26, %0 overflow<nsw, nuw> : i64
    %89 = llvm.add %88, %31 overflow<nsw, nuw> : i64
    %90 = llvm.getelementptr inbounds|nuw %arg13[%89] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %75, %90 : f32, !llvm.ptr
    %91 = llvm.mul %27, %0 overflow<nsw, nuw> : i64
    %92 = llvm.add %91, %31 overflow<nsw, nuw> : i64
    %93 = llvm.getelementptr inbounds|nuw %arg13[%92] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %79, %93 : f32, !llvm.ptr
    %94 = llvm.mul %28, %0 overflow<nsw, nuw> : i64
    %95 = llvm.add %94, %31 overflow<nsw, nuw> : i64
    %96 = llvm.getelementptr inbounds|nuw %arg13[%95] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %83, %96 : f32, !llvm.ptr
    %97 = llvm.mul %29, %0 overflow<nsw, nuw> : i64
    %98 = llvm.add %97, %31 overflow<nsw, nuw> : i64
    %99 = llvm.getelementptr inbounds|nuw %arg13[%98] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %87, %99 : f32, !llvm.ptr
    llvm.return
  }
}

