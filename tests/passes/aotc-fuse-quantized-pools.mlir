// RUN: aotc-fuse-quantized-pools
#rows = affine_map<(c, i, j) -> (c, i)>
#all = affine_map<(c, i) -> (c, i)>
#windows = affine_map<(c, i, j) -> (c, i * 2 + j)>
#apart = affine_map<(c, i, j) -> (c, i + j * 2)>
#window = affine_map<(c, i, j) -> (j)>

func.func @padded(%bytes: tensor<4x20xi8>, %window: tensor<3xf32>) -> tensor<4x10xf32> {
  %scale = arith.constant 2.500000e-01 : f32
  %zero = arith.constant 1.000000e+02 : f32
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %image = tensor.empty() : tensor<4x20xf32>
  %floats = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%bytes : tensor<4x20xi8>) outs(%image : tensor<4x20xf32>) {
  ^bb0(%x: i8, %old: f32):
    %wide = arith.uitofp %x : i8 to f32
    %moved = arith.subf %wide, %zero : f32
    %scaled = arith.mulf %moved, %scale : f32
    linalg.yield %scaled : f32
  } -> tensor<4x20xf32>
  %large = tensor.empty() : tensor<4x22xf32>
  %padded = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]}
      outs(%large : tensor<4x22xf32>) {
  ^bb0(%old: f32):
    %c = linalg.index 0 : index
    %i = linalg.index 1 : index
    %place = arith.subi %i, %c1 : index
    %is_there = arith.cmpi ult, %place, %c20 : index
    %at = arith.select %is_there, %place, %c0 : index
    %element = tensor.extract %floats[%c, %at] : tensor<4x20xf32>
    %value = arith.select %is_there, %element, %least : f32
    linalg.yield %value : f32
  } -> tensor<4x22xf32>
  %empty = tensor.empty() : tensor<4x10xf32>
  %start = linalg.generic {indexing_maps = [affine_map<(c, i) -> ()>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%least : f32) outs(%empty : tensor<4x10xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<4x10xf32>
  %pooled = linalg.generic {indexing_maps = [#windows, #window, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%padded, %window : tensor<4x22xf32>, tensor<3xf32>) outs(%start : tensor<4x10xf32>) {
  ^bb0(%x: f32, %w: f32, %old: f32):
    %most = arith.maximumf %old, %x : f32
    linalg.yield %most : f32
  } -> tensor<4x10xf32>
  return %pooled : tensor<4x10xf32>
}

// Windows of two elements, two apart: the first one is padding alone, whose maximum is -inf.
func.func @apart(%bytes: tensor<4x20xi8>, %window: tensor<2xf32>) -> tensor<4x20xf32> {
  %scale = arith.constant 2.500000e-01 : f32
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c20 = arith.constant 20 : index
  %image = tensor.empty() : tensor<4x20xf32>
  %floats = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%bytes : tensor<4x20xi8>) outs(%image : tensor<4x20xf32>) {
  ^bb0(%x: i8, %old: f32):
    %wide = arith.sitofp %x : i8 to f32
    %scaled = arith.mulf %wide, %scale : f32
    linalg.yield %scaled : f32
  } -> tensor<4x20xf32>
  %large = tensor.empty() : tensor<4x23xf32>
  %padded = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]}
      outs(%large : tensor<4x23xf32>) {
  ^bb0(%old: f32):
    %c = linalg.index 0 : index
    %i = linalg.index 1 : index
    %place = arith.subi %i, %c3 : index
    %is_there = arith.cmpi ult, %place, %c20 : index
    %at = arith.select %is_there, %place, %c0 : index
    %element = tensor.extract %floats[%c, %at] : tensor<4x20xf32>
    %value = arith.select %is_there, %element, %least : f32
    linalg.yield %value : f32
  } -> tensor<4x23xf32>
  %empty = tensor.empty() : tensor<4x20xf32>
  %start = linalg.generic {indexing_maps = [affine_map<(c, i) -> ()>, #all], iterator_types = ["parallel", "parallel"]}
      ins(%least : f32) outs(%empty : tensor<4x20xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<4x20xf32>
  %pooled = linalg.generic {indexing_maps = [#apart, #window, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%padded, %window : tensor<4x23xf32>, tensor<2xf32>) outs(%start : tensor<4x20xf32>) {
  ^bb0(%x: f32, %w: f32, %old: f32):
    %most = arith.maximumf %old, %x : f32
    linalg.yield %most : f32
  } -> tensor<4x20xf32>
  return %pooled : tensor<4x20xf32>
}

// Of no elements, the maximum is -inf.
func.func @of_any_size(%bytes: tensor<4x?xi8>, %size: index) -> tensor<4xf32> {
  %scale = arith.constant 2.500000e-01 : f32
  %least = arith.constant 0xFF800000 : f32
  %image = tensor.empty(%size) : tensor<4x?xf32>
  %floats = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%bytes : tensor<4x?xi8>) outs(%image : tensor<4x?xf32>) {
  ^bb0(%x: i8, %old: f32):
    %wide = arith.sitofp %x : i8 to f32
    %scaled = arith.mulf %wide, %scale : f32
    linalg.yield %scaled : f32
  } -> tensor<4x?xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %start = linalg.generic {indexing_maps = [affine_map<(c) -> ()>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%least : f32) outs(%empty : tensor<4xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  %largest = linalg.generic {indexing_maps = [#all, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%floats : tensor<4x?xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%x: f32, %old: f32):
    %most = arith.maximumf %old, %x : f32
    linalg.yield %most : f32
  } -> tensor<4xf32>
  return %largest : tensor<4xf32>
}

// CHECK-LABEL: @padded
// CHECK: arith.select {{.*}} : i8
// CHECK: linalg.yield {{.*}} : i8
// CHECK: arith.maxui {{.*}} : i8
// CHECK: arith.uitofp
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK-LABEL: @apart
// CHECK: arith.maximumf
// CHECK-LABEL: @of_any_size
// CHECK: arith.maximumf
