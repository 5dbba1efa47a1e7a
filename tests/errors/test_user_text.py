"""Text of the user's that a library parses: what it cannot read is an input error, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import SAMPLES, Outcome

Aotc = Callable[..., Outcome]
BUILD = ("build", str(SAMPLES / "saxpy.mlir"), "--emit", "manifest", "-o", "-")
# Python makes no numbers of more than 4300 digits.
DIGITS = "9" * 5000
NO_URL = "is no URL of a server: write http://HOST[:PORT][/PATH]."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*BUILD, "--block", DIGITS), "is not a block: write 256, 32x8 or 8x8x4."),
        ((*BUILD, "--block", f"{DIGITS}x1"), "is not a block"),
        ((*BUILD, "--target", f"x86_64-linux-gnu.2.{DIGITS}"), "Unknown host target"),
        ((*BUILD, "--target", "x86_64-linux-gnu.٢.٣"), "Unknown host target"),
        ((*BUILD, "-O", DIGITS), "Invalid value for '-O'"),
        ((*BUILD, "-j", DIGITS), "Invalid value for '-j'"),
        ((*BUILD, "--chip", f"sm_{DIGITS}"), "Unknown chip"),
        (("cache", "trim", "--size", f"{DIGITS}G"), "is not a size"),
        (("cache", "trim", "--size", "٣G"), "is not a size"),
        (("bench", "/bin/true", "--sizes", DIGITS), "expected sizes such as 1000, 64K, 16M."),
        (("bench", "/bin/true", "--sizes", "²"), "expected sizes such as 1000, 64K, 16M."),
        (("bench", "/bin/true", "--flops", DIGITS), "is no expression"),
        (("bench", "/bin/true", "--args", "'"), "aotc: error: --args ': no closing quotation.\n"),
        (("bench", "/bin/true", "--args", "a\\"), "no escaped character."),
        *(
            ((*BUILD, "--remote-cache", url), NO_URL)
            for url in ("http://[::", "http://[x]/", "http://a:99999", "http://a:٣", "http://a b/")
        ),
    ],
    ids=lambda one: " ".join(one[-2:])[:40] if isinstance(one, tuple) else "",
)
def test_a_word(
    words: tuple[str, ...], said: str, aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AOTC_CACHE", str(tmp_path / "cache"))
    check(aotc(*words), said)


@pytest.mark.parametrize(
    "text", ['{"format": ' * 20_000, f'{{"format": {DIGITS}}}'], ids=["deep", "digits"]
)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*BUILD, "--tuned", "file"), "'file' is not what aotc tune writes: "),
        (("bench", "file"), "'file' has no results of aotc bench."),
    ],
    ids=["tuned", "results"],
)
def test_json(
    words: tuple[str, ...],
    said: str,
    text: str,
    aotc: Aotc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text(text)
    check(aotc(*words), said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 20_000, "aotc.toml: error: a value is nested too deeply."),
        ("a = " + "{a=" * 20_000, "aotc.toml: error: a value is nested too deeply."),
        (f"a = {DIGITS}", "aotc.toml: error: a value cannot be read: Exceeds the limit"),
        ("a = 1979-09-31", "aotc.toml:1: error: Invalid date or datetime."),
        ('[target.x]\ninputs = "/**"', "aotc.toml:2: error: '/**' has more than 1,000 files and"),
        (
            '[target.x]\ninputs = "/**/none.mlir"',
            "aotc.toml:2: error: '/**/none.mlir' has more than 1,000 files and folders to look at;"
            " aotc looks at no more.\n",
        ),
        (f'[target.x]\ninputs = "{"[!" * 3000}*"', "aotc.toml:2: error: no file is '[![!"),
        (f'[target.x]\ninputs = "{"**/" * 20_000}none"', "aotc.toml:2: error: no file is '**/**"),
    ],
    ids=["arrays", "tables", "digits", "date", "root", "none", "name", "stars"],
)
def test_a_project(
    text: str, said: str, aotc: Aotc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aotc.many.patterns.MOST", 1000)
    monkeypatch.chdir(tmp_path)
    Path("aotc.toml").write_text(text)
    check(aotc("build"), said)


def check(done: Outcome, said: str) -> None:
    assert done.code == 2, done.stderr[-2000:]
    assert said in done.stderr
    assert "Traceback" not in done.stderr
