// RUN: aotc-fuse-horizontal-matmuls,canonicalize
// Matmuls of the same rows and constant weights are one. So are the additions of their biases.
func.func @biases(%x: tensor<512x256xf16>) -> (tensor<512xf32>, tensor<512xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %wa = arith.constant dense<1.0> : tensor<256x256xf16>
  %wb = arith.constant dense<2.0> : tensor<128x256xf16>
  %ba = arith.constant dense<3.0> : tensor<256xf32>
  %bb = arith.constant dense<4.0> : tensor<128xf32>
  %ea = tensor.empty() : tensor<512x256xf32>
  %fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fa : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %eb = tensor.empty() : tensor<512x128xf32>
  %fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf16>, tensor<128x256xf16>) outs(%fb : tensor<512x128xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
  %tc = tensor.empty() : tensor<512x256xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%a, %ba : tensor<512x256xf32>, tensor<256xf32>) outs(%tc : tensor<512x256xf32>) {
  ^bb0(%v: f32, %bias: f32, %o: f32):
    %sum = arith.addf %v, %bias : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %td = tensor.empty() : tensor<512x128xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%b, %bb : tensor<512x128xf32>, tensor<128xf32>) outs(%td : tensor<512x128xf32>) {
  ^bb0(%v: f32, %bias: f32, %o: f32):
    %sum = arith.addf %v, %bias : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
  %er = tensor.empty() : tensor<512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<512x256xf32>) outs(%er : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  %es = tensor.empty() : tensor<512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<512x128xf32>) outs(%es : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  return %r, %s : tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: func.func @biases
// CHECK: linalg.generic {{.*}} "reduction"]} ins(%{{.*}} : tensor<512x256xf16>, tensor<384x256xf16>)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} tensor<512x384xf32>, tensor<384xf32>)
// CHECK: %[[A:.*]] = tensor.extract_slice %[[SUM]][0, 0] [512, 256] [1, 1]
// CHECK: %[[B:.*]] = tensor.extract_slice %[[SUM]][0, 256] [512, 128] [1, 1]
// CHECK: linalg.generic {{.*}} ins(%[[A]]
// CHECK: linalg.generic {{.*}} ins(%[[B]]

// Weights that are computed from constants are computed from the concatenated ones.
func.func @quantized(%x: tensor<512x256xf16>) -> (tensor<512xf32>, tensor<512xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %qa = arith.constant dense<1> : tensor<256x256xi8>
  %qb = arith.constant dense<2> : tensor<128x256xi8>
  %sa = arith.constant dense<3.0> : tensor<256xf16>
  %sb = arith.constant dense<4.0> : tensor<128xf16>
  %uwa = tensor.empty() : tensor<256x256xf16>
  %wa = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>, affine_map<(n, k) -> (n, k)>], iterator_types = ["parallel", "parallel"]} ins(%qa, %sa : tensor<256x256xi8>, tensor<256xf16>) outs(%uwa : tensor<256x256xf16>) {
  ^bb0(%q: i8, %scale: f16, %o: f16):
    %w = arith.sitofp %q : i8 to f16
    %p = arith.mulf %w, %scale : f16
    linalg.yield %p : f16
  } -> tensor<256x256xf16>
  %uwb = tensor.empty() : tensor<128x256xf16>
  %wb = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>, affine_map<(n, k) -> (n, k)>], iterator_types = ["parallel", "parallel"]} ins(%qb, %sb : tensor<128x256xi8>, tensor<128xf16>) outs(%uwb : tensor<128x256xf16>) {
  ^bb0(%q: i8, %scale: f16, %o: f16):
    %w = arith.sitofp %q : i8 to f16
    %p = arith.mulf %w, %scale : f16
    linalg.yield %p : f16
  } -> tensor<128x256xf16>
  %ea = tensor.empty() : tensor<512x256xf32>
  %fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fa : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %eb = tensor.empty() : tensor<512x128xf32>
  %fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf16>, tensor<128x256xf16>) outs(%fb : tensor<512x128xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
  %er = tensor.empty() : tensor<512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<512x256xf32>) outs(%er : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  %es = tensor.empty() : tensor<512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<512x128xf32>) outs(%es : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  return %r, %s : tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: func.func @quantized
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<384x256xi8>, tensor<384xf16>)
// CHECK: linalg.generic {{.*}} "reduction"]} ins(%{{.*}} : tensor<512x256xf16>, tensor<384x256xf16>)

