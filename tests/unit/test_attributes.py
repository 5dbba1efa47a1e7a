"""`aotc.attributes` is the only place that spells the names of aotc's attributes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from helpers.command import REPOSITORY

from aotc import attributes

NAMES = {name: value for name, value in vars(attributes).items() if name.isupper()}
# Words with the same prefix that name no attribute: a file, and a group of entry points.
OTHERS = ("aotc.toml", "aotc.torch_operators")
SOURCES = [
    path
    for path in sorted((REPOSITORY / "aotc").rglob("*.py"))
    if path != Path(attributes.__file__).resolve()
]


def _is_module(name: str) -> bool:
    path = REPOSITORY / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def _strings(tree: ast.AST) -> list[ast.Constant]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def spelled_out(source: str) -> list[str]:
    """The lines of strings in a module's code that are, or contain quoted, an attribute's name."""
    found = []
    for string in _strings(ast.parse(source)):
        for name in re.findall(r"^aotc\.\w+$|(?<=')aotc\.\w+(?=')", string.value):
            if name not in OTHERS and not _is_module(name):
                found.append(f"{string.lineno}: {name}")
    return found


def test_a_constant_has_the_name_of_its_attribute() -> None:
    """A reader who has either one finds the other."""
    for name, value in NAMES.items():
        assert value == "aotc." + name.removesuffix("_ATTRIBUTE").lower()


def test_modules_take_the_names_from_the_table() -> None:
    """No other module spells out the name of an attribute."""
    assert [(path, found) for path in SOURCES if (found := spelled_out(path.read_text()))] == []


def test_every_attribute_is_used() -> None:
    """The table has no name that nothing uses."""
    used = {
        node.id
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name)
    }
    assert NAMES.keys() - used == set()


def test_names_that_are_spelled_out_are_found() -> None:
    """A name of an attribute is found as a string and in a message; a module's name is none."""
    source = 'a = "aotc.block"\nb = f"the \'aotc.new\' of {a}"\nc = ("aotc.scons", "aotc.toml")\n'
    assert spelled_out(source) == ["1: aotc.block", "2: aotc.new"]
