"""Kernels in modules that the bindings' own classes made."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import aotc
from aotc.input.kernels import mark_kernels
from aotc.mlir import dialect, ir, make_context

# A kernel that looks at an address, and its launch.
_TEXT = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @fill(%x: memref<64xf32>) kernel {
    %mask = arith.constant 15 : index
    %zero = arith.constant 0 : index
    %address = memref.extract_aligned_pointer_as_index %x : memref<64xf32> -> index
    %rest = arith.andi %address, %mask : index
    %is_aligned = arith.cmpi eq, %rest, %zero : index
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %value = arith.select %is_aligned, %one, %two : f32
    %i = gpu.thread_id x
    memref.store %value, %x[%i] : memref<64xf32>
    gpu.return
  }
}
func.func @f(%x: memref<64xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
      args(%x : memref<64xf32>)
  return
}
}
"""


def _module_as_the_bindings_make_it() -> ir.Module:
    with make_context():
        module = ir.Module.parse(_TEXT)
        kernel = module.body.operations[0].regions[0].blocks[0].operations[0]
        del kernel.attributes["kernel"]
        kernel.attributes[dialect("gpu").GPUFuncOp.KERNEL_ATTR_NAME] = ir.UnitAttr.get()
        return module


def test_kernels_get_the_mark_of_today() -> None:
    module = _module_as_the_bindings_make_it()
    mark_kernels(module)
    kernel = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert "kernel" in kernel.attributes
    assert "gpu.kernel" not in kernel.attributes


def test_such_a_module_has_its_kernels_for_the_cpu_too(tmp_path: Path) -> None:
    artifact = aotc.build(
        _module_as_the_bindings_make_it(), emit="shared", chips="sm_90a", out=f"{tmp_path}/"
    )
    assert artifact.manifest.entries[0].arguments[0].is_read is False  # its address alone is
    x = np.zeros(64, np.float32)
    aotc.load(artifact).f(x)
    assert set(x) <= {1, 2}
