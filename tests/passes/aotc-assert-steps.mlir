// RUN: aotc-assert-steps
// A step that is known only at run time is asserted to be positive, outside of kernels.
func.func @f(%n: index, %step: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c2 {
  }
  scf.for %i = %c0 to %n step %step {
  }
  return
}
gpu.module @kernels {
  gpu.func @kernel(%n: index, %step: index) kernel {
    %c0 = arith.constant 0 : index
    scf.for %i = %c0 to %n step %step {
    }
    gpu.return
  }
}

// CHECK-LABEL: func.func @f(%arg0: index, %arg1: index)
// CHECK-NOT:     cf.assert
// CHECK:         scf.for %{{.*}} step %c2
// CHECK:         %[[IS_POSITIVE:.*]] = arith.cmpi sgt, %arg1, %c0
// CHECK-NEXT:    cf.assert %[[IS_POSITIVE]], "the step of this scf.for is positive"
// CHECK-NEXT:    scf.for %{{.*}} step %arg1
// CHECK-LABEL: gpu.func @kernel
// CHECK-NOT:     cf.assert
