"""What is done with a product's sums before they are stored, as data, and how that is written.

A step is an operation on scalars as MLIR's generic form spells it; its operands are names: `sum`,
`e0` (what is read of the first of the problem's extras, or that scalar itself), `batch`, `row`,
`column`, or another step's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, Emitter, Extra, Finish, Place

SUM = "sum"
_WIDEST_ACCESS = 16  # bytes


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

    def finish(self, extras: Sequence[Extra]) -> Finish:
        """Of a problem's extras, which `steps` name by their numbers."""

        def write(emitter: Emitter, sums: Sequence[str], place: Place) -> list[str]:
            return self._write(emitter, extras, sums, place)

        return write

    def _write(
        self, e: Emitter, extras: Sequence[Extra], sums: Sequence[str], place: Place
    ) -> list[str]:
        loaded = [
            list(place.given[number])
            if number in place.given
            else _read(e, f"%e{number}", extra, place)
            for number, extra in enumerate(extras)
        ]
        # What is the same for all neighbours is computed once.
        common: dict[str, str] = {"row": place.row}
        if place.batch is not None:
            common["batch"] = place.batch
        for number, (extra, values) in enumerate(zip(extras, loaded, strict=True)):
            if not _has_column(extra):
                common[f"e{number}"] = values[0]
        own: list[Step] = []
        for step in self.steps:
            if all(operand in common for operand in step.operands):
                common[step.result] = _do(e, step, common)
            else:
                own.append(step)
        results = []
        for i, (sum_, column) in enumerate(zip(sums, place.columns, strict=True)):
            known = common | {SUM: sum_, "column": column}
            for number, values in enumerate(loaded):
                known.setdefault(f"e{number}", values[min(i, len(values) - 1)])
            for step in own:
                known[step.result] = _do(e, step, known)
            results.append(known[self.result])
        return results


def _do(e: Emitter, step: Step, known: Mapping[str, str]) -> str:
    operands = ", ".join(known[operand] for operand in step.operands)
    return e.value(f'"{step.operation}"({operands}) {step.attributes} : {step.types}')


def _has_column(extra: Extra) -> bool:
    return any(axis.name == "column" for axis in extra.axes)


def _read(e: Emitter, name: str, extra: Extra, place: Place) -> list[str]:
    """An extra's elements for each of the neighbours, or the one that all have."""
    if extra.element is None:
        return [name]
    if not _has_column(extra):
        return [_load(e, name, extra, place, "")]
    count, size = len(place.columns), ELEMENT_BYTES.get(extra.element)
    if size is None or not (place.is_whole and extra.is_along_rows):
        return [_load(e, name, extra, place, column) for column in place.columns]
    width = count
    while width > 1 and (extra.alignment % (width * size) or width * size > _WIDEST_ACCESS):
        width = width // 2 if width % 2 == 0 else 1
    if width == 1:
        return [_load(e, name, extra, place, column) for column in place.columns]
    values = []
    vector = f"vector<{width}x{extra.element}>"
    alignment = width * size
    for first in range(0, count, width):
        at = _indices(e, extra, place, place.columns[first])
        both = e.value(
            f"vector.load {name}[{at}] {{alignment = {alignment} : i64}} : {extra.type}, {vector}"
        )
        values += [
            e.value(f"vector.extract {both}[{i}] : {extra.element} from {vector}")
            for i in range(width)
        ]
    return values


def _load(e: Emitter, name: str, extra: Extra, place: Place, column: str) -> str:
    at = _indices(e, extra, place, column)
    return e.value(f"memref.load {name}[{at}] : {extra.type}")


def _indices(e: Emitter, extra: Extra, place: Place, column: str) -> str:
    return ", ".join(index_of(e, axis, place, column) for axis in extra.axes)


def index_of(e: Emitter, axis: Axis, place: Place, column: str) -> str:
    """An axis's index at a place."""
    index = {"batch": place.batch, "row": place.row, "column": column}[axis.name]
    assert index is not None
    for operation, number in (("divui", axis.divisor), ("remui", axis.modulus)):
        if number is not None and (operation, number) != ("divui", 1):
            index = e.value(f"arith.{operation} {index}, {e.constant(number)} : index")
    return index
