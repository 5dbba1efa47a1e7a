"""An `and` and an `xor` of two constants, which are one instruction of a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

KERNEL = """
func.func @masked(%x: memref<64x{element}>, %b: memref<64x{element}>)
    attributes {{llvm.emit_c_interface}} {{
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins(%b : memref<64x{element}>) outs(%x : memref<64x{element}>) {{
  ^bb0(%bits: {element}, %v: {element}):
    %mask = arith.constant 15 : {element}
    %known = arith.constant 1024 : {element}
    %kept = arith.andi %v, %mask : {element}
    %flipped = arith.xori %kept, {bits} : {element}
    linalg.yield %flipped : {element}
  }}
  return
}}"""


@pytest.mark.parametrize(
    ("element", "bits", "is_one"),
    [("i32", "%known", True), ("i32", "%bits", False), ("i64", "%known", False)],
)
def test_which_are_one(
    element: str,
    bits: str,
    is_one: bool,
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.ptx"
    path = mlir_file(KERNEL.format(element=element, bits=bits))
    aotc("build", path, "--chip", "sm_90", "--emit", "ptx", "-o", out).succeeded()
    text = out.read_text()
    assert bool(re.search(r"lop3\.b32 .*, 0x6a;", text)) == is_one
    assert bool(re.search(r"\band\.b", text)) != is_one
