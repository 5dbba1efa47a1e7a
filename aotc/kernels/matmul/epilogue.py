"""The epilogue of a matmul as data: operations on its accumulators before they are stored.

A step is an operation on scalars, in MLIR's generic form. Its operands are names: `sum` (the
accumulator), `e0` (the element that is read of the problem's first epilogue operand, or the scalar
itself), `batch`, `row`, `column`, or another step's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from aotc.builder import WIDEST_ACCESS, Buffer, Builder
from aotc.builder.numbers import Number, Value
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand, Place
from aotc.mlir import ir

SUM = "sum"
# What these do to numbers they do to vectors.
_OF_VECTORS = (
    *("arith.", "math.absf", "math.copysign", "math.fma", "math.roundeven", "math.sqrt"),
)
# And these: the CPU's lowering makes arithmetic of them.
_ELEMENTARY = ("math.erf", "math.exp", "math.expm1", "math.log", "math.log1p", "math.tanh")

# The number of steps of hard-swish and the additions of a bias and of another tensor, with a
# margin.
_SHORT_STEPS = 12


class Step(Struct, frozen=True):
    """An operation of an epilogue. `attributes` and `types` are text, such as `{value = 1.0 : f32}`
    and `(f32) -> f16`."""

    result: str
    operation: str
    operands: tuple[str, ...]
    attributes: str
    types: str


class Epilogue(Struct, frozen=True):
    """The steps of an epilogue, in order. `result` names the value that is stored to C, of C's
    element type. The value `sum` has the accumulator type."""

    steps: tuple[Step, ...]
    result: str

    @property
    def is_of_vectors(self) -> bool:
        """Whether the steps can be applied to vectors of consecutive elements of a row."""
        return all(
            (step.operation.startswith(_OF_VECTORS) or step.operation in _ELEMENTARY)
            and "column" not in step.operands
            for step in self.steps
        )

    @property
    def is_short(self) -> bool:
        """Whether the steps are few and cheap."""
        is_simple = all(step.operation not in _ELEMENTARY for step in self.steps)
        return is_simple and len(self.steps) <= _SHORT_STEPS

    def bind(self, operands: Sequence[EpilogueOperand], values: Sequence[Value]) -> EpilogueOf:
        """The builder of the epilogue with a problem's epilogue operands, which `steps` name by
        number, and their values."""
        return EpilogueOf(self, tuple(operands), tuple(values))


class EpilogueOf(Struct, frozen=True):
    """An `EpilogueBuilder`: an epilogue, and the epilogue operands that it reads."""

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
        # Steps that do not depend on the column are computed once.
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

    def on_elements(
        self, b: Builder, given: Mapping[str, Value], place: Place, results: Sequence[str]
    ) -> list[Value]:
        """The values that `results` name, of one element of C. `given` has the named values that
        steps read."""
        known = {**given, "row": place.row, "column": place.columns[0]}
        for number, (operand, value) in enumerate(
            zip(self.epilogue_operands, self.values, strict=True)
        ):
            [known[f"e{number}"]] = _load(b, value, operand, place)
        for step in self.epilogue.steps:
            known[step.result] = _build(b, step, known)
        return [known[name] for name in results]

    def can_take_vectors(self) -> bool:
        """Whether `on_vector` can be called."""
        return self.epilogue.is_of_vectors

    def on_vector(self, b: Builder, sums: Value, place: Place) -> Value:
        """The elements of C for a vector of accumulators, which are consecutive in a row. `place`
        has the column of the first one."""
        [result] = self.on_vectors(b, {SUM: sums}, place, [self.epilogue.result])
        return result

    def prefetch(self, b: Builder, place: Place) -> None:
        """Prefetches the elements of operands that `on_vector` loads as vectors."""
        for operand, value in zip(self.epilogue_operands, self.values, strict=True):
            if operand.element is None or operand.is_constant(place.line):
                continue
            if _is_vector_in_memory(value, operand, place):
                b.prefetch(Buffer(value), _indices(operand, place, place.columns[0]))

    def on_vectors(
        self, b: Builder, given: Mapping[str, Value], place: Place, results: Sequence[str]
    ) -> list[Value]:
        """The vectors that `results` name. `given` has the named vectors that steps read, of
        consecutive elements of a row. `place` has the indices of the first element. All operands
        are loaded before the steps."""
        width = next(iter(given.values())).type.shape[0]
        known: dict[str, Value] = {**given, "row": place.row}
        if place.batch is not None:
            known["batch"] = place.batch
        for number, (operand, value) in enumerate(
            zip(self.epilogue_operands, self.values, strict=True)
        ):
            known[f"e{number}"] = _load_neighbours(b, value, operand, place, width)
        for step in self.epilogue.steps:
            known[step.result] = _build_on_vectors(b, step, known, width)
        found = [known[name] for name in results]
        return [one if _is_vector(one) else _spread(b, one, width) for one in found]


def _build_on_vectors(b: Builder, step: Step, known: Mapping[str, Value], width: int) -> Value:
    """Builds a step whose operands are vectors or scalars. Scalars are broadcast if another operand
    is a vector."""
    operands = b.values([known[operand] for operand in step.operands])
    if not any(map(_is_vector, operands)):
        return _build(b, step, known)
    attributes = {one.name: one.attr for one in b.attribute(step.attributes)}
    spread = [one if _is_vector(one) else _spread(b, one, width) for one in operands]
    result = ir.VectorType.get([width], b.type(step.types).results[0])
    return b.op(step.operation, spread, result, **attributes)


def _is_vector(value: Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def _spread(b: Builder, value: Value, width: int) -> Value:
    return b.op("vector.broadcast", [value], ir.VectorType.get([width], value.type))


def _load_neighbours(
    b: Builder, value: Value, operand: EpilogueOperand, place: Place, width: int
) -> Value:
    """An operand's elements for `width` consecutive elements of C, as a vector. It is a scalar if
    they are the same element."""
    if operand.element is None:
        return value
    buffer, (first,) = Buffer(value), place.columns
    if operand.is_constant(place.line):
        return b.load(buffer, _indices(operand, place, first))
    if _is_vector_in_memory(value, operand, place):
        return b.load_vector(buffer, _indices(operand, place, first), width)
    elements = [b.load(buffer, _indices(operand, place, first + i)) for i in range(width)]
    return b.from_elements(elements, ir.VectorType.get([width], elements[0].type))


def _is_vector_in_memory(value: Value, operand: EpilogueOperand, place: Place) -> bool:
    """Whether an operand's elements for consecutive elements of C are contiguous in memory.
    Elements of i1 are not loaded as vectors."""
    is_contiguous = value.type.get_strides_and_offset()[0][-1] == 1
    return operand.is_along(place.line) and is_contiguous and operand.element in ELEMENT_BYTES


def _build(b: Builder, step: Step, known: Mapping[str, Value]) -> Value:
    attributes = {one.name: one.attr for one in b.attribute(step.attributes)}
    operands = b.values([known[operand] for operand in step.operands])
    return b.op(step.operation, operands, b.type(step.types).results[0], **attributes)


def _load(b: Builder, value: Value, operand: EpilogueOperand, place: Place) -> list[Value]:
    """An operand's elements for each column of `place`. It is one element if it does not depend on
    the column."""
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
    """The number of elements of an operand that one load reads."""
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
    """The index along an axis of the element of C in the row of `place` and in `column`."""
    index: Number = {"batch": place.batch, "row": place.row, "column": column}[axis.name]
    divisor, modulus, line = axis.divisor, axis.modulus, place.line
    if line is not None and axis.name == "column":
        # If the line is known, the quotient or the remainder needs no division for each column.
        if line.is_constant(axis):
            index, divisor = line.number, divisor // line.size
        elif modulus is not None and line.holds_neighbours(axis):
            begin = line.number % (modulus // line.size) * line.size
            return begin + (index - line.number * line.size)
    index = index // divisor
    return index if modulus is None else index % modulus


def _has_column(operand: EpilogueOperand) -> bool:
    return any(axis.name == "column" for axis in operand.axes)
