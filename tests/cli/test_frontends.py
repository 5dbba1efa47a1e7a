"""Input of other formats: a stranger's front end, found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Outcome, aotc_command

import aotc
from aotc.frontends import Frontend, importing

Aotc = Callable[..., Outcome]

# A language of sums: each line is a number, and the program prints their sum.
PACKAGE = """\
import os
import signal
import sys
from pathlib import Path

import aotc
from aotc.frontends import Frontend
from aotc.mlir import ir


def load(path, options):
    numbers = []
    context = ir.Context()
    scale = float(options.get("scale", "1"))
    body = []
    with context:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line == "crash":
                raise KeyError("crash")
            if line == "die":
                os.kill(os.getpid(), signal.SIGSEGV)
            while line == "hang":
                pass
            if line == "leave":
                sys.exit(0)
            if line == "text":
                return "no module"
            try:
                value = 0.0 if line == "far" else float(line) * scale
            except ValueError:
                raise aotc.InputError(f"{path}:{number}:1: error: '{line}' is no number") from None
            at = f'loc("{path}":{number}:1)'
            if line == "far":
                body.append(f'%t = memref.alloca() : memref<4xf32> {at}')
                body.append(f'%i = arith.constant 9 : index {at}')
                body.append(f'%q = memref.load %t[%i] : memref<4xf32> {at}')
                body.append(f'memref.store %q, %t[%i] : memref<4xf32> {at}')
            body.append(f'func.call @printF32(%n{number}) : (f32) -> () {at}')
            body.insert(0, f'%n{number} = arith.constant {value:e} : f32 {at}')
        text = "func.func private @printF32(f32)\\n"
        text += "func.func @main() {\\n" + "\\n".join(body) + "\\nreturn\\n}\\n"
        return ir.Module.parse(text)


def half():
    raise ImportError("no half")


