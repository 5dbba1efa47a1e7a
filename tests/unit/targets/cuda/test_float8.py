"""Conversions of f8 in PTX: by the GPU's instructions from sm_89 on, by bits before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]

SOURCE = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>, %y: memref<?xi8>, %i: index) kernel {
    %v = memref.load %x[%i] : memref<?xf32>
    %a = arith.truncf %v : f32 to f8E4M3FN
    %b = arith.truncf %v : f32 to f8E5M2
    %c = arith.truncf %v downward : f32 to f8E4M3FN
    %wide = arith.extf %a : f8E4M3FN to f16
    %narrow = arith.truncf %wide : f16 to f8E5M2
    %sum = arith.addf %b, %narrow : f8E5M2
    %p = arith.bitcast %sum : f8E5M2 to i8
    %q = arith.bitcast %c : f8E4M3FN to i8
    %both = arith.xori %p, %q : i8
    memref.store %both, %y[%i] : memref<?xi8>
    gpu.return
  }
}
"""
# Of the sum, too, but for the one that is rounded downward.
INSTRUCTIONS = {
    "cvt.rn.satfinite.e4m3x2.f32": 1,
    "cvt.rn.satfinite.e5m2x2.f32": 3,
    "cvt.rn.f16x2.e4m3x2": 1,
}


@pytest.mark.parametrize("optimization", ["-O0", "-O3"])
@pytest.mark.parametrize(("chip", "has_them"), [("sm_80", False), ("sm_89", True)])
def test_instructions(
    aotc: Aotc, tmp_path: Path, optimization: str, chip: str, has_them: bool
) -> None:
    """ptxas takes the code of each chip, which has the instructions or nothing of them."""
    source, out = tmp_path / "x.mlir", tmp_path / "x.ptx"
    source.write_text(SOURCE)
    options = (optimization, "--chip", chip, "--no-cpu-kernels")
    aotc("build", source, *options, "--emit", "cubin", "-o", tmp_path / "x.cubin").succeeded()
    aotc("build", source, *options, "--emit", "ptx", "-o", out).succeeded()
    ptx = out.read_text()
    found = {name: ptx.count(name) for name in INSTRUCTIONS}
    assert found == {name: count if has_them else 0 for name, count in INSTRUCTIONS.items()}
    assert "__CUDA_ARCH" not in ptx
    assert "reflect" not in ptx
