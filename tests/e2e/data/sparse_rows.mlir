// Rows of different lengths, which memory holds: reductions of several types and kinds.
#CSR = #sparse_tensor.encoding<{
  map = (i, j) -> (i : dense, j : compressed), posWidth = 32, crdWidth = 32
}>
#CSR64 = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>

func.func @f32(%a: tensor<?x?xf32, #CSR>, %x: tensor<?xf32>, %y: tensor<?xf32>)
    -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<?x?xf32, #CSR>, tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @f64(%a: tensor<?x?xf64, #CSR64>, %x: tensor<?xf64>, %y: tensor<?xf64>)
    -> tensor<?xf64> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<?x?xf64, #CSR64>, tensor<?xf64>) outs(%y : tensor<?xf64>) -> tensor<?xf64>
  return %r : tensor<?xf64>
}

func.func @f16(%a: tensor<?x?xf16, #CSR>, %x: tensor<?xf16>, %y: tensor<?xf16>)
    -> tensor<?xf16> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%y : tensor<?xf16>) -> tensor<?xf16>
  return %r : tensor<?xf16>
}

func.func @i64(%a: tensor<?x?xi64, #CSR>, %x: tensor<?xi64>, %y: tensor<?xi64>)
    -> tensor<?xi64> attributes {llvm.emit_c_interface} {
  %r = linalg.matvec ins(%a, %x : tensor<?x?xi64, #CSR>, tensor<?xi64>) outs(%y : tensor<?xi64>) -> tensor<?xi64>
  return %r : tensor<?xi64>
}

// The largest product of a row.
func.func @max(%a: tensor<?x?xf32, #CSR>, %x: tensor<?xf32>, %y: tensor<?xf32>)
    -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %low = arith.constant 0xFF800000 : f32
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%a, %x : tensor<?x?xf32, #CSR>, tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%v: f32, %w: f32, %old: f32):
    %p = sparse_tensor.binary %v, %w : f32, f32 to f32
      overlap = {
      ^bb0(%s: f32, %t: f32):
        %m = arith.mulf %s, %t : f32
        sparse_tensor.yield %m : f32
      }
      left = {}
      right = {}
    %m = sparse_tensor.reduce %old, %p, %low : f32 {
    ^bb0(%s: f32, %t: f32):
      %n = arith.maximumf %s, %t : f32
      sparse_tensor.yield %n : f32
    }
    linalg.yield %m : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// The smallest element of a row.
func.func @min(%a: tensor<?x?xi32, #CSR>, %y: tensor<?xi32>)
    -> tensor<?xi32> attributes {llvm.emit_c_interface} {
  %high = arith.constant 2147483647 : i32
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%a : tensor<?x?xi32, #CSR>) outs(%y : tensor<?xi32>) {
  ^bb0(%v: i32, %old: i32):
    %m = sparse_tensor.reduce %old, %v, %high : i32 {
    ^bb0(%s: i32, %t: i32):
      %n = arith.minsi %s, %t : i32
      sparse_tensor.yield %n : i32
    }
    linalg.yield %m : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}
