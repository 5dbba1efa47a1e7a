module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.func @sums_kernel(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64, %arg8: i64, %arg9: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 256, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>} {
    %0 = llvm.mlir.constant(64 : index) : i64
    %1 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
    %2 = llvm.sext %1 : i32 to i64
    %3 = llvm.icmp "slt" %2, %0 : i64
    llvm.cond_br %3, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %4 = llvm.getelementptr inbounds|nuw %arg1[%2] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %5 = llvm.load %4 : !llvm.ptr -> i32
    %6 = llvm.add %5, %5 : i32
    %7 = llvm.getelementptr inbounds|nuw %arg6[%2] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %6, %7 : i32, !llvm.ptr
    llvm.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    llvm.return
  }
  llvm.func @sums_kernel_0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr, %arg6: !llvm.ptr, %arg7: i64, %arg8: i64, %arg9: i64) attributes {gpu.kernel, gpu.known_block_size = array<i32: 256, 1, 1>, gpu.known_grid_size = array<i32: 1, 1, 1>, nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>} {
    %0 = llvm.mlir.constant(64 : index) : i64
    %1 = llvm.mlir.constant(63 : index) : i64
    %2 = nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
    %3 = llvm.sext %2 : i32 to i64
    %4 = llvm.icmp "slt" %3, %0 : i64
    llvm.cond_br %4, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    %5 = llvm.sub %1, %3 : i64
    %6 = llvm.getelementptr inbounds|nuw %arg1[%5] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    %7 = llvm.load %6 : !llvm.ptr -> i32
    %8 = llvm.getelementptr inbounds|nuw %arg6[%3] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %7, %8 : i32, !llvm.ptr
    llvm.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    llvm.return
  }
}

