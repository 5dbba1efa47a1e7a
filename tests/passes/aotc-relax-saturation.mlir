// RUN: aotc-relax-saturation
func.func @f(%x: f32, %least: f32, %most: f32) -> (i8, f32, i32) {
  %above = arith.maximumf %x, %least : f32
  %inside = arith.minimumf %above, %most : f32
  %byte = arith.fptoui %inside : f32 to i8
  %larger = arith.maximumf %x, %least : f32
  %kept = arith.minimumf %larger, %most : f32
  %integer = arith.fptosi %kept : f32 to i32
  return %byte, %kept, %integer : i8, f32, i32
}

// What is only converted is one of the limits if it is NaN; what is returned, too, stays NaN.
// CHECK-LABEL: @f
// CHECK: arith.maxnumf %arg0, %arg1 : f32
// CHECK: arith.minnumf {{.*}}, %arg2 : f32
// CHECK: arith.maximumf %arg0, %arg1 : f32
// CHECK: arith.minimumf {{.*}}, %arg2 : f32

// Of what is not limited by a maximum or minimum, the lower bits of 32 are taken: 193 is a byte.
func.func @unlimited(%x: f64) -> (i8, i32) {
  %byte = arith.fptosi %x : f64 to i8
  %integer = arith.fptosi %x : f64 to i32
  return %byte, %integer : i8, i32
}

// CHECK-LABEL: @unlimited
// CHECK: %[[WIDE:.*]] = arith.fptosi %arg0 : f64 to i32
// CHECK-NEXT: arith.trunci %[[WIDE]] : i32 to i8
// CHECK-NEXT: arith.fptosi %arg0 : f64 to i32
