"""`ToolSpec`: a row of the table of tools, which targets add theirs to."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ToolSpec(Struct, frozen=True):
    """How to find one tool, and what to say when it is not there.

    `files` are ends of paths in the package's list of files, the first that is there wins.
    `probe` are the arguments that make it print its version; None for a file that is not
    a program. In what it prints, `answer` finds the version: another program does not print that.
    Its version is its package's, unless `has_own_version`. One that `is_folder` is the folder of a
    driver's headers, with which the runtime is compiled; its file is a header in there. One that
    `is_optional` may be missing. One that `decides_artifacts` is a part of the cache's keys, and
    the commands that build have an option that names another.
    """

    name: str
    purpose: str
    packages: tuple[str, ...]
    files: tuple[str, ...]
    probe: tuple[str, ...] | None = ("--version",)
    answer: str = ""
    has_own_version: bool = False
    is_folder: bool = False
    is_optional: bool = False
    decides_artifacts: bool = True

    @property
    def header(self) -> str:
        """The name of the header in a folder."""
        return Path(self.files[0]).name

    @property
    def option(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return "AOTC_" + self.name.upper().replace("-", "_")
