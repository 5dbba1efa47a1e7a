"""The expressions that elements of tensors are computed from, one step backward at a time.

An element is a tensor and an index. The index has, for each dimension, the symbol of a loop or,
after a reshape, a part of one. An expression consists of elements, constants, loop indices,
operations and reductions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, maps_of
from aotc.analysis.rounding import rounding_of, rounds_to_nearest
from aotc.mlir import ir

# The index along a dimension: a loop's symbol; the quotient or the remainder of an index by a
# number (("high", x, n), ("low", x, n)); or the constant 0 for a dimension of size 1.
Place = str | int | tuple[str, Any, int]
Index = tuple[Place, ...]


class Element(Struct, frozen=True, eq=False):
    """An element of a tensor."""

    tensor: Any
    index: Index

    def is_same(self, other: Element) -> bool:
        return bool(self.tensor == other.tensor) and self.index == other.index


class Constant(Struct, frozen=True):
    value: float


class Counter(Struct, frozen=True):
    """The value of a loop's index."""

    place: Place


class Operation(Struct, frozen=True, eq=False):
    """An operation on scalars. `name` is its name without the dialect. For a comparison, it
    includes the predicate (`cmpi 3`); for an operation that does not round to nearest, the rounding
    mode. `operation`: the operation in the module."""

    name: str
    operands: tuple[Expression, ...]
    operation: Any


class Reduction(Struct, frozen=True, eq=False):
    """The reduction of `operand` by an operation such as `addf` over the loop `symbol`, with the
    initial value `start`."""

    name: str
    operand: Expression
    symbol: str
    start: Expression


Expression = Element | Constant | Counter | Operation | Reduction


class Reader:
    """Steps backward from elements. Each reduction gets a new symbol."""

    def __init__(self) -> None:
        self._symbols = 0

    def step(self, element: Element) -> Expression | None:
        """The expression that computes the element; None if its definition is no elementwise
        operation, reshape, constant or reduction."""
        owner = ops.defining(element.tensor)
        if owner is None:
            return None
        if owner.name == "arith.constant":
            return _splat(owner)
        if owner.name in RESHAPES:
            index = _reshaped(owner, element.index)
            return None if index is None else Element(owner.operands[0], index)
        if owner.name != "linalg.generic":
            return None
        number = list(owner.results).index(element.tensor)
        return self._of_generic(owner, number, element.index)

    def _of_generic(self, generic: Any, number: int, index: Index) -> Expression | None:
        inputs, outputs = ops.operand_groups(generic)
        maps = maps_of(generic)
        out_map = maps[len(inputs) + number]
        loops: dict[int, Place] = {}
        for result, place in zip(out_map.results, index, strict=True):
            if not isinstance(result, ir.AffineDimExpr):
                return None
            loops[ir.AffineDimExpr(result).position] = place
        others = [i for i in range(out_map.n_dims) if i not in loops]
        symbol = ""
        if has_reduction(generic):
            if len(others) != 1:
                return None
            self._symbols += 1
            symbol = f"r{self._symbols}"
            loops[others[0]] = symbol
        elif others:
            return None
        values: dict[Any, Expression | None] = {}
        block = generic.regions[0].blocks[0]
        for argument, value, map_ in zip(block.arguments, [*inputs, *outputs], maps, strict=True):
            values[argument] = read_element(value, map_, loops)
        accumulator = block.arguments[len(inputs) + number]
        end = ops.terminator(block)
        if symbol:
            return _reduction(values, end.operands[number], accumulator, symbol)
        return _value(end.operands[number], values, loops)


def read_element(value: Any, map_: Any, loops: dict[int, Place]) -> Expression | None:
    """The element of a tensor that a map reads at the loops' indices. For a scalar, its
    constant."""
    if not isinstance(value.type, ir.RankedTensorType):
        return _constant(ops.known_constant(value))
    index: list[Place] = []
    for result in map_.results:
        if isinstance(result, ir.AffineDimExpr):
            index.append(loops[ir.AffineDimExpr(result).position])
        elif isinstance(result, ir.AffineConstantExpr):
            index.append(int(ir.AffineConstantExpr(result).value))
        else:
            return None
    return Element(value, tuple(index))


def _reduction(
    values: dict[Any, Expression | None], result: Any, accumulator: Any, symbol: str
) -> Expression | None:
    """The reduction of a body whose result is one operation on the accumulator and on a value that
    does not depend on it; None for another body."""
    last = ops.defining(result)
    if last is None or len(last.operands) != 2 or accumulator not in list(last.operands):
        return None
    first, second = last.operands
    other = second if first == accumulator else first
    start = values.pop(accumulator)
    operand = _value(other, values, {})
    if start is None or operand is None:
        return None
    return Reduction(last.name.partition(".")[2], operand, symbol, start)


