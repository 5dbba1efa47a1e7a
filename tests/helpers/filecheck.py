"""LLVM's FileCheck, by the `filecheck` package."""

from __future__ import annotations

import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts


def filecheck(text: str, checks: str) -> None:
    """Fails where `text` has not what the CHECK lines of `checks` say."""
    assert matches(text, checks), text


def matches(text: str, checks: str) -> bool:
    """Whether `text` has what the CHECK lines of `checks` say; what is missing is printed."""
    options = Options(match_filename="checks")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    return Matcher(options, FInput("text", text), parser).run() == 0
