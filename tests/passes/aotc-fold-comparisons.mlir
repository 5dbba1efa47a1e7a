// RUN: aotc-fold-comparisons,canonicalize
// The indices are from a table whose elements are in bounds, or negative.
func.func @table(%rows: tensor<4xi64>, %values: tensor<8xf32>) -> tensor<4xf32> {
  %table = arith.constant dense<[0, 7, 2, 1, 5]> : tensor<5xi64>
  %zero = arith.constant 0 : i64
  %size = arith.constant 8 : i64
  %first = arith.constant 0 : index
  %count = arith.constant 5 : index
  %extent = arith.constant 8 : index
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%rows : tensor<4xi64>) outs(%empty : tensor<4xf32>) {
  ^bb0(%row: i64, %out: f32):
    %at = arith.index_cast %row : i64 to index
    %is_in = arith.cmpi ult, %at, %count : index
    %checked = arith.select %is_in, %at, %first {aotc.check = "row"} : index
    %number = tensor.extract %table[%checked] : tensor<5xi64>
    %is_negative = arith.cmpi slt, %number, %zero : i64
    %from_end = arith.addi %number, %size : i64
    %wrapped = arith.select %is_negative, %from_end, %number : i64
    %place = arith.index_cast %wrapped : i64 to index
    %is_inside = arith.cmpi ult, %place, %extent : index
    %inside = arith.select %is_inside, %place, %first {aotc.check = "value"} : index
    %value = tensor.extract %values[%inside] : tensor<8xf32>
    linalg.yield %value : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @table
// CHECK:      %[[ROW:.*]] = arith.select {{.*}} {aotc.check = "row"} : index
// CHECK-NEXT: %[[NUMBER:.*]] = tensor.extract {{.*}}[%[[ROW]]] : tensor<5xi64>
// CHECK-NEXT: %[[PLACE:.*]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK-NEXT: tensor.extract %arg1[%[[PLACE]]] : tensor<8xf32>

// A check that always fails becomes an assertion; one that fails for some elements remains.
func.func @fails(%rows: tensor<4xi1>, %values: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %table = arith.constant dense<[8, 9]> : tensor<2xi64>
  %partly = arith.constant dense<[7, 8]> : tensor<2xi64>
  %first = arith.constant 0 : index
  %extent = arith.constant 8 : index
  %empty = tensor.empty() : tensor<4xf32>
  %y:2 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%rows : tensor<4xi1>) outs(%empty, %empty : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%row: i1, %out: f32, %other: f32):
    %at = arith.index_castui %row : i1 to index
    %number = tensor.extract %table[%at] : tensor<2xi64>
    %place = arith.index_cast %number : i64 to index
    %is_inside = arith.cmpi ult, %place, %extent : index
    %inside = arith.select %is_inside, %place, %first {aotc.check = "always"} : index
    %value = tensor.extract %values[%inside] : tensor<8xf32>
    %number2 = tensor.extract %partly[%at] : tensor<2xi64>
    %place2 = arith.index_cast %number2 : i64 to index
    %is_inside2 = arith.cmpi ult, %place2, %extent : index
    %inside2 = arith.select %is_inside2, %place2, %first {aotc.check = "sometimes"} : index
    %value2 = tensor.extract %values[%inside2] : tensor<8xf32>
    linalg.yield %value, %value2 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %y#0, %y#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @fails
// CHECK: cf.assert %false, "always"
// CHECK: aotc.check = "sometimes"

// Equal elements, which fusion moves into the body. The second is before the first element, for any
// size.
func.func @splats(%values: tensor<?xf32>) -> tensor<2xf32> {
  %table = arith.constant dense<8> : tensor<2xi64>
  %before = arith.constant dense<-1> : tensor<2xi64>
  %first = arith.constant 0 : index
  %extent = arith.constant 8 : index
  %empty = tensor.empty() : tensor<2xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%table, %before : tensor<2xi64>, tensor<2xi64>) outs(%empty : tensor<2xf32>) {
  ^bb0(%number: i64, %number2: i64, %out: f32):
    %place = arith.index_cast %number : i64 to index
    %is_inside = arith.cmpi ult, %place, %extent : index
    %inside = arith.select %is_inside, %place, %first {aotc.check = "behind"} : index
    %value = tensor.extract %values[%inside] : tensor<?xf32>
    %place2 = arith.index_cast %number2 : i64 to index
    %is_inside2 = arith.cmpi ult, %place2, %extent : index
    %inside2 = arith.select %is_inside2, %place2, %first {aotc.check = "before"} : index
    %value2 = tensor.extract %values[%inside2] : tensor<?xf32>
    %sum = arith.addf %value, %value2 : f32
    linalg.yield %sum : f32
  } -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: @splats
// CHECK: cf.assert %false, "behind"
// CHECK: cf.assert %false, "before"
