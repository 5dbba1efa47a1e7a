"""Globals that kernels use: constants, and variables that they share with the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library
from unit.lower.memory_text import entry, fill


def test_a_constant_is_in_the_kernel_s_own_memory(tmp_path: Path) -> None:
    library = build_library(
        entry(
            """scf.parallel (%i) = (%c0) to (%c5) step (%c1) {
    %g = memref.get_global @table : memref<5xf32>
    %v = memref.load %g[%i] : memref<5xf32>
    memref.store %v, %a[%i] : memref<32xf32>
  }
  return""",
            before='memref.global "private" constant @table : memref<5xf32> '
            "= dense<[1.0, 2.0, 4.0, 8.0, 16.0]>",
        ),
        tmp_path,
    )
    a = np.zeros(32, np.float32)
    library.call("f", a)
    np.testing.assert_array_equal(a[:6], [1, 2, 4, 8, 16, 0])


GLOBAL_USES = {
    "handed_over": "%g = memref.get_global @g : memref<32xf32>" + fill("%g"),
    "as_a_view": """%g = memref.get_global @g : memref<32xf32>
  %v = memref.cast %g : memref<32xf32> to memref<?xf32>
"""
    + fill("%v", type_="memref<?xf32>"),
    "named_in_a_launch": """gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %g = memref.get_global @g : memref<32xf32>
    memref.store %one, %g[%tx] : memref<32xf32>
    gpu.terminator
  }
""",
}


@pytest.mark.parametrize("use", GLOBAL_USES)
def test_host_and_kernels_share_a_variable(use: str, tmp_path: Path) -> None:
    """What a kernel stores the host sees, in this function and others, and the other way."""
    library = build_library(
        entry(GLOBAL_USES[use] + "return", before=_VARIABLE, arguments="") + _OTHER_USES,
        tmp_path,
    )
    assert library.call("get", 3) == 7.0
    library.call("set", 3, 9.0)
    assert library.call("get", 3) == 9.0
    library.call("f")
    assert [library.call("get", i) for i in (0, 3, 31)] == [1.0, 1.0, 1.0]
    library.call("set", 3, 5.0)
    assert library.call("get", 3) == 5.0


_VARIABLE = 'memref.global "private" @g : memref<32xf32> = dense<7.0>'
_OTHER_USES = """
func.func @get(%i: index) -> f32 attributes {llvm.emit_c_interface} {
  %g = memref.get_global @g : memref<32xf32>
  %v = memref.load %g[%i] : memref<32xf32>
  return %v : f32
}
func.func @set(%i: index, %v: f32) attributes {llvm.emit_c_interface} {
  %g = memref.get_global @g : memref<32xf32>
  memref.store %v, %g[%i] : memref<32xf32>
  return
}
"""


_BOTH_COPIES = """
module attributes {gpu.container_module} {
gpu.module @k {
  gpu.func @add(%w: memref<32xf32>, %a: memref<32xf32>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %w[%i] : memref<32xf32>
    %u = memref.load %a[%i] : memref<32xf32>
    %s = arith.addf %u, %v : f32
    memref.store %s, %a[%i] : memref<32xf32>
    gpu.return
  }
}
memref.global "private" constant @w : memref<32xf32> = dense<3.0>
memref.global "private" constant @x : memref<32xf32> = dense<4.0>
func.func @f(%a: memref<32xf32>, %n: index) -> f32 attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %w = memref.get_global @w : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%w : memref<32xf32>, %a : memref<32xf32>)
  %x = memref.get_global @x : memref<32xf32>
  %w2 = memref.get_global @w : memref<32xf32>
  %is_w = arith.cmpi eq, %n, %c1 : index
  %one = arith.select %is_w, %w2, %x : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%one : memref<32xf32>, %a : memref<32xf32>)
  %v = memref.load %w[%n] : memref<32xf32>
  return %v : f32
}
func.func @g(%a: memref<32xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %w = memref.get_global @w : memref<32xf32>
  gpu.launch_func @k::@add blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%w : memref<32xf32>, %a : memref<32xf32>)
  return
}
}
"""


def test_a_constant_has_both_kinds_of_copies(tmp_path: Path) -> None:
    """One use is of it alone, another of one of two: the device's copy, and a managed one."""
    library = build_library(_BOTH_COPIES, tmp_path)
    a = np.zeros(32, np.float32)
    assert library.call("f", a, 1) == 3.0
    assert a[5] == 6.0
    assert library.call("f", a, 0) == 3.0
    assert a[5] == 13.0
    library.call("g", a)
    assert a[5] == 16.0
