// The library of tests/gpu/library: what its entries get and give can be told exactly, with numbers
// that are whole.
#any = strided<[?, ?], offset: ?>

module attributes {gpu.container_module} {
  // z = x + y, as long as x is; z may be longer.
  func.func @add(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
      attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %a = memref.load %x[%i] : memref<?xf32>
      %b = memref.load %y[%i] : memref<?xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %z[%i] : memref<?xf32>
    }
    return
  }

  // C = A * B, of sizes that no block divides.
  func.func @product(%A: memref<37x53xf32>, %B: memref<53x41xf32>, %C: memref<37x41xf32>)
      attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = arith.constant 37 : index
    %columns = arith.constant 41 : index
    %inner = arith.constant 53 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
      %sum = scf.for %k = %c0 to %inner step %c1 iter_args(%so_far = %zero) -> f32 {
        %a = memref.load %A[%i, %k] : memref<37x53xf32>
        %b = memref.load %B[%k, %j] : memref<53x41xf32>
        %ab = arith.mulf %a, %b : f32
        %next = arith.addf %so_far, %ab : f32
        scf.yield %next : f32
      }
      memref.store %sum, %C[%i, %j] : memref<37x41xf32>
    }
    return
  }

  // z = 2 x + 1, through any strides.
  func.func @spread(%x: memref<?x?xf32, #any>, %z: memref<?x?xf32, #any>)
      attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32, #any>
    %columns = memref.dim %x, %c1 : memref<?x?xf32, #any>
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
      %a = memref.load %x[%i, %j] : memref<?x?xf32, #any>
      %twice = arith.mulf %a, %two : f32
      %v = arith.addf %twice, %one : f32
      memref.store %v, %z[%i, %j] : memref<?x?xf32, #any>
    }
    return
  }

  // The host reads x[0] and writes z[0], before and after a kernel: z = x + x[0]; z[0] = -z[0].
  func.func @from_first(%x: memref<?xf32>, %z: memref<?xf32>) attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %first = memref.load %x[%c0] : memref<?xf32>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %a = memref.load %x[%i] : memref<?xf32>
      %sum = arith.addf %a, %first : f32
      memref.store %sum, %z[%i] : memref<?xf32>
    }
    %v = memref.load %z[%c0] : memref<?xf32>
    %negative = arith.negf %v : f32
    memref.store %negative, %z[%c0] : memref<?xf32>
    return
  }

  // x[i] += by * (i + 1): a call that is lost, done twice, or done to another's x is seen afterwards.
  func.func @count_up(%x: memref<?xi64>, %by: i64) attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : memref<?xi64>
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %place = arith.addi %i, %c1 : index
      %factor = arith.index_cast %place : index to i64
      %more = arith.muli %factor, %by : i64
      %a = memref.load %x[%i] : memref<?xi64>
      %sum = arith.addi %a, %more : i64
      memref.store %sum, %x[%i] : memref<?xi64>
    }
    return
  }

  // A kernel that writes `distance` elements behind x; 0 is inside.
  func.func @stray(%x: memref<256xf32>, %distance: index) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %one = arith.constant 1.0 : f32
      %place = arith.addi %tx, %distance : index
      memref.store %one, %x[%place] : memref<256xf32>
      gpu.terminator
    }
    return
  }

  // Three kernels one after the other; the second adds 1 to what is `distance` elements behind x.
  gpu.module @steps {
    gpu.func @first_step(%x: memref<256xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%i] : memref<256xf32>
      gpu.return
    }
    gpu.func @second_step(%x: memref<256xf32>, %distance: index) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %place = arith.addi %i, %distance : index
      %a = memref.load %x[%i] : memref<256xf32>
      %sum = arith.addf %a, %one : f32
      memref.store %sum, %x[%place] : memref<256xf32>
      gpu.return
    }
    gpu.func @third_step(%x: memref<256xf32>) kernel {
      %i = gpu.thread_id x
      %ten = arith.constant 10.0 : f32
      %a = memref.load %x[%i] : memref<256xf32>
      %v = arith.mulf %a, %ten : f32
      memref.store %v, %x[%i] : memref<256xf32>
      gpu.return
    }
  }
  func.func @three_steps(%x: memref<256xf32>, %distance: index) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @steps::@first_step blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<256xf32>)
    gpu.launch_func @steps::@second_step blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<256xf32>, %distance : index)
    gpu.launch_func @steps::@third_step blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<256xf32>)
    return
  }
}
