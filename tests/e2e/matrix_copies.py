"""Kernels with nvgpu.device_async_copy: alone, and in a matrix product."""

from __future__ import annotations

import numpy as np
from e2e.matrix_values import (
    BLOCK_SIZE,
    BLOCKS,
    DTYPES,
    LAUNCH,
    THREAD,
    THREADS,
    random_matrix,
)

from samples import Values, rng

# nvgpu.device_async_copy: each thread copies a few elements, and reads those of the next.

COPIES = [("f32", 1), ("f16", 4), ("f64", 1), ("f32", 4), ("i8", 16)]


def copy_name(element: str, count: int, is_partial: bool) -> str:
    return f"copy_{count}_{element}{'_partial' if is_partial else ''}"


def copy_text(element: str, count: int, is_partial: bool) -> str:
    shared = f"memref<{BLOCK_SIZE}x{count}x{element}, #gpu.address_space<workgroup>>"
    memref = f"memref<{THREADS}x{count}x{element}>"
    row = f"vector<{count}x{element}>"
    dirt = f"arith.constant dense<{'7' if element[0] == 'i' else '7.0'}> : {row}"
    bypass = " {bypassL1}" if np.dtype(DTYPES[element]).itemsize * count == 16 else ""
    known = ", %known" if is_partial else ""
    return f"""
func.func @{copy_name(element, count, is_partial)}(%x: {memref},
    %counts: memref<{THREADS}xi32>, %y: {memref})
    attributes {{llvm.emit_c_interface}} {{{LAUNCH}
             workgroup(%shared : {shared}) {{{THREAD}
    %next = arith.constant 1 : index
    %dirt = {dirt}
    vector.store %dirt, %shared[%tx, %c0] : {shared}, {row}
    gpu.barrier
    %read = memref.load %counts[%i] : memref<{THREADS}xi32>
    %known = arith.index_cast %read : i32 to index
    %copy = nvgpu.device_async_copy %x[%i, %c0], %shared[%tx, %c0], {count}{known}{bypass}
        : {memref} to {shared}
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {{numGroups = 0 : i32}}
    gpu.barrier
    %moved = arith.addi %tx, %next : index
    %other = arith.remui %moved, %sx : index
    %copied = vector.load %shared[%other, %c0] : {shared}, {row}
    vector.store %copied, %y[%i, %c0] : {memref}, {row}
    gpu.terminator
  }}
  return
}}"""


def copy_values(name: str, element: str, count: int, is_partial: bool) -> Values:
    r = rng(name)
    dtype = DTYPES[element]
    x = random_matrix(r, (THREADS, count), dtype)
    counts = r.integers(0, count + 1, THREADS, np.int32)
    copied = np.where(np.arange(count) < counts[:, None], x, 0) if is_partial else x
    y = np.roll(copied.reshape(BLOCKS, BLOCK_SIZE, count), -1, axis=1).reshape(x.shape)
    return Values({"x": x, "counts": counts, "y": x.shape}, {"y": y}, {"y": dtype})


# All together, as a matrix product is written: copies two stages deep, ldmatrix, mma.sync.
# Each block has a tile of 16 x 16, each of its two warps 8 columns of it.

PRODUCT_BLOCKS, PRODUCT_DEPTH = 2, 64
_M, _N = 16 * PRODUCT_BLOCKS, 16


