"""Checks the content of a `.pt2` file before PyTorch loads it.

`torch.export.load` falls back to the unrestricted unpickler for what its restricted unpickler
refuses, opens compiled code, evaluates symbolic sizes as Python, and inserts names of the graph
into Python source that it compiles (torch/export/pt2_archive, torch/_export/serde). Each of these
can run code from the file. Therefore only tensors, sizes and names are accepted here.
"""

from __future__ import annotations

import ast
import io
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aotc.errors import InputError

# Names of values, inputs, weights and operators. No character is allowed that could end a name in
# Python source.
_NAME = re.compile(r"[\w.\-]*")
_OPERATOR = re.compile(r"(torch|_operator|math)(\.\w+)+")
_SYMBOL = re.compile(r"[a-z]+\d+")
_CONSTANTS = ("oo", "int_oo", "true", "false")
# The functions of which size expressions consist, besides those of torch.utils._sympy. They are
# printed by SymPy's `srepr` or by `str`.
_FUNCTIONS = (
    *("Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Max", "Min", "Mod", "Abs"),
    *("Equality", "Unequality", "Eq", "Ne", "LessThan", "StrictLessThan", "GreaterThan"),
    *("StrictGreaterThan", "And", "Or", "Not", "floor", "ceiling"),
)
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Call, ast.Constant),
    *(ast.keyword, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)
# A quoted string is a symbol's name or a number; SymPy may parse it again.
_QUOTED = re.compile(r"[\w.+\-]*")


def check_archive(path: Path) -> None:
    """Raises InputError if the file is not a PyTorch archive, or if it has content that could run
    code."""
    from torch.export.pt2_archive import (  # type: ignore[import-not-found, unused-ignore]
        _package,
        constants,
    )

    try:
        # This is the reader that torch.export.load uses: two different readers might see different
        # content in one file.
        reader = _package.PT2ArchiveReader(str(path))
        records = reader.get_file_names()
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0] if str(error) else "it is no archive of this PyTorch"
        raise InputError(f"torch.export cannot load '{path}': {first}") from None
    for record in records:
        # PyTorch's reader finds records without regard to case.
        name = record.lower()
        folder = next((f for f in _folders_of_values() if name.startswith(f)), None)
        if name.startswith(constants.AOTINDUCTOR_DIR):
            raise _refused(path, f"{record}: compiled code")
        if name.startswith(constants.MODELS_DIR):
            for what in _strange_texts(json.loads(reader.read_bytes(record))):
                raise _refused(path, f"{record}: {what}")
        elif folder is not None and name.endswith(".pt"):
            _check_pickle(path, record, reader.read_bytes(record))
        elif folder is not None and name.endswith("_config.json"):
            payloads = json.loads(reader.read_bytes(record))["config"]
            _check_payloads(path, reader, folder, payloads)


def _folders_of_values() -> tuple[str, ...]:
    from torch.export.pt2_archive import constants

    return constants.WEIGHTS_DIR, constants.CONSTANTS_DIR, constants.SAMPLE_INPUTS_DIR


def _refused(path: Path, what: str) -> InputError:
    return InputError(
        f"'{path}' is not loaded, as loading it could run code that is in it: {what}."
    )


def _check_payloads(path: Path, reader: Any, folder: str, payloads: dict[str, Any]) -> None:
    """Checks the payloads of weights or constants, by name. Each is raw bytes or a pickle, in a
    record of `folder`."""
    from torch.export.pt2_archive import constants

    own_classes = (constants.CUSTOM_OBJ_FILENAME_PREFIX, constants.OPAQUE_OBJ_FILENAME_PREFIX)
    for name, payload in payloads.items():
        if not _NAME.fullmatch(name):
            raise _refused(path, f"the name {name!r}")
        record = posixpath.join(folder, payload["path_name"])
        if payload["path_name"].startswith(own_classes):
            raise _refused(path, f"'{name}' is an object of a class of its own")
        if payload["use_pickle"]:
            _check_pickle(path, record, reader.read_bytes(record))


def _check_pickle(path: Path, record: str, content: bytes) -> None:
    """Checks that PyTorch's restricted unpickler accepts a record: it has only tensors and plain
    values."""
    import torch

    if not content:
        return
    try:
        torch.load(io.BytesIO(content), weights_only=True)
    except Exception:
        raise _refused(path, f"{record} has more than tensors and plain values") from None


def _strange_texts(document: Any, key: str = "") -> Iterator[str]:
    """Yields a description of each string of a program that is in the place of a name, an operator
    or a size but is not one."""
    if isinstance(document, dict):
        for inner, value in document.items():
            yield from _strange_texts(value, inner)
    elif isinstance(document, list):
        for value in document:
            yield from _strange_texts(value, key)
    elif isinstance(document, str):
        if key == "expr_str" and not _is_size(document):
            yield f"the size {document!r}"
        if key == "target" and not _OPERATOR.fullmatch(document):
            yield f"the operator {document!r}"
        if (key == "name" or key.endswith("_name")) and not _NAME.fullmatch(document):
            yield f"the name {document!r}"


def _is_size(text: str) -> bool:
    """Whether a string is arithmetic on symbols, `s0 + 1` or `Add(Symbol('s0'), Integer(1))`."""
    from torch.utils._sympy import functions

    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    for node in nodes:
        if not isinstance(node, _NODES):
            return False
        if isinstance(node, ast.Constant) and not (
            isinstance(node.value, int | float)
            or (isinstance(node.value, str) and _QUOTED.fullmatch(node.value))
        ):
            return False
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            return False
        if isinstance(node, ast.Name):
            known = (*_FUNCTIONS, *functions.__all__) if node in called else _CONSTANTS
            if node.id not in known and (node in called or not _SYMBOL.fullmatch(node.id)):
                return False
    return True
