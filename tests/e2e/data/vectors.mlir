// What few programs have of vectors: each function prints what it computes.
module attributes {gpu.container_module} {
gpu.module @by_hand {
  gpu.func @masks(%from: memref<?x?xf32>, %to: memref<3x7xf32>, %sums: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %pad = arith.constant -1.0 : f32
    %m = vector.create_mask %c2, %c5 : vector<4x8xi1>
    %v = vector.mask %m {
      vector.transfer_read %from[%c0, %c0], %pad {in_bounds = [true, true]}
        : memref<?x?xf32>, vector<4x8xf32>
    } : vector<4x8xi1> -> vector<4x8xf32>
    %w = arith.addf %v, %v : vector<4x8xf32>
    vector.mask %m {
      vector.transfer_write %w, %to[%c0, %c0] {in_bounds = [true, true]}
        : vector<4x8xf32>, memref<3x7xf32>
    } : vector<4x8xi1>
    %x = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0],
                               [10.0, 11.0, 12.0]]> : vector<4x3xf32>
    %hundred = arith.constant dense<100.0> : vector<4xf32>
    %corner = vector.create_mask %c3, %c2 : vector<4x3xi1>
    %rows = vector.mask %corner {
      vector.multi_reduction <add>, %x, %hundred [1] : vector<4x3xf32> to vector<4xf32>
    } : vector<4x3xi1> -> vector<4xf32>
    %zeros = arith.constant dense<0.0> : vector<3xf32>
    %largest = vector.multi_reduction <maximumf>, %x, %zeros [0] : vector<4x3xf32> to vector<3xf32>
    %scanned, %end = vector.scan <add>, %x, %zeros {inclusive = true, reduction_dim = 0}
      : vector<4x3xf32>, vector<3xf32>
    %both = arith.addf %largest, %end : vector<3xf32>
    %one = vector.extract %both[1] : f32 from vector<3xf32>
    %all = vector.broadcast %one : f32 to vector<4xf32>
    %result = arith.addf %rows, %all : vector<4xf32>
    vector.transfer_write %result, %sums[%c0] {in_bounds = [true]} : vector<4xf32>, memref<4xf32>
    gpu.return
  }
  gpu.func @barriers(%to: memref<64x4xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %five = arith.constant 5 : i32
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    %rest = arith.remui %number, %five : i32
    %and = nvvm.barrier.reduction #nvvm.reduction<and> %rest -> i32
    %or = nvvm.barrier.reduction #nvvm.reduction<or> %rest -> i32
    %count = nvvm.barrier.reduction #nvvm.reduction<popc> %rest -> i32
    %elected = nvvm.elect.sync -> i1
    %first = arith.extui %elected : i1 to i32
    memref.store %and, %to[%thread, %c0] : memref<64x4xi32>
    memref.store %or, %to[%thread, %c1] : memref<64x4xi32>
    memref.store %count, %to[%thread, %c2] : memref<64x4xi32>
    memref.store %first, %to[%thread, %c3] : memref<64x4xi32>
    gpu.return
  }
}

func.func @masks_in_a_kernel_by_hand() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %pad = arith.constant 0.0 : f32
  %a = gpu.alloc host_shared () : memref<3x7xf32>
  %b = gpu.alloc host_shared () : memref<3x7xf32>
  %s = gpu.alloc host_shared () : memref<4xf32>
  %twos = arith.constant dense<2.0> : vector<3x7xf32>
  %ones = arith.constant dense<1.0> : vector<3x7xf32>
  vector.transfer_write %twos, %a[%c0, %c0] {in_bounds = [true, true]}
    : vector<3x7xf32>, memref<3x7xf32>
  vector.transfer_write %ones, %b[%c0, %c0] {in_bounds = [true, true]}
    : vector<3x7xf32>, memref<3x7xf32>
  %d = memref.cast %a : memref<3x7xf32> to memref<?x?xf32>
  gpu.launch_func @by_hand::@masks blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    args(%d : memref<?x?xf32>, %b : memref<3x7xf32>, %s : memref<4xf32>)
  %r = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]}
    : memref<3x7xf32>, vector<3x7xf32>
  vector.print %r : vector<3x7xf32>
  %t = vector.transfer_read %s[%c0], %pad {in_bounds = [true]} : memref<4xf32>, vector<4xf32>
  vector.print %t : vector<4xf32>
  return
}

