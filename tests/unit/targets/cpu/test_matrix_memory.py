"""nvgpu.ldmatrix and nvgpu.device_async_copy on the CPU device: what must not be touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

WORKGROUP = "#gpu.address_space<workgroup>"
# An element that is certainly not there.
FAR = 2**40


def test_ldmatrix_reads_at_addresses_of_the_first_lanes(tmp_path: Path) -> None:
    """For one tile, eight lanes' addresses count; the others' may be anything."""
    shared = f"memref<8x8xf16, {WORKGROUP}>"
    source = f"""
gpu.func @k(%x: memref<8x8xf16>, %y: memref<32x1x2xf16>)
    workgroup(%s : {shared}) kernel {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %far = arith.constant {FAR} : index
  %i = gpu.thread_id x
  %is_first = arith.cmpi ult, %i, %c8 : index
  scf.if %is_first {{
    %row = vector.load %x[%i, %c0] : memref<8x8xf16>, vector<8xf16>
    vector.store %row, %s[%i, %c0] : {shared}, vector<8xf16>
  }}
  gpu.barrier
  %place = arith.select %is_first, %i, %far : index
  %m = nvgpu.ldmatrix %s[%place, %c0] {{numTiles = 1 : i32, transpose = true}}
    : {shared} -> vector<1x2xf16>
  vector.transfer_write %m, %y[%i, %c0, %c0] {{in_bounds = [true, true]}}
    : vector<1x2xf16>, memref<32x1x2xf16>
  gpu.return
}}"""
    x = np.arange(64, dtype=np.float16).reshape(8, 8)
    y = np.zeros((32, 1, 2), np.float16)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x, y)
    # The lanes hold the tile by columns.
    np.testing.assert_array_equal(y.reshape(8, 8), x.T)


def test_copies_read_what_the_source_has(tmp_path: Path) -> None:
    """A copy of no elements reads nothing and writes zeros; of more than there are, it is whole."""
    shared = f"memref<3x4xf32, {WORKGROUP}>"
    source = f"""
gpu.func @k(%x: memref<3x4xf32>, %start: memref<3xindex>, %known: memref<3xindex>,
    %y: memref<3x4xf32>) workgroup(%s : {shared}) kernel {{
  %c0 = arith.constant 0 : index
  %i = gpu.thread_id x
  %from = memref.load %start[%i] : memref<3xindex>
  %count = memref.load %known[%i] : memref<3xindex>
  %t = nvgpu.device_async_copy %x[%from, %c0], %s[%i, %c0], 4, %count
    : memref<3x4xf32> to {shared}
  %g = nvgpu.device_async_create_group %t
  nvgpu.device_async_wait %g
  %row = vector.load %s[%i, %c0] : {shared}, vector<4xf32>
  vector.store %row, %y[%i, %c0] : memref<3x4xf32>, vector<4xf32>
  gpu.return
}}"""
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    y = np.zeros_like(x)
    start, known = np.array([FAR, 2, 1]), np.array([0, 2, 1000])
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 3, x, start, known, y)
    np.testing.assert_array_equal(y, [[0, 0, 0, 0], [9, 10, 0, 0], [5, 6, 7, 8]])
