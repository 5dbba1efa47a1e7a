"""Shape inference: a function is looked at anew for each list of shapes that it is called with.

A function says nothing of its arguments' shapes. `main` has no arguments: all shapes follow from
its literals, call by call. What comes of it is an instance of a function for each list of shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from toy.tree import (
    At,
    Binary,
    Call,
    Declare,
    Evaluate,
    Expression,
    Function,
    Literal,
    Return,
    Shape,
    ToyError,
    Variable,
    spell,
)

Key = tuple[str, tuple[Shape, ...]]


@dataclass(frozen=True)
class Instance:
    """A function for arguments of these shapes; `result` is None where it returns nothing."""

    function: Function
    arguments: tuple[Shape, ...]
    result: Shape | None

    @property
    def symbol(self) -> str:
        """A name that no function of the language can have."""
        if self.function.name == "main":
            return "main"
        return f"{self.function.name}({', '.join(map(spell, self.arguments))})"


def infer_shapes(functions: Mapping[str, Function]) -> dict[Key, Instance]:
    """The instances that `main` needs, each behind those that it calls; `main` is the last.

    The names are right (`check_names`). Raises ToyError where shapes do not fit, with the calls
    that led there as notes, and for a function that calls itself: without conditions, that never
    ends.
    """
    inference = _Inference(functions)
    inference.instance("main", ())
    return inference.instances


@dataclass
class _Inference:
    functions: Mapping[str, Function]
    instances: dict[Key, Instance] = field(default_factory=dict)
    # The functions that call each other, from main on.
    calls: list[str] = field(default_factory=list)

    def instance(self, name: str, arguments: tuple[Shape, ...]) -> Instance:
        key = (name, arguments)
        if key not in self.instances:
            self.calls.append(name)
            result = self._body(self.functions[name], arguments)
            self.calls.pop()
            self.instances[key] = Instance(self.functions[name], arguments, result)
        return self.instances[key]

    def _body(self, function: Function, arguments: tuple[Shape, ...]) -> Shape | None:
        variables = {
            parameter.name: shape
            for parameter, shape in zip(function.parameters, arguments, strict=True)
        }
        for statement in function.body:
            match statement:
                case Declare(at, name, shape, value):
                    variables[name] = _reshaped(at, self._value(value, variables), shape)
                case Evaluate(value=Call() as call):
                    self._call(call, variables)
                case Evaluate(value=value):
                    self._value(value, variables)
                case Return(value=value) if value is not None:
                    return self._value(value, variables)
        return None

    def _value(self, expression: Expression, variables: Mapping[str, Shape]) -> Shape:
        match expression:
            case Literal(shape=shape):
                return shape
            case Variable(name=name):
                return variables[name]
            case Binary(at, operator, left, right):
                shapes = self._value(left, variables), self._value(right, variables)
                if shapes[0] != shapes[1]:
                    raise ToyError(
                        at,
                        f"'{operator}' goes element by element: it cannot take "
                        f"{spell(shapes[0])} and {spell(shapes[1])}",
                    )
                return shapes[0]
            case Call():
                result = self._call(expression, variables)
                assert result is not None
                return result

    def _call(self, call: Call, variables: Mapping[str, Shape]) -> Shape | None:
        shapes = tuple(self._value(argument, variables) for argument in call.arguments)
        if call.name == "print":
            return None
        if call.name == "transpose":
            return shapes[0][::-1]
        if call.name in self.calls:
            path = [*self.calls[self.calls.index(call.name) :], call.name]
            raise ToyError(call.at, f"this never ends: {' calls '.join(path)}")
        try:
            return self.instance(call.name, shapes).result
        except ToyError as error:
            given = ", ".join(map(spell, shapes)) or "nothing"
            error.notes.append((call.at, f"'{call.name}' is called with {given}"))
            raise


def _reshaped(at: At, value: Shape, shape: Shape | None) -> Shape:
    if shape is None:
        return value
    if prod(shape) != prod(value):
        raise ToyError(
            at, f"{spell(shape)} has {prod(shape)} elements, its value {spell(value)} {prod(value)}"
        )
    return shape