func.func @warps() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c66 = arith.constant 66 : index
  %z = arith.constant 0.0 : f32
  %a = gpu.alloc host_shared () : memref<128xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %lane = arith.remui %tx, %c32 : index
    %i = arith.index_cast %tx : index to i32
    %f = arith.sitofp %i : i32 to f32
    %two = arith.constant 2.0 : f32
    %g = arith.mulf %f, %two : f32
    %own = vector.from_elements %f, %g : vector<2xf32>
    %r:3 = gpu.warp_execute_on_lane_0(%lane)[32] args(%own : vector<2xf32>)
        -> (vector<2xf32>, f32, index) {
    ^bb0(%v: vector<64xf32>):
      %s = vector.reduction <add>, %v : vector<64xf32> into f32
      %d = arith.addf %v, %v : vector<64xf32>
      gpu.yield %d, %s, %tx : vector<64xf32>, f32, index
    }
    %e0 = vector.extract %r#0[0] : f32 from vector<2xf32>
    %e1 = vector.extract %r#0[1] : f32 from vector<2xf32>
    %t0 = arith.addf %e0, %r#1 : f32
    %ix = arith.index_cast %r#2 : index to i32
    %fx = arith.sitofp %ix : i32 to f32
    %t1 = arith.addf %e1, %fx : f32
    %p = arith.muli %tx, %c2 : index
    %p1 = arith.addi %p, %c1 : index
    memref.store %t0, %a[%p] : memref<128xf32>
    memref.store %t1, %a[%p1] : memref<128xf32>
    gpu.warp_execute_on_lane_0(%lane)[32] {
      memref.store %t1, %a[%p] : memref<128xf32>
    }
    gpu.terminator
  }
  // Threads 32 (lane 0) and 33.
  %v = vector.transfer_read %a[%c64], %z {in_bounds = [true]} : memref<128xf32>, vector<4xf32>
  vector.print %v : vector<4xf32>
  return
}

func.func @prints_and_barriers() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant 0 : i32
  %b = gpu.alloc host_shared () : memref<64x4xi32>
  gpu.launch_func @by_hand::@barriers blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
    args(%b : memref<64x4xi32>)
  %r = vector.transfer_read %b[%c31, %c0], %z {in_bounds = [true, true]}
    : memref<64x4xi32>, vector<2x4xi32>
  vector.print %r : vector<2x4xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %floats = arith.constant dense<[[1.5, -2.0], [3.0, 1.0e10]]> : vector<2x2xf32>
    vector.print %floats : vector<2x2xf32>
    %small = arith.constant -3 : i8
    vector.print %small : i8 punctuation <comma>
    vector.print %tx : index
    vector.print str "100 %d\n"
    %bits = arith.constant dense<[true, false, true, false, true, false, true, false, true,
      true, true, true, true, true, true, true, true, true, true, true, true, true, true, true,
      true, true, true, true, true, true, true, true, true, false]> : vector<34xi1>
    vector.print %bits : vector<34xi1>
    %single = arith.constant dense<0.5> : vector<f16>
    vector.print %single : vector<f16>
    gpu.terminator
  }
  return
}

func.func @bits_in_memory() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %t = arith.constant true
  %a = memref.alloc() : memref<8xi1>
  %given = arith.constant dense<[false, true, false, true, false, true, true, false]> : vector<8xi1>
  vector.store %given, %a[%c0] : memref<8xi1>, vector<8xi1>
  memref.store %t, %a[%c0] : memref<8xi1>
  %one = memref.load %a[%c3] : memref<8xi1>
  vector.print %one : i1
  %behind = vector.transfer_read %a[%c3], %t : memref<8xi1>, vector<8xi1>
  vector.print %behind : vector<8xi1>
  %masked = vector.maskedload %a[%c0], %given, %behind
    : memref<8xi1>, vector<8xi1>, vector<8xi1> into vector<8xi1>
  vector.print %masked : vector<8xi1>
  %b = memref.alloc() : memref<2x3xi4>
  %nibbles = arith.constant dense<[[1, -2, 3], [-4, 5, -6]]> : vector<2x3xi4>
  vector.transfer_write %nibbles, %b[%c0, %c0] {in_bounds = [true, true]}
    : vector<2x3xi4>, memref<2x3xi4>
  %nibble = memref.load %b[%c1, %c0] : memref<2x3xi4>
  vector.print %nibble : i4
  %zero = arith.constant 0 : i4
  %turned = vector.transfer_read %b[%c0, %c0], %zero {in_bounds = [true, true],
    permutation_map = affine_map<(i, j) -> (j, i)>} : memref<2x3xi4>, vector<3x2xi4>
  vector.print %turned : vector<3x2xi4>
  memref.dealloc %a : memref<8xi1>
  memref.dealloc %b : memref<2x3xi4>
  return
}

