"""Branches that a whole warp takes, by what they ask of thread ids: nobody waits step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

# A condition of %x (thread_id.x) and %i (the same in i32), and what it is in NumPy. (%l, %i would
# be the linear id.)
CONDITIONS = {
    "below": ("arith.cmpi ult, %x, %c64 : index", lambda x: x < 64),
    "swapped": ("arith.cmpi ugt, %c64, %x : index", lambda x: x < 64),
    "up to": ("arith.cmpi sle, %i, %n31 : i32", lambda x: x <= 31),
    "not below": ("arith.cmpi sge, %i, %n32 : i32", lambda x: x >= 32),
    "negative": ("arith.cmpi sgt, %i, %minus : i32", lambda x: x > -1),
    "quotient": ("arith.cmpi eq, %w, %c1 : index", lambda x: x // 32 == 1),
    "pairs": ("arith.cmpi eq, %p, %c1 : index", lambda x: x // 64 == 1),
    "shifted": ("arith.cmpi ne, %s, %n1 : i32", lambda x: x >> 5 != 1),
}
TOGETHER = ((128, 1, 1), (64, 3, 1), (32, 2, 2), (96, 1, 2))
APART = ((48, 2, 1), (33, 1, 1))


def kernel(condition: str, block: tuple[int, int, int]) -> str:
    size = ", ".join(map(str, block))
    return gpu_module(
        f"""gpu.func @k(%out: memref<?xi32>) kernel
    attributes {{known_block_size = array<i32: {size}>}} {{
  %x = gpu.thread_id x
  %y = gpu.thread_id y
  %z = gpu.thread_id z
  %bx = gpu.block_dim x
  %by = gpu.block_dim y
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %minus = arith.constant -1 : i32
  %n1 = arith.constant 1 : i32
  %n5 = arith.constant 5 : i32
  %n31 = arith.constant 31 : i32
  %n32 = arith.constant 32 : i32
  %i = arith.index_cast %x : index to i32
  %w = arith.divui %x, %c32 : index
  %p = arith.divui %x, %c64 : index
  %s = arith.shrui %i, %n5 : i32
  %zy = arith.muli %z, %by : index
  %row = arith.addi %zy, %y : index
  %rx = arith.muli %row, %bx : index
  %t = arith.addi %rx, %x : index
  %v = arith.index_cast %t : index to i32
  %takes = {condition}
  scf.if %takes {{
    %other, %ok = gpu.shuffle xor %v, %n1, %n32 : i32
    memref.store %other, %out[%t] : memref<?xi32>
  }}
  gpu.return
}}"""
    )


@pytest.mark.parametrize("block", TOGETHER, ids=str)
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_warp_that_branches_together_is_a_loop(
    tmp_path: Path, name: str, block: tuple[int, int, int]
) -> None:
    condition, says = CONDITIONS[name]
    device = CpuDevice(kernel(condition, block), tmp_path)
    assert device.kernels.kernels[0].step is None
    threads = np.arange(block[0] * block[1] * block[2])
    out = np.full(threads.size, -7, np.int32)
    device.run("k", 1, block, out)
    np.testing.assert_array_equal(out, np.where(says(threads % block[0]), threads ^ 1, -7))


@pytest.mark.parametrize("block", APART, ids=str)
def test_a_warp_that_may_part_goes_step_by_step(
    tmp_path: Path, block: tuple[int, int, int]
) -> None:
    """x < 32 tells nothing of a warp that begins within a row, in a block of several."""
    condition, says = CONDITIONS["not below"]
    device = CpuDevice(kernel(condition, block), tmp_path)
    is_one_row = block[1] == 1
    assert (device.kernels.kernels[0].step is None) == is_one_row
    threads = np.arange(block[0] * block[1])
    out = np.full(threads.size, -7, np.int32)
    device.run("k", 1, block, out)
    taken = says(threads % block[0])
    is_there = np.append(taken, np.zeros(64, bool))[threads ^ 1]
    checked = ~taken | is_there
    expected = np.where(taken, threads ^ 1, -7)
    np.testing.assert_array_equal(out[checked], expected[checked])
