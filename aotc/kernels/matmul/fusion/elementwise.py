"""Translates the body of an elementwise `linalg.generic` along C to steps of an epilogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import has_reduction
from aotc.kernels.matmul.epilogue import Step
from aotc.kernels.matmul.fusion.collapsed import Groups, collapse, collapsed_type
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand
from aotc.kernels.matmul.vectors import as_row
from aotc.mlir import ir

_DIALECTS = ("arith.", "math.")
_WIDEST_ACCESS = 16  # bytes


class Operand(Struct):
    """An operand of a kernel: a scalar, or a view of a buffer, with its dimensions collapsed by
    `groups`. `is_row`: the view is a vector (or a batch of vectors) and is passed as a matrix of
    one row."""

    value: Any
    groups: Groups | None = None
    is_row: bool = False

    def make(self) -> Any:
        """The kernel's argument, created at the insertion point."""
        view = self.value if self.groups is None else collapse(self.value, self.groups)
        return as_row(view) if self.is_row else view

    def is_same(self, other: Operand) -> bool:
        return bool(self.value == other.value) and self.groups == other.groups


class Loops(Struct, frozen=True):
    """The loops of an operation along C. `places`: for each loop, the name of its axis and the
    index of the part of the axis that it iterates over, outermost first. `sizes`: for each axis,
    the sizes of its parts (None if unknown)."""

    places: dict[int, tuple[str, int]]
    sizes: dict[str, list[int | None]]

    @classmethod
    def of(cls, type_: Any, names: Sequence[str], map_: Any) -> Loops | None:
        """The loops of an operation with an operand that is C or a view of C, of type `type_` and
        map `map_`. `names`: the axis of C along each of its dimensions. None if the map is no
        permutation."""
        loops = _loops_of(map_)
        if loops is None or len(set(loops)) != map_.n_dims or len(loops) != map_.n_dims:
            return None
        places: dict[int, tuple[str, int]] = {}
        sizes: dict[str, list[int | None]] = {}
        for dimension, (loop, name) in enumerate(zip(loops, names, strict=True)):
            parts = sizes.setdefault(name, [])
            places[loop] = (name, len(parts))
            parts.append(None if type_.is_dynamic_dim(dimension) else type_.shape[dimension])
        return cls(places, sizes)

    def axis(self, loop: int, count: int = 1) -> Axis | None:
        """The index along `count` consecutive parts of an axis, the first of which is that of
        `loop`; None if it depends on unknown sizes."""
        name, part = self.places[loop]
        sizes = self.sizes[name]
        own, inner = sizes[part : part + count], sizes[part + count :]
        known = [size for size in inner if size is not None]
        within = None if None in own else prod(size for size in own if size is not None)
        if len(known) != len(inner) or (part and within is None):
            return None
        return Axis(name, prod(known), within if part else None)


def _loops_of(map_: Any) -> list[int] | None:
    """The loop along each dimension of an operand; None if an index is no plain loop dimension."""
    if not all(isinstance(result, ir.AffineDimExpr) for result in map_.results):
        return None
    return [ir.AffineDimExpr(result).position for result in map_.results]


def is_elementwise(operation: Any) -> bool:
    """Whether the operation is a `linalg.generic` on buffers without reductions, and with one
    output."""
    if operation.name != "linalg.generic" or operation.results or has_reduction(operation):
        return False
    _, outputs = ops.operand_groups(operation)
    return len(outputs) == 1


