// RUN: aotc-slice-gathered,aotc-slice-producers,canonicalize
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
#matrix = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>

// Of 512 relative positions, 16 rows read 31: they are computed from a bucket of the distance, which
// is the distance itself, as all are near.
func.func @distances(%x: tensor<16x8xf32>, %p: tensor<512x8xf32>, %start: tensor<16x512xf32>,
                     %out: tensor<16x16xf32>, %at: tensor<16xi64>, %of: tensor<16x16xi64>) -> tensor<16x16xf32> {
  %zero = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %near = arith.constant 128 : i64
  %half = arith.constant 256 : i64
  %most = arith.constant 511 : i64
  %scores = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %p : tensor<16x8xf32>, tensor<512x8xf32>) outs(%start : tensor<16x512xf32>) {
  ^bb0(%r: f32, %s: f32, %sum: f32):
    %0 = arith.mulf %r, %s : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16x512xf32>
  %positions = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%at : tensor<16xi64>) {
  ^bb0(%old: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    linalg.yield %1 : i64
  } -> tensor<16xi64>
  %buckets = linalg.generic {indexing_maps = [#rows, #columns, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%positions, %positions : tensor<16xi64>, tensor<16xi64>) outs(%of : tensor<16x16xi64>) {
  ^bb0(%q: i64, %k: i64, %old: i64):
    %distance = arith.subi %q, %k : i64
    %size = math.absi %distance : i64
    %is_near = arith.cmpi sle, %size, %near : i64
    %exact = arith.sitofp %distance : i64 to f32
    %far = math.log %exact : f32
    %bucket = arith.select %is_near, %exact, %far : f32
    %number = arith.fptosi %bucket : f32 to i64
    linalg.yield %number : i64
  } -> tensor<16x16xi64>
  %read = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%buckets : tensor<16x16xi64>) outs(%out : tensor<16x16xf32>) {
  ^bb0(%bucket: i64, %old: f32):
    %i = linalg.index 0 : index
    %moved = arith.addi %bucket, %half : i64
    %least = arith.maxsi %moved, %zero : i64
    %position = arith.minsi %least, %most : i64
    %index = arith.index_cast %position : i64 to index
    %is_valid = arith.cmpi ult, %index, %c512 : index
    %j = arith.select %is_valid, %index, %c0 {aotc.check = "an index is out of bounds"} : index
    %one = tensor.extract %scores[%i, %j] : tensor<16x512xf32>
    linalg.yield %one : f32
  } -> tensor<16x16xf32>
  return %read : tensor<16x16xf32>
}

// CHECK-LABEL: @distances
// CHECK: %[[P:.*]] = tensor.extract_slice %{{.*}}[241, 0] [32, 8] [1, 1]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %[[P]] : tensor<16x8xf32>, tensor<32x8xf32>)
// CHECK: %[[J:.*]] = arith.subi %{{.*}}, %c241 : index
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %[[J]]] : tensor<16x32xf32>

// Any of the 64 rows may be read by an index of the caller; the columns are those of the loop.
func.func @given(%x: tensor<64x64xf32>, %at: tensor<8xi32>, %out: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %doubled = linalg.generic {indexing_maps = [#matrix], iterator_types = ["parallel", "parallel"]}
      outs(%x : tensor<64x64xf32>) {
  ^bb0(%old: f32):
    %0 = arith.addf %old, %old : f32
    linalg.yield %0 : f32
  } -> tensor<64x64xf32>
  %read = linalg.generic {indexing_maps = [#rows, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<8xi32>) outs(%out : tensor<8x4xf32>) {
  ^bb0(%row: i32, %old: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %one = tensor.extract %doubled[%i, %j] : tensor<64x64xf32>
    linalg.yield %one : f32
  } -> tensor<8x4xf32>
  return %read : tensor<8x4xf32>
}

// CHECK-LABEL: @given
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<64x16xf32>)
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<64x16xf32>

// Indices of the caller may be any, and all of the result is computed.
func.func @any(%x: tensor<64xf32>, %at: tensor<8xi32>, %out: tensor<8xf32>) -> tensor<8xf32> {
  %doubled = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<64xf32>) {
  ^bb0(%old: f32):
    %0 = arith.addf %old, %old : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %read = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%at : tensor<8xi32>) outs(%out : tensor<8xf32>) {
  ^bb0(%row: i32, %old: f32):
    %i = arith.index_cast %row : i32 to index
    %one = tensor.extract %doubled[%i] : tensor<64xf32>
    linalg.yield %one : f32
  } -> tensor<8xf32>
  return %read : tensor<8xf32>
}

// CHECK-LABEL: @any
// CHECK-NOT: extract_slice
// CHECK: tensor.extract %{{.*}}[%{{.*}}] : tensor<64xf32>
