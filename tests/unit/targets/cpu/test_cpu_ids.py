"""Ids and dims on the CPU device: every thread of every block runs, and knows which one it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

STORE_SUM = """
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %bz = gpu.block_id z
    memref.store %v, %out[%bz, %by, %bx, %tz, %ty, %tx] : memref<?x?x?x?x?x?xindex>
    gpu.return
"""
THREADS = """
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
"""


def _query(name: str, operation: str, attributes: str = "") -> str:
    """A kernel that stores x + 100 y + 10000 z of an id operation at its place in the grid."""
    return f"""
  gpu.func @{name}(%out: memref<?x?x?x?x?x?xindex>) kernel {attributes} {{
    {THREADS}
    %x = {operation} x
    %y = {operation} y
    %z = {operation} z
    %c100 = arith.constant 100 : index
    %y1 = arith.muli %y, %c100 : index
    %z1 = arith.muli %z, %c100 : index
    %z2 = arith.muli %z1, %c100 : index
    %xy = arith.addi %x, %y1 : index
    %v = arith.addi %xy, %z2 : index
    {STORE_SUM}
  }}"""


QUERIES = (
    "thread_id",
    "block_id",
    "block_dim",
    "grid_dim",
    "global_id",
    "cluster_id",
    "cluster_dim",
    "cluster_dim_blocks",
    "cluster_block_id",
)
KNOWN = "attributes {known_block_size = array<i32: 5, 1, 3>, known_grid_size = array<i32: 2, 3, 1>}"


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    return CpuDevice(
        gpu_module(
            *(_query(name, f"gpu.{name}") for name in QUERIES),
            *(_query(f"known_{name}", f"gpu.{name}", KNOWN) for name in QUERIES),
            """
  gpu.func @upper_bounds(%out: memref<?xindex>) kernel {
    %x = gpu.thread_id x upper_bound 64
    %d = gpu.block_dim x upper_bound 64
    %v = arith.muli %x, %d : index
    memref.store %v, %out[%x] : memref<?xindex>
    gpu.return
  }
  func.func private @innermost(%a: index) -> index {
    %x = gpu.thread_id x
    %s = arith.addi %a, %x : index
    return %s : index
  }
  func.func private @without_ids(%a: index) -> index {
    %s = arith.addi %a, %a : index
    return %s : index
  }
  func.func private @between(%a: index) -> index {
    %s = func.call @without_ids(%a) : (index) -> index
    %r = func.call @innermost(%s) : (index) -> index
    return %r : index
  }
  gpu.func @through_functions(%out: memref<?xindex>) kernel {
    %x = gpu.thread_id x
    %c50 = arith.constant 50 : index
    %v = func.call @between(%c50) : (index) -> index
    memref.store %v, %out[%x] : memref<?xindex>
    gpu.return
  }
  gpu.func @large_global_id(%out: memref<?xindex>) kernel {
    %g = gpu.global_id x
    %x = gpu.thread_id x
    memref.store %g, %out[%x] : memref<?xindex>
    gpu.return
  }
  gpu.func @narrow(%out: memref<?xi32>, %n: i32) kernel {
    %x = gpu.thread_id x
    %i = arith.index_cast %x : index to i32
    %v = arith.muli %i, %n : i32
    memref.store %v, %out[%x] : memref<?xi32>
    gpu.return
  }""",
        ),
        tmp_path_factory.mktemp("ids"),
    )


GRID, BLOCK = (2, 3, 1), (5, 1, 3)


def _expected(name: str) -> np.ndarray:
    bz, by, bx, tz, ty, tx = np.indices((*GRID[::-1], *BLOCK[::-1]))
    blocks, threads = (bx, by, bz), (tx, ty, tz)
    values = {
        "thread_id": threads,
        "block_id": blocks,
        "block_dim": BLOCK,
        "grid_dim": GRID,
        "global_id": tuple(b * d + t for b, d, t in zip(blocks, BLOCK, threads, strict=True)),
        # Every block is a cluster of its own.
        "cluster_id": blocks,
        "cluster_dim": GRID,
        "cluster_dim_blocks": (1, 1, 1),
        "cluster_block_id": (0, 0, 0),
    }
    x, y, z = values[name]
    return np.broadcast_to(x + 100 * y + 10000 * z, bx.shape)


@pytest.mark.parametrize("prefix", ["", "known_"])
@pytest.mark.parametrize("name", QUERIES)
def test_ids_of_every_thread(device: CpuDevice, name: str, prefix: str) -> None:
    """Each id operation answers per thread and dimension, with known sizes and without."""
    out = np.full((*GRID[::-1], *BLOCK[::-1]), -1, np.int64)
    device.run(prefix + name, GRID, BLOCK, out)
    np.testing.assert_array_equal(out, _expected(name))


def test_upper_bounds_are_accepted(device: CpuDevice) -> None:
    """upper_bound attributes change nothing."""
    out = np.full(7, -1, np.int64)
    device.run("upper_bounds", 1, 7, out)
    np.testing.assert_array_equal(out, np.arange(7) * 7)


def test_functions_know_the_ids_of_their_caller(device: CpuDevice) -> None:
    """A function of the gpu.module, called through another one, answers with the thread's id."""
    out = np.full(9, -1, np.int64)
    device.run("through_functions", 1, 9, out)
    np.testing.assert_array_equal(out, 100 + np.arange(9))


def test_global_ids_need_64_bits(device: CpuDevice) -> None:
    """Block 2^31 - 2 of blocks of 1024 threads has ids that 32 bits do not hold."""
    out = np.full(1024, -1, np.int64)
    device.run_block("large_global_id", (2**31 - 2, 0, 0), (2**31 - 1, 1, 1), 1024, out)
    np.testing.assert_array_equal(out, (2**31 - 2) * 1024 + np.arange(1024))


def test_i32_wraps_around(device: CpuDevice) -> None:
    """i32 arithmetic on ids wraps, as it does on a GPU."""
    out = np.full(8, -1, np.int32)
    device.run("narrow", 1, 8, out, np.int32(0x40000001))
    expected = (np.arange(8, dtype=np.int64) * 0x40000001).astype(np.int32)
    np.testing.assert_array_equal(out, expected)


def test_no_threads_means_no_work(tmp_path: Path) -> None:
    """A block of no threads runs nothing: the loops test before their first turn."""
    device = CpuDevice(gpu_module(_query("thread_id", "gpu.thread_id")), tmp_path)
    out = np.full((1, 1, 1, 1, 1, 1), -1, np.int64)
    device.run("thread_id", 1, (0, 1, 1), out)
    assert out.item() == -1
