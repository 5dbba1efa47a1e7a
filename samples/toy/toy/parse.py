"""Text → syntax tree, by the grammar in toy.lark."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, v_args
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr

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
    Statement,
    ToyError,
    Variable,
    spell,
)


def parse(text: str) -> tuple[Function, ...]:
    """The functions of a program. Raises ToyError for what is no Toy."""
    try:
        functions: tuple[Function, ...] = _PARSER.parse(text)  # type: ignore[assignment]
    except UnexpectedInput as error:
        raise _syntax_error(error) from None
    return functions


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, Any]):
    """A method for each rule of the grammar; called as the rules are recognized."""

    def program(self, *functions: Function) -> tuple[Function, ...]:
        return functions

    def function(self, name: Token, parameters: tuple[Variable, ...], *body: Statement) -> Function:
        return Function(_at(name), str(name), parameters, tuple(_until_return(body)))

    def parameters(self, *names: Token) -> tuple[Variable, ...]:
        return tuple(Variable(_at(name), str(name)) for name in names)

    def declare(self, name: Token, *rest: Any) -> Declare:
        *shapes, value = rest
        return Declare(_at(name), str(name), shapes[0] if shapes else None, value)

    def return_(self, word: Token, *values: Expression) -> Return:
        return Return(_at(word), values[0] if values else None)

    def evaluate(self, value: Expression) -> Evaluate:
        return Evaluate(value)

    def shape(self, *sizes: Token) -> Shape:
        return tuple(int(size) for size in sizes)

    def binary(self, left: Expression, operator: Token, right: Expression) -> Binary:
        return Binary(_at(operator), str(operator), left, right)

    def number(self, number: Token) -> Literal:
        return Literal(_at(number), (), array("d", [float(number)]))

    def variable(self, name: Token) -> Variable:
        return Variable(_at(name), str(name))

    def call(self, name: Token, arguments: tuple[Expression, ...]) -> Call:
        return Call(_at(name), str(name), arguments)

    def arguments(self, *arguments: Expression) -> tuple[Expression, ...]:
        return arguments

    def literal(self, bracket: Token, first: Literal, *others: Literal) -> Literal:
        elements = array("d", first.elements)
        for other in others:
            if other.shape != first.shape:
                raise ToyError(
                    other.at,
                    f"a literal's parts have one shape: this one has {spell(other.shape)}, the "
                    f"first has {spell(first.shape)}",
                )
            elements.extend(other.elements)
        return Literal(_at(bracket), (1 + len(others), *first.shape), elements)


_PARSER = Lark.open(
    "toy.lark",
    rel_to=__file__,
    parser="lalr",
    start="program",
    transformer=_TreeBuilder(),
)


def _until_return(body: Iterable[Statement]) -> Iterable[Statement]:
    """As in the tutorial, nobody looks at what stands behind a `return`."""
    for statement in body:
        yield statement
        if isinstance(statement, Return):
            return


def _at(place: Any) -> At:
    return At(place.line, place.column)


def _syntax_error(error: UnexpectedInput) -> ToyError:
    if isinstance(error, UnexpectedCharacters):
        return ToyError(_at(error), f"'{error.char}' is no part of Toy")
    assert isinstance(error, UnexpectedToken)
    expected = ", ".join(sorted(map(_spell_terminal, error.accepts or error.expected)))
    token = error.token
    if token.type == "$END":  # it has the place of the last token
        at = At(token.end_line or 1, token.end_column or 1)
        return ToyError(at, f"the file ends here; expected {expected}")
    return ToyError(_at(token), f"found '{token}', expected {expected}")


def _spell_terminal(name: str) -> str:
    if name == "$END":
        return "the end of the file"
    pattern = _PARSER.get_terminal(name).pattern
    if isinstance(pattern, PatternStr):
        return f"'{pattern.value}'"
    return {"NAME": "a name", "NUMBER": "a number", "SIZE": "a size"}[name]
