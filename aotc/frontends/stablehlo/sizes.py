"""Sizes that are known at run time alone, as expressions.

An operation of dynamic shape has a tensor of integers, its shape. Here these integers become
numbers and expressions of sizes of inputs, so that equal sizes are equal expressions, and no tensor
is computed and read for them.

An expression is an int, or a tuple of an operation's name and its operands:
("tensor.dim", tensor, dimension), ("tensor.extract", tensor, place), or an operation of arith.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

Expression = Any

# Operations with a shape operand, and its number.
_SHAPED = {
    "stablehlo.dynamic_broadcast_in_dim": 1,
    "stablehlo.dynamic_iota": 0,
    "stablehlo.dynamic_reshape": 1,
}
# Operations on integers, and those of arith.
_ARITHMETIC = {
    "stablehlo.add": "arith.addi",
    "stablehlo.and": "arith.andi",
    "stablehlo.divide": "arith.divsi",
    "stablehlo.maximum": "arith.maxsi",
    "stablehlo.minimum": "arith.minsi",
    "stablehlo.multiply": "arith.muli",
    "stablehlo.or": "arith.ori",
    "stablehlo.remainder": "arith.remsi",
    "stablehlo.subtract": "arith.subi",
}
# Python's operations for those of arith on two numbers.
_FOLDS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.muli": operator.mul,
    "arith.subi": operator.sub,
}
# Operations whose elements are ones of an operand.
_MOVEMENTS = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "concatenate", "reshape", "slice")
)
_PREDICATES = {"EQ": 0, "NE": 1, "LT": 2, "LE": 3, "GT": 4, "GE": 5}  # of arith.cmpi
# Elementwise operations, whose results have the sizes of the last operand.
_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and atan2 cbrt ceil compare convert cosine divide exponential "
        "exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum multiply "
        "negate not or power remainder round_nearest_afz round_nearest_even rsqrt select sign sine "
        "sqrt subtract tan tanh xor reverse"
    ).split()
)


class Sizes:
    """Finds the expressions of sizes and of elements of integer tensors. `known` has the sizes of
    values that replace results of operations of dynamic shape."""

    def __init__(self, ir: Any) -> None:
        self._ir = ir
        self.known: dict[Any, list[Expression]] = {}

    def all_of(self, tensor: Any) -> list[Expression]:
        return [self.of(tensor, i) for i in range(tensor.type.rank)]

    def of(self, tensor: Any, dimension: int) -> Expression:
        """The size of a dimension of a tensor."""
        if not tensor.type.is_dynamic_dim(dimension):
            return tensor.type.get_dim_size(dimension)
        if tensor in self.known:
            return self.known[tensor][dimension]
        operation = _owner(tensor)
        name = "" if operation is None else operation.name
        if name in _SHAPED:
            return self.element(operation.operands[_SHAPED[name]], (dimension,))
        if name in _ELEMENTWISE:
            return self.of(operation.operands[-1], dimension)
        if name == "stablehlo.transpose":
            permutation = self._integers(operation, "permutation")
            return self.of(operation.operands[0], permutation[dimension])
        if name == "stablehlo.reduce":
            read = operation.operands[0]
            left = {*range(read.type.rank)} - {*self._integers(operation, "dimensions")}
            return self.of(read, sorted(left)[dimension])
        return ("tensor.dim", tensor, dimension)

    def element(self, tensor: Any, place: tuple[int, ...]) -> Expression:
        """An element of a tensor of integers or booleans."""
        operation = _owner(tensor)
        name = "" if operation is None else operation.name
        given = [] if operation is None else list(operation.operands)
        if name in _ARITHMETIC:
            return folded(_ARITHMETIC[name], *(self.element(one, place) for one in given))
        if name in _MOVEMENTS:
            return self.element(*self._source(operation, place))
        if name == "stablehlo.constant" and tensor.type.element_type.width > 1:
            values = self._ir.DenseIntElementsAttr(operation.attributes["value"])
            return int(values[0 if values.is_splat else _number(tensor, place)])
        if name == "stablehlo.get_dimension_size":
            return self.of(given[0], self._integer(operation, "dimension"))
        if name == "stablehlo.convert" and _is_integer(self._ir, given[0]):
            return self.element(given[0], place)
        if name == "stablehlo.sign":
            least = folded("arith.maxsi", self.element(given[0], place), -1)
            return folded("arith.minsi", least, 1)
        if name == "stablehlo.select":
            places = [place if one.type.rank else () for one in given]
            return ("arith.select", *map(self.element, given, places))
        if name == "stablehlo.compare" and _is_integer(self._ir, given[0]):
            words = str(operation.attributes["comparison_direction"])
            predicate = next(n for word, n in _PREDICATES.items() if word in words)
            return ("arith.cmpi", predicate, *(self.element(one, place) for one in given))
        return ("tensor.extract", tensor, place)

    def _source(self, operation: Any, place: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
        """The tensor and the place from which one of `_MOVEMENTS` has an element."""
        read = operation.operands[0]
        if operation.name == "stablehlo.reshape":
            return read, _place(read, _number(operation.results[0], place))
        if operation.name == "stablehlo.broadcast_in_dim":
            axes = self._integers(operation, "broadcast_dimensions")
            pairs = zip(axes, read.type.shape, strict=True)
            return read, tuple(0 if size == 1 else place[i] for i, size in pairs)
        if operation.name == "stablehlo.slice":
            starts = self._integers(operation, "start_indices")
            steps = self._integers(operation, "strides")
            moved = zip(starts, place, steps, strict=True)
            return read, tuple(start + i * step for start, i, step in moved)
        along = self._integer(operation, "dimension")
        parts, at = iter(operation.operands), place[along]
        read = next(parts)
        while at >= read.type.get_dim_size(along):
            at -= read.type.get_dim_size(along)
            read = next(parts)
        return read, (*place[:along], at, *place[along + 1 :])

    def emit(self, expression: Expression) -> Any:
        """The value of an expression, computed at the insertion point: an index or an i1."""
        if isinstance(expression, int):
            index = self._ir.IntegerAttr.get(self._ir.IndexType.get(), expression)
            return self._create("arith.constant", [], index.type, value=index)
        name, *operands = expression
        index = self._ir.IndexType.get()
        if name == "tensor.dim":
            return self._create(name, [operands[0], self.emit(operands[1])], index)
        if name == "tensor.extract":
            tensor, place = operands
            element = tensor.type.element_type
            found = self._create(name, [tensor, *map(self.emit, place)], element)
            return found if element.width == 1 else self._create("arith.index_cast", [found], index)
        flag = self._ir.IntegerType.get_signless(1)
        if name == "arith.cmpi":
            number = self._ir.IntegerAttr.get(self._ir.IntegerType.get_signless(64), operands[0])
            given = [*map(self.emit, operands[1:])]
            # Booleans are compared as numbers without sign, which is the same for EQ and NE.
            return self._create(name, given, flag, predicate=number)
        given = [*map(self.emit, operands)]
        return self._create(name, given, given[-1].type)

    def _integer(self, operation: Any, name: str) -> int:
        return int(self._ir.IntegerAttr(operation.attributes[name]).value)

    def _integers(self, operation: Any, name: str) -> list[int]:
        return list(self._ir.DenseI64ArrayAttr(operation.attributes[name]))

    def _create(self, name: str, operands: Sequence[Any], type_: Any, **attributes: Any) -> Any:
        return self._ir.Operation.create(
            name, results=[type_], operands=list(operands), attributes=attributes
        ).result


def product(sizes: Sequence[Expression]) -> Expression:
    """The product of sizes: the same expression for the same factors in any order."""
    factors: list[Expression] = []
    number = 1
    left = list(sizes)
    while left:
        one = left.pop()
        if isinstance(one, int):
            number *= one
        elif one[0] == "arith.muli":
            left += one[1:]
        else:
            factors.append(one)
    made: Expression = number
    for factor in sorted(factors, key=_key):
        made = folded("arith.muli", made, factor)
    return made


def _key(expression: Expression) -> str:
    """An order of expressions that is the same in each build."""
    if isinstance(expression, tuple):
        return f"({' '.join(map(_key, expression))})"
    if isinstance(expression, int):
        return str(expression)
    return str(getattr(expression, "get_name", lambda: "")())


def folded(name: str, left: Expression, right: Expression) -> Expression:
    """An operation of arith on two expressions, computed where it is known."""
    compute = _FOLDS.get(name)
    if compute is not None and isinstance(left, int) and isinstance(right, int):
        return compute(left, right)
    neutral = {"arith.addi": 0, "arith.subi": 0, "arith.muli": 1, "arith.divsi": 1}.get(name)
    if neutral is not None and right == neutral and isinstance(right, int):
        return left
    if neutral is not None and left == neutral and name in ("arith.addi", "arith.muli"):
        return right
    return (name, left, right)


def integer_pairs(ir: Any, operation: Any, name: str, count: int) -> list[tuple[int, int]]:
    """An attribute of pairs, which are zeros by default."""
    if name not in operation.attributes:
        return [(0, 0)] * count
    values = ir.DenseIntElementsAttr(operation.attributes[name])
    if values.is_splat:
        return [(values[0], values[0])] * count
    return [(values[2 * i], values[2 * i + 1]) for i in range(count)]


def _owner(value: Any) -> Any:
    """The operation that defines a value; None for a block argument."""
    return getattr(value.owner, "operation", None)


def _is_integer(ir: Any, tensor: Any) -> bool:
    return isinstance(tensor.type.element_type, ir.IntegerType)


def _number(tensor: Any, place: Sequence[int]) -> int:
    """The number of an element in row-major order."""
    number = 0
    for at, size in zip(place, tensor.type.shape, strict=True):
        number = number * size + at
    return number


def _place(tensor: Any, number: int) -> tuple[int, ...]:
    """The place of an element, by its number in row-major order."""
    shape = list(tensor.type.shape)
    return tuple(number // math.prod(shape[i + 1 :]) % size for i, size in enumerate(shape))
