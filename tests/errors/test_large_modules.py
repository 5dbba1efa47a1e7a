"""Modules of unusual width or depth build in time that grows with them, and not with its square.

The bounds are many times what they take on two idle cores; what they guard against takes minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

ENTRY = "attributes {llvm.emit_c_interface}"
CONSTANTS = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 1.0 : f32
"""


def _arguments(count: int) -> str:
    values = ", ".join(f"%x{i}: memref<4xf32>" for i in range(count))
    return f"func.func @f({values}) {ENTRY} {{ return }}"


def _results(count: int) -> str:
    types = ", ".join(["memref<4xf32>"] * count)
    made = "".join(f"  %a{i} = memref.alloc() : memref<4xf32>\n" for i in range(count))
    values = ", ".join(f"%a{i}" for i in range(count))
    return f"func.func @f() -> ({types}) {ENTRY} {{\n{made}  return {values} : {types}\n}}"


def _loops(count: int, loop: str) -> str:
    loops = "".join(f"  {loop.format(f'%i{i}')} {{\n" for i in range(count))
    body = f"  memref.store %z, %x[%c0] : memref<4xf32>\n{'}' * count}\n  return\n"
    return f"func.func @f(%x: memref<4xf32>) {ENTRY} {{{CONSTANTS}{loops}{body}}}"


def _accesses(count: int) -> str:
    stores = "    affine.store %z, %x[%i] : memref<4xf32>\n" * count
    body = f"  affine.for %i = 0 to 4 {{\n{stores}  }}\n  return\n"
    return f"func.func @f(%x: memref<4xf32>) {ENTRY} {{{CONSTANTS}{body}}}"


@pytest.mark.parametrize(
    "text",
    [
        _arguments(2000),
        _results(150),
        _loops(200, "scf.for {} = %c0 to %c2 step %c1"),
        _loops(200, "affine.for {} = 0 to 2"),
        _loops(200, "scf.parallel ({}) = (%c0) to (%c2) step (%c1)"),
        _accesses(3000),
    ],
    ids=["arguments", "results", "scf.for", "affine.for", "scf.parallel", "accesses"],
)
def test_it_is_built(text: str, aotc: Aotc, mlir_file: MlirFile, tmp_path: Path) -> None:
    path = mlir_file(text)
    begin = time.monotonic()
    aotc("build", path, "--chip", "sm_80", "-o", f"{tmp_path}/out/").succeeded()
    assert time.monotonic() - begin < 60
