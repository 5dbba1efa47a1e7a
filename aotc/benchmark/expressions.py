"""Arithmetic expressions of a size, from options: `2*n**3` → a number."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from aotc.errors import InputError

_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_LARGEST_POWER = 64


def evaluate(text: str, names: Mapping[str, float]) -> float:
    """The value of an expression with numbers, `names`, + - * / // ** and parentheses. Raises
    InputError for any other expression."""
    try:
        return float(_value(ast.parse(text, mode="eval").body, names))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        known = " and ".join(names) or "no size"
        raise InputError(
            f"'{text}' is no expression: use numbers, {known}, + - * / // ** and parentheses."
        ) from None


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            first, second = _value(left, names), _value(right, names)
            if isinstance(op, ast.Pow) and abs(second) > _LARGEST_POWER:
                raise ValueError
            return float(_OPERATIONS[type(op)](first, second))
        case _:
            raise ValueError
