"""What aotc calls: a .toy file → a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aotc
from aotc.frontends import Frontend, Problem, input_error
from toy.emit import emit_module
from toy.names import check_names
from toy.parse import parse
from toy.shapes import infer_shapes
from toy.tree import ToyError


def load(path: Path, options: Mapping[str, str]) -> Any:
    """The `ir.Module` of a program. Raises aotc.InputError for all that is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise aotc.InputError(f"'{path}' is no text (UTF-8): {error}.") from None
    try:
        return _compile(path, text)
    except ToyError as error:
        raise input_error(path, text, _problems([error])) from None
    except RecursionError:
        raise aotc.InputError(f"'{path}': its expressions or calls are nested too deep.") from None


def _compile(path: Path, text: str) -> Any:
    functions = parse(text)
    if problems := check_names(functions):
        raise input_error(path, text, _problems(problems))
    known = {function.name: function for function in functions}
    if "main" not in known:
        has = ", ".join(known) or "none"
        raise aotc.InputError(f"'{path}' has no function main, which a program is. It has: {has}.")
    return emit_module(str(path), infer_shapes(known))


def _problems(errors: Sequence[ToyError]) -> list[Problem]:
    found = []
    for error in sorted(errors, key=lambda error: (error.at.line, error.at.column)):
        found.append(Problem(error.at.line, error.at.column, error.message))
        for at, note in error.notes:
            found.append(Problem(at.line, at.column, note, "note"))
    return found


FRONTEND = Frontend("toy", (".toy",), load, "the language of MLIR's tutorial")
