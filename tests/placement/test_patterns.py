"""Placement makes no more of a call than it must: counted, and right, for named patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library
from placement.emulation import call_on_fake_gpu
from placement.patterns import PATTERNS, Counts, N, Pattern, module_text

from aotc.cli import run


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two calls of each pattern gave on the fake GPU, by the pattern's name."""
    requests = [
        {
            "entry": name,
            "arguments": [[0.0] * N if a == "out" else pattern.number for a in pattern.arguments],
            "has_result": pattern.result is not None,
        }
        for name, pattern in PATTERNS.items()
    ]
    given = call_on_fake_gpu(module_text(), requests, tmp_path_factory.mktemp("patterns"))
    return dict(zip(PATTERNS, given, strict=True))


def check_values(pattern: Pattern, result: float | None, out: list[float] | None) -> None:
    if pattern.result is not None:
        assert result == pattern.result
    if pattern.out is not None:
        assert out is not None
        assert out[5] == pattern.out


@pytest.mark.parametrize("name", PATTERNS)
def test_counts(name: str, answers: dict[str, Any]) -> None:
    """The second call's: the first one also loads the module."""
    _, second = answers[name]
    counts = Counts(*(second[what] for what in ("allocations", "copies", "launches", "waits")))
    assert counts == PATTERNS[name].counts
    assert second["managed"] == 0


@pytest.mark.parametrize("name", PATTERNS)
def test_values_where_streams_work_late(name: str, answers: dict[str, Any]) -> None:
    """What is not waited for is not there: no wait is missing, and no copy."""
    for answer in answers[name]:
        assert answer["error"] == ""
        buffers = answer["buffers"]
        check_values(PATTERNS[name], answer["result"], buffers[0] if buffers else None)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(module_text(), tmp_path_factory.mktemp("patterns_on_the_cpu"))


@pytest.mark.parametrize("name", PATTERNS)
def test_values_on_the_cpu(name: str, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror is memory of its own there, too."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    pattern = PATTERNS[name]
    for _ in range(2):
        out = np.zeros(N, np.float32)
        arguments = [out if a == "out" else pattern.number for a in pattern.arguments]
        check_values(pattern, library.call(name, *arguments), out.tolist())


def test_the_outlined_module_is_input_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What placement made is left as it is, and means the same."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    source, outlined = tmp_path / "patterns.mlir", tmp_path / "outlined.mlir"
    source.write_text(module_text())
    assert run(["build", str(source), "--emit", "mlir", "-q", "-o", str(outlined)]) == 0
    text = outlined.read_text()
    again = build_library(text, tmp_path)
    assert text.count("gpu.memcpy") > 0
    for name, pattern in PATTERNS.items():
        out = np.zeros(N, np.float32)
        arguments = [out if a == "out" else pattern.number for a in pattern.arguments]
        check_values(pattern, again.call(name, *arguments), out.tolist())
