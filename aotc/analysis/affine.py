"""Evaluation of MLIR's affine expressions over any kind of number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from aotc.mlir import ir

T = TypeVar("T")

_KINDS = (
    (ir.AffineAddExpr, "add"),
    (ir.AffineMulExpr, "mul"),
    (ir.AffineModExpr, "mod"),
    (ir.AffineFloorDivExpr, "floordiv"),
    (ir.AffineCeilDivExpr, "ceildiv"),
)


def evaluate_affine(
    expression: Any,
    dims: Sequence[T],
    symbols: Sequence[T],
    constant: Callable[[int], T],
    combine: Callable[[str, T, T], T],
) -> T:
    """The value of `expression`.

    `dims` and `symbols` are the values of its dimensions and symbols. `constant` makes a value from
    an integer. `combine(kind, left, right)` makes the value of a binary operation; `kind` is add,
    mul, mod, floordiv or ceildiv."""
    expression = expression.maybe_downcast()
    if isinstance(expression, ir.AffineConstantExpr):
        return constant(int(expression.value))
    if isinstance(expression, ir.AffineDimExpr):
        return dims[int(expression.position)]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[int(expression.position)]
    left, right = (
        evaluate_affine(one, dims, symbols, constant, combine)
        for one in (expression.lhs, expression.rhs)
    )
    kind = next(name for type_, name in _KINDS if isinstance(expression, type_))
    return combine(kind, left, right)
