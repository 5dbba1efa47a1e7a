"""The machine code of CPU kernels: loops without calls, which LLVM vectorizes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import (
    HOST_TARGET,
    CpuDevice,
    build,
    compile_ir,
    gpu_module,
    llvm_ir,
)

ADD = """
      %v = memref.load %a[%x] : memref<?xf32>
      %w = memref.load %b[%x] : memref<?xf32>
      %s = arith.addf %v, %w : f32
      memref.store %s, %c[%x] : memref<?xf32>"""
SIGNATURE = "(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %n: index) kernel"
KNOWN = "attributes {known_block_size = array<i32: 256, 1, 1>}"
KERNELS = {
    "plain": f"gpu.func @plain{SIGNATURE} {KNOWN} {{ %x = gpu.global_id x {ADD} gpu.return }}",
    "guarded": f"""
    gpu.func @guarded{SIGNATURE} {KNOWN} {{
      %x = gpu.global_id x
      %inside = arith.cmpi slt, %x, %n : index
      scf.if %inside {{ {ADD} }}
      gpu.return
    }}""",
    "any_block_size": f"""
    gpu.func @any_block_size{SIGNATURE} {{
      %x = gpu.global_id x
      %past = arith.cmpi sge, %x, %n : index
      cf.cond_br %past, ^end, ^work
    ^work:
      {ADD}
      cf.br ^end
    ^end:
      gpu.return
    }}""",
}
TARGETS = [HOST_TARGET, "aarch64-linux-gnu.2.28"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_a_vectorized_loop(tmp_path: Path, name: str, target: str) -> None:
    """At -O3 the loop over x is vectorized: no call, no question whether memrefs overlap."""
    text = llvm_ir(build(gpu_module(KERNELS[name])))
    options = ["-target", target, "-O3", "-S", "-Rpass=loop-vectorize"]
    path, remarks = compile_ir(text, tmp_path, "kernel.s", *options)
    assembly = path.read_text()
    assert "vectorized loop" in remarks
    assert "vector.body" in assembly
    assert "memcheck" not in assembly
    assert not re.search(r"^\s+(call|bl)[ql]?\s", assembly, re.MULTILINE)


@pytest.mark.parametrize("target", TARGETS)
def test_no_call_for_each_thread_without_optimization(tmp_path: Path, target: str) -> None:
    """At -O0, too, what a thread does is part of the loops."""
    text = llvm_ir(build(gpu_module(*KERNELS.values())))
    path, _ = compile_ir(text, tmp_path, "kernel.s", "-target", target, "-O0", "-S")
    assert not re.search(r"^\s+(call|bl)[ql]?\s", path.read_text(), re.MULTILINE)


def test_known_blocks_of_one_thread_have_no_loop() -> None:
    """An extent that is known to be 1 costs nothing."""
    kernel = """
    gpu.func @k(%a: memref<i32>) kernel attributes {{known_block_size = array<i32: {}>}} {{
      %x = gpu.thread_id x
      %v = arith.index_cast %x : index to i32
      memref.store %v, %a[] : memref<i32>
      gpu.return
    }}"""
    for size, loops in (("1, 1, 1", 0), ("8, 1, 1", 1), ("1, 8, 2", 2), ("2, 2, 2", 3)):
        text = llvm_ir(build(gpu_module(kernel.format(size))))
        assert text.count(" phi i64 ") == loops, size


def test_threads_that_overlap_in_private_memory_stay_apart(tmp_path: Path) -> None:
    """Private memory that stays memory is no reason to mix up threads when vectorizing."""
    kernel = """
    gpu.func @k(%in: memref<?xi32>, %out: memref<?xi32>) private(%own: memref<8xi32>) kernel {
      %x = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %slot = arith.remui %x, %c8 : index
      %v = memref.load %in[%x] : memref<?xi32>
      memref.store %v, %own[%c0] : memref<8xi32>
      memref.store %v, %own[%slot] : memref<8xi32>
      %w = memref.load %own[%slot] : memref<8xi32>
      %u = memref.load %own[%c0] : memref<8xi32>
      %s = arith.addi %w, %u : i32
      memref.store %s, %out[%x] : memref<?xi32>
      gpu.return
    }"""
    device = CpuDevice(gpu_module(kernel), tmp_path)
    values = np.arange(1000, dtype=np.int32)
    out = np.zeros_like(values)
    device.run("k", 1, 1000, values, out)
    np.testing.assert_array_equal(out, 2 * values)
    accesses = re.findall(r"^.*(?:load i32|store i32).*$", device.text, re.MULTILINE)
    assert [("access.group" in line) for line in accesses] == [True, *[False] * 4, True]


@pytest.mark.parametrize("target", TARGETS)
def test_rounding_to_bf16_is_vectorized(tmp_path: Path, target: str) -> None:
    """f32 becomes bf16 without a call of a function for each number."""
    kernel = """
    gpu.func @k(%in: memref<?xf32>, %out: memref<?xbf16>) kernel {
      %x = gpu.thread_id x
      %v = memref.load %in[%x] : memref<?xf32>
      %w = arith.truncf %v : f32 to bf16
      memref.store %w, %out[%x] : memref<?xbf16>
      gpu.return
    }"""
    text = llvm_ir(build(gpu_module(kernel)))
    options = ["-target", target, "-O3", "-S", "-Rpass=loop-vectorize"]
    path, remarks = compile_ir(text, tmp_path, "kernel.s", *options)
    assert "vectorized loop" in remarks
    assert not re.search(r"^\s+(callq?|bl)\s", path.read_text(), re.MULTILINE)


# What `row_of_points` uses, at the beginning of a kernel.
IDS = """%c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %c128 = arith.constant 128 : index
      %block_x = gpu.block_id x
      %x = gpu.thread_id x"""


def row_of_points(place: str, type_: str) -> str:
    """The loop over a thread's consecutive points of a row: %b at `place` becomes twice %a."""
    return f"""
      %first = arith.muli %block_x, %c128 : index
      scf.for %point = %c0 to %c128 step %c32 {{
        %base = arith.addi %first, %point : index
        %at = arith.addi %base, %x : index
        %room = arith.subi %columns, %base : index
        %is_there = arith.cmpi slt, %x, %room : index
        scf.if %is_there {{
          %v = memref.load %a[{place}, %at] : {type_}
          %w = arith.addf %v, %v : f32
          memref.store %w, %b[{place}, %at] : {type_}
        }}
      }} {{aotc.points, aotc.neighbours}}"""


