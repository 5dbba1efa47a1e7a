"""Depfiles (`-MD` of compilers): the inputs of an output, in the format of Make and Ninja."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from aotc.request import BuildRequest


class Depfile(Struct, frozen=True):
    """A depfile to write: its `path`, and the parts that the build itself does not know.

    `targets` replace the paths of the outputs before the colon and are not quoted. `inputs` are
    files that options name: the file of a pipeline, tools.
    """

    path: Path
    targets: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()


def quote(path: str) -> str:
    r"""Quotes a path for a rule with GNU Make's escapes, which Ninja reads, too.

    A space is `\ `, with backslashes before it doubled; `#` is `\#`, `:` is `\:`, `$` is `$$`.
    (GNU Make's manual, 4.2 "Rule Syntax" and 4.3; Ninja's src/depfile_parser.in.cc.)
    """
    path = re.sub(r"(\\*)([ \t])", r"\1\1\\\2", path)
    return re.sub(r"([#:])", r"\\\1", path.replace("$", "$$"))


def depfile_text(targets: Iterable[str], inputs: Iterable[Path]) -> str:
    """The rule: quoted `targets` depend on `inputs`, the first of which is the source.

    Each other input has an empty rule of its own, so that Make continues if one of them was
    deleted; the targets are then rebuilt.
    """
    source, *others = dict.fromkeys(quote(str(path)) for path in inputs)
    words = " \\\n  ".join([source, *others])
    return "".join([f"{' '.join(targets)}: {words}\n", *(f"\n{other}:\n" for other in others)])


def files_read(request: BuildRequest) -> list[Path]:
    """The files that a build reads as its input: the source, if it is a file, and the files that a
    front end reads in addition."""
    if str(request.source) == "-" or request.content is not None:
        return []
    from aotc.frontends.registry import frontend_for

    frontend = frontend_for(request.source, request.frontend)
    beside = () if frontend is None else frontend.beside(request.source)
    return [request.source, *beside]
