// Tasks as upstream's gpu-async-region leaves them: their work goes on behind their end, and who
// waits for it has its token.
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}

func.func @main() {
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %twelve = arith.constant 12 : i32
  %x = memref.alloc() : memref<5xi32>
  linalg.fill ins(%twelve : i32) outs(%x : memref<5xi32>)
  %copied, %there, %on_gpu = async.execute
      -> (!async.value<memref<5xi32>>, !async.value<!gpu.async.token>) {
    %begin = gpu.wait async
    %memory, %allocated = gpu.alloc async [%begin] () : memref<5xi32>
    %done = gpu.memcpy async [%allocated] %memory, %x : memref<5xi32>, memref<5xi32>
    async.yield %memory, %done : memref<5xi32>, !gpu.async.token
  }
  %doubled, %behind = async.execute [%copied]
      (%there as %a: !async.value<memref<5xi32>>, %on_gpu as %before: !async.value<!gpu.async.token>)
      -> !async.value<!gpu.async.token> {
    %begin = gpu.wait async [%before]
    %launched = gpu.launch async [%begin]
        blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
      %old = memref.load %a[%tx] : memref<5xi32>
      %new = arith.addi %old, %old : i32
      memref.store %new, %a[%tx] : memref<5xi32>
      gpu.terminator
    }
    %copied_back = gpu.memcpy async [%launched] %x, %a : memref<5xi32>, memref<5xi32>
    %freed = gpu.dealloc async [%copied_back] %a : memref<5xi32>
    async.yield %freed : !gpu.async.token
  }
  async.await %doubled : !async.token
  %last = async.await %behind : !async.value<!gpu.async.token>
  gpu.wait [%last]
  %any = memref.cast %x : memref<5xi32> to memref<*xi32>
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %x : memref<5xi32>
  return
}
