"""The syntax tree of a program, and the error that names a place in it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

# The sizes of a tensor. All elements are f64; a number is a tensor of rank 0.
Shape = tuple[int, ...]


def spell(shape: Shape) -> str:
    """A shape as the language writes it."""
    return f"<{', '.join(map(str, shape))}>"


@dataclass(frozen=True)
class At:
    """A place in the text: line and column, from 1."""

    line: int
    column: int


class ToyError(Exception):
    """What is wrong with a program, and where; `notes` tell of other places that led to it."""

    def __init__(self, at: At, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.notes: list[tuple[At, str]] = []


@dataclass(frozen=True)
class Literal:
    """`[[1, 2], [3, 4]]`, or a number: the elements row by row."""

    at: At
    shape: Shape
    elements: array[float]


@dataclass(frozen=True)
class Variable:
    """A parameter or a declared variable."""

    at: At
    name: str


@dataclass(frozen=True)
class Call:
    """Of a function of the program, or of `transpose` or `print`."""

    at: At
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Binary:
    """`+` or `*`, element by element; `at` is the operator's place."""

    at: At
    operator: str
    left: Expression
    right: Expression


Expression = Literal | Variable | Call | Binary


@dataclass(frozen=True)
class Declare:
    """`var name<shape> = value;`: the value has the shape's elements, in another shape maybe."""

    at: At
    name: str
    shape: Shape | None
    value: Expression


@dataclass(frozen=True)
class Return:
    """The end of a function."""

    at: At
    value: Expression | None


@dataclass(frozen=True)
class Evaluate:
    """An expression for what it prints."""

    value: Expression


Statement = Declare | Return | Evaluate


@dataclass(frozen=True)
class Function:
    """`def name(parameters) { body }`. What stands behind a `return` is not in the body."""

    at: At
    name: str
    parameters: tuple[Variable, ...]
    body: tuple[Statement, ...]
