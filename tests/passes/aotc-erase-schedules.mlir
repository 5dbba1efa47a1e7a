// RUN: aotc-erase-schedules
module attributes {transform.with_named_sequence} {
  func.func @f() {
    return
  }
  transform.named_sequence @not_main(%module: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  module @schedule attributes {transform.with_named_sequence} {
    transform.named_sequence @other(%module: !transform.any_op {transform.readonly}) {
      transform.yield
    }
  }
}

// CHECK:      module {
// CHECK-NEXT:   func.func @f()
// CHECK-NOT:  transform
// CHECK-NOT:  module
