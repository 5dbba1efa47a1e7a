"""What operations of kernels need of a chip, where their types decide."""

from __future__ import annotations

import pytest

from aotc import mlir
from aotc.request import Chip
from aotc.targets.cuda.requirements import find_needs

MMA = """%c = nvgpu.mma.sync(%x, %y, %z) {{mmaShape = [{shape}]{tf32}}}
  : (vector<{x}>, vector<{y}>, vector<{z}>) -> vector<{z}>"""


@pytest.mark.parametrize(
    ("shape", "x", "y", "z", "tf32", "least"),
    [
        ("16, 8, 8", "2x2xf16", "1x2xf16", "2x2xf16", "", None),
        ("16, 8, 8", "2x2xf16", "1x2xf16", "2x2xf32", "", None),
        ("16, 8, 16", "4x2xf16", "2x2xf16", "2x2xf16", "", 80),
        ("16, 8, 8", "2x2xbf16", "1x2xbf16", "2x2xf32", "", 80),
        ("16, 8, 4", "2x1xf32", "1x1xf32", "2x2xf32", ", tf32Enabled", 80),
        ("8, 8, 4", "1x1xf64", "1x1xf64", "1x2xf64", "", 80),
        ("16, 8, 32", "4x4xi8", "2x4xi8", "2x2xi32", "", 80),
    ],
)
def test_products(shape: str, x: str, y: str, z: str, tf32: str, least: int | None) -> None:
    """Turing has two forms of mma.sync alone."""
    body = MMA.format(shape=shape, x=x, y=y, z=z, tf32=tf32)
    with mlir.make_context():
        module = mlir.ir.Module.parse(
            f"""gpu.module @device {{
  func.func @f(%x: vector<{x}>, %y: vector<{y}>, %z: vector<{z}>) {{
    {body}
    return
  }}
}}"""
        )
        needs = find_needs(module.operation)
        assert [need.least for need in needs] == ([] if least is None else [least])


def test_a_need_as_text() -> None:
    text = "gpu.module @device { gpu.func @k() kernel { nvvm.wgmma.fence.aligned gpu.return } }"
    with mlir.make_context():
        (need,) = find_needs(mlir.ir.Module.parse(text).operation)
        assert str(need) == "nvvm.wgmma.fence.aligned needs sm_90a"
        assert [need.is_met_by(Chip(name)) for name in ("sm_90", "sm_90a", "sm_100a")] == [
            False,
            True,
            False,
        ]
