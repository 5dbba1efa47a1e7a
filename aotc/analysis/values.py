"""Integers that are known before the program runs: constants, and arithmetic on them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.analysis.affine import evaluate_affine
from aotc.mlir import ir

_CONSTANTS = ("arith.constant", "index.constant", "llvm.mlir.constant")
_SAME = (
    "arith.index_cast",
    "arith.extsi",
    "index.casts",
    "llvm.sext",
)
_SAME_IF_NATURAL = ("arith.index_castui", "arith.extui", "index.castu", "llvm.zext")
# Operations that are the same for signed and unsigned numbers if both operands are non-negative.
_NATURAL: dict[str, Callable[[int, int], int]] = {
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
    "ceildivs": lambda a, b: -(-a // b),
    "ceildivu": lambda a, b: -(-a // b),
    "divsi": lambda a, b: a // b,
    "divui": lambda a, b: a // b,
    "divs": lambda a, b: a // b,
    "divu": lambda a, b: a // b,
    "remsi": lambda a, b: a % b,
    "remui": lambda a, b: a % b,
    "rems": lambda a, b: a % b,
    "remu": lambda a, b: a % b,
}
_SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "minsi": min,
    "maxsi": max,
    "mins": min,
    "maxs": max,
}
# arith.cmpi's predicates in the order of their numbers: the signed ones, then the unsigned ones.
_SIGNED_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
)
_UNSIGNED_COMPARISONS = _SIGNED_COMPARISONS[2:]
_TRUE, _FALSE = -1, 0  # the values of an i1 constant
_INTEGER_DIALECTS = ("arith", "index", "llvm")
_MOST_BITS = 32  # a result with more bits is not known: the program may have wrapped it around

# Values with a given number: the ids and induction variables of one execution of a body.
Known = Sequence[tuple[Any, int]]


def evaluate(value: Any, known: Known = ()) -> int | None:
    """The integer that `value` is, given the numbers of the values in `known`. None if it is not
    known, or so large that the program's own arithmetic may differ."""
    for other, number in known:
        if value == other:
            return number
    operation = ops.defining(value)
    if operation is None:
        return None
    name = operation.name
    if name in _CONSTANTS:
        attribute = operation.attributes["value"]
        if isinstance(attribute, ir.BoolAttr):
            return _TRUE if attribute.value else _FALSE
        return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None
    if name == "memref.dim":
        return _static_dimension(operation, known)
    if name in _SAME:
        return evaluate(operation.operands[0], known)
    if name in _SAME_IF_NATURAL:
        natural = evaluate(operation.operands[0], known)
        return natural if natural is not None and natural >= 0 else None
    if name == "affine.apply":
        numbers = evaluate_map(operation.attributes["map"].value, operation.operands, known)
        return numbers[0]
    if name == "arith.cmpi":
        return _comparison(operation, known)
    return _arithmetic(operation, known)


def _comparison(operation: Any, known: Known) -> int | None:
    a, b = (evaluate(operand, known) for operand in operation.operands)
    if a is None or b is None:
        return None
    predicate = int(ir.IntegerAttr(operation.attributes["predicate"]).value)
    if predicate < len(_SIGNED_COMPARISONS):
        return _TRUE if _SIGNED_COMPARISONS[predicate](a, b) else _FALSE
    if a < 0 or b < 0:
        return None
    compare = _UNSIGNED_COMPARISONS[predicate - len(_SIGNED_COMPARISONS)]
    return _TRUE if compare(a, b) else _FALSE


def _static_dimension(operation: Any, known: Known) -> int | None:
    type_, axis = operation.operands[0].type, evaluate(operation.operands[1], known)
    if axis is None or not isinstance(type_, ir.MemRefType) or not 0 <= axis < type_.rank:
        return None
    return None if type_.is_dynamic_dim(axis) else int(type_.get_dim_size(axis))


def _arithmetic(operation: Any, known: Known) -> int | None:
    dialect, _, name = operation.name.partition(".")
    if dialect not in _INTEGER_DIALECTS or name not in {**_NATURAL, **_SIGNED}:
        return None
    a, b = (evaluate(operand, known) for operand in operation.operands)
    if a is None or b is None:
        return None
    if name in _NATURAL:
        return _NATURAL[name](a, b) if a >= 0 and b > 0 else None
    result = _SIGNED[name](a, b)
    type_ = operation.results[0].type
    bits = min(type_.width, _MOST_BITS) if isinstance(type_, ir.IntegerType) else _MOST_BITS
    return result if -(1 << bits - 1) <= result < 1 << bits - 1 else None


def evaluate_map(map_: Any, operands: Any, known: Known = ()) -> list[int | None]:
    """The results of an affine map; `operands` are its dimensions, then its symbols."""
    values = [evaluate(operand, known) for operand in operands]
    dimensions, symbols = values[: map_.n_dims], values[map_.n_dims :]
    return [
        evaluate_affine(result, dimensions, symbols, lambda number: number, _combine)
        for result in map_.results
    ]


_AFFINE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "mod": lambda a, b: a % b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
}


def _combine(kind: str, a: int | None, b: int | None) -> int | None:
    if a is None or b is None or (kind not in ("add", "mul") and b <= 0):
        return None
    return _AFFINE[kind](a, b)
