"""`vector.print` in kernels → `gpu.printf` with the same text as on the host."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir

_NAME = "vector.print"
_KERNELS = ("gpu.launch", "gpu.module")
# The text of each `vector.punctuation`.
_PUNCTUATION = {
    "no_punctuation": "",
    "newline": "\n",
    "comma": ", ",
    "open": "( ",
    "close": " )",
}
_FORMATS = {"f64": "%g", "i64": "%lld", "index": "%llu"}
_LONG = 64
# CUDA's printf takes 32 arguments.
_MOST_ARGUMENTS = 32


def print_in_kernels(module: Any) -> None:
    """Changes `module` in place. A text that is too long for one printf takes several, between
    which other threads may print."""
    with module.context:
        for operation in ops.find(module.operation, _NAME):
            if ops.enclosing(operation, *_KERNELS) is not None:
                with operation.location, ir.InsertionPoint(operation):
                    _print(operation)
                ops.erase(operation)


def _print(operation: Any) -> None:
    texts: list[str] = [""]
    values: list[Any] = []
    end = str(operation.attributes["punctuation"]).rstrip(">").split("<")[-1]
    if "stringLiteral" in operation.attributes:
        said = ir.StringAttr(operation.attributes["stringLiteral"]).value
        texts[-1] += said.replace("%", "%%")
    for value in operation.operands:
        shape = list(value.type.shape) if isinstance(value.type, ir.VectorType) else []
        _add(value, shape, (), texts, values)
    # A string literal is printed without punctuation.
    if "stringLiteral" not in operation.attributes:
        texts[-1] += _PUNCTUATION[end]
    # texts[i] is the text before value i; texts[-1] is the text after the last value.
    for first in range(0, max(1, len(values)), _MOST_ARGUMENTS):
        last = min(first + _MOST_ARGUMENTS, len(values))
        arguments = [_argument(value) for value in values[first:last]]
        formats = [_FORMATS[str(argument.type)] for argument in arguments]
        text = "".join(map(str.__add__, texts[first:last], formats))
        if last == len(values):
            text += texts[-1]
        if text:
            ops.create("gpu.printf", arguments, attributes={"format": ir.StringAttr.get(text)})


def _add(
    value: Any, shape: list[int], position: tuple[int, ...], texts: list[str], values: list[Any]
) -> None:
    """Appends the elements after `position`, in the form `( ( 1, 2 ), ( 3, 4 ) )`."""
    if not shape and not position and isinstance(value.type, ir.VectorType):
        texts[-1] += _PUNCTUATION["open"]
        values.append(_element(value, ()))
        texts.append(_PUNCTUATION["close"])
        return
    if not shape:
        values.append(_element(value, position))
        texts.append("")
        return
    texts[-1] += _PUNCTUATION["open"]
    for i in range(shape[0]):
        texts[-1] += _PUNCTUATION["comma"] if i else ""
        _add(value, shape[1:], (*position, i), texts, values)
    texts[-1] += _PUNCTUATION["close"]


def _element(value: Any, position: tuple[int, ...]) -> Any:
    return ops.extract(value, *position) if isinstance(value.type, ir.VectorType) else value


def _argument(value: Any) -> Any:
    """The value, converted to a type that printf takes."""
    type_ = value.type
    if isinstance(type_, ir.FloatType):
        name = "arith.extf" if type_.width < _LONG else "arith.truncf"
        f64 = ir.F64Type.get()
        return value if type_ == f64 else ops.unary(name, value, f64)
    if isinstance(type_, ir.IntegerType) and type_.width != _LONG:
        if not type_.is_signless:
            signless = ops.integer(type_.width)
            value = ops.unary("builtin.unrealized_conversion_cast", value, signless)
        is_unsigned = type_.width == 1 or type_.is_unsigned
        name = "arith.extui" if is_unsigned else "arith.extsi"
        return ops.unary(name if type_.width < _LONG else "arith.trunci", value, ops.integer(_LONG))
    return value