def product_text() -> str:
    a, b, c = (
        f"memref<{_M}x{PRODUCT_DEPTH}xf16>",
        f"memref<{PRODUCT_DEPTH}x{_N}xf16>",
        f"memref<{_M}x{_N}xf32>",
    )
    stages = "memref<2x16x16xf16, #gpu.address_space<workgroup>>"

    def copy(stage: str, buffer: str, number: str) -> str:
        return f"""
    %{number}_p = arith.muli {stage}, %c16 : index
    %{number}_k = arith.addi %{number}_p, %chunk : index
    %{number}_j = arith.addi %{number}_p, %line : index
    %{number}_a = nvgpu.device_async_copy %a[%row, %{number}_k],
        %a_tiles[{buffer}, %line, %chunk], 4 : {a} to {stages}
    %{number}_b = nvgpu.device_async_copy %b[%{number}_j, %chunk],
        %b_tiles[{buffer}, %line, %chunk], 4 : {b} to {stages}
    %{number} = nvgpu.device_async_create_group %{number}_a, %{number}_b"""

    return f"""
func.func @product(%a: {a}, %b: {b}, %c: {c}) attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1 : index
  %blocks = arith.constant {PRODUCT_BLOCKS} : index
  %size = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)
             workgroup(%a_tiles : {stages}, %b_tiles : {stages}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %stage_count = arith.constant {PRODUCT_DEPTH // 16} : index
    %last = arith.constant {PRODUCT_DEPTH // 16 - 1} : index
    %zeros = arith.constant dense<0.0> : vector<2x2xf32>
    %first_row = arith.muli %bx, %c16 : index
    %line = arith.divui %tx, %c4 : index
    %row = arith.addi %first_row, %line : index
    %place = arith.remui %tx, %c4 : index
    %chunk = arith.muli %place, %c4 : index
    %lane = arith.remui %tx, %c32 : index
    %warp = arith.divui %tx, %c32 : index
    %column = arith.muli %warp, %c8 : index
    %tile_row = arith.remui %lane, %c16 : index
    %half = arith.divui %lane, %c16 : index
    %tile_column = arith.muli %half, %c8 : index{copy("%c0", "%c0", "before")}
    %loop:2 = scf.for %s = %c0 to %stage_count step %c1 iter_args(%pending = %before, %sum = %zeros)
        -> (!nvgpu.device.async.token, vector<2x2xf32>) {{
      %buffer = arith.remui %s, %c2 : index
      %following = arith.addi %s, %c1 : index
      %other = arith.remui %following, %c2 : index
      %stage = arith.minui %following, %last : index{copy("%stage", "%other", "next")}
      nvgpu.device_async_wait %pending {{numGroups = 1 : i32}}
      gpu.barrier
      %x = nvgpu.ldmatrix %a_tiles[%buffer, %tile_row, %tile_column]
          {{numTiles = 4 : i32, transpose = false}} : {stages} -> vector<4x2xf16>
      %y = nvgpu.ldmatrix %b_tiles[%buffer, %tile_row, %column]
          {{numTiles = 2 : i32, transpose = true}} : {stages} -> vector<2x2xf16>
      %more = nvgpu.mma.sync (%x, %y, %sum) {{mmaShape = [16, 8, 16]}}
          : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      gpu.barrier
      scf.yield %next, %more : !nvgpu.device.async.token, vector<2x2xf32>
    }}
    %group = arith.divui %lane, %c4 : index
    %member = arith.remui %lane, %c4 : index
    %pair = arith.muli %member, %c2 : index
    %to_column = arith.addi %column, %pair : index
    %to_row = arith.addi %first_row, %group : index
    %to_row_8 = arith.addi %to_row, %c8 : index
    %upper = vector.extract %loop#1[0] : vector<2xf32> from vector<2x2xf32>
    %lower = vector.extract %loop#1[1] : vector<2xf32> from vector<2x2xf32>
    vector.store %upper, %c[%to_row, %to_column] : {c}, vector<2xf32>
    vector.store %lower, %c[%to_row_8, %to_column] : {c}, vector<2xf32>
    gpu.terminator
  }}
  return
}}"""


def product_values(name: str) -> Values:
    r = rng(name)
    a = random_matrix(r, (_M, PRODUCT_DEPTH), np.float16)
    b = random_matrix(r, (PRODUCT_DEPTH, _N), np.float16)
    c = a.astype(np.float64) @ b.astype(np.float64)
    return Values({"a": a, "b": b, "c": c.shape}, {"c": c}, {"c": np.float32})
