"""An option with an empty text, or an empty name in a list, says nothing: an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

import aotc as package
from aotc.errors import InputError

Aotc = Callable[..., Outcome]
SAMPLE = SAMPLES / "saxpy.mlir"


@pytest.mark.parametrize(
    "option",
    [
        *("--chip", "--ptx", "--target", "--entry", "--emit", "-o", "--weights", "--block"),
        *("--cache", "--remote-cache", "--save-temps", "--tuned", "--pipeline", "--frontend"),
        *(
            "--frontend-option",
            "--print-ir-after",
            "--print-ir-dir",
            "-W",
            "--trace",
            "--ptxas",
            "--zig",
            "-MF",
            "-MT",
        ),
    ],
)
def test_options_of_a_build(aotc: Aotc, option: str) -> None:
    outcome = aotc("build", SAMPLE, option, "")
    assert outcome.code == 2
    assert f"Invalid value for '{option}" in outcome.stderr or "'-W'" in outcome.stderr
    assert "it is empty." in outcome.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("cache", "info", "--cache", ""),
        ("cache", "trim", "--size", ""),
        ("inspect", SAMPLE, "--ptx", ""),
        ("inspect", SAMPLE, "--occupancy", ""),
        ("tune", SAMPLE, "--bundle", ""),
        ("bench", SAMPLE, "--flops", ""),
    ],
)
def test_options_of_other_commands(aotc: Aotc, words: tuple[str, ...]) -> None:
    outcome = aotc(*words)
    assert outcome.code == 2
    assert "it is empty." in outcome.stderr


@pytest.mark.parametrize("words", ["sm_80,,", ",sm_80", "sm_80,,sm_90", ","])
def test_names_in_a_list(aotc: Aotc, words: str) -> None:
    outcome = aotc("build", SAMPLE, "--chip", words)
    assert outcome.code == 2
    assert f"Invalid value for '--chip': '{words}' has an empty name in it." in outcome.stderr


def test_no_prefix_is_a_prefix(aotc: Aotc, tmp_path: Path) -> None:
    words = ("--emit", "host-mlir", "--chip", "sm_90", "-o", tmp_path / "out")
    aotc("build", SAMPLE, *words, "--prefix", "").succeeded()


@pytest.mark.parametrize("keyword", ["chips", "ptx", "target", "block", "out", "emit", "entries"])
def test_keywords(tmp_path: Path, keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        package.build(SAMPLE, **{"emit": "manifest", keyword: ""})
    assert list(tmp_path.iterdir()) == []
