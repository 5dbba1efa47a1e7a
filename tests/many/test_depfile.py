"""`-MD`: what an output was made of, as Make and Ninja read it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import REPOSITORY, SAMPLES, Outcome

import aotc as package
from aotc.depfile import depfile_text, files_read, quote
from aotc.frontends.registry import Frontend
from aotc.identity import identity, own_files
from aotc.request_words import make_request

Aotc = Callable[..., Outcome]
QUICK = ("--emit", "ptx", "--chip", "sm_90")
# What file names may have in them, and rules do not.
ODD = ("plain", "a b", "two  blanks", "dollar$x$", "hash#1", "colon:x", "back\\slash", "end\\ x")


@pytest.fixture
def environment() -> dict[str, str]:
    """With this Python's programs in front."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "vector_add.mlir", "in.mlir")
    return tmp_path


def _rule(path: Path) -> tuple[str, list[str]]:
    """The first rule's target, and its prerequisites."""
    text = path.read_text().replace("\\\n", " ").splitlines()[0]
    target, words = text.split(": ", 1)
    return target, words.split()


def test_a_depfile_names_all_that_the_output_is_of(aotc: Aotc, here: Path) -> None:
    """The input first; options' files; aotc itself, and its tools."""
    explained = aotc("build", "in.mlir", *QUICK, "--explain", "-o", "x.ptx").succeeded().stdout
    Path("passes").write_text(explained)
    aotc("build", "in.mlir", *QUICK, "--pipeline", "@passes", "-MD", "-o", "out.ptx").succeeded()
    target, inputs = _rule(Path("out.d"))
    assert (target, inputs[:2]) == ("out.ptx", ["in.mlir", "passes"])
    assert package.__file__ in inputs
    assert any("ziglang-" in word and word.endswith("dist-info/METADATA") for word in inputs)
    assert any("nvidia_cuda_nvcc-" in word for word in inputs)
    assert all(Path(word).is_file() for word in inputs)


@pytest.mark.parametrize(
    ("options", "depfile", "target"),
    [
        (("--emit", "ptx", "-o", "dir/"), "dir/in.d", "dir/in_kernels.sm_90.ptx"),
        (("--emit", "header,manifest", "-o", "dir/"), "dir/in.d", "dir/in.json dir/in.h"),
        (("--emit", "header"), "in.d", "in.h"),
        (("--emit", "ptx", "-MF", "own name.dep", "-o", "a b.ptx"), "own name.dep", r"a\ b.ptx"),
        (("--emit", "ptx", "-MT", "$(X) y", "-MQ", "z w", "-o", "q"), "q.d", r"$(X) y z\ w"),
        (("--emit", "ptx", "-o", "-", "-MF", "d", "-MT", "t"), "d", "t"),
    ],
)
def test_places_and_targets(
    options: tuple[str, ...], depfile: str, target: str, aotc: Aotc, here: Path
) -> None:
    """As compilers have them: beside the output, -MF, -MT as it is, -MQ quoted."""
    aotc("build", "in.mlir", "--chip", "sm_90", "-MD", *options).succeeded()
    assert Path(depfile).read_text().startswith(f"{target}: in.mlir \\\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-MF", "x"), "add -MD"),
        (("-MT", "x"), "add -MD"),
        (("-MD", "-o", "-"), "-MD with -o - needs -MF"),
        (("-MD", "-MF", "x", "-o", "-"), "-MD with -o - needs -MT"),
    ],
)
def test_refusals(options: tuple[str, ...], words: str, aotc: Aotc, here: Path) -> None:
    done = aotc("build", "in.mlir", *QUICK, *options)
    assert done.code == 2
    assert words in done.stderr


def test_a_failed_build_writes_none(aotc: Aotc, here: Path) -> None:
    Path("in.mlir").write_text("nonsense")
    assert aotc("build", "in.mlir", *QUICK, "-MD", "-o", "out.ptx").code == 2
    assert [file.name for file in here.iterdir()] == ["in.mlir"]