// One that is returned would be copied, and weights that others use would be there twice.
func.func @apart(%x: tensor<512x256xf16>, %y: tensor<512x256xf16>) -> (tensor<512x256xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512x256xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %wa = arith.constant dense<1.0> : tensor<256x256xf16>
  %wb = arith.constant dense<2.0> : tensor<256x256xf16>
  %wc = arith.constant dense<3.0> : tensor<256x256xf16>
  %ea = tensor.empty() : tensor<512x256xf32>
  %fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fa : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %eb = tensor.empty() : tensor<512x256xf32>
  %fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fb : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %ec = tensor.empty() : tensor<512x256xf32>
  %fc = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ec : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wc : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fc : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %ed = tensor.empty() : tensor<512x256xf32>
  %fd = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ed : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%y, %wc : tensor<512x256xf16>, tensor<256x256xf16>) outs(%fd : tensor<512x256xf32>) {
  ^bb0(%va: f16, %vb: f16, %o: f32):
    %wide_a = arith.extf %va : f16 to f32
    %wide_b = arith.extf %vb : f16 to f32
    %p = arith.mulf %wide_a, %wide_b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
  %er = tensor.empty() : tensor<512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%b : tensor<512x256xf32>) outs(%er : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  %es = tensor.empty() : tensor<512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<512x256xf32>) outs(%es : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
  return %a, %r, %s, %d : tensor<512x256xf32>, tensor<512xf32>, tensor<512xf32>, tensor<512x256xf32>
}

// CHECK-LABEL: func.func @apart
// CHECK-NOT: tensor.extract_slice

// A product of vectors has no columns.
func.func @scalar(%x: tensor<256xf32>, %y: tensor<256xf32>, %z: tensor<f32>) -> tensor<f32> attributes {llvm.emit_c_interface} {
  %r = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]} ins(%x, %y : tensor<256xf32>, tensor<256xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// What is added to the matmuls of a group is computed by those of another, which are joined with them.
func.func @two_groups(%x: tensor<512x256xf32>) -> (tensor<512xf32>, tensor<512xf32>) attributes {llvm.emit_c_interface} {
%zero = arith.constant 0.0 : f32
%wa = arith.constant dense<1.0> : tensor<256x256xf32>
%wb = arith.constant dense<1.0> : tensor<128x256xf32>
%qa = arith.constant dense<1.0> : tensor<256x256xf32>
%qb = arith.constant dense<1.0> : tensor<128x256xf32>
%es = tensor.empty() : tensor<512xf32>
 %zs = linalg.generic {indexing_maps = [affine_map<(m) -> ()>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%es : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512xf32>
%eh = tensor.empty() : tensor<512x256xf32>
%h = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<512x256xf32>) outs(%eh : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.addf %v, %zero : f32
    %q2 = arith.mulf %q, %q : f32
    linalg.yield %q2 : f32
  } -> tensor<512x256xf32>
%ea = tensor.empty() : tensor<512x256xf32>
%fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
%a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf32>, tensor<256x256xf32>) outs(%fa : tensor<512x256xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
%ga = tensor.empty() : tensor<512x256xf32>
%ha = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ga : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
%ra = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %qa : tensor<512x256xf32>, tensor<256x256xf32>) outs(%ha : tensor<512x256xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
%ka = tensor.empty() : tensor<512x256xf32>
%c = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%a, %ra : tensor<512x256xf32>, tensor<512x256xf32>) outs(%ka : tensor<512x256xf32>) {
  ^bb0(%v: f32, %v2: f32, %o: f32):
    %q = arith.addf %v, %v2 : f32
    %q2 = arith.mulf %q, %q : f32
    linalg.yield %q2 : f32
  } -> tensor<512x256xf32>
%eb = tensor.empty() : tensor<512x128xf32>
%fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
%b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf32>, tensor<128x256xf32>) outs(%fb : tensor<512x128xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
%gb = tensor.empty() : tensor<512x128xf32>
%hb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%gb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
%rb = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h, %qb : tensor<512x256xf32>, tensor<128x256xf32>) outs(%hb : tensor<512x128xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
%kb = tensor.empty() : tensor<512x128xf32>
%d = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%b, %rb : tensor<512x128xf32>, tensor<512x128xf32>) outs(%kb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %v2: f32, %o: f32):
    %q = arith.addf %v, %v2 : f32
    %q2 = arith.mulf %q, %q : f32
    linalg.yield %q2 : f32
  } -> tensor<512x128xf32>
