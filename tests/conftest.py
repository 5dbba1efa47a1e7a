"""Fixtures and options that tests of several folders use."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc.cli import run


def pytest_configure() -> None:
    # Each test builds what it looks at: what another one built would hide a defect. Those of the
    # cache turn it on.
    os.environ["AOTC_CACHE"] = "off"
    # What a shell starts behind `&` ignores Ctrl-C, and what nohup starts hangups, and so would all
    # that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Write what aotc makes now over the files in tests/golden.",
    )


@pytest.fixture
def aotc(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs aotc's command line in this process: `aotc("build", path, "--emit", "ptx")`."""

    def call(*arguments: str | Path) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        stdout, stderr = capfd.readouterr()
        return Outcome(code, stdout, stderr)

    return call


@pytest.fixture
def mlir_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes MLIR text into a file of this test's: `mlir_file(TEXT, "name.mlir")`."""

    def write(text: str, name: str = "input.mlir") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
