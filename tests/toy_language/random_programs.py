"""Random Toy programs: functions that call each other, and a main of literals and prints.

All numbers are whole and small enough for f64 to hold each result exactly, so that no order of
additions and no fused multiplication changes what is printed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from toy_language.evaluate import output

Shape = tuple[int, ...]

LARGEST = 2.0**53
SHAPES: list[Shape] = [(), (1,), (5,), (2, 3), (4, 1), (3, 4), (6, 2), (2, 2, 3), (3, 1, 2)]


@dataclass(frozen=True)
class _Function:
    """Takes tensors of one shape; its result has that, or with `is_turned` its reverse."""

    name: str
    parameters: int
    is_turned: bool


def program(seed: int, *, functions: int = 6, prints: int = 12) -> str:
    chance = random.Random(seed)
    known: list[_Function] = []
    text = ""
    for number in range(functions):
        name, parameters = f"f{number}", chance.randint(1, 3)
        is_turned = chance.random() < 0.5
        names = [f"p{i}" for i in range(parameters)]
        body = f"  var v = {_expression(chance, names, known, False, 2)};\n"
        if chance.random() < 0.3:
            body += "  print(v);\n"
        body += f"  return {_expression(chance, [*names, 'v'], known, is_turned, 2)};\n"
        text += f"def {name}({', '.join(names)}) {{\n{body}}}\n\n"
        known.append(_Function(name, parameters, is_turned))
    return text + _main(chance, known, text, prints)


def _main(chance: random.Random, known: Sequence[_Function], before: str, prints: int) -> str:
    lines = ["def main() {"]
    while prints > 0:
        shape = chance.choice(SHAPES)
        names = [f"a{len(lines)}", f"b{len(lines)}"]
        made = [
            f"  var {names[0]} = {_literal(chance, shape)};",
            _reshaped(chance, names[1], shape),
        ]
        is_turned = chance.random() < 0.5
        made.append(f"  print({_expression(chance, names, known, is_turned, 3)});")
        if _is_exact("\n".join([before, "def main() {", *made, "}"])):
            lines += made
            prints -= 1
    return "\n".join([*lines, "}", ""])


def _is_exact(text: str) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return all(float(word) < LARGEST for word in output(text).split())


def _expression(
    chance: random.Random,
    names: Sequence[str],
    known: Sequence[_Function],
    is_turned: bool,
    depth: int,
) -> str:
    """Of the names' shape, or with `is_turned` of its reverse."""

    def part(is_turned: bool) -> str:
        return _expression(chance, names, known, is_turned, depth - 1)

    kinds = ["transpose"] if is_turned else ["name"]
    if depth > 0:
        kinds += ["transpose", "+", "+", "*", *(["call"] * 2 if known else [])]
    kind = chance.choice(kinds)
    if kind == "name":
        return chance.choice(names)
    if kind == "transpose" and depth == 0:
        return f"transpose({chance.choice(names)})"
    if kind == "transpose":
        return f"transpose({part(not is_turned)})"
    if kind == "call":
        called = chance.choice(known)
        arguments = [part(is_turned != called.is_turned) for _ in range(called.parameters)]
        return f"{called.name}({', '.join(arguments)})"
    operands = f"{part(is_turned)} {kind} {part(is_turned)}"
    return f"({operands})" if chance.random() < 0.5 else operands


def _literal(chance: random.Random, shape: Shape) -> str:
    if not shape:
        return chance.choice(["0", "1", "2", "3.", "1.000"])
    return f"[{', '.join(_literal(chance, shape[1:]) for _ in range(shape[0]))}]"


def _reshaped(chance: random.Random, name: str, shape: Shape) -> str:
    """The declaration of a variable of the shape, by a literal of any shape that fits it."""
    if not shape:
        return f"  var {name} = {_literal(chance, ())};"
    fitting = [other for other in SHAPES if prod(other) == prod(shape)]
    sizes = ", ".join(map(str, shape))
    return f"  var {name}<{sizes}> = {_literal(chance, chance.choice(fitting))};"