%s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<512x256xf32>) outs(%zs : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
%t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<512x128xf32>) outs(%zs : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
return %s, %t : tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: func.func @two_groups
// CHECK-COUNT-2: linalg.generic {{.*}} "reduction"]} ins(%{{.*}} : tensor<512x256xf32>, tensor<384x256xf32>)
// CHECK: tensor.extract_slice

// Constants that bodies read may be behind the first one, and several may have one empty tensor.
func.func @late_constants(%x: tensor<512x256xf32>) -> (tensor<512xf32>, tensor<512xf32>) attributes {llvm.emit_c_interface} {
%zero = arith.constant 0.0 : f32
%wa = arith.constant dense<1.0> : tensor<256x256xf32>
%wb = arith.constant dense<1.0> : tensor<128x256xf32>
%es = tensor.empty() : tensor<512xf32>
 %zs = linalg.generic {indexing_maps = [affine_map<(m) -> ()>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%es : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512xf32>
%ea = tensor.empty() : tensor<512x256xf32>
%fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x256xf32>
%a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf32>, tensor<256x256xf32>) outs(%fa : tensor<512x256xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x256xf32>
%eb = tensor.empty() : tensor<512x128xf32>
%fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x128xf32>
%b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf32>, tensor<128x256xf32>) outs(%fb : tensor<512x128xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x128xf32>
%k = arith.constant 0.5 : f32
%d = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<512x128xf32>) outs(%eb : tensor<512x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.addf %v, %k : f32
    %q2 = arith.mulf %q, %q : f32
    linalg.yield %q2 : f32
  } -> tensor<512x128xf32>
%k2 = arith.constant 0.5 : f32
%c = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<512x256xf32>) outs(%ea : tensor<512x256xf32>) {
  ^bb0(%v: f32, %o: f32):
    %q = arith.addf %v, %k2 : f32
    %q2 = arith.mulf %q, %q : f32
    linalg.yield %q2 : f32
  } -> tensor<512x256xf32>
%s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<512x256xf32>) outs(%zs : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
%t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<512x128xf32>) outs(%zs : tensor<512xf32>) {
  ^bb0(%v: f32, %o: f32):
    %sum = arith.addf %o, %v : f32
    linalg.yield %sum : f32
  } -> tensor<512xf32>
return %s, %t : tensor<512xf32>, tensor<512xf32>
}

// CHECK-LABEL: func.func @late_constants
// CHECK: linalg.generic {{.*}} "reduction"]} ins(%{{.*}} : tensor<512x256xf32>, tensor<384x256xf32>)
// CHECK: tensor.extract_slice

// What follows the matmuls of a group may have several ranks.
func.func @ranks(%x: tensor<512x256xf32>) -> (tensor<512x4x4xf32>, tensor<512x4xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %wa = arith.constant dense<1.0> : tensor<16x256xf32>
  %wb = arith.constant dense<2.0> : tensor<4x256xf32>
  %ea = tensor.empty() : tensor<512x16xf32>
  %fa = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%ea : tensor<512x16xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x16xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wa : tensor<512x256xf32>, tensor<16x256xf32>) outs(%fa : tensor<512x16xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x16xf32>
  %eb = tensor.empty() : tensor<512x4xf32>
  %fb = linalg.generic {indexing_maps = [affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%eb : tensor<512x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<512x4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %wb : tensor<512x256xf32>, tensor<4x256xf32>) outs(%fb : tensor<512x4xf32>) {
  ^bb0(%va: f32, %vb: f32, %o: f32):
    %p = arith.mulf %va, %vb : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  } -> tensor<512x4xf32>
  %blocks = tensor.expand_shape %a [[0], [1, 2]] output_shape [512, 4, 4] : tensor<512x16xf32> into tensor<512x4x4xf32>
  %ec = tensor.empty() : tensor<512x4x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, n, k)>, affine_map<(m, n, k) -> (m, n, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%blocks : tensor<512x4x4xf32>) outs(%ec : tensor<512x4x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %e = math.exp %v : f32
    linalg.yield %e : f32
  } -> tensor<512x4x4xf32>
  %ed = tensor.empty() : tensor<512x4xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<512x4xf32>) outs(%ed : tensor<512x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %e = math.exp %v : f32
    linalg.yield %e : f32
  } -> tensor<512x4xf32>
  return %c, %d : tensor<512x4x4xf32>, tensor<512x4xf32>
}
// CHECK-LABEL: func.func @ranks
// CHECK: return
