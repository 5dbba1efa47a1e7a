"""One input with the command that reads it: `Case`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """The files of a folder, and the command that runs in it.

    `target` is the file that was changed, and `original` what it was before. `tree` is a folder
    that is copied first. `arguments` are aotc's, or a program's where the first begins with `./`.
    `outputs` are the files and folders that it makes: all of them, or none. `expected` has what
    is in them if it succeeds, where that is known. `compares` says that exit code 1 tells of values
    that differ. `modules` are Python's that take long to load.
    """

    name: str
    target: str
    content: bytes
    original: bytes
    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    tree: Path | None = None
    expected: Mapping[str, bytes] = field(default_factory=dict)
    compares: bool = False
    modules: tuple[str, ...] = ()

    @property
    def is_program(self) -> bool:
        """Whether the command is a program of the folder."""
        return self.arguments[0].startswith("./")

    def with_content(self, content: bytes) -> Case:
        """The same command on another input."""
        return replace(self, content=content)

    def write(self, folder: Path) -> None:
        """Fills an empty folder."""
        if self.tree is not None:
            shutil.copytree(self.tree, folder, dirs_exist_ok=True)
        for name, content in {**self.files, self.target: self.content}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
