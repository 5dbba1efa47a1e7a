module attributes {gpu.container_module} {
  llvm.func @turn(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: i64) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %0 = llvm.mlir.constant(256 : i32) : i32
    %1 = llvm.mlir.constant(32 : index) : i64
    %2 = llvm.mlir.constant(1 : index) : i64
    gpu.launch_func  @device::@turn blocks in (%2, %2, %2) threads in (%1, %2, %2) : i64 dynamic_shared_memory_size %0 args(%arg0 : !llvm.ptr, %arg1 : !llvm.ptr, %arg2 : i64, %arg3 : i64, %arg4 : i64)
    llvm.return
  }
  llvm.func @_mlir_ciface_turn(%arg0: !llvm.ptr {aotc.name = "x"}) attributes {aotc.one_stream, llvm.emit_c_interface} {
    %0 = llvm.load %arg0 : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
    %1 = llvm.extractvalue %0[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %2 = llvm.extractvalue %0[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %3 = llvm.extractvalue %0[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %4 = llvm.extractvalue %0[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %5 = llvm.extractvalue %0[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    llvm.call @turn(%1, %2, %3, %4, %5) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> ()
    llvm.return
  }
  gpu.binary @device <#gpu.select_object<0 : i64>> [#gpu.object<#nvvm.target, bin = "">]
}

