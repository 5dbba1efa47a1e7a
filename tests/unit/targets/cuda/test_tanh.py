"""tanh of narrow floats: which are a GPU's own instructions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

KERNEL = """
func.func @tanh(%x: memref<64x{0}>) attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      outs(%x : memref<64x{0}>) {{
  ^bb0(%v: {0}):
    %t = math.tanh %v : {0}
    linalg.yield %t : {0}
  }}
  return
}}"""


@pytest.mark.parametrize(("element", "is_short"), [("f16", True), ("bf16", True), ("f32", False)])
def test_which_are_short(
    element: str,
    is_short: bool,
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """f32 stays libdevice's, which is exact to its last digits: and branches on how large x is."""
    out = tmp_path / "out.ptx"
    path = mlir_file(KERNEL.format(element))
    aotc("build", path, "--chip", "sm_90", "--emit", "ptx", "-o", out).succeeded()
    text = out.read_text()
    assert text.count("ex2.approx.ftz.f32") == text.count("rcp.approx.ftz.f32") == 1
    # The series near 0 is one term, or five.
    assert (text.count("fma.rn") == 2) == is_short
