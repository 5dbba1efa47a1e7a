"""Parallel loops in parallel loops, as tiles have: the kernels for GPUs run on the CPU, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import run_both

from aotc import build
from aotc.errors import InputError

ENTRY = "attributes {llvm.emit_c_interface}"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32"""


def tiles(rows: int, columns: int, depth: int, tile: int, mapping: str = "") -> str:
    """A matmul and an activation by tiles; those at the ends of rows and columns are smaller."""
    x, y, z = (
        f"tensor<{a}x{b}xf32>" for a, b in ((rows, depth), (depth, columns), (rows, columns))
    )
    any_ = "tensor<?x?xf32>"
    return f"""
func.func @f(%x: {x}, %y: {y}) -> {z} {ENTRY} {{{CONSTANTS}
  %tile = arith.constant {tile} : index
  %init = tensor.empty() : {z}
  %made = scf.forall (%i, %j) = (0, 0) to ({rows}, {columns}) step ({tile}, {tile})
      shared_outs(%all = %init) -> ({z}) {{
    %m = affine.min affine_map<(i) -> ({tile}, {rows} - i)>(%i)
    %n = affine.min affine_map<(j) -> ({tile}, {columns} - j)>(%j)
    %a = tensor.extract_slice %x[%i, 0] [%m, {depth}] [1, 1] : {x} to tensor<?x{depth}xf32>
    %b = tensor.extract_slice %y[0, %j] [{depth}, %n] [1, 1] : {y} to tensor<{depth}x?xf32>
    %e = tensor.empty(%m, %n) : {any_}
    %filled = linalg.fill ins(%zero : f32) outs(%e : {any_}) -> {any_}
    %product = linalg.matmul ins(%a, %b : tensor<?x{depth}xf32>, tensor<{depth}x?xf32>)
        outs(%filled : {any_}) -> {any_}
    %to = tensor.extract_slice %all[%i, %j] [%m, %n] [1, 1] : {z} to {any_}
    %active = linalg.tanh ins(%product : {any_}) outs(%to : {any_}) -> {any_}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %active into %all[%i, %j] [%m, %n] [1, 1] : {any_} into {z}
    }}
  }} {mapping}
  return %made : {z}
}}"""


# Each row's elements are added to the ones before, as often as the row's first element says, in a
# buffer, whose first element is stored by itself.
ROUNDS = f"""
func.func @f(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {ENTRY} {{{CONSTANTS}
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {{
    %first = memref.load %x[%i, %c0] : memref<?x?xf32>
    %whole = arith.fptoui %first : f32 to i32
    %rounds = arith.index_cast %whole : i32 to index
    %buffer = memref.alloc(%columns) : memref<?xf32>
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      memref.store %v, %buffer[%j] : memref<?xf32>
      scf.reduce
    }}
    %last = scf.for %k = %c0 to %rounds step %c1 iter_args(%sum = %first) -> (f32) {{
      %before = memref.load %buffer[%c0] : memref<?xf32>
      scf.parallel (%j) = (%c1) to (%columns) step (%c1) {{
        %v = memref.load %buffer[%j] : memref<?xf32>
        %more = arith.addf %v, %before : f32
        memref.store %more, %buffer[%j] : memref<?xf32>
        scf.reduce
      }}
      %next = memref.load %buffer[%c1] : memref<?xf32>
      memref.store %next, %buffer[%c0] : memref<?xf32>
      %both = arith.addf %sum, %next : f32
      scf.yield %both : f32
    }}
    %is_odd = arith.cmpf ogt, %last, %zero : f32
    scf.if %is_odd {{
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
        %v = memref.load %buffer[%j] : memref<?xf32>
        memref.store %v, %y[%i, %j] : memref<?x?xf32>
        scf.reduce
      }}
    }} else {{
      memref.store %last, %y[%i, %c0] : memref<?x?xf32>
    }}
    memref.dealloc %buffer : memref<?xf32>
    scf.reduce
  }}
  return
}}"""


def rounds(x: Any, y: Any) -> Any:
    y = y.copy()
    for row, out in zip(x.copy(), y, strict=True):
        total = row[0]
        for _ in range(int(row[0])):
            row[1:] += row[0]
            row[0] = row[1]
            total += row[0]
        if total > 0:
            out[:] = row
        else:
            out[0] = total
    return y


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "tile"),
    [(64, 96, 24, 32), (70, 45, 8, 32), (33, 9, 3, 8), (64, 64, 3, 4)],
)
def test_tiles(rows: int, columns: int, depth: int, tile: int, tmp_path: Path) -> None:
    """Buffers are in shared memory: a kernel allocates none, and has few threads for few points."""
    rng = np.random.default_rng(tile)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    y = rng.standard_normal((depth, columns)).astype(np.float32)
    made = np.full((rows, columns), np.nan, np.float32)
    module, found = run_both(tiles(rows, columns, depth, tile), tmp_path, x, y, made)
    for one in found:
        np.testing.assert_allclose(one, np.tanh(x.astype(np.float64) @ y), rtol=1e-4, atol=1e-6)
    assert "gpu.dynamic_shared_memory" in module
    assert "memref.alloc" not in module
    assert "gpu.alloc" not in module


