"""`ToolSpec`: a row of the table of tools; targets add rows."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ToolSpec(Struct, frozen=True):
    """How to find a tool, and what to report if it is missing.

    `files` are suffixes of paths in the package's list of files; the first that exists is used.
    `probe` are the arguments that make it print its version; None for a file that is not a program.
    `answer` finds the version in that output; the output of any other program does not match. The
    version is that of the package, unless `has_own_version`. A tool that `is_folder` is the folder
    of a driver's headers, which the runtime is compiled with; its file is a header in it. A tool
    that `is_optional` may be missing. A tool that `decides_artifacts` is part of cache keys, and
    the commands that build have an option to replace it.
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
        """The name of a header in the folder."""
        return Path(self.files[0]).name

    @property
    def option(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return "AOTC_" + self.name.upper().replace("-", "_")