func.func @scans_and_matrices() {
  %small = arith.constant dense<[0.5, -3.0, 448.0]> : vector<3xf8E4M3FN>
  vector.print %small : vector<3xf8E4M3FN>
  %x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : vector<3x2xf32>
  %y = arith.constant dense<[6.0, 6.0]> : vector<2xf32>
  %inclusive:2 = vector.scan <add>, %x, %y {inclusive = true, reduction_dim = 0}
    : vector<3x2xf32>, vector<2xf32>
  vector.print %inclusive#0 : vector<3x2xf32>
  %exclusive:2 = vector.scan <mul>, %x, %y {inclusive = false, reduction_dim = 0}
    : vector<3x2xf32>, vector<2xf32>
  vector.print %exclusive#0 : vector<3x2xf32>
  // By columns.
  %a = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
  %b = arith.constant dense<[1.0, 1.0, 10.0, 100.0]> : vector<4xf32>
  %c = llvm.intr.matrix.multiply %a, %b
    {lhs_rows = 2 : i32, lhs_columns = 2 : i32, rhs_columns = 2 : i32}
    : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  vector.print %c : vector<4xf32>
  return
}

memref.global "private" constant @numbers : memref<2x8xi8> =
  dense<[[1, 2, 3, 30, 31, 16, 8, 21], [5, 10, 20, 9, 18, 4, 0, 29]]>
memref.global "private" constant @left : memref<8xi64> = dense<[7, 1, -5, 9, 9, 0, 1, 30]>
memref.global "private" constant @right : memref<8xi64> = dense<[9, 2, 1, 1, 1, -5, 4, 8]>

// Elements of 5 bits, and the same bits as bytes; what two vectors have in common.
func.func @bits_of_vectors() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i8
  %numbers = memref.get_global @numbers : memref<2x8xi8>
  %v = vector.transfer_read %numbers[%c0, %c0], %zero {in_bounds = [true, true]}
    : memref<2x8xi8>, vector<2x8xi8>
  %five = arith.trunci %v : vector<2x8xi8> to vector<2x8xi5>
  %bytes = vector.bitcast %five : vector<2x8xi5> to vector<2x5xi8>
  vector.print %bytes : vector<2x5xi8>
  %buffer = gpu.alloc host_shared () : memref<8xi8>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %row = vector.extract %bytes[1] : vector<5xi8> from vector<2x5xi8>
    %again = vector.bitcast %row : vector<5xi8> to vector<8xi5>
    %wide = arith.extui %again : vector<8xi5> to vector<8xi8>
    vector.store %wide, %buffer[%tx] : memref<8xi8>, vector<8xi8>
    gpu.terminator
  }
  %same = vector.load %buffer[%c0] : memref<8xi8>, vector<8xi8>
  vector.print %same : vector<8xi8>
  gpu.dealloc %buffer : memref<8xi8>
  %left = memref.get_global @left : memref<8xi64>
  %right = memref.get_global @right : memref<8xi64>
  %a = vector.load %left[%c0] : memref<8xi64>, vector<8xi64>
  %b = vector.load %right[%c0] : memref<8xi64>, vector<8xi64>
  %in_b, %in_a = x86.avx512.vp2intersect %a, %b : vector<8xi64>
  vector.print %in_b : vector<8xi1>
  vector.print %in_a : vector<8xi1>
  return
}

func.func @main() {
  call @masks_in_a_kernel_by_hand() : () -> ()
  call @warps() : () -> ()
  call @prints_and_barriers() : () -> ()
  call @bits_in_memory() : () -> ()
  call @scans_and_matrices() : () -> ()
  call @bits_of_vectors() : () -> ()
  return
}
}
