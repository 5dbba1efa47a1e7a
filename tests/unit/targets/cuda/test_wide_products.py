"""f64's larger instructions, which upstream's lowering does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

import aotc

KERNEL = """
gpu.module @products {{
  gpu.func @product(
      %A: memref<32x{a}xf64>, %B: memref<32x{b}xf64>, %C: memref<32x{c}xf64>
  ) kernel {{
    %lane = gpu.thread_id x
    %zero = arith.constant 0 : index
    %a_row = vector.load %A[%lane, %zero] : memref<32x{a}xf64>, vector<{a}xf64>
    %b_row = vector.load %B[%lane, %zero] : memref<32x{b}xf64>, vector<{b}xf64>
    %c_row = vector.load %C[%lane, %zero] : memref<32x{c}xf64>, vector<{c}xf64>
    %a = vector.shape_cast %a_row : vector<{a}xf64> to vector<{a}x1xf64>
    %b = vector.shape_cast %b_row : vector<{b}xf64> to vector<{b}x1xf64>
    %c = vector.shape_cast %c_row : vector<{c}xf64> to vector<{rows}x2xf64>
    %d = nvgpu.mma.sync (%a, %b, %c) {{mmaShape = [{m}, 8, {k}]}}
        : (vector<{a}x1xf64>, vector<{b}x1xf64>, vector<{rows}x2xf64>) -> vector<{rows}x2xf64>
    %d_row = vector.shape_cast %d : vector<{rows}x2xf64> to vector<{c}xf64>
    vector.store %d_row, %C[%lane, %zero] : memref<32x{c}xf64>, vector<{c}xf64>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize(("m", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_ptx_has_the_instruction(m: int, k: int, tmp_path: Path) -> None:
    """Once, with as many registers as each matrix has in a lane."""
    rows = m // 8
    text = KERNEL.format(m=m, k=k, a=m * k // 32, b=k // 4, c=2 * rows, rows=rows)
    artifact = aotc.build(
        text, emit="ptx", out=tmp_path / "product.ptx", chips=("sm_90",), cpu_kernels=False
    )
    lines = artifact.path.read_text().splitlines()
    (place,) = (number for number, line in enumerate(lines) if "mma.sync" in line)
    words = " ".join(lines[place : place + 5]).split(";")[0].replace("\t", " ")
    assert f"mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64" in words
    registers = [len(group.split(",")) for group in words.replace("}", "{").split("{")[1::2]]
    assert registers == [2 * rows, m * k // 32, k // 4, 2 * rows]
