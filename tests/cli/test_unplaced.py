"""Modules without locations, as programs write them, are built with -g too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

# Calls on the host (of the entry, by its C interface) and in a kernel.
TEXT = """
module attributes {gpu.container_module} {
  gpu.module @k {
    gpu.func @run(%x: memref<4xf32>) kernel {
      %i = gpu.thread_id x loc(LOCATION)
      %v = memref.load %x[%i] : memref<4xf32> loc(LOCATION)
      %w = func.call @twice(%v) : (f32) -> f32 loc(LOCATION)
      memref.store %w, %x[%i] : memref<4xf32> loc(LOCATION)
      gpu.return loc(LOCATION)
    } loc(LOCATION)
    func.func @twice(%v: f32) -> f32 {
      %w = arith.addf %v, %v : f32 loc(LOCATION)
      return %w : f32 loc(LOCATION)
    } loc(LOCATION)
  } loc(LOCATION)
  func.func @f(%x: memref<4xf32>) attributes {llvm.emit_c_interface} {
    %c = arith.constant 1 : index loc(LOCATION)
    %n = arith.constant 4 : index loc(LOCATION)
    gpu.launch_func @k::@run blocks in (%c, %c, %c) threads in (%n, %c, %c)
      args(%x : memref<4xf32>) loc(LOCATION)
    return loc(LOCATION)
  } loc(LOCATION)
}
"""


@pytest.mark.parametrize("location", ["unknown", '"a node"', '"a node"(unknown)'])
def test_calls_are_at_line_0_of_the_input(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path, location: str
) -> None:
    """LLVM refuses a call without a place in a function that has debug information."""
    source = mlir_file(TEXT.replace("LOCATION", location))
    command = ("build", source, "-g", "--emit", "host-ll,device-ll,obj", "--chip", "sm_90")
    aotc(*command, "-o", f"{tmp_path}/out/").succeeded()
    calls = 0
    for file in (tmp_path / "out").glob("*.ll"):
        text = file.read_text()
        for called, place in re.findall(r"call \w+ @(f|twice)\(.*?, !dbg (!\d+)", text):
            assert f"{place} = !DILocation(line: 0, " in text, called
            assert f'!DIFile(filename: "{source.name}"' in text
            calls += 1
    # Of the host, of the kernel for GPUs and of the same for CPUs.
    assert calls == 3
