"""Ranges of integers whose operands have several paths to the same values."""

from __future__ import annotations

from aotc import mlir, ops
from aotc.lower.tensors.integer_ranges import range_of_scalar
from aotc.mlir import ir

_LEVELS = 40


def _mixed(operation: str) -> str:
    """An index that is computed from itself again and again, and masked."""
    lines = [
        f"  %{level + 1} = arith.{operation} %{level}, %{level} : i64" for level in range(_LEVELS)
    ]
    return "\n".join(
        [
            "func.func @f(%x: i64) -> i64 {",
            "  %mask = arith.constant 1023 : i64",
            "  %0 = arith.muli %x, %x : i64",
            *lines,
            f"  %masked = arith.andi %{_LEVELS}, %mask : i64",
            "  return %masked : i64",
            "}",
        ]
    )


def test_each_value_is_looked_at_once() -> None:
    """There are 2 to the power of 40 paths."""
    for operation in ("addi", "xori"):
        with mlir.make_context():
            module = ir.Module.parse(_mixed(operation))
            (masked,) = [one.results[0] for one in ops.find(module.operation, "arith.andi")]
            assert range_of_scalar(masked, {}, _LEVELS + 2) == (0, 1023)