def test_a_mapping_to_blocks(tmp_path: Path) -> None:
    """Which dimension of a grid the author gave a loop."""
    text = tiles(40, 40, 3, 16, "{mapping = [#gpu.block<y>, #gpu.block<x>]}")
    x, y = np.ones((40, 3), np.float32), np.ones((3, 40), np.float32)
    module, found = run_both(text, tmp_path, x, y, np.zeros((40, 40), np.float32))
    for one in found:
        np.testing.assert_allclose(one, np.tanh(3), rtol=1e-6)
    assert "gpu.launch_func" in module


@pytest.mark.parametrize(("rows", "columns"), [(7, 33), (0, 5), (1300, 2), (3, 1000)])
def test_buffers_of_the_callers_sizes(rows: int, columns: int, tmp_path: Path) -> None:
    """Each block has a buffer in global memory; more rows than these are computed in turns."""
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    x[:, :1] = rng.integers(0, 4, (rows, 1))
    y = np.full((rows, columns), -1, np.float32)
    module, found = run_both(ROUNDS, tmp_path, x, y)
    for one in found:
        np.testing.assert_allclose(one, rounds(x, y), rtol=1e-5)
    assert "gpu.alloc" in module
    assert "memref.alloc" not in module


def test_large_tiles(tmp_path: Path) -> None:
    """More than shared memory has."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((130, 5)).astype(np.float32)
    y = rng.standard_normal((5, 140)).astype(np.float32)
    made = np.zeros((130, 140), np.float32)
    module, found = run_both(tiles(130, 140, 5, 128), tmp_path, x, y, made)
    for one in found:
        np.testing.assert_allclose(one, np.tanh(x.astype(np.float64) @ y), rtol=1e-4, atol=1e-6)
    assert "gpu.alloc" in module
    assert "memref.alloc" not in module


# Small windows, without buffers.
WINDOWS = f"""
func.func @f(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {ENTRY} {{{CONSTANTS}
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c64) step (%c4, %c4) {{
    %first = memref.load %x[%i, %j] : memref<64x64xf32>
    scf.parallel (%k, %l) = (%c0, %c0) to (%c4, %c4) step (%c1, %c1) {{
      %r = arith.addi %i, %k : index
      %c = arith.addi %j, %l : index
      %v = memref.load %x[%r, %c] : memref<64x64xf32>
      %d = arith.subf %v, %first : f32
      memref.store %d, %y[%r, %c] : memref<64x64xf32>
      scf.reduce
    }}
    scf.reduce
  }}
  return
}}"""


def test_small_loops_are_of_a_thread(tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    module, found = run_both(WINDOWS, tmp_path, x, np.zeros_like(x))
    for one in found:
        np.testing.assert_array_equal(one, x - np.kron(x[::4, ::4], np.ones((4, 4), np.float32)))
    assert "gpu.barrier" not in module


# A sum of four numbers for each row, which are stored in between.
SMALL_BUFFERS = f"""
func.func @f(%x: memref<200x4xf32>, %y: memref<200xf32>) {ENTRY} {{{CONSTANTS}
  %c4 = arith.constant 4 : index
  %c200 = arith.constant 200 : index
  scf.parallel (%i) = (%c0) to (%c200) step (%c1) {{
    %buffer = memref.alloc() : memref<4xf32>
    scf.for %k = %c0 to %c4 step %c1 {{
      %v = memref.load %x[%i, %k] : memref<200x4xf32>
      %square = arith.mulf %v, %v : f32
      memref.store %square, %buffer[%k] : memref<4xf32>
    }}
    %first = memref.load %buffer[%c0] : memref<4xf32>
    %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %zero) -> (f32) {{
      %v = memref.load %buffer[%k] : memref<4xf32>
      %q = arith.divf %v, %first : f32
      %t = arith.addf %s, %q : f32
      scf.yield %t : f32
    }}
    memref.store %sum, %y[%i] : memref<200xf32>
    memref.dealloc %buffer : memref<4xf32>
    scf.reduce
  }}
  return
}}"""


def test_small_buffers_are_on_the_stack(tmp_path: Path) -> None:
    x = np.random.default_rng(4).standard_normal((200, 4)).astype(np.float32)
    module, found = run_both(SMALL_BUFFERS, tmp_path, x, np.zeros(200, np.float32))
    for one in found:
        np.testing.assert_allclose(one, (x**2 / x[:, :1] ** 2).sum(1), rtol=1e-5)
    assert "memref.alloca" in module
    assert "memref.alloc(" not in module
    assert "gpu.barrier" not in module


def passed_on(buffer: str, free: str) -> str:
    """Sums of neighbours, three times, each of which is in another buffer."""
    return f"""
