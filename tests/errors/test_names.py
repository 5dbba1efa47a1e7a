"""Names of files that are not UTF-8, and Python where it takes names for ASCII."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, own_process

Aotc = Callable[..., Outcome]
BAD = os.fsdecode(b"b\xff")
QUICK = ("--emit", "host-mlir")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of such a name, with a cache that has nothing."""
    folder = tmp_path / BAD
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AOTC_CACHE", str(folder / "cache"))
    shutil.copy(SAMPLES / "saxpy.mlir", "in.mlir")
    return folder


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("in.mlir", *QUICK, "-o", f"{BAD}.exe"), "output"),
        ((f"{BAD}.mlir", *QUICK), "input"),
        (("in.mlir", "-o", "y", "--weights", BAD), "--weights"),
    ],
    ids=["output", "input", "weights"],
)
def test_what_artifacts_have_in_them(
    words: tuple[str, ...], what: str, aotc: Aotc, here: Path
) -> None:
    done = aotc("build", *words)
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: The name of the {what}, 'b\\udcff")
    assert done.stderr.endswith("is not UTF-8.\n")


def test_others_may_have_any_name(aotc: Aotc, here: Path) -> None:
    """The folder, intermediates, depfiles and their targets, traces, the cache."""
    places = (f"{BAD}/y", f"{BAD}.d", f"{BAD}.trace", f"{BAD}.temps")
    options = ("-o", places[0], "-MF", places[1], "--trace", places[2], "--save-temps", places[3])
    aotc("build", "in.mlir", *QUICK, "-MD", "-MT", BAD, *options).succeeded()
    assert Path(places[1]).read_bytes().startswith(b"b\xff: in.mlir ")
    assert all(Path(place).exists() for place in places)
    explained = aotc("build", "in.mlir", *QUICK, "-MD", "-o", f"{BAD}/z", "--explain-cache")
    assert "never built" in explained.succeeded().stderr
    assert Path(f"{BAD}/z.d").read_bytes().startswith(b"b\xff/z: in.mlir ")
    assert aotc("inspect", BAD).code == 2
    again = own_process(("build", "in.mlir", *QUICK, "-o", "-", "--explain-cache"))
    assert "build: found" in again.succeeded().stderr


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_where_python_takes_names_for_ascii(locale: str, tmp_path: Path) -> None:
    """One module or several: those are built by processes of their own."""
    names = ("größe.mlir", "two.mlir")
    for name in names:
        shutil.copy(SAMPLES / "saxpy.mlir", tmp_path / name)
    environment = {"LC_ALL": locale, "PYTHONUTF8": "0"}
    for count in (1, 2):
        words = ("build", *names[:count], "--emit", "header", "-o", f"{count}/")
        own_process(words, cwd=tmp_path, env=environment).succeeded()
        assert (tmp_path / str(count) / "größe.h").is_file()