def test_several_inputs_have_one_each(aotc: Aotc, here: Path) -> None:
    shutil.copy(SAMPLES / "saxpy.mlir", "other.mlir")
    aotc("build", "in.mlir", "other.mlir", *QUICK, "-MD", "-j", "2", "-o", "out/").succeeded()
    assert _rule(Path("out/in.d"))[1][0] == "in.mlir"
    assert _rule(Path("out/other.d"))[1][0] == "other.mlir"


def test_files_of_a_front_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it reads beside the input: a model's weights in files of their own."""
    frontend = Frontend("x", (".x",), lambda *_: None, beside=lambda path: [path.parent / "w"])
    monkeypatch.setattr("aotc.frontends.registry.frontend_for", lambda *_: frontend)
    request = make_request(tmp_path / "model.x")
    assert files_read(request) == [tmp_path / "model.x", tmp_path / "w"]


def test_own_files_are_there_and_tell_the_version() -> None:
    names = [file.name for file in own_files()]
    assert all(file.is_file() for file in own_files())
    assert "__init__.py" in names
    # This is a checkout: each source of ours counts.
    assert {"pipeline.py", "launch.c", "main.c"} <= set(names)
    assert f"aotc {package.__version__} (" in identity()
    assert "ziglang " in identity()


def _make(folder: Path) -> list[str]:
    done = subprocess.run(
        ["make", "-s", "-f", "rules"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def _ninja(folder: Path) -> list[str]:
    ninja = Path(pytest.importorskip("ninja").BIN_DIR) / "ninja"
    done = subprocess.run([ninja, "-v"], cwd=folder, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("name", ODD)
def test_make_reads_odd_names(name: str, tmp_path: Path) -> None:
    """Made once, not again, and again when the file has changed or is gone."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    (tmp_path / "source").touch()
    (tmp_path / name).touch()
    (tmp_path / "rules").write_text("out: source\n\techo made; touch out\n-include out.d\n")
    (tmp_path / "out.d").write_text(depfile_text(["out"], [Path("source"), Path(name)]))
    assert [_make(tmp_path), _make(tmp_path)] == [["made"], []]
    os.utime(tmp_path / name, (2e9, 2e9))
    assert _make(tmp_path) == ["made"]
    os.utime(tmp_path / name, (1e9, 1e9))
    os.utime(tmp_path / "out")
    assert _make(tmp_path) == []
    (tmp_path / name).unlink()
    assert _make(tmp_path) == ["made"]


@pytest.mark.parametrize("name", ODD)
def test_ninja_reads_odd_names(name: str, tmp_path: Path) -> None:
    (tmp_path / "source").touch()
    (tmp_path / name).touch()
    (tmp_path / "depfile").write_text(depfile_text(["out"], [Path("source"), Path(name)]))
    (tmp_path / "build.ninja").write_text(
        "rule make\n  command = touch out && cp depfile out.d\n  depfile = out.d\n  deps = gcc\n"
        "build out: make source\n"
    )
    assert len(_ninja(tmp_path)) == 1
    assert _ninja(tmp_path) == []
    os.utime(tmp_path / name, (2e9, 2e9))
    assert len(_ninja(tmp_path)) == 1
    os.utime(tmp_path / name, (1e9, 1e9))
    _ninja(tmp_path)
    assert _ninja(tmp_path) == []
    (tmp_path / name).unlink()
    assert len(_ninja(tmp_path)) == 1


def test_make_builds_what_has_changed(here: Path, environment: dict[str, str]) -> None:
    """The rules of docs/build_systems.md, in a folder with blanks in its path."""
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    text = (REPOSITORY / "docs" / "build_systems.md").read_text()
    rules = text.split("```make\n")[1].split("```")[0].replace("$<", "$< --chip sm_90")
    Path("Makefile").write_text(f"{rules}\nall: in\n")

    def make() -> str:
        done = subprocess.run(
            ["make", "all"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "aotc build in.mlir" in make()
    assert "Nothing to be done" in make()
    os.utime("in.mlir")
    assert "aotc build in.mlir" in make()
    os.utime("in", (1e9, 1e9))  # older than aotc
    assert "aotc build in.mlir" in make()


def test_quoting() -> None:
    assert quote("a b") == r"a\ b"
    assert quote("a\\ b") == r"a\\\ b"
    assert quote("a$b#c:d") == r"a$$b\#c\:d"
