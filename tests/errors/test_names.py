"""Names of files that are not UTF-8, and Python where it takes names for ASCII."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome, own_process

from aotc import InputError, build

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


@pytest.mark.parametrize("character", ['"', "\\", "\n", "\x7f"])
def test_characters_that_text_has_escapes_for(
    character: str, aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the input's name always, in its folder where a debugger is to find it; nothing is made."""
    monkeypatch.chdir(tmp_path)
    name = f"a{character}b.mlir"
    shutil.copy(SAMPLES / "saxpy.mlir", name)
    done = aotc("build", name, *QUICK, "-o", "out/")
    expected = f"The name of the input, {name!r}, has the character {character!r} in it: "
    assert done.code == 2
    assert done.stderr.startswith(f"aotc: error: {expected}")
    Path(f"a{character}").mkdir()
    inside = shutil.copy(name, f"a{character}/in.mlir")
    assert aotc("build", inside, *QUICK, "-g", "-o", "out/").code == 2
    with pytest.raises(InputError) as raised:
        build((SAMPLES / "saxpy.mlir").read_bytes(), name=name, emit="host-mlir", out="out/")
    assert str(raised.value).startswith(expected)
    assert not Path("out").exists()
    aotc("build", inside, *QUICK, "-o", "out/").succeeded()


def test_a_depfile_has_no_newlines(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = aotc("build", str(SAMPLES / "saxpy.mlir"), *QUICK, "-MD", "-o", "a\nb.mlir")
    assert done.code == 2
    assert done.stderr == (
        "aotc: error: A depfile (-MD) has no text for the path 'a\\nb.mlir': it has a newline.\n"
    )


def test_a_library_with_a_comma(
    aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilers part the linker's options at commas."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "saxpy.mlir", "a,b.mlir")
    aotc("build", "a,b.mlir", "--chip", "sm_80", "-g", "--emit", "shared", "-o", ".").succeeded()
    assert "liba,b.so" in aotc("inspect", "lib/liba,b.so").succeeded().stdout


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