def _value(
    value: Any, values: dict[Any, Expression | None], loops: dict[int, Place]
) -> Expression | None:
    if value in values:
        return values[value]
    owner = ops.defining(value)
    if owner is None:
        return None
    if owner.name == "arith.constant":
        return _constant(ops.known_constant(value))
    if owner.name == "linalg.index":
        place = loops.get(ir.IntegerAttr(owner.attributes["dim"]).value)
        return None if place is None else Counter(place)
    if owner.regions or len(owner.results) != 1 or not owner.name.startswith(("arith.", "math.")):
        return None
    operands = [_value(operand, values, loops) for operand in owner.operands]
    if None in operands:
        return None
    name = owner.name.partition(".")[2]
    if "predicate" in owner.attributes:
        name = f"{name} {ir.IntegerAttr(owner.attributes['predicate']).value}"
    if not rounds_to_nearest(owner):
        name = f"{name} {rounding_of(owner).name}"
    return Operation(name, tuple(one for one in operands if one is not None), owner)


def _constant(attribute: Any) -> Constant | None:
    """The number of an attribute; None for an attribute of another kind."""
    for kind in (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr):
        if isinstance(attribute, kind):
            return Constant(float(kind(attribute).value))
    return None


def _splat(constant: Any) -> Constant | None:
    attribute = constant.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    return _constant(attribute.get_splat_value())


def _reshaped(reshape: Any, index: Index) -> Index | None:
    """The index in the source of a reshape. None if a group of collapsed dimensions has an unknown
    size other than the first."""
    groups = ops.groups_of(reshape)
    source = ir.RankedTensorType(reshape.operands[0].type)
    result = ir.RankedTensorType(reshape.results[0].type)
    collapses = reshape.name == "tensor.collapse_shape"
    wide = source if collapses else result
    # Without groups, all dimensions are 1.
    found: dict[int, Place] = dict.fromkeys(range(source.rank), 0) if not groups else {}
    for number, group in enumerate(groups):
        longer = [i for i in group if wide.is_dynamic_dim(i) or wide.get_dim_size(i) != 1]
        if any(wide.is_dynamic_dim(i) for i in longer[1:]):
            return None
        sizes = [int(wide.get_dim_size(i)) for i in longer[1:]]
        if collapses:
            found.update(dict.fromkeys(group, 0))
            found.update(zip(longer, _split(index[number], sizes), strict=False))
        else:
            found[number] = _joined([index[i] for i in longer], sizes)
    return tuple(found[i] for i in range(source.rank))


def _split(place: Place, sizes: Sequence[int]) -> list[Place]:
    """The indices along dimensions that are collapsed to one. `sizes`: the sizes of all of them but
    the first."""
    if not sizes:
        return [place]
    inner = math.prod(sizes)
    first: Place = ("high", place, inner)
    rest: Place = ("low", place, inner)
    if isinstance(place, tuple) and place[0] == "joined" and place[2] % inner == 0:
        outer, own = place[1]
        if place[2] == inner:
            first, rest = outer, own
        else:
            # For o * n + i and n = m * inner: o * m + i / inner, and i % inner.
            first = joined_place(outer, ("high", own, inner), place[2] // inner)
            rest = ("low", own, inner)
    elif isinstance(place, tuple) and place[0] == "joined" and inner % place[2] == 0:
        # For o * n + i and n * m = inner: o / m, and o % m * n + i.
        (outer, own), count = place[1], inner // place[2]
        first = ("high", outer, count)
        rest = joined_place(("low", outer, count), own, place[2])
    return [first, *_split(rest, sizes[1:])]


def _joined(places: Sequence[Place], sizes: Sequence[int]) -> Place:
    """The index along dimensions that are collapsed to one; 0 for none. `sizes`: see `_split`."""
    if len(places) < 2:
        return places[0] if places else 0
    return joined_place(places[0], _joined(places[1:], sizes[1:]), math.prod(sizes))


def joined_place(first: Place, second: Place, inner: int) -> Place:
    """The place `first * inner + second`."""
    is_one = (
        isinstance(first, tuple)
        and isinstance(second, tuple)
        and (first[0], second[0]) == ("high", "low")
        and first[1:] == second[1:] == (first[1], inner)
    )
    if is_one and isinstance(first, tuple):
        return first[1]  # type: ignore[no-any-return]
    return ("joined", (first, second), inner)


def renamed_place(place: Any, symbol: Any, to: str) -> Any:
    """The place with another symbol, or a part of a symbol, renamed."""
    if place == symbol:
        return to
    if isinstance(place, tuple):
        return tuple(renamed_place(one, symbol, to) for one in place)
    return place


def parts_of(place: Any) -> Iterator[tuple[str, Any, int]]:
    """The quotients, remainders and joined indices that an index consists of, including itself."""
    if isinstance(place, tuple):
        if isinstance(place[0], str):
            yield place
        for one in place:
            yield from parts_of(one)