FRONTEND = Frontend("sums", (".sum",), load, "sums of numbers", {"scale": "a factor"})
TWIN = Frontend("twin", (".two", ".sums"), load)
OTHER_TWIN = Frontend("other", (".two",), load)
HALF = Frontend("half", (".half",), load, missing=half)
AWAY = Frontend("away", (".away",), load, missing=lambda: "pip install 'aotc[away]'")
"""
ENTRY_POINTS = """\
[aotc.frontends]
sums = sums_language:FRONTEND
twin = sums_language:TWIN
other = sums_language:OTHER_TWIN
away = sums_language:AWAY
half = sums_language:HALF
none = sums_language:load
gone = sums_nowhere:FRONTEND
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package, as pip leaves it, on Python's path."""
    folder = tmp_path / "site"
    metadata = folder / "sums_language-1.5.dist-info"
    metadata.mkdir(parents=True)
    (folder / "sums_language.py").write_text(PACKAGE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sums-language\nVersion: 1.5\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("sums_language", None)


def _build(
    aotc: Aotc, tmp_path: Path, text: str, *options: str, name: str = "program.sum"
) -> Outcome:
    (tmp_path / name).write_text(text)
    return aotc("build", tmp_path / name, "-o", tmp_path / "out", *options)


@pytest.mark.parametrize(
    ("options", "name", "printed"),
    [
        ((), "program.sum", "12.5\n"),
        (("--frontend-option", "scale=2"), "program.sum", "25\n"),
        (("--frontend", "sums"), "program.txt", "12.5\n"),
    ],
)
def test_files_of_another_format(
    options: tuple[str, ...], name: str, printed: str, aotc: Aotc, tmp_path: Path
) -> None:
    _build(aotc, tmp_path, "1.25e1\n", *options, name=name).succeeded()
    done = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == printed.split()


def test_python_has_them_too(tmp_path: Path) -> None:
    """For text that is in no file, too."""
    made = aotc.build(
        "3\n4\n", frontend="sums", out=tmp_path / "out", frontend_options={"scale": "10"}
    )
    done = subprocess.run([made.path], capture_output=True, text=True, check=True)
    assert done.stdout == "3040"


@pytest.mark.parametrize(
    ("line", "said"),
    [("die", "ended by SIGSEGV"), ("hang", "made no progress in 1 s")],
)
def test_a_front_end_that_crashes_or_hangs(
    line: str, said: str, aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The front end's process ends, and not aotc's."""
    monkeypatch.setattr(importing, "_SECONDS", 1)
    outcome = _build(aotc, tmp_path, f"{line}\n")
    expected = f"aotc: error: The import {said}, in this step: its beginning.\n"
    assert (outcome.code, outcome.stderr) == (2, expected)


def test_an_ending_of_mlir_may_be_read_as_mlir(aotc: Aotc, tmp_path: Path) -> None:
    text = "func.func @main() {\n  return\n}\n"
    _build(aotc, tmp_path, text, "--frontend", "mlir").succeeded()


def test_warnings_have_the_place_in_the_file(aotc: Aotc, tmp_path: Path) -> None:
    done = _build(aotc, tmp_path, "1\nfar\n").succeeded()
    assert f"{tmp_path / 'program.sum'}:2:1: warning: " in done.stderr
    assert "\n  far\n  ^\n" in done.stderr


@pytest.mark.parametrize(
    ("text", "options", "name", "code", "message"),
    [
        ("1\nx\n", (), "program.sum", 2, "program.sum:2:1: error: 'x' is no number"),
        ("crash\n", (), "program.sum", 3, "The front end 'sums' failed: KeyError: 'crash'"),
        ("leave\n", (), "program.sum", 3, "The front end 'sums' failed: SystemExit: 0"),
        ("text\n", (), "program.sum", 3, "made no ir.Module of"),
        (
            "1\n",
            ("--frontend-option", "size=2"),
            "program.sum",
            2,
            "no option 'size'. Known: scale.",
        ),
        ("1\n", ("--frontend-option", "scale"), "program.sum", 2, "expected NAME=VALUE"),
        ("1\n", ("--frontend-option", "a=2"), "program.mlir", 2, "takes no --frontend-option"),
        ("1\n", (), "program.two", 2, "hint: --frontend other or twin"),
        ("1\n", (), "program.away", 3, "hint: pip install 'aotc[away]'"),
        ("1\n", ("--frontend", "sum"), "program.sum", 2, "Unknown --frontend 'sum'. Known: mlir, "),
        ("1\n", ("--frontend", "gone"), "program.sum", 3, "cannot be used: ModuleNotFoundError"),
        ("1\n", ("--frontend", "none"), "program.sum", 3, "sums_language:load is no aotc Frontend"),
        ("1\n", ("--frontend", "half"), "program.sum", 3, "cannot be used: ImportError: no half"),
        # An ending that nobody has is MLIR's.
        ("1\n", (), "program.else", 2, "program.else:1:1: error: "),
    ],
)
def test_what_goes_wrong(
    text: str,
    options: tuple[str, ...],
    name: str,
    code: int,
    message: str,
    aotc: Aotc,
    tmp_path: Path,
) -> None:
    done = _build(aotc, tmp_path, text, *options, name=name)
    assert (done.code, message in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("endings", [".sum", ("sum",), ("",), (".sum", ".mlir")])
def test_endings_that_would_take_others_files(endings: Any) -> None:
    with pytest.raises(ValueError, match="endings are a tuple of texts with a dot"):
        Frontend("sums", endings, lambda path, options: None)


def test_two_packages_with_one_name(installed: Path, aotc: Aotc, tmp_path: Path) -> None:
    """Their files are told apart by the ending, but not their names."""
    metadata = installed / "other_sums-2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-sums\nVersion: 2\n")
    points = "[aotc.frontends]\nsums = sums_language:TWIN\n"
    (metadata / "entry_points.txt").write_text(points)
    done = _build(aotc, tmp_path, "1\n", "--frontend", "sums")
    assert done.code == 2
    assert "of several packages: " in done.stderr
    _build(aotc, tmp_path, "1\n").succeeded()


@pytest.mark.parametrize("name", ["program.sum", "odd name"])
def test_text_in_no_file_has_its_name(name: str, tmp_path: Path) -> None:
    """In errors, in warnings and in what debuggers read, not that of a file of aotc's."""
    with pytest.raises(aotc.InputError) as failure:
        aotc.build("1\nx\n", frontend="sums", name=name, out=tmp_path / "out")
    assert str(failure.value) == failure.value.message == f"{name}:2:1: error: 'x' is no number"

    def build(out: str) -> aotc.Artifact:
        return aotc.build("1\nfar\n", frontend="sums", name=name, debug=True, out=tmp_path / out)

    made, again = build("one"), build("two")
    warning = made.warnings[0]
    assert (str(warning.place), warning.excerpt) == (f"{name}:2:1", "  far\n  ^")
    assert made.path.read_bytes() == again.path.read_bytes()


def test_a_file_that_cannot_be_read(aotc: Aotc, tmp_path: Path) -> None:
    done = aotc("build", tmp_path / "none.sum")
    said = f"aotc: error: Cannot read '{tmp_path}/none.sum': No such file or directory.\n"
    assert (done.code, done.stderr) == (2, said)


def test_standard_input(tmp_path: Path) -> None:
    path = os.pathsep.join(sys.path)
    words = ("build", "-", "--frontend", "sums", "-o", tmp_path / "out")
    command = aotc_command(*words)
    subprocess.run(command, input=b"4.5\n", env={**os.environ, "PYTHONPATH": path}, check=True)
    done = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True)
    assert done.stdout == "4.5"


def test_version_lists_them(aotc: Aotc) -> None:
    lines = [line.strip() for line in aotc("--version").succeeded().stdout.splitlines()]
    assert "sums           .sum  (sums-language 1.5)" in lines
    assert "away           .away  (not installed: pip install 'aotc[away]')" in lines
    assert "gone           ModuleNotFoundError: No module named 'sums_nowhere'" in lines
