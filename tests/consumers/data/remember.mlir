// An entry that adds to a sum and counts, and one that writes a row of a cache: two entries with one
// state.
#id = affine_map<(d0) -> (d0)>
func.func @add(%x: tensor<4xf32>,
               %sum: tensor<4xf32> {aotc.state = "sum",
                                    aotc.initial = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>},
               %count: tensor<1xi64> {aotc.state = "count",
                                      aotc.initial = dense<7> : tensor<1xi64>})
    -> (tensor<4xf32> {aotc.into = 1}, tensor<1xi64> {aotc.into = 2}, tensor<4xf32>)
    attributes {llvm.emit_c_interface} {
  %new = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%sum : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %next = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]}
      outs(%count : tensor<1xi64>) {
  ^bb0(%b: i64):
    %one = arith.constant 1 : i64
    %s = arith.addi %b, %one : i64
    linalg.yield %s : i64
  } -> tensor<1xi64>
  return %new, %next, %sum : tensor<4xf32>, tensor<1xi64>, tensor<4xf32>
}

func.func @put(%row: memref<2x1x3xf32>, %at: index,
               %cache: memref<2x5x3xf32> {aotc.state = "cache"})
    attributes {llvm.emit_c_interface} {
  %place = memref.subview %cache[0, %at, 0] [2, 1, 3] [1, 1, 1]
      : memref<2x5x3xf32> to memref<2x1x3xf32, strided<[15, 3, 1], offset: ?>>
  memref.copy %row, %place
      : memref<2x1x3xf32> to memref<2x1x3xf32, strided<[15, 3, 1], offset: ?>>
  return
}
