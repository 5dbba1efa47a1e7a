"""Bodies of functions in ONNX's text format, which replace operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from aotc.frontends.onnx.elements import DOUBLE, FLOAT, INT64
from aotc.frontends.onnx.nodes import Node

# The attribute of an Identity of a 64-bit integer that must be 1 at run time. Its value is the
# message if it is not.
EXPECTED = "aotc_expected"
# The first opset that has LessOrEqual and GreaterOrEqual.
_FIRST_OR_EQUAL = 12
# The opset in which the axes of Squeeze, Unsqueeze and ReduceSum became inputs.
_FIRST_WITH_AXES = 13
# The opset in which the widths of a Pad became an input.
_FIRST_WITH_WIDTHS = 11
# The opset in which the place of a Slice became an input.
_FIRST_WITH_PLACES = 10


# A size of a tensor: a number, or the name of a scalar value if it is known at run time alone.
Size = int | str


class Rewrite(Struct, frozen=True):
    """A rewrite of an operator: the signature of a function, and a callable that returns the text
    of its body for a node, or None if torch-mlir lowers the node rightly. In the signature, `...`
    stands for all results of the node, and `***` for all inputs."""

    operator: str
    signature: str
    body: Callable[[Node], str | None]
    domain: str = ""
    # Whether the rewrite is only for nodes that torch-mlir refuses.
    is_last: bool = False

    def signed(self, node: Node) -> str:
        """The signature for a node."""
        results = ", ".join(f"y{i}" for i in range(len(node.proto.output)))
        inputs = ", ".join(f"i{i}" for i in range(len(node.proto.input)))
        return self.signature.replace("...", results).replace("***", inputs)


def constant(name: str, values: Sequence[int]) -> str:
    """The text of a 1-D constant of 64-bit integers."""
    text = ", ".join(map(str, values))
    return f"{name} = Constant <value: tensor = int64[{len(values)}] {{{text}}}> ()"


def scalar(name: str, value: float, element: int) -> str:
    """The text of a scalar constant. The element type need not have a form in ONNX's text."""
    return (
        f"{name}_f = Constant <value: tensor = float {{{value}}}> ()\n"
        f"{name} = Cast <to: int = {element}> ({name}_f)"
    )


def is_true(name: str, value: str, message: str) -> list[str]:
    """Lines that check at run time that all elements of a boolean tensor are true."""
    return [
        f"{name}_all = Cast <to: int = {INT64}> ({value})",
        f"{name}_least = ReduceMin <keepdims: int = 0> ({name}_all)",
        f'{name} = Identity <{EXPECTED}: string = "{message}"> ({name}_least)',
    ]


class Graph(str):
    """The text of a graph, as the value of an attribute."""


def text_type(element: int) -> str:
    """The name of an element type in ONNX's text format."""
    from onnx import TensorProto

    return str(TensorProto.DataType.Name(element)).lower()


