"""Makes the integer divisions that torch-mlir generates well-defined.

For a divisor of 0, PyTorch raises an error, and so does the entry. The quotient of the least
integer and -1, which would overflow, is the least integer, because PyTorch's other operations wrap
around, too.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.rewrites.checks import create_check

_DIVISIONS = (
    *("arith.divsi", "arith.divui", "arith.remsi", "arith.remui"),
    *("arith.ceildivsi", "arith.ceildivui", "arith.floordivsi"),
)
_EQ, _NE = 0, 1  # predicates of arith.cmpi
_MESSAGE = "an integer is divided by 0"


def check_divisors(module: Any) -> None:
    """Changes the divisions in the bodies of the module's `linalg.generic`, in place."""
    for generic in ops.find(module.operation, "linalg.generic"):
        for division in ops.find(generic, *_DIVISIONS):
            _check(division)


def _check(division: Any) -> None:
    from torch_mlir import ir

    value, divisor = division.operands
    known = _known(divisor)
    if known not in (None, 0, -1):
        return
    type_ = divisor.type
    with division.location, ir.InsertionPoint(division):
        one = ops.constant(type_, 1)
        if known != -1:
            is_there = ops.compare(_NE, divisor, ops.constant(type_, 0))
            divisor = create_check(is_there, divisor, one, ir.StringAttr.get(_MESSAGE))
        if isinstance(type_, ir.IntegerType) and division.name.endswith("si"):
            least = ops.constant(type_, 1 << (type_.width - 1))
            overflows = ops.binary(
                "arith.andi",
                ops.compare(_EQ, value, least),
                ops.compare(_EQ, divisor, ops.constant(type_, -1)),
            )
            divisor = ops.select(overflows, one, divisor)
        division.operands[1] = divisor


def _known(value: Any) -> int | None:
    from torch_mlir import ir

    owner = ops.defining(value)
    if owner is None or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)
