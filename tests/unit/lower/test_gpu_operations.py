"""Memory that the input manages itself, with the gpu dialect: without tokens, and with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from helpers.native import build_library
from unit.lower.memory_text import entry, fill


def test_synchronous_gpu_operations(tmp_path: Path) -> None:
    """gpu.alloc, gpu.memcpy, gpu.memset and gpu.dealloc need no token."""
    library = build_library(
        entry(
            f"""%t = gpu.alloc () : memref<32xf32>
  gpu.memset %t, %one : memref<32xf32>, f32
  gpu.memcpy %a, %t : memref<32xf32>, memref<32xf32>
  {fill("%t")}
  gpu.dealloc %t : memref<32xf32>
  return"""
        ),
        tmp_path,
    )
    a = np.zeros(32, np.float32)
    library.call("f", a)
    assert (a == 1).all()


def test_asynchronous_gpu_operations(tmp_path: Path) -> None:
    """A chain of tokens: copy in, launch, copy out, on one stream."""
    library = build_library(
        """
module attributes {gpu.container_module} {
  gpu.module @device {
    gpu.func @twice(%a: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<32xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %a[%i] : memref<32xf32>
      gpu.return
    }
  }
  func.func @f(%a: memref<32xf32>) attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %start = gpu.wait async
    %t, %allocated = gpu.alloc async [%start] () : memref<32xf32>
    %in = gpu.memcpy async [%allocated] %t, %a : memref<32xf32>, memref<32xf32>
    %done = gpu.launch_func async [%in] @device::@twice blocks in (%c1, %c1, %c1)
      threads in (%c32, %c1, %c1) args(%t : memref<32xf32>)
    %out = gpu.memcpy async [%done] %a, %t : memref<32xf32>, memref<32xf32>
    %free = gpu.dealloc async [%out] %t : memref<32xf32>
    gpu.wait [%free]
    return
  }
}
""",
        tmp_path,
    )
    a = np.arange(32, dtype=np.float32)
    library.call("f", a)
    np.testing.assert_array_equal(a, 2 * np.arange(32))
