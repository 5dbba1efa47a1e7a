"""Atomic updates without a use for the old value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aotc
from aotc.mlir import ir, make_context
from aotc.rewrites.atomics import exchange_folded_updates

UPDATE = """
func.func @f(%m: memref<4xi32>, %v: i32, %i: index) -> i32 {{
  %old = memref.generic_atomic_rmw %m[%i] : memref<4xi32> {{
  ^bb0(%current: i32):
    {body}
    memref.atomic_yield %new : i32
  }}
  return %old : i32
}}
"""
ZERO = "%zero = arith.constant 0 : i32"


@pytest.mark.parametrize(
    ("body", "is_exchange"),
    [
        (f"{ZERO}\n%new = arith.andi %current, %zero : i32", True),
        ("%new = arith.subi %v, %v : i32", True),
        ("%new = arith.andi %current, %v : i32", False),
    ],
)
def test_updates_that_ignore_the_old_value(body: str, is_exchange: bool) -> None:
    """They become exchanges; upstream has no lowering for them. Others stay."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(UPDATE.format(body=body))
        exchange_folded_updates(module.operation)
        module.operation.verify()
        text = str(module)
    assert ("memref.atomic_rmw assign" in text) == is_exchange
    assert ("memref.generic_atomic_rmw" in text) != is_exchange


# Only branches show that the loop runs once, and that all of the sum's bits are cleared.
LATE = """
func.func @f(%m: memref<4xi32> {aotc.name = "m"}, %n: index) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
    threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    LOOP
    gpu.terminator
  }
  LOOP
  return
}
""".replace(
    "LOOP",
    """
    %c0 = arith.constant 0 : index
    %low = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %many = arith.constant 100 : i32
    %last = scf.while (%i = %low) : (i32) -> i32 {
      %next = arith.addi %i, %one : i32
      %hundreds = arith.divsi %next, %many : i32
      %old = memref.generic_atomic_rmw %m[%c0] : memref<4xi32> {
      ^bb0(%current: i32):
        %new = arith.minui %current, %hundreds : i32
        memref.atomic_yield %new : i32
      }
      %again = arith.cmpi sgt, %many, %many : i32
      scf.condition(%again) %next : i32
    } do {
    ^bb0(%i: i32):
      scf.yield %i : i32
    }""",
)


def test_updates_that_only_branches_show_to_ignore_the_old_value(tmp_path: Path) -> None:
    """In code of the GPU, of its form for the CPU, and of the host."""
    paths = aotc.build(LATE, emit=["ptx", "host-ll"], out=tmp_path).paths
    assert re.search(r"atom\.\S*exch", paths["ptx"].read_text())
    host = paths["host-ll"].read_text()
    assert len(re.findall(r"atomicrmw xchg ptr [^,]+, i32 0", host)) == 2
