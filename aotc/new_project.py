"""The files of a new project (`aotc new`), which builds and tests a kernel."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path

from aotc.emit.c_text import c_name
from aotc.emit.names import is_taken
from aotc.errors import InputError
from aotc.toolchain.data import data_dir

# Maps each build system to the folders of templates/new whose files the project has.
KINDS = {
    "cmake": ("any", "c", "cmake"),
    "make": ("any", "c", "make"),
    "scons": ("any", "c", "scons"),
    "python": ("any", "python"),
}
_NAME = "kernel_name"
_CLASS = "KernelName"
_HIDDEN = {"gitignore": ".gitignore"}


def project_files(name: str, kind: str) -> dict[Path, str]:
    """The text of each file, by its path in the project. Raises InputError for a name that is not a
    valid function name."""
    _check(name, kind)
    words = {_NAME: name, _CLASS: "".join(word.capitalize() for word in name.split("_"))}
    folders = [data_dir("templates") / "new" / folder for folder in KINDS[kind]]
    return {
        Path(_filled(_HIDDEN.get(file.name, file.name), words)): _filled(file.read_text(), words)
        for folder in folders
        for file in sorted(folder.iterdir())
        if file.is_file()  # skips the folders that pip makes when it compiles Python files
    }


def _check(name: str, kind: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name):
        raise InputError(
            f"A project cannot be called '{name}': its kernel is called so, too. Expected a "
            "letter, then letters, digits and _."
        )
    is_reserved = keyword.iskeyword(name) or name in ("aotc", *sys.stdlib_module_names)
    if c_name(name) != name or is_taken(name) or (kind == "python" and is_reserved):
        raise InputError(
            f"A project cannot be called '{name}': its kernel is called so, too, and the name is "
            "taken in C or Python."
        )


def _filled(text: str, words: dict[str, str]) -> str:
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    return text
