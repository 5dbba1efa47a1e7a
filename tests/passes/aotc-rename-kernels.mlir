// RUN: aotc-rename-kernels
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @"a-b"() kernel {
      gpu.return
    }
    gpu.func @a_b() kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@"a-b" blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// CHECK: gpu.func @a_2Db()
// CHECK: gpu.func @a_b()
// CHECK: gpu.launch_func @kernels::@a_2Db
