"""What can be said of a program before its shapes are known: whether its names mean anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toy.tree import (
    Binary,
    Call,
    Declare,
    Evaluate,
    Expression,
    Function,
    Return,
    Statement,
    ToyError,
    Variable,
)

# The functions that the language has: how many arguments each takes, and whether it gives a value.
BUILT_IN = {"print": (1, False), "transpose": (1, True)}


def check_names(functions: Sequence[Function]) -> list[ToyError]:
    """All that is wrong, also in functions that nobody calls."""
    known: dict[str, Function] = {}
    problems: list[ToyError] = []
    for function in functions:
        if function.name in BUILT_IN:
            problems.append(ToyError(function.at, f"'{function.name}' is the language's own"))
        elif function.name in known:
            problem = ToyError(function.at, f"a second function '{function.name}'")
            problem.notes.append((known[function.name].at, "the first is here"))
            problems.append(problem)
        else:
            known[function.name] = function
    signatures = dict(BUILT_IN)
    for name, function in known.items():
        signatures[name] = (len(function.parameters), _gives_value(function))
    for function in functions:
        problems += _Scope(signatures, is_main=function.name == "main").check(function)
    return problems


def _gives_value(function: Function) -> bool:
    last = function.body[-1] if function.body else None
    return isinstance(last, Return) and last.value is not None


@dataclass
class _Scope:
    """What the names mean inside one function."""

    signatures: dict[str, tuple[int, bool]]
    is_main: bool
    variables: set[str] = field(default_factory=set)

    def check(self, function: Function) -> Iterator[ToyError]:
        if self.is_main and function.parameters:
            yield ToyError(function.parameters[0].at, "main takes no arguments")
        for parameter in function.parameters:
            yield from self._declare(parameter)
        for statement in function.body:
            yield from self._statement(statement)

    def _declare(self, variable: Variable | Declare) -> Iterator[ToyError]:
        if variable.name in self.variables:
            yield ToyError(variable.at, f"there is a variable '{variable.name}' already")
        self.variables.add(variable.name)

    def _statement(self, statement: Statement) -> Iterator[ToyError]:
        match statement:
            case Declare(value=value):
                yield from self._expression(value)
                yield from self._declare(statement)
            case Return(at, value) if value is not None:
                if self.is_main:
                    yield ToyError(at, "main returns nothing")
                yield from self._expression(value)
            case Evaluate(value=Call() as call):
                yield from self._call(call)
            case Evaluate(value=value):
                yield from self._expression(value)

    def _expression(self, expression: Expression) -> Iterator[ToyError]:
        """An expression whose value is used."""
        match expression:
            case Variable(at, name):
                if name not in self.variables:
                    known = ", ".join(sorted(self.variables)) or "none"
                    yield ToyError(at, f"unknown variable '{name}'. There is: {known}")
            case Binary(left=left, right=right):
                yield from self._expression(left)
                yield from self._expression(right)
            case Call(at, name):
                yield from self._call(expression)
                if name in self.signatures and not self.signatures[name][1]:
                    yield ToyError(at, f"'{name}' gives no value")

    def _call(self, call: Call) -> Iterator[ToyError]:
        if call.name not in self.signatures:
            known = ", ".join(sorted(self.signatures))
            yield ToyError(call.at, f"unknown function '{call.name}'. There is: {known}")
        else:
            expected, found = self.signatures[call.name][0], len(call.arguments)
            if found != expected:
                arguments = "one argument" if expected == 1 else f"{expected} arguments"
                yield ToyError(call.at, f"'{call.name}' takes {arguments}, not {found}")
        for argument in call.arguments:
            yield from self._expression(argument)