def test_consecutive_points_of_unknown_planes_are_vectorized(tmp_path: Path) -> None:
    """The loop over the planes of a block is outside, and the one over the points of a row has no
    loop for the points of each thread in it."""
    kernel = f"""
    gpu.func @k(%a: memref<?x8x?xf32>, %b: memref<?x8x?xf32>, %planes: index, %columns: index)
        kernel attributes {{known_block_size = array<i32: 32, 8, 1>}} {{
      {IDS}
      %block_z = gpu.block_id z
      %grid_z = gpu.grid_dim z
      %y = gpu.thread_id y
      scf.for %z = %block_z to %planes step %grid_z {{
        {row_of_points("%z, %y", "memref<?x8x?xf32>")}
      }} {{aotc.of_block}}
      gpu.return
    }}"""
    device = CpuDevice(gpu_module(kernel), tmp_path)
    _, remarks = compile_ir(device.text, tmp_path, "kernel.s", "-O3", "-S", "-Rpass=loop-vectorize")
    assert "vectorized loop" in remarks
    # Of planes, rows and columns.
    assert len(re.findall(r" phi i64 ", device.text)) == 3
    for planes, columns in ((1, 1), (3, 127), (5, 300), (0, 7), (4, 0)):
        a = np.arange(planes * 8 * columns, dtype=np.float32).reshape(planes, 8, columns)
        b = np.full_like(a, np.nan)
        grid = (max(1, -(-columns // 128)), 1, 2)
        device.run("k", grid, (32, 8, 1), a, b, np.int64(planes), np.int64(columns))
        np.testing.assert_array_equal(b, 2 * a)


def test_guards_of_rows_and_points_are_bounds_of_loops(tmp_path: Path) -> None:
    """They are no branches within the loops, which are vectorized without masks."""
    kernel = f"""
    gpu.func @k(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %rows: index, %columns: index)
        kernel attributes {{known_block_size = array<i32: 32, 8, 1>}} {{
      {IDS}
      %c8 = arith.constant 8 : index
      %block_y = gpu.block_id y
      %grid_y = gpu.grid_dim y
      %y = gpu.thread_id y
      %start = arith.muli %block_y, %c8 : index
      %stride = arith.muli %grid_y, %c8 : index
      scf.for %first_row = %start to %rows step %stride {{
        %row = arith.addi %first_row, %y : index
        %rows_left = arith.subi %rows, %first_row : index
        %has_row = arith.cmpi slt, %y, %rows_left : index
        scf.if %has_row {{
          {row_of_points("%row", "memref<?x?xf32>")}
        }}
      }} {{aotc.of_block}}
      gpu.return
    }}"""
    device = CpuDevice(gpu_module(kernel), tmp_path)
    _, remarks = compile_ir(device.text, tmp_path, "kernel.s", "-O3", "-S", "-Rpass=loop-vectorize")
    assert "vectorized loop" in remarks
    # Of the block's groups of rows, of rows and of columns.
    assert len(re.findall(r" br i1 ", device.text)) == 3
    for rows, columns in ((1, 1), (3, 127), (17, 300), (0, 7), (4, 0), (40, 129)):
        a = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        b = np.full_like(a, np.nan)
        grid = (max(1, -(-columns // 128)), 2, 1)
        device.run("k", grid, (32, 8, 1), a, b, np.int64(rows), np.int64(columns))
        np.testing.assert_array_equal(b, 2 * a)
