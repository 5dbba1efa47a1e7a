"""Bodies of functions that are written in ONNX's text, for the operators whose place they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT64
from aotc.frontends.onnx.nodes import Node

# The attribute of an Identity of a 64-bit integer that has to be 1 when the entry is called: what
# is said if it is not.
EXPECTED = "aotc_expected"
# The opset that has LessOrEqual and GreaterOrEqual first.
_FIRST_OR_EQUAL = 12
# The opset in which the axes of Squeeze, Unsqueeze and ReduceSum became inputs.
_FIRST_WITH_AXES = 13


class Rewrite(Struct, frozen=True):
    """A function for an operator: its inputs and results, and the text of its body for a node: None
    where torch-mlir has the node right. Results that stand as `...`, and inputs as `***`, are as
    many as the node's."""

    operator: str
    signature: str
    body: Callable[[Node], str | None]
    domain: str = ""
    # Whether it is for the nodes alone that torch-mlir refuses.
    is_last: bool = False

    def signed(self, node: Node) -> str:
        """The signature for a node."""
        results = ", ".join(f"y{i}" for i in range(len(node.proto.output)))
        inputs = ", ".join(f"i{i}" for i in range(len(node.proto.input)))
        return self.signature.replace("...", results).replace("***", inputs)


def constant(name: str, values: Sequence[int]) -> str:
    """A vector of 64-bit integers."""
    text = ", ".join(map(str, values))
    return f"{name} = Constant <value: tensor = int64[{len(values)}] {{{text}}}> ()"


def scalar(name: str, value: float, element: int) -> str:
    """A scalar of an element type that need not have a text form."""
    return (
        f"{name}_f = Constant <value: tensor = float {{{value}}}> ()\n"
        f"{name} = Cast <to: int = {element}> ({name}_f)"
    )


def is_true(name: str, value: str, message: str) -> list[str]:
    """That all of a tensor of booleans is true, which is found when the entry is called."""
    return [
        f"{name}_all = Cast <to: int = {INT64}> ({value})",
        f"{name}_least = ReduceMin <keepdims: int = 0> ({name}_all)",
        f'{name} = Identity <{EXPECTED}: string = "{message}"> ({name}_least)',
    ]


