"""A path that no file can have is the user's error, wherever it was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command import SAMPLES, own_process

LONG = "long" * 1200
BUILD = ("build", str(SAMPLES / "saxpy.mlir"), "--emit", "host-mlir", "-o", "out/")


@pytest.mark.parametrize(
    "words",
    [
        (*BUILD[:-1], f"{LONG}/"),
        (*BUILD[:-1], LONG),
        (*BUILD, "--save-temps", LONG),
        (*BUILD, "--tuned", LONG),
        ("build", f"{LONG}.mlir"),
        ("build", f"{LONG}.onnx"),
        ("inspect", LONG),
        ("tune", LONG),
    ],
    ids=lambda words: " ".join(words).replace(LONG, "LONG").replace(str(SAMPLES), ""),
)
def test_an_argument(words: tuple[str, ...], tmp_path: Path) -> None:
    check(words, tmp_path, {})


@pytest.mark.parametrize("variable", ["AOTC_CACHE", "TMPDIR"])
def test_a_variable(variable: str, tmp_path: Path) -> None:
    check(BUILD, tmp_path, {variable: f"/{LONG}"})


def test_a_project(tmp_path: Path) -> None:
    (tmp_path / "aotc.toml").write_text(f'[target.one]\ninputs = ["a.mlir"]\nout = "{LONG}"\n')
    (tmp_path / "a.mlir").write_text("module {}")
    check(("build",), tmp_path, {})


def check(words: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
    done = own_process(words, cwd=folder, env=environment)
    assert done.code == 2, done.stderr[-2000:]
    assert "longlonglong" in done.stderr
    assert "Traceback" not in done.stderr


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    done = own_process(("build", "circle/a.mlir", "--emit", "host-mlir"), cwd=tmp_path)
    assert done.code == 2
    assert "Too many levels of symbolic links" in done.stderr
