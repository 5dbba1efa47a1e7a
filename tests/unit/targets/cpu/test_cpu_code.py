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