class Body:
    """A body that is written one operation after another, each of which gives a value's name."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._lines: list[str] = []

    def __call__(self, operator: str, *values: str, **attributes: Any) -> str:
        """The result of an operation."""
        if operator in ("LessOrEqual", "GreaterOrEqual") and self._opset < _FIRST_OR_EQUAL:
            strict = self(operator.removesuffix("OrEqual"), *values)
            return self("Or", strict, self("Equal", *values))
        (result,) = self.several(1, operator, *values, **attributes)
        return result

    def several(
        self, count: int, operator: str, *values: str, **attributes: Any
    ) -> tuple[str, ...]:
        """The results of an operation that has some."""
        names = tuple(f"v{len(self._lines)}_{i}" for i in range(count))
        self._add(", ".join(names), operator, values, attributes)
        return names

    def end(self, **results: str) -> str:
        """The text, in which results of the function are these values."""
        for name, value in results.items():
            self._add(name, "Identity", (value,), {})
        return "\n".join(self._lines)

    def ints(self, values: Sequence[int], shape: Sequence[int] | None = None) -> str:
        """A constant of 64-bit integers: a vector, or of a shape."""
        return self._constant("int64", [len(values)] if shape is None else shape, map(int, values))

    def integer(self, value: int) -> str:
        """A scalar of 64 bits."""
        return self._constant("int64", [], [value])

    def numbers(self, values: Any, element: int = FLOAT) -> str:
        """A constant of floats, with the shape that an array has."""
        array = np.asarray(values)
        kind = "double" if element == DOUBLE else "float"
        text = self._constant(kind, array.shape, map(float, array.reshape(-1)))
        return text if element in (FLOAT, DOUBLE) else self.cast(text, element)

    def cast(self, value: str, element: int) -> str:
        """A value as elements of a type."""
        return self("Cast", value, to=element)

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """A value in another shape."""
        return self("Reshape", value, self.ints(shape))

    def squeeze(self, value: str, axis: int) -> str:
        """A value without a dimension of size 1."""
        return self._along("Squeeze", value, axis)

    def unsqueeze(self, value: str, axis: int) -> str:
        """A value with another dimension, of size 1."""
        return self._along("Unsqueeze", value, axis)

    def reduce(self, operator: str, value: str, axes: Sequence[int], *, keeps: bool = False) -> str:
        """A reduction along axes, which were an attribute before they became an input."""
        since = _FIRST_WITH_AXES if operator == "ReduceSum" else 18
        if self._opset < since:
            return self(operator, value, axes=list(axes), keepdims=int(keeps))
        return self(operator, value, self.ints(axes), keepdims=int(keeps))

    def clamp(self, value: str, least: int, most: int) -> str:
        """64-bit integers, brought into a range. (Max of integers is one of opset 12.)"""
        for operator, limit in (("Less", least), ("Greater", most)):
            bound = self.integer(limit)
            value = self("Where", self(operator, value, bound), bound, value)
        return value

    def part(self, value: str, start: int, end: int, axis: int) -> str:
        """A slice along an axis."""
        return self("Slice", value, *(self.ints([one]) for one in (start, end, axis)))

    def within(self, places: str, sizes: str) -> str:
        """Indices into dimensions of these sizes, where one that is out of bounds is an error of
        the call."""
        is_in = self(
            "And", self("GreaterOrEqual", places, self.integer(0)), self("Less", places, sizes)
        )
        # Of no indices, the least truth value is none.
        wrong = self("ReduceSum", self.cast(self("Not", is_in), INT64), keepdims=0)
        self.expect(self("Equal", wrong, self.integer(0)), "an index is out of bounds")
        return places

    def wrapped(self, indices: str, sizes: str) -> str:
        """64-bit indices into dimensions of these sizes, from indices that count from the end where
        they are negative; one that is out of bounds is an error of the call."""
        places = self.cast(indices, INT64)
        is_negative = self("Less", places, self.integer(0))
        return self.within(self("Where", is_negative, self("Add", places, sizes), places), sizes)

    def expect(self, condition: str, message: str) -> None:
        """That all of a tensor of booleans is true, which is found when the entry is called."""
        least = self("ReduceMin", self.cast(condition, INT64), keepdims=0)
        self("Identity", least, **{EXPECTED: message})

    def _along(self, operator: str, value: str, axis: int) -> str:
        """An operation along an axis, which was an attribute before it became an input."""
        if self._opset < _FIRST_WITH_AXES:
            return self(operator, value, axes=[axis])
        return self(operator, value, self.ints([axis]))

    def _constant(self, kind: str, shape: Sequence[int], values: Iterable[float]) -> str:
        sizes = f"[{', '.join(map(str, shape))}]" if len(shape) else ""
        name = f"v{len(self._lines)}"
        text = ", ".join(map(str, values))
        self._lines.append(f"{name} = Constant <value: tensor = {kind}{sizes} {{{text}}}> ()")
        return name

    def _add(
        self, names: str, operator: str, values: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        given = ", ".join(f"{name}: {_attribute_text(value)}" for name, value in attributes.items())
        options = f" <{given}>" if given else ""
        self._lines.append(f"{names} = {operator}{options} ({', '.join(values)})")


def _attribute_text(value: Any) -> str:
    if isinstance(value, str):
        return f'string = "{value}"'
    if isinstance(value, float):
        return f"float = {value}"
    if isinstance(value, list) and value and isinstance(value[0], str):
        quoted = ", ".join(f'"{one}"' for one in value)
        return f"strings = [{quoted}]"
    if isinstance(value, list):
        return f"ints = [{', '.join(map(str, value))}]"
    return f"int = {int(value)}"
