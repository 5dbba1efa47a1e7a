"""No file that a command reads, or writes, is overwritten by another that it writes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

Aotc = Callable[..., Outcome]
OVER_INPUT = "would overwrite the input: name another"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an input, by some names, and files that options name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "saxpy.mlir", "e.mlir")
    shutil.copy("e.mlir", "f.mlir")
    Path("link").symlink_to("e.mlir")
    Path("hard").hardlink_to("e.mlir")
    Path("temps").mkdir()
    shutil.copy("e.mlir", "temps/01-e.mlir")
    Path("passes").write_text("builtin.module(canonicalize)")
    Path("tuned").write_text('{"format": 1, "products": []}')
    Path("aotc.toml").write_text(
        '[target.x]\ninputs = "e.mlir"\nemit = "mlir"\nout = "x"\n'
        '[target.y]\ninputs = "e.mlir"\nemit = "mlir"\nout = "aotc.toml"\n'
    )
    return tmp_path


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("build e.mlir --emit mlir -o e.mlir", f"The output 'e.mlir' {OVER_INPUT} (-o)."),
        ("build e.mlir --emit mlir -o link", OVER_INPUT),
        ("build e.mlir --emit mlir -o hard", OVER_INPUT),
        ("build e.mlir --emit mlir -o temps/../e.mlir", OVER_INPUT),
        ("build e.mlir --emit mlir -o y --trace e.mlir", f"The trace 'e.mlir' {OVER_INPUT}"),
        ("build e.mlir --emit mlir -o y --trace link", f"'link' {OVER_INPUT} (--trace)."),
        ("build e.mlir --emit mlir -o y --trace hard", OVER_INPUT),
        ("run e.mlir --trace e.mlir", f"The trace 'e.mlir' {OVER_INPUT}"),
        ("build e.mlir --emit mlir -o y -MD -MF e.mlir", f"The depfile 'e.mlir' {OVER_INPUT}"),
        ("build e.mlir -o y --weights e.mlir", f"The file of weights 'e.mlir' {OVER_INPUT}"),
        ("build e.mlir f.mlir --emit mlir -o out/ --trace f.mlir", OVER_INPUT),
        ("build e.mlir --emit mlir -o y --trace y", "--trace y and -o y are one file."),
        ("build e.mlir --emit mlir -o y -MD -MF y", "-MF y and -o y are one file."),
        ("build e.mlir --emit mlir -o y.d -MD", "-MF y.d and -o y.d are one file."),
        ("build e.mlir --emit mlir -o y --trace y.d -MD", "--trace y.d and -MF y.d are one"),
        ("build e.mlir -o y --weights w -MD -MF w", "-MF w and --weights w are one file."),
        ("build e.mlir -o y --weights y", "--weights y and -o y are one file."),
        ("build e.mlir -o w/ --weights w/e", "--weights w/e and -o w/e are one file."),
        ("build e.mlir --emit mlir -o y --trace y/t", "-o y is a file, and --trace y/t would be"),
        ("build e.mlir --emit mlir -o y --save-temps y", "-o y is a file, and --save-temps a"),
        ("build temps/01-e.mlir --emit mlir -o y --save-temps temps", "'temps/01-e.mlir' is named"),
        ("build e.mlir --emit mlir -o temps/09-y --save-temps temps", "'temps/09-y' is named like"),
        ("run temps/01-e.mlir --save-temps temps", "name another folder (--save-temps)."),
        ("build e.mlir --emit mlir -o passes --pipeline @passes", "'passes' would overwrite 'pas"),
        ("build e.mlir --emit mlir -o tuned --tuned tuned", "'tuned' would overwrite 'tuned',"),
        ("build e.mlir --emit mlir -o f.mlir --ptxas f.mlir", "overwrite 'f.mlir', which is read"),
        ("build x --trace aotc.toml", "'aotc.toml' would overwrite 'aotc.toml', which is read"),
        ("build y", "The output 'aotc.toml' would overwrite 'aotc.toml', which is read"),
        ("build x -MD -MF x", "-MF x and -o x are one file."),
        ("build x --trace x", "--trace x and -o x are one file."),
        ("build e.mlir --tune --tuned e.mlir -o y", f"'e.mlir' {OVER_INPUT} (--tuned)."),
        ("build e.mlir --tune --tuned y -o y", "--tuned y and -o y are one file."),
        ("tune e.mlir --tuned link", OVER_INPUT),
        ("tune link --tuned e.mlir", OVER_INPUT),
        ("bench e.mlir --json e.mlir", "The file 'e.mlir' would overwrite 'e.mlir', which is"),
        ("bench e.mlir --json j --plot j.svg --roofline j.svg", "--roofline j.svg and --plot j.s"),
    ],
)
def test_it_is_refused(words: str, said: str, aotc: Aotc, here: Path) -> None:
    """Before anything is built: all files are as they were."""
    before = _contents(here)
    done = aotc(*words.split())
    assert done.code == 2
    assert said in done.stderr
    assert _contents(here) == before


def test_a_bundle_over_its_input(aotc: Aotc, here: Path) -> None:
    Path("run").symlink_to("e.mlir")
    done = aotc("tune", "e.mlir", "--bundle", ".", "--chip", "sm_90a")
    assert done.code == 2
    assert OVER_INPUT in done.stderr


def test_a_name_that_only_the_build_knows(aotc: Aotc, here: Path) -> None:
    """The outputs are compared once more when they are put down."""
    done = aotc(*"build e.mlir --emit ptx --chip sm_90 -MD -MF e.saxpy_kernels.sm_90.ptx".split())
    assert done.code == 2
    assert (
        "-MF e.saxpy_kernels.sm_90.ptx and -o e.saxpy_kernels.sm_90.ptx are one file."
        in done.stderr
    )
    assert not Path("e.saxpy_kernels.sm_90.ptx").exists()


@pytest.mark.parametrize(
    "words",
    [
        "build e.mlir --emit mlir -o /dev/null -MD -MF /dev/null",
        "build e.mlir --emit mlir -o temps/y --save-temps temps --trace temps/t",
        "build e.mlir f.mlir --emit shared --runtime shared -o p/ --trace t -MD",
        "build e.mlir --emit mlir -o hard2",
    ],
)
def test_it_is_built(words: str, aotc: Aotc, here: Path) -> None:
    """Devices, a folder for all, a file that is of another name of an output."""
    Path("old").touch()
    os.link("old", "hard2")
    aotc(*words.split()).succeeded()