class Body:
    """Builds the text of a body, one operation after another. Each method returns the name of a
    value."""

    def __init__(self, opset: int, prefix: str = "v") -> None:
        self._opset, self._prefix = opset, prefix
        self._lines: list[str] = []

    def __call__(self, operator: str, *values: str, **attributes: Any) -> str:
        """Adds an operation with one result."""
        if operator in ("LessOrEqual", "GreaterOrEqual") and self._opset < _FIRST_OR_EQUAL:
            strict = self(operator.removesuffix("OrEqual"), *values)
            return self("Or", strict, self("Equal", *values))
        (result,) = self.several(1, operator, *values, **attributes)
        return result

    def several(
        self, count: int, operator: str, *values: str, **attributes: Any
    ) -> tuple[str, ...]:
        """Adds an operation with several results."""
        names = tuple(f"{self._prefix}{len(self._lines)}_{i}" for i in range(count))
        self._add(", ".join(names), operator, values, attributes)
        return names

    def end(self, **results: str) -> str:
        """The text of the body. `results` are the values of the function's results."""
        for name, value in results.items():
            self._add(name, "Identity", (value,), {})
        return "\n".join(self._lines)

    def ints(self, values: Sequence[int], shape: Sequence[int] | None = None) -> str:
        """A constant of 64-bit integers, 1-D or with a given shape."""
        return self._constant("int64", [len(values)] if shape is None else shape, map(int, values))

    def integer(self, value: int) -> str:
        """A scalar constant of 64-bit integers."""
        return self._constant("int64", [], [value])

    def numbers(self, values: Any, element: int = FLOAT) -> str:
        """A constant of floats, with the shape of the array."""
        array = np.asarray(values)
        kind = "double" if element == DOUBLE else "float"
        text = self._constant(kind, array.shape, map(float, array.reshape(-1)))
        return text if element in (FLOAT, DOUBLE) else self.cast(text, element)

    def cast(self, value: str, element: int) -> str:
        """The value converted to an element type."""
        return self("Cast", value, to=element)

    def reshape(self, value: str, shape: Sequence[Size]) -> str:
        """The value with another shape."""
        if any(isinstance(size, str) for size in shape):
            # A size of 0 at run time is no reference to a dimension of the value.
            return self("Reshape", value, self.shape(shape), allowzero=1)
        return self("Reshape", value, self.shape(shape))

    def shape(self, sizes: Sequence[Size]) -> str:
        """Sizes as a 1-D tensor."""
        known = [size for size in sizes if not isinstance(size, str)]
        if len(known) == len(sizes):
            return self.ints(known)
        parts = [
            self.reshape(size, [1]) if isinstance(size, str) else self.ints([size])
            for size in sizes
        ]
        return self("Concat", *parts, axis=0)

    def sizes(self, value: str, known: Sequence[int | None]) -> list[Size]:
        """The sizes of a value. Those that are None in `known` are read at run time."""
        if None not in known:
            return [size for size in known if size is not None]
        shape = self("Shape", value)
        return [
            self("Gather", shape, self.integer(axis)) if size is None else size
            for axis, size in enumerate(known)
        ]

    def product(self, sizes: Iterable[Size]) -> Size:
        """The product of sizes."""
        result: Size = 1
        for size in sizes:
            if isinstance(result, int) and isinstance(size, int):
                result *= size
            else:
                result = self("Mul", self.whole(result), self.whole(size))
        return result

    def whole(self, size: Size) -> str:
        """A size as a scalar of 64-bit integers."""
        return size if isinstance(size, str) else self.integer(size)

    def number(self, size: Size, offset: float = 0.0, element: int = DOUBLE) -> str:
        """A size plus `offset`, as a scalar float."""
        if isinstance(size, str):
            number = self.cast(size, element)
            return self("Add", number, self.numbers(offset, element)) if offset else number
        return self.numbers(size + offset, element)

    def squeeze(self, value: str, axis: int) -> str:
        """The value without a dimension of size 1."""
        return self._along("Squeeze", value, axis)

    def unsqueeze(self, value: str, axis: int) -> str:
        """The value with an additional dimension of size 1."""
        return self._along("Unsqueeze", value, axis)

    def reduce(self, operator: str, value: str, axes: Sequence[int], *, keeps: bool = False) -> str:
        """A reduction along axes. In older opsets the axes are an attribute."""
        since = _FIRST_WITH_AXES if operator == "ReduceSum" else 18
        if self._opset < since:
            return self(operator, value, axes=list(axes), keepdims=int(keeps))
        return self(operator, value, self.ints(axes), keepdims=int(keeps))

    def clamp(self, value: str, least: Size, most: Size) -> str:
        """64-bit integers clamped to a range. (Max supports integers only since opset 12.)"""
        for operator, limit in (("Less", least), ("Greater", most)):
            bound = self.whole(limit)
            value = self("Where", self(operator, value, bound), bound, value)
        return value

    def part(self, value: str, start: int, end: int, axis: int) -> str:
        """A slice along an axis. In older opsets its place is an attribute."""
        if self._opset < _FIRST_WITH_PLACES:
            return self("Slice", value, starts=[start], ends=[end], axes=[axis])
        return self("Slice", value, *(self.ints([one]) for one in (start, end, axis)))

    def pad(self, value: str, widths: Sequence[int]) -> str:
        """The value padded by zeros. In older opsets the widths are an attribute."""
        if self._opset < _FIRST_WITH_WIDTHS:
            return self("Pad", value, pads=list(widths))
        return self("Pad", value, self.ints(widths))

    def within(self, places: str, sizes: str) -> str:
        """Indices into dimensions of these sizes. An index out of bounds is an error of the
        call."""
        is_in = self(
            "And", self("GreaterOrEqual", places, self.integer(0)), self("Less", places, sizes)
        )
        # The minimum of an empty tensor is not defined, so the wrong indices are counted.
        wrong = self("ReduceSum", self.cast(self("Not", is_in), INT64), keepdims=0)
        self.expect(self("Equal", wrong, self.integer(0)), "an index is out of bounds")
        return places

    def wrapped(self, indices: str, sizes: str) -> str:
        """64-bit indices into dimensions of these sizes, in which negative ones count from the end.
        An index out of bounds is an error of the call."""
        places = self.cast(indices, INT64)
        is_negative = self("Less", places, self.integer(0))
        return self.within(self("Where", is_negative, self("Add", places, sizes), places), sizes)

    def expect(self, condition: str, message: str) -> None:
        """Checks at run time that all elements of a boolean tensor are true."""
        least = self("ReduceMin", self.cast(condition, INT64), keepdims=0)
        self("Identity", least, **{EXPECTED: message})

    def _along(self, operator: str, value: str, axis: int) -> str:
        """An operation along an axis. In older opsets the axis is an attribute."""
        if self._opset < _FIRST_WITH_AXES:
            return self(operator, value, axes=[axis])
        return self(operator, value, self.ints([axis]))

    def _constant(self, kind: str, shape: Sequence[int], values: Iterable[float]) -> str:
        sizes = f"[{', '.join(map(str, shape))}]" if len(shape) else ""
        name = f"{self._prefix}{len(self._lines)}"
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
    if isinstance(value, Graph):
        return f"graph = {value}"
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
