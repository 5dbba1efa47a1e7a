"""The modules and files that docstrings of packages and the documentation name exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from helpers.command import REPOSITORY

PACKAGE = REPOSITORY / "aotc"
DOCUMENTS = [
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
]
SOURCES = [
    path for room in ("aotc", "tests", "bench") for path in (REPOSITORY / room).rglob("*.py")
]
# What a reader puts a name in place of.
PLACEHOLDER = re.compile(r"\bNAME\b|\bFAMILY\b")


def test_packages_name_modules() -> None:
    """A lower-case word in backquotes in a package's docstring is a module or a package."""
    modules = {path.stem for path in PACKAGE.rglob("*.py")}
    modules |= {path.parent.name for path in PACKAGE.rglob("__init__.py")}
    missing = [
        f"{path.relative_to(REPOSITORY)}: {word}"
        for path in PACKAGE.rglob("__init__.py")
        for word in _quoted(ast.get_docstring(ast.parse(path.read_text())) or "")
        if re.fullmatch(r"[a-z_0-9]+", word) and word not in modules
    ]
    assert missing == []


def test_documents_name_files() -> None:
    """A path from one of the top-level folders, and a `name.py`, are files, or the document's."""
    missing = [
        f"{path.relative_to(REPOSITORY)}: {word}"
        for path in DOCUMENTS
        for word in _quoted(path.read_text())
        if not PLACEHOLDER.search(word) and not _exists(word)
        if f"<!-- file: {word} -->" not in path.read_text()
    ]
    assert missing == []


def _quoted(text: str) -> list[str]:
    return re.findall(r"`([^`\s]+)`", text)


def _exists(word: str) -> bool:
    if re.match(r"(aotc|tests|runtime_c|templates|docs|bench|samples)/[\w/.*-]+$", word):
        return any(REPOSITORY.glob(word.rstrip("/")))
    if re.fullmatch(r"[\w/]+\.py", word):
        return any(f"/{path.as_posix()}".endswith(f"/{word}") for path in map(Path, SOURCES))
    return True