class Reading(Struct):
    """An epilogue under construction: the steps, and the operands that they read."""

    steps: list[Step]
    epilogue_operands: list[EpilogueOperand]
    operands: list[Operand]

    def copy(self) -> Reading:
        return Reading(list(self.steps), list(self.epilogue_operands), list(self.operands))

    def step(self, name: str, operands: Sequence[str], types: str, attributes: str = "{}") -> str:
        result = f"v{len(self.steps)}"
        self.steps.append(Step(result, name, tuple(operands), attributes, types))
        return result

    def convert(self, value: str, source: str, target: str) -> str:
        """Converts floats to floats or integers to integers, of another width."""
        if source == target:
            return value
        wider = ELEMENT_BYTES[target] > ELEMENT_BYTES[source]
        kind = ("ext", "si") if source.startswith("i") else ("ext", "f")
        if not wider:
            kind = ("trunc", kind[1][-1])
        return self.step(f"arith.{''.join(kind)}", [value], f"({source}) -> {target}")

    def read_all(
        self, operands: Iterable[tuple[Any, Any, Any]], loops: Loops
    ) -> dict[Any, str] | None:
        """The names of block arguments. `operands` has triples of an argument, its operand and the
        operand's map. None if an operand cannot be read."""
        names = {}
        for argument, value, map_ in operands:
            name = self.read(value, map_, loops)
            if name is None:
                return None
            names[argument] = name
        return names

    def read(self, value: Any, map_: Any, loops: Loops) -> str | None:
        """The name of the element that is read of an operand; None if it cannot be read."""
        if not isinstance(value.type, ir.MemRefType):
            return self.scalar(value)
        placed = place_operand(value, map_, loops)
        if placed is None:
            return None
        operand, type_, axes = placed
        element = str(type_.element_type)
        return self._take(
            EpilogueOperand(str(type_), element, axes, _alignment(type_, element)), operand
        )

    def scalar(self, value: Any) -> str | None:
        """The name of a scalar that is defined outside of the operation; None if it cannot be
        passed. Constants become steps."""
        owner = ops.defining(value)
        if owner is not None and owner.name == "arith.constant":
            return self.step(owner.name, [], f"() -> {value.type}", _attributes(owner))
        if not _is_scalar(value.type):
            return None
        return self._take(EpilogueOperand(str(value.type), None, (), 1), Operand(value))

    def _take(self, description: EpilogueOperand, operand: Operand) -> str:
        for number, (other, known) in enumerate(
            zip(self.epilogue_operands, self.operands, strict=True)
        ):
            if other == description and known.is_same(operand):
                return f"e{number}"
        self.epilogue_operands.append(description)
        self.operands.append(operand)
        return f"e{len(self.epilogue_operands) - 1}"

    def body(self, generic: Any, known: dict[Any, str], loops: Loops) -> str | None:
        """The name of the value that the operation yields. `known`: the names of its block
        arguments. None if the body has other operations than those on scalars."""
        names = dict(known)
        for operation in ops.content(generic):
            operands = []
            for value in operation.operands:
                if value not in names:
                    outside = self.scalar(value) if ops.is_made_outside(value, generic) else None
                    if outside is None:
                        return None
                    names[value] = outside
                operands.append(names[value])
            if operation.name == "linalg.yield":
                return str(operands[0])
            name = self._operation(operation, operands, loops)
            if name is None:
                return None
            names[operation.results[0]] = name
        return None

    def _operation(self, operation: Any, operands: Sequence[str], loops: Loops) -> str | None:
        if operation.name == "linalg.index":
            dimension = ir.IntegerAttr(operation.attributes["dim"]).value
            axis = loops.axis(dimension)
            return None if axis is None else self._index(axis)
        values = [*operation.operands, *operation.results]
        if (
            not operation.name.startswith(_DIALECTS)
            or len(operation.regions)
            or len(operation.results) != 1
            or not all(_is_scalar(value.type) for value in values)
        ):
            return None
        types = ", ".join(str(value.type) for value in operation.operands)
        signature = f"({types}) -> {operation.results[0].type}"
        return self.step(operation.name, operands, signature, _attributes(operation))

    def _index(self, axis: Axis) -> str:
        value = axis.name
        for name, number in (("divui", axis.divisor), ("remui", axis.modulus or 0)):
            if number > (name == "divui"):
                other = self.step(
                    "arith.constant", [], "() -> index", f"{{value = {number} : index}}"
                )
                value = self.step(f"arith.{name}", [value, other], "(index, index) -> index")
        return value


def place_operand(
    value: Any, map_: Any, loops: Loops
) -> tuple[Operand, Any, tuple[Axis, ...]] | None:
    """How a buffer is passed to a kernel: the view, its type, and the axis along each of its
    dimensions; None if that is not possible.

    Consecutive parts of an axis are collapsed to one dimension if they are contiguous in memory.
    """
    along = _loops_of(map_)
    if along is None:
        return None
    groups: list[list[int]] = []
    axes: list[Axis | None] = []
    while (first := sum(map(len, groups))) < len(along):
        group, axis = _longest(value, first, along, loops)
        axes.append(axis)
        groups.append(group)
    type_ = collapsed_type(value, groups) if groups else ir.MemRefType(value.type)
    found = tuple(axis for axis in axes if axis is not None)
    if type_ is None or len(found) != len(axes) or type_.memory_space is not None:
        return None
    return Operand(value, groups or None), type_, found


def _longest(
    value: Any, first: int, along: Sequence[int], loops: Loops
) -> tuple[list[int], Axis | None]:
    """The longest group of dimensions from `first` on that are consecutive parts of one axis and
    contiguous in memory, and the axis of the group."""
    name, part = loops.places[along[first]]
    for count in range(len(loops.sizes[name]) - part, 1, -1):
        group = list(range(first, first + count))
        places = [loops.places[along[i]] for i in group if i < len(along)]
        axis = loops.axis(along[first], count)
        after = range(group[-1] + 1, len(along))
        groups = [*([i] for i in range(first)), group, *([i] for i in after)]
        if (
            places == [(name, part + i) for i in range(count)]
            and axis is not None
            and collapsed_type(value, groups) is not None
        ):
            return group, axis
    return [first], loops.axis(along[first])


def _alignment(type_: Any, element: str) -> int:
    """The alignment of every row in bytes, if the first row has it, which `dispatch` checks."""
    size = ELEMENT_BYTES.get(element, 1)
    if type_.rank == 0:
        return size
    strides, _ = type_.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if strides[-1] != 1:
        return size
    known = [int(stride) for stride in strides[:-1] if stride != unknown]
    return gcd(_WIDEST_ACCESS, *(stride * size for stride in known))


def _is_scalar(type_: Any) -> bool:
    return isinstance(type_, ir.FloatType | ir.IntegerType | ir.IndexType)


def _attributes(operation: Any) -> str:
    pairs = [f"{name} = {operation.attributes[name]}" for name in operation.attributes]
    return f"{{{', '.join(pairs)}}}"
