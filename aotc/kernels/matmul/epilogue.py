"""What is done with a product's sums before they are stored, as data, and how that is written.

A step is an operation on scalars as MLIR's generic form spells it; its operands are names: `sum`,
`e0` (what is read of the first of the problem's epilogue operands, or that scalar itself), `batch`,
`row`, `column`, or another step's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand, Place
from aotc.numbers import Number, Value

SUM = "sum"


class Step(Struct, frozen=True):
    """`attributes` and `types` are text: `{value = 1.0 : f32}` and `(f32) -> f16`."""

    result: str
    operation: str
    operands: tuple[str, ...]
    attributes: str
    types: str


class Epilogue(Struct, frozen=True):
    """`result` names the value that C gets, of C's element type; a sum has the accumulator's."""

    steps: tuple[Step, ...]
    result: str

    def bind(self, operands: Sequence[EpilogueOperand], values: Sequence[Value]) -> EpilogueOf:
        """The epilogue with a problem's operands, which `steps` name by number, and their
        values."""
        return EpilogueOf(self, tuple(operands), tuple(values))


class EpilogueOf(Struct, frozen=True):
    """A `EpilogueBuilder`: an epilogue, and the epilogue operands that it reads."""

    epilogue: Epilogue
    epilogue_operands: tuple[EpilogueOperand, ...]
    values: tuple[Value, ...]

    def __call__(self, b: Builder, sums: Sequence[Value], place: Place) -> list[Value]:
        loaded = [
            list(place.given[number]) if number in place.given else _load(b, value, operand, place)
            for number, (operand, value) in enumerate(
                zip(self.epilogue_operands, self.values, strict=True)
            )
        ]
        # What is the same for all neighbours is computed once.
        common: dict[str, Value] = {"row": place.row}
        if place.batch is not None:
            common["batch"] = place.batch
        for number, (operand, values) in enumerate(
            zip(self.epilogue_operands, loaded, strict=True)
        ):
            if not _has_column(operand):
                common[f"e{number}"] = values[0]
        own: list[Step] = []
        for step in self.epilogue.steps:
            if all(operand in common for operand in step.operands):
                common[step.result] = _build(b, step, common)
            else:
                own.append(step)
        results = []
        for i, (sum_, column) in enumerate(zip(sums, place.columns, strict=True)):
            known = common | {SUM: sum_, "column": column}
            for number, values in enumerate(loaded):
                known.setdefault(f"e{number}", values[min(i, len(values) - 1)])
            for step in own:
                known[step.result] = _build(b, step, known)
            results.append(known[self.epilogue.result])
        return results


def _build(b: Builder, step: Step, known: Mapping[str, Value]) -> Value:
    attributes = {one.name: one.attr for one in b.attribute(step.attributes)}
    operands = b.values([known[operand] for operand in step.operands])
    return b.op(step.operation, operands, b.type(step.types).results[0], **attributes)


def _load(b: Builder, value: Value, operand: EpilogueOperand, place: Place) -> list[Value]:
    """An operand's elements for each of the neighbours, or the one that all have."""
    if operand.element is None:
        return [value]
    buffer = Buffer(value)
    if not _has_column(operand):
        return [b.load(buffer, _indices(operand, place, 0))]
    count, width = len(place.columns), _width(operand, place)
    return [
        element
        for first in range(0, count, width)
        for element in b.load_elements(
            buffer, _indices(operand, place, place.columns[first]), width
        )
    ]


def _width(operand: EpilogueOperand, place: Place) -> int:
    """How many neighbours are read at once."""
    count, size = len(place.columns), ELEMENT_BYTES.get(operand.element or "")
    if size is None or not (place.is_whole and operand.is_along_rows):
        return 1
    width = count
    while width > 1 and (operand.alignment % (width * size) or width * size > WIDEST_ACCESS):
        width = width // 2 if width % 2 == 0 else 1
    return width


def _indices(operand: EpilogueOperand, place: Place, column: Number) -> list[Number]:
    return [index_along(axis, place, column) for axis in operand.axes]


def index_along(axis: Axis, place: Place, column: Number) -> Number:
    """An axis's index at a place."""
    index: Number = {"batch": place.batch, "row": place.row, "column": column}[axis.name]
    index = index // axis.divisor
    return index if axis.modulus is None else index % axis.modulus


def _has_column(operand: EpilogueOperand) -> bool:
    return any(axis.name == "column" for axis in operand.axes)
