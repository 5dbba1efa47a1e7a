"""Lowers `stablehlo.sort` by `aotc.frontends.merge_sort`, which is stable whether or not the
operation requires it. https://openxla.org/stablehlo/spec#sort"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.merge_sort import MergeSort
from aotc.frontends.radix_sort import SortKey
from aotc.frontends.sort_operands import operand_of_numbers, used_length
from aotc.frontends.stablehlo.regions import declare_key, declare_region, replace_by_text

# Predicates of arith.cmpi and arith.cmpf, and whether they are ascending: "less" and "greater",
# with a sign, and of unsigned integers or of ordered floats.
_ORDERS = {
    "arith.cmpi": {2: True, 4: False, 6: True, 8: False},
    "arith.cmpf": {2: False, 4: True},
}
_UNSIGNED = (6, 8)


def lower_sort(ir: Any, operation: Any) -> None:
    types = [ir.RankedTensorType(value.type) for value in operation.operands]
    operands = ", ".join(f"{type_.element_type}, {type_.element_type}" for type_ in types)

    def is_before(name: str, first: str, second: str) -> str:
        values = ", ".join(f"%{first}{i}, %{second}{i}" for i in range(len(types)))
        return f"%{name} = func.call @region({values}) : ({operands}) -> i1"

    dimension = ir.IntegerAttr(operation.attributes["dimension"]).value
    first, numbers = used_length(operation, dimension), operand_of_numbers(ir, operation, dimension)
    key = _key(ir, operation)
    sort = MergeSort(types, dimension, is_before, first, numbers, key)
    elements = [type_.element_type for type_ in types for _ in range(2)]
    declarations = declare_region(elements, ["i1"])
    if key is not None:
        declarations += declare_key(elements[::2], key.element)
    replace_by_text(ir, operation, declarations + sort.text())


def _key(ir: Any, operation: Any) -> SortKey | None:
    """The order of the sort, if its region compares the same function of both elements."""
    block = operation.regions[0].blocks[0]
    value = ops.terminator(block).operands[0]
    while (maker := ops.defining(value)) is not None and maker.name == "linalg.generic":
        value = ops.terminator(maker.regions[0].blocks[0]).operands[
            list(maker.results).index(value)
        ]
    if maker is None or maker.name not in _ORDERS:
        return None
    predicate = ir.IntegerAttr(maker.attributes["predicate"]).value
    is_less = _ORDERS[maker.name].get(predicate)
    made: dict[Any, int] = {}
    plain, exchanged = (_Function(block, is_exchanged, made) for is_exchanged in (False, True))
    left, right = maker.operands
    number, sides = plain.of[left]
    if is_less is None or len(sides) != 1 or number != exchanged.of[right][0]:
        return None
    is_signed = maker.name == "arith.cmpf" or predicate not in _UNSIGNED
    element = str(left.type)
    return SortKey(element, is_less == (0 in sides), is_signed and element != "i1", None)


class _Function:
    """How the values of a region are computed of its arguments, which belong to the first and the
    second element in turns, or the other way round. `of` has a number for each value, which is the
    same for the same function, and the elements that it depends on, 0 and 1. `made` has the numbers
    of several regions."""

    def __init__(self, block: Any, is_exchanged: bool, made: dict[Any, int]) -> None:
        self._made = made
        self.of: dict[Any, tuple[int, frozenset[int]]] = {}
        for i, argument in enumerate(block.arguments):
            number = self._number(("argument", i ^ is_exchanged))
            self.of[argument] = (number, frozenset([i % 2]))
        self._visit(block)

    def _number(self, made_by: Any) -> int:
        return self._made.setdefault(made_by, len(self._made))

    def _values(self, values: Any) -> list[tuple[int, frozenset[int]]]:
        # A value that is made outside of the region is only the same as itself.
        return [self.of.get(one) or (self._number(one), frozenset()) for one in values]

    def _visit(self, block: Any) -> None:
        for operation in (one.operation for one in block.operations):
            operands, results = self._values(operation.operands), list(operation.results)
            if operation.name == "linalg.generic":
                inner = operation.regions[0].blocks[0]
                self.of.update(zip(inner.arguments, operands, strict=True))
                self._visit(inner)
                yielded = self._values(ops.terminator(inner).operands)
                self.of.update(zip(results, yielded, strict=True))
                continue
            attributes = operation.attributes
            what: Any = tuple(str(attributes[i]) for i in range(len(attributes)))
            if len(operation.regions) > 0:
                what = object()  # It is not the same as itself, as it may read the arguments.
            sides = frozenset().union(*(side for _, side in operands))
            numbers = tuple(number for number, _ in operands)
            for i, result in enumerate(results):
                made_by = (operation.name, what, str(result.type), i, numbers)
                self.of[result] = (self._number(made_by), sides)
