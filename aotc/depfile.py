"""Depfiles: what an output was made of, as Make and Ninja read it (`-MD` of compilers)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from aotc.request import BuildRequest


class Depfile(Struct, frozen=True):
    """A depfile to be: its `path`, and what the build itself does not know.

    `targets` stand before the colon, as they are, in place of the outputs' paths. `inputs` are
    files that options name: a pipeline's, tools.
    """

    path: Path
    targets: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()


def quote(path: str) -> str:
    r"""A path as a word of a rule: GNU Make's escapes, which Ninja reads, too.

    A space is `\ `, with backslashes before it doubled; `#` is `\#`, `:` is `\:`, `$` is `$$`.
    (GNU Make's manual, 4.2 "Rule Syntax" and 4.3; Ninja's src/depfile_parser.in.cc.)
    """
    path = re.sub(r"(\\*)([ \t])", r"\1\1\\\2", path)
    return re.sub(r"([#:])", r"\\\1", path.replace("$", "$$"))


def depfile_text(targets: Iterable[str], inputs: Iterable[Path]) -> str:
    """The rule: quoted `targets` depend on `inputs`, the first of which is the source.

    The others have an empty rule each, so that Make goes on where one of them is gone: then
    the targets are made again.
    """
    source, *others = dict.fromkeys(quote(str(path)) for path in inputs)
    words = " \\\n  ".join([source, *others])
    return "".join([f"{' '.join(targets)}: {words}\n", *(f"\n{other}:\n" for other in others)])


def files_read(request: BuildRequest) -> list[Path]:
    """The files that a build reads for its input: the source, if it is one, and what a front end
    reads beside it."""
    if str(request.source) == "-" or request.content is not None:
        return []
    from aotc.frontends.registry import frontend_for

    frontend = frontend_for(request.source, request.frontend)
    beside = () if frontend is None else frontend.beside(request.source)
    return [request.source, *beside]
