"""Atomic updates without a use for the old value."""

from __future__ import annotations

import pytest

from aotc.lower.rewrites.atomics import expand_atomics
from aotc.mlir import ir, make_context

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
        expand_atomics(module.operation)
        module.operation.verify()
        text = str(module)
    assert ("memref.atomic_rmw assign" in text) == is_exchange
    assert ("memref.generic_atomic_rmw" in text) != is_exchange
