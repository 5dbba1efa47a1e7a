"""Warnings by name: what the -W options make of them, and how they look."""

from __future__ import annotations

import re

import pytest
from helpers.command import REPOSITORY

from aotc import mlir
from aotc.errors import InputError
from aotc.input.place import Place
from aotc.input.source import parse_source
from aotc.warnings import WARNINGS, BuildWarning, Severity, WarningOptions, raise_errors

HIDDEN, WARNING, ERROR = Severity.HIDDEN, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("words", "host_only", "grid_size"),
    [
        ("", WARNING, ERROR),
        ("no-host-only", HIDDEN, ERROR),
        ("host-only", WARNING, ERROR),
        ("error=host-only", ERROR, ERROR),
        ("error", ERROR, ERROR),
        ("error no-error", WARNING, ERROR),
        ("error no-host-only", HIDDEN, ERROR),
        ("error no-error=host-only", WARNING, ERROR),
        ("no-error=host-only error", WARNING, ERROR),
        ("no-error=grid-size", WARNING, WARNING),
        ("no-error=grid-size error=grid-size", WARNING, ERROR),
        ("no-grid-size", WARNING, HIDDEN),
        ("no-host-only host-only", WARNING, ERROR),
        ("no-host-only error=host-only", ERROR, ERROR),
        ("error=host-only no-host-only", HIDDEN, ERROR),
    ],
)
def test_options(words: str, host_only: Severity, grid_size: Severity) -> None:
    """As with a C compiler: the later wins, and one with a name wins over one without."""
    options = WarningOptions.parse(words.split())
    assert (options.severity("host-only"), options.severity("grid-size")) == (host_only, grid_size)


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        ("", WARNING),
        ("error", ERROR),
        ("error=grid-size", ERROR),
        ("no-error=grid-size", WARNING),
        ("no-grid-size", HIDDEN),
    ],
)
def test_what_may_never_come_to_pass(words: str, severity: Severity) -> None:
    """It is an error only where an option says so."""
    assert WarningOptions.parse(words.split()).severity("grid-size", is_sure=False) == severity


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "no-grid-sizes",
            "Unknown warning 'grid-sizes' in -Wno-grid-sizes. Did you mean grid-size",
        ),
        ("error=xyz", "Unknown warning 'xyz' in -Werror=xyz. Known: assembler-crash, "),
        ("all", "Unknown warning 'all' in -Wall. "),
    ],
)
def test_unknown_names(word: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        WarningOptions.parse([word])


def test_a_warning_as_text() -> None:
    source = parse_source("t.mlir", b"\n  func.func @f() { return }\n", mlir.make_context())
    (function,) = source.module.body.operations
    warning = BuildWarning.at(source, "host-only", function.operation.location, "look here")
    assert warning.place == Place("t.mlir", 2, 3)
    assert warning.text(WARNING) == (
        "t.mlir:2:3: warning: look here [-Whost-only]\n    func.func @f() { return }\n    ^"
    )
    assert BuildWarning("host-only", "m").text(ERROR) == "aotc: error: m [-Werror=host-only]"


def test_errors_are_raised_together() -> None:
    """Those that are errors, each once, in one message."""
    found = [
        BuildWarning("grid-size", "one"),
        BuildWarning("host-only", "two"),
        BuildWarning("block-size", "three", Place("t.mlir", 1, 2)),
        BuildWarning("grid-size", "one"),
    ]
    with pytest.raises(InputError) as raised:
        raise_errors(found, WarningOptions())
    assert raised.value.message == (
        "one [-Werror=grid-size]\nt.mlir:1:2: error: three [-Werror=block-size]"
    )
    raise_errors(found, WarningOptions.parse(["no-error=grid-size", "no-block-size"]))


def test_the_manual_has_every_name() -> None:
    """docs/warnings.md lists the names in order, and what each is without an option."""
    text = (REPOSITORY / "docs" / "warnings.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", text, re.MULTILINE)
    assert listed == [(name, severity.value) for name, severity in WARNINGS.items()]