func.func @f(%x: memref<9x40xf32>, %y: memref<9x40xf32>) {ENTRY} {{{CONSTANTS}
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %c39 = arith.constant 39 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c9) step (%c1) {{
    %first = memref.alloc() : {buffer}
    scf.parallel (%j) = (%c0) to (%c40) step (%c1) {{
      %v = memref.load %x[%i, %j] : memref<9x40xf32>
      memref.store %v, %first[%j] : {buffer}
    }}
    %last = scf.for %k = %c0 to %c3 step %c1 iter_args(%old = %first) -> ({buffer}) {{
      %new = memref.alloc() : {buffer}
      scf.parallel (%j) = (%c0) to (%c40) step (%c1) {{
        %other = arith.subi %c39, %j : index
        %v = memref.load %old[%j] : {buffer}
        %w = memref.load %old[%other] : {buffer}
        %s = arith.subf %v, %w : f32
        %t = arith.addf %s, %v : f32
        memref.store %t, %new[%j] : {buffer}
      }}
      {free}
      scf.yield %new : {buffer}
    }}
    scf.parallel (%j) = (%c0) to (%c40) step (%c1) {{
      %v = memref.load %last[%j] : {buffer}
      memref.store %v, %y[%i, %j] : memref<9x40xf32>
    }}
    memref.dealloc %last : {buffer}
  }}
  return
}}"""


@pytest.mark.parametrize("size", [40, 40000])
def test_buffers_that_a_loop_passes_on(size: int, tmp_path: Path) -> None:
    """Each iteration has another one: these are no buffers of the block, nor on the stack."""
    x = np.random.default_rng(8).standard_normal((9, 40)).astype(np.float32)
    buffer = f"memref<{size}xf32>"
    text = passed_on(buffer, f"memref.dealloc %old : {buffer}")
    _, found = run_both(text, tmp_path, x, np.zeros_like(x))
    expected = x
    for _ in range(3):
        expected = expected - expected[:, ::-1] + expected
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-5)


# A buffer that is freed by another name.
CHOSEN = f"""
func.func @f(%x: memref<50x4xf32>, %y: memref<50x4xf32>) {ENTRY} {{{CONSTANTS}
  %c4 = arith.constant 4 : index
  %c50 = arith.constant 50 : index
  scf.parallel (%i) = (%c0) to (%c50) step (%c1) {{
    %a = memref.alloc() : memref<4xf32>
    %b = memref.alloc() : memref<4xf32>
    scf.for %k = %c0 to %c4 step %c1 {{
      %v = memref.load %x[%i, %k] : memref<50x4xf32>
      %w = arith.negf %v : f32
      memref.store %v, %a[%k] : memref<4xf32>
      memref.store %w, %b[%k] : memref<4xf32>
    }}
    %first = memref.load %a[%c0] : memref<4xf32>
    %is_more = arith.cmpf ogt, %first, %zero : f32
    %one = arith.select %is_more, %a, %b : memref<4xf32>
    %other = arith.select %is_more, %b, %a : memref<4xf32>
    scf.for %k = %c0 to %c4 step %c1 {{
      %v = memref.load %one[%k] : memref<4xf32>
      memref.store %v, %y[%i, %k] : memref<50x4xf32>
    }}
    memref.dealloc %one : memref<4xf32>
    memref.dealloc %other : memref<4xf32>
  }}
  return
}}"""


def test_buffers_that_are_freed_by_another_name(tmp_path: Path) -> None:
    x = np.random.default_rng(9).standard_normal((50, 4)).astype(np.float32)
    _, found = run_both(CHOSEN, tmp_path, x, np.zeros_like(x))
    for one in found:
        np.testing.assert_array_equal(one, np.where(x[:, :1] > 0, x, -x))


@pytest.mark.parametrize("space", ["#gpu.address_space<workgroup>", "3"])
def test_the_memory_of_a_block_is_refused(space: str, tmp_path: Path) -> None:
    text = SMALL_BUFFERS.replace("memref<4xf32>", f"memref<4xf32, {space}>")
    with pytest.raises(InputError, match="a block's memory is for kernels") as caught:
        build(text, name="f", emit="mlir", out=tmp_path / "x.mlir")
    assert "workgroup buffers" in (caught.value.hint or "")
