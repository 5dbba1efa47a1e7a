module attributes {llvm.target_triple = "nvptx64-nvidia-cuda"} {
  llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal @__wg_turn_0() {addr_space = 3 : i32} : !llvm.array<32 x f64>
  llvm.func @turn(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64) attributes {gpu.kernel, nvvm.kernel} {
    %0 = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
    %1 = llvm.mlir.constant(31 : index) : i64
    %2 = llvm.mlir.addressof @__wg_turn_0 : !llvm.ptr<3>
    %3 = llvm.getelementptr %2[0, 0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, !llvm.array<32 x f64>
    %4 = nvvm.read.ptx.sreg.tid.x : i32
    %5 = llvm.sext %4 : i32 to i64
    %6 = llvm.getelementptr inbounds|nuw %arg1[%5] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    %7 = llvm.load %6 : !llvm.ptr -> f64
    %8 = llvm.getelementptr inbounds|nuw %3[%5] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
    llvm.store %7, %8 : f64, !llvm.ptr<3>
    nvvm.barrier
    %9 = llvm.sub %1, %5 : i64
    %10 = llvm.getelementptr inbounds|nuw %3[%9] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
    %11 = llvm.load %10 : !llvm.ptr<3> -> f64
    %12 = llvm.getelementptr inbounds|nuw %0[%5] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f64
    llvm.store %11, %12 : f64, !llvm.ptr<3>
    %13 = llvm.load %12 : !llvm.ptr<3> -> f64
    llvm.store %13, %6 : f64, !llvm.ptr
    llvm.return
  }
}

