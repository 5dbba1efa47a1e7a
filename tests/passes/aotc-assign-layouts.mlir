// RUN: aotc-assign-layouts
#image = affine_map<(n, f, y, x, c, q, r) -> (n, c, y + q, x + r)>
#filter = affine_map<(n, f, y, x, c, q, r) -> (f, c, q, r)>
#result = affine_map<(n, f, y, x, c, q, r) -> (n, f, y, x)>
#all = affine_map<(n, f, y, x) -> (n, f, y, x)>
#none = affine_map<(n, f, y, x) -> ()>

memref.global "private" constant @joined : memref<8x16x1x2xf16> = dense<1.0>
memref.global "private" constant @filter : memref<8x8x1x2xf16> = dense<1.0>
memref.global "private" constant @of_rows : memref<8x8x1x2xf16> = dense<1.0>
memref.global "private" constant @of_rows_last : memref<1x2x8x8xf16> = dense<1.0>
memref.global "private" constant @sliced : memref<8x16x1x2xf16> = dense<1.0>
memref.global "private" constant @single : memref<8x3x3xf16> = dense<1.0>
memref.global "private" constant @depthwise : memref<8x2x3xf16> = dense<1.0>
memref.global "private" constant @depthwise_of_images : memref<8x2x3xf16> = dense<1.0>
memref.global "private" constant @product_of_channels : memref<8x8xf16> = dense<1.0>
memref.global "private" constant @grouped : memref<2x8x8x3xf16> = dense<1.0>
memref.global "private" constant @grouped_by_four : memref<4x8x4x3xf16> = dense<1.0>
memref.global "private" constant @grouped_by_two : memref<4x8x2x3xf16> = dense<1.0>
memref.global "private" constant @colours : memref<8x3x1x2xf16> = dense<1.0>
memref.global "private" constant @wide : memref<8x8x1x2xf32> = dense<1.0>

