"""Toy programs by NumPy: the syntax tree, evaluated as it stands, and printed as the tutorial does.

Of samples/toy it uses the parser alone. A function is called with arrays, so that nothing is
inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def output(text: str) -> str:
    """What the program prints."""
    from toy.parse import parse

    printed: list[Array] = []
    _call("main", [], {function.name: function for function in parse(text)}, printed)
    return "".join(map(printout, printed))


def printout(array: Array) -> str:
    """As the loops of the tutorial's chapter 6 print it: `%f ` for each element; each loop but the
    innermost ends a line behind what is in it. There is no line's end behind a vector."""
    if array.ndim == 0:
        return f"{array:f} "
    ending = "\n" if array.ndim > 1 else ""
    return "".join(printout(part) + ending for part in array)


def _call(name: str, arguments: list[Array], functions: Mapping[str, Any], out: list[Array]) -> Any:
    if name == "print":
        return out.append(arguments[0])
    if name == "transpose":
        return arguments[0].T
    function = functions[name]
    names = {p.name: value for p, value in zip(function.parameters, arguments, strict=True)}

    def value(node: Any) -> Any:
        match type(node).__name__:
            case "Literal":
                return np.array(node.elements).reshape(node.shape)
            case "Variable":
                return names[node.name]
            case "Binary" if node.operator == "+":
                return value(node.left) + value(node.right)
            case "Binary":
                return value(node.left) * value(node.right)
            case "Call":
                return _call(node.name, [value(part) for part in node.arguments], functions, out)

    for statement in function.body:
        match type(statement).__name__:
            case "Declare":
                made = value(statement.value)
                names[statement.name] = (
                    made if statement.shape is None else made.reshape(statement.shape)
                )
            case "Evaluate":
                value(statement.value)
            case "Return":
                return None if statement.value is None else value(statement.value)
    return None