// What is written before a convolution and behind it is so with the channels last, as the filter
// is; arguments stay as they are.
func.func @convolution(%x: memref<2x8x6x7xf16>, %z: memref<2x8x6x6xf16>) {
  %zero = arith.constant 0.0 : f16
  %w = memref.get_global @filter : memref<8x8x1x2xf16>
  %image = memref.alloc() : memref<2x8x6x7xf16>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%image : memref<2x8x6x7xf16>) {
  ^bb0(%old: f16):
    %n = linalg.index 0 : index
    %f = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %read = memref.load %x[%n, %f, %i, %j] : memref<2x8x6x7xf16>
    linalg.yield %read : f16
  }
  %y = memref.alloc() : memref<2x8x6x6xf16>
  linalg.generic {indexing_maps = [#none, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f16) outs(%y : memref<2x8x6x6xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x6x7xf16>, memref<8x8x1x2xf16>) outs(%y : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  %flat = memref.collapse_shape %y [[0], [1], [2, 3]] : memref<2x8x6x6xf16> into memref<2x8x36xf16>
  %out = memref.collapse_shape %z [[0], [1], [2, 3]] : memref<2x8x6x6xf16> into memref<2x8x36xf16>
  linalg.generic {indexing_maps = [affine_map<(n, f, p) -> (n, f, p)>, affine_map<(n, f, p) -> (n, f, p)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%flat : memref<2x8x36xf16>) outs(%out : memref<2x8x36xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  memref.dealloc %image : memref<2x8x6x7xf16>
  memref.dealloc %y : memref<2x8x6x6xf16>
  return
}
// CHECK-DAG:   #[[LAST:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
// CHECK-DAG:   #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2 + d5, d3 + d6, d4)>
// CHECK-DAG:   #[[FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d5, d6, d4)>
// CHECK:       memref.global "private" constant @[[ORDERED:.*]] : memref<8x1x2x8xf16> = dense<1.0
// CHECK-NOT:   @filter :
// CHECK-LABEL: func.func @convolution(%{{.*}}: memref<2x8x6x7xf16>, %{{.*}}: memref<2x8x6x6xf16>)
// CHECK:         %[[W:.*]] = memref.get_global @[[ORDERED]]
// CHECK:         %[[X:.*]] = memref.alloc() : memref<2x6x7x8xf16>
// CHECK:         linalg.generic {indexing_maps = [#[[LAST]]]
// CHECK-SAME:      outs(%[[X]] :
// CHECK:         %[[Y:.*]] = memref.alloc() : memref<2x6x6x8xf16>
// CHECK:         linalg.generic {indexing_maps = [#[[IMAGE]], #[[FILTER]],
// CHECK-SAME:      ins(%[[X]], %[[W]] :
// CHECK-SAME:      outs(%[[Y]] :
// CHECK:         memref.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3]]

// Products of f32 have no tensor cores.
func.func @f32(%x: memref<2x8x6x7xf32>, %z: memref<2x8x6x6xf32>) {
  %w = memref.get_global @wide : memref<8x8x1x2xf32>
  %image = memref.alloc() : memref<2x8x6x7xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x8x6x7xf32>) outs(%image : memref<2x8x6x7xf32>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x6x7xf32>, memref<8x8x1x2xf32>) outs(%z : memref<2x8x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %product = arith.mulf %a, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }
  memref.dealloc %image : memref<2x8x6x7xf32>
  return
}
// CHECK-LABEL: func.func @f32
// CHECK:         memref.alloc() : memref<2x8x6x7xf32>

// A filter of single channels is read beside an image whose channels are last.
func.func @single_channels(%x: memref<2x8x6x7xf16>, %z: memref<2x8x6x6xf16>) {
  %w = memref.get_global @filter : memref<8x8x1x2xf16>
  %s = memref.get_global @single : memref<8x3x3xf16>
  %image = memref.alloc() : memref<2x8x8x9xf16>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%image : memref<2x8x8x9xf16>) {
  ^bb0(%old: f16):
    %zero = arith.constant 0.0 : f16
    linalg.yield %zero : f16
  }
  %y = memref.alloc() : memref<2x8x6x7xf16>
  linalg.generic {indexing_maps = [affine_map<(n, f, y, x, q, r) -> (n, f, y + q, x + r)>, affine_map<(n, f, y, x, q, r) -> (f, q, r)>, affine_map<(n, f, y, x, q, r) -> (n, f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %s : memref<2x8x8x9xf16>, memref<8x3x3xf16>) outs(%y : memref<2x8x6x7xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%y, %w : memref<2x8x6x7xf16>, memref<8x8x1x2xf16>) outs(%z : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<2x8x8x9xf16>
  memref.dealloc %y : memref<2x8x6x7xf16>
  return
}
// CHECK-LABEL: func.func @single_channels
// CHECK:         memref.get_global @single_ordered : memref<3x3x8xf16>
// CHECK:         memref.alloc() : memref<2x8x9x8xf16>
// CHECK:         memref.alloc() : memref<2x6x7x8xf16>

// Rows of channels that are read as an image are channels-last as they are. A filter whose channels
// are last stays.
func.func @rows(%x: memref<2x6x7x8xf16>, %z: memref<2x8x6x6xf16>, %v: memref<2x8x6x6xf16>) {
  %w = memref.get_global @of_rows : memref<8x8x1x2xf16>
  %u = memref.get_global @of_rows_last : memref<1x2x8x8xf16>
  linalg.generic {indexing_maps = [affine_map<(n, f, y, x, c, q, r) -> (n, y + q, x + r, c)>, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<2x6x7x8xf16>, memref<8x8x1x2xf16>) outs(%z : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, f, y, x, c, q, r) -> (n, y + q, x + r, c)>, affine_map<(n, f, y, x, c, q, r) -> (q, r, c, f)>, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %u : memref<2x6x7x8xf16>, memref<1x2x8x8xf16>) outs(%v : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  return
}
// CHECK-LABEL: func.func @rows
// CHECK:         memref.get_global @of_rows_ordered : memref<8x1x2x8xf16>
// CHECK:         memref.get_global @of_rows_last : memref<1x2x8x8xf16>

// An image of which a view merges channels and lines stays as it is.
func.func @merged(%z: memref<2x8x7x6xf16>) {
  %w = memref.get_global @depthwise : memref<8x2x3xf16>
  %image = memref.alloc() : memref<2x8x8x9xf16>
  linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%image : memref<2x8x8x9xf16>) {
  ^bb0(%old: f16):
    %zero = arith.constant 0.0 : f16
    linalg.yield %zero : f16
  }
  %merged = memref.collapse_shape %image [[0], [1, 2], [3]] : memref<2x8x8x9xf16> into memref<2x64x9xf16>
  linalg.generic {indexing_maps = [affine_map<(n, p, x) -> (n, p, x)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%merged : memref<2x64x9xf16>) {
  ^bb0(%old: f16):
    %twice = arith.addf %old, %old : f16
    linalg.yield %twice : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, f, y, x, q, r) -> (n, f, y + q, x + r)>, affine_map<(n, f, y, x, q, r) -> (f, q, r)>, affine_map<(n, f, y, x, q, r) -> (n, f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x8x9xf16>, memref<8x2x3xf16>) outs(%z : memref<2x8x7x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<2x8x8x9xf16>
  return
}
// CHECK-LABEL: func.func @merged
// CHECK:         memref.alloc() : memref<2x8x8x9xf16>

// Groups of eight channels are copies of 16 bytes.
func.func @groups(%x: memref<2x2x8x7xf16>, %z: memref<2x2x8x5xf16>) {
  %w = memref.get_global @grouped : memref<2x8x8x3xf16>
  %image = memref.alloc() : memref<2x2x8x7xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x2x8x7xf16>) outs(%image : memref<2x2x8x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, g, f, x, c, r) -> (n, g, c, x + r)>, affine_map<(n, g, f, x, c, r) -> (g, f, c, r)>, affine_map<(n, g, f, x, c, r) -> (n, g, f, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x2x8x7xf16>, memref<2x8x8x3xf16>) outs(%z : memref<2x2x8x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<2x2x8x7xf16>
  return
}
// CHECK-LABEL: func.func @groups
// CHECK:         memref.alloc() : memref<2x7x2x8xf16>

// Groups of two channels are not; their pixels had better follow each other.
func.func @small_groups(%x: memref<2x4x2x7xf16>, %z: memref<2x4x8x5xf16>) {
  %w = memref.get_global @grouped_by_two : memref<4x8x2x3xf16>
  %image = memref.alloc() : memref<2x4x2x7xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x4x2x7xf16>) outs(%image : memref<2x4x2x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, g, f, x, c, r) -> (n, g, c, x + r)>, affine_map<(n, g, f, x, c, r) -> (g, f, c, r)>, affine_map<(n, g, f, x, c, r) -> (n, g, f, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x4x2x7xf16>, memref<4x8x2x3xf16>) outs(%z : memref<2x4x8x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<2x4x2x7xf16>
  return
}
// CHECK-LABEL: func.func @small_groups
// CHECK:         memref.alloc() : memref<2x4x2x7xf16>

// Of 4 channels there are copies of 8 bytes.
func.func @groups_of_four(%x: memref<2x4x4x7xf16>, %z: memref<2x4x8x5xf16>) {
  %w = memref.get_global @grouped_by_four : memref<4x8x4x3xf16>
  %image = memref.alloc() : memref<2x4x4x7xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x4x4x7xf16>) outs(%image : memref<2x4x4x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, g, f, x, c, r) -> (n, g, c, x + r)>, affine_map<(n, g, f, x, c, r) -> (g, f, c, r)>, affine_map<(n, g, f, x, c, r) -> (n, g, f, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x4x4x7xf16>, memref<4x8x4x3xf16>) outs(%z : memref<2x4x8x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<2x4x4x7xf16>
  return
}
// CHECK-LABEL: func.func @groups_of_four
// CHECK:         memref.alloc() : memref<2x7x4x4xf16>

// An image of three colours has no vectors of channels; what is made of it stays as it is, too.
func.func @of_colours(%x: memref<2x3x6x7xf16>, %z: memref<2x8x6x6xf16>) {
  %w = memref.get_global @colours : memref<8x3x1x2xf16>
  %y = memref.alloc() : memref<2x8x6x6xf16>
  linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<2x3x6x7xf16>, memref<8x3x1x2xf16>) outs(%y : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y : memref<2x8x6x6xf16>) outs(%z : memref<2x8x6x6xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  memref.dealloc %y : memref<2x8x6x6xf16>
  return
}
// CHECK-LABEL: func.func @of_colours
// CHECK:         memref.alloc() : memref<2x8x6x6xf16>

// A slice in another shape has the strides of what it is of.
func.func @slice_in_another_shape(%x: memref<2x16x6x7xf16>, %z: memref<2x8x42xf16>, %sum: memref<2x8x6x6xf16>) {
  %w = memref.get_global @sliced : memref<8x16x1x2xf16>
  %image = memref.alloc() : memref<2x16x6x7xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x16x6x7xf16>) outs(%image : memref<2x16x6x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%image, %w : memref<2x16x6x7xf16>, memref<8x16x1x2xf16>) outs(%sum : memref<2x8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %old: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %old, %product : f16
    linalg.yield %next : f16
  }
  %half = memref.subview %image[0, 8, 0, 0] [2, 8, 6, 7] [1, 1, 1, 1] : memref<2x16x6x7xf16> to memref<2x8x6x7xf16, strided<[672, 42, 7, 1], offset: 336>>
  %flat = memref.collapse_shape %half [[0], [1], [2, 3]] : memref<2x8x6x7xf16, strided<[672, 42, 7, 1], offset: 336>> into memref<2x8x42xf16, strided<[672, 42, 1], offset: 336>>
  linalg.generic {indexing_maps = [affine_map<(n, f, p) -> (n, f, p)>, affine_map<(n, f, p) -> (n, f, p)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%flat : memref<2x8x42xf16, strided<[672, 42, 1], offset: 336>>) outs(%z : memref<2x8x42xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  %groups = memref.expand_shape %half [[0], [1, 2], [3], [4]] output_shape [2, 2, 4, 6, 7] : memref<2x8x6x7xf16, strided<[672, 42, 7, 1], offset: 336>> into memref<2x2x4x6x7xf16, strided<[672, 168, 42, 7, 1], offset: 336>>
  linalg.generic {indexing_maps = [affine_map<(n, g, f, y, x) -> (n, g, f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%groups : memref<2x2x4x6x7xf16, strided<[672, 168, 42, 7, 1], offset: 336>>) {
  ^bb0(%old: f16):
    linalg.yield %old : f16
  }
  memref.dealloc %image : memref<2x16x6x7xf16>
  return
}
// CHECK-LABEL: func.func @slice_in_another_shape
// CHECK:         %[[IMAGE:.*]] = memref.alloc() : memref<2x6x7x16xf16>
// CHECK:         memref.collapse_shape %{{.*}} {{\[\[}}0], [1, 2], [3]] : memref<2x6x7x8xf16, strided<[672, 112, 16, 1], offset: 8>> into memref<2x42x8xf16, strided<[672, 16, 1], offset: 8>>
// CHECK:         memref.expand_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4]] {{.*}} into memref<2x6x7x2x4xf16, strided<[672, 112, 16, 4, 1], offset: 8>>

// A depthwise convolution between layers of rows of channels has their layout, and keeps its own
// between images.
func.func @between_rows(%x: memref<2x6x7x8xf16>, %z: memref<2x5x5x8xf16>) {
  %zero = arith.constant 0.0 : f16
  %w = memref.get_global @depthwise : memref<8x2x3xf16>
  %image = memref.alloc() : memref<2x8x6x7xf16>
  linalg.generic {indexing_maps = [affine_map<(n, c, y, x) -> (n, y, x, c)>, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x6x7x8xf16>) outs(%image : memref<2x8x6x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  %y = memref.alloc() : memref<2x8x5x5xf16>
  linalg.generic {indexing_maps = [#none, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f16) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, c, y, x, q, r) -> (n, c, y + q, x + r)>, affine_map<(n, c, y, x, q, r) -> (c, q, r)>, affine_map<(n, c, y, x, q, r) -> (n, c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x6x7xf16>, memref<8x2x3xf16>) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [#all, affine_map<(n, c, y, x) -> (n, y, x, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y : memref<2x8x5x5xf16>) outs(%z : memref<2x5x5x8xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  memref.dealloc %image : memref<2x8x6x7xf16>
  memref.dealloc %y : memref<2x8x5x5xf16>
  return
}
// CHECK-LABEL: func.func @between_rows
// CHECK-NOT:     memref.alloc() : memref<2x8x
// CHECK:         memref.alloc() : memref<2x6x7x8xf16>
// CHECK:         memref.alloc() : memref<2x5x5x8xf16>

// The same between images.
func.func @between_images(%x: memref<2x8x6x7xf16>, %z: memref<2x8x5x5xf16>) {
  %zero = arith.constant 0.0 : f16
  %w = memref.get_global @depthwise_of_images : memref<8x2x3xf16>
  %image = memref.alloc() : memref<2x8x6x7xf16>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x8x6x7xf16>) outs(%image : memref<2x8x6x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  %y = memref.alloc() : memref<2x8x5x5xf16>
  linalg.generic {indexing_maps = [#none, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f16) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, c, y, x, q, r) -> (n, c, y + q, x + r)>, affine_map<(n, c, y, x, q, r) -> (c, q, r)>, affine_map<(n, c, y, x, q, r) -> (n, c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x6x7xf16>, memref<8x2x3xf16>) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y : memref<2x8x5x5xf16>) outs(%z : memref<2x8x5x5xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  memref.dealloc %image : memref<2x8x6x7xf16>
  memref.dealloc %y : memref<2x8x5x5xf16>
  return
}
// CHECK-LABEL: func.func @between_images
// CHECK:         memref.alloc() : memref<2x8x6x7xf16>
// CHECK:         memref.alloc() : memref<2x8x5x5xf16>


// The same behind a product of channels.
func.func @behind_a_product(%x: memref<2x8x6x7xf16>, %z: memref<2x8x5x5xf16>) {
  %zero = arith.constant 0.0 : f16
  %w = memref.get_global @depthwise_of_images : memref<8x2x3xf16>
  %image = memref.alloc() : memref<2x8x6x7xf16>
  %p = memref.get_global @product_of_channels : memref<8x8xf16>
  linalg.generic {indexing_maps = [#none, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f16) outs(%image : memref<2x8x6x7xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, f, y, x, c) -> (n, c, y, x)>, affine_map<(n, f, y, x, c) -> (f, c)>, affine_map<(n, f, y, x, c) -> (n, f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %p : memref<2x8x6x7xf16>, memref<8x8xf16>) outs(%image : memref<2x8x6x7xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  %y = memref.alloc() : memref<2x8x5x5xf16>
  linalg.generic {indexing_maps = [#none, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f16) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  linalg.generic {indexing_maps = [affine_map<(n, c, y, x, q, r) -> (n, c, y + q, x + r)>, affine_map<(n, c, y, x, q, r) -> (c, q, r)>, affine_map<(n, c, y, x, q, r) -> (n, c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%image, %w : memref<2x8x6x7xf16>, memref<8x2x3xf16>) outs(%y : memref<2x8x5x5xf16>) {
  ^bb0(%a: f16, %b: f16, %sum: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %sum, %product : f16
    linalg.yield %next : f16
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y : memref<2x8x5x5xf16>) outs(%z : memref<2x8x5x5xf16>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  memref.dealloc %image : memref<2x8x6x7xf16>
  memref.dealloc %y : memref<2x8x5x5xf16>
  return
}
// CHECK-LABEL: func.func @behind_a_product
// CHECK:         memref.alloc() : memref<2x6x7x8xf16>
// CHECK:         memref.alloc() : memref<2x5x5x8xf16>

// Of one image, slices have no batch: what is concatenated for a convolution has its channels last.
func.func @concatenated(%x: memref<8x6x7xf16>, %z: memref<8x6x6xf16>) {
  %w = memref.get_global @joined : memref<8x16x1x2xf16>
  %image = memref.alloc() : memref<1x16x6x7xf16>
  %first = memref.subview %image[0, 0, 0, 0] [1, 8, 6, 7] [1, 1, 1, 1] : memref<1x16x6x7xf16> to memref<8x6x7xf16, strided<[42, 7, 1]>>
  linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<8x6x7xf16>) outs(%first : memref<8x6x7xf16, strided<[42, 7, 1]>>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  %second = memref.subview %image[0, 8, 0, 0] [1, 8, 6, 7] [1, 1, 1, 1] : memref<1x16x6x7xf16> to memref<8x6x7xf16, strided<[42, 7, 1], offset: 336>>
  linalg.generic {indexing_maps = [affine_map<(c, y, x) -> (c, y, x)>, affine_map<(c, y, x) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : memref<8x6x7xf16>) outs(%second : memref<8x6x7xf16, strided<[42, 7, 1], offset: 336>>) {
  ^bb0(%in: f16, %old: f16):
    linalg.yield %in : f16
  }
  %flat = memref.collapse_shape %image [[0, 1], [2], [3]] : memref<1x16x6x7xf16> into memref<16x6x7xf16>
  linalg.generic {indexing_maps = [affine_map<(f, y, x, c, r, s) -> (c, y + r, x + s)>, affine_map<(f, y, x, c, r, s) -> (f, c, r, s)>, affine_map<(f, y, x, c, r, s) -> (f, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%flat, %w : memref<16x6x7xf16>, memref<8x16x1x2xf16>) outs(%z : memref<8x6x6xf16>) {
  ^bb0(%a: f16, %b: f16, %old: f16):
    %product = arith.mulf %a, %b : f16
    %next = arith.addf %old, %product : f16
    linalg.yield %next : f16
  }
  memref.dealloc %image : memref<1x16x6x7xf16>
  return
}

// CHECK-LABEL: func.func @concatenated
// CHECK:         %[[JOINED:.*]] = memref.alloc() : memref<6x7x1x16xf16>
// CHECK:         memref.subview %[[JOINED]][0, 0, 0, 0] [6, 7, 1, 8] [1, 1, 1, 1] : memref<6x7x1x16xf16> to memref<6x7x8xf16, strided<[112, 16, 1]>>
// CHECK:         memref.subview %[[JOINED]][0, 0, 0, 8] [6, 7, 1, 8] [1, 1, 1, 1] : memref<6x7x1x16xf16> to memref<6x7x8xf16, strided<[112, 16, 1], offset: 8>>
// CHECK:         memref.collapse_shape %[[JOINED]] {{\[\[}}0], [1], [2, 3]] : memref<6x7x1x16xf16> into memref<6x7x16xf16>
