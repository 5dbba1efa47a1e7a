"""Random programs compute what they say, wherever placement puts their buffers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library
from placement.emulation import call_on_fake_gpu
from placement.patterns import KERNELS, N, function, launch
from placement.random_programs import random_program

SEEDS = range(30)
NUMBERS = (0, 1, 2, 3)
PROGRAMS = {f"f{seed}": random_program(f"f{seed}", seed) for seed in SEEDS}


def _text() -> str:
    step = f"{launch('inc', '%t')}\nreturn"
    functions = "".join(program.text for program in PROGRAMS.values())
    functions += function("step", "%t: memref<32xf32>", "", step, is_entry=False)
    return f"module attributes {{gpu.container_module}} {{\n{KERNELS}{functions}\n}}\n"


def _runs() -> Iterator[tuple[str, int]]:
    for name in PROGRAMS:
        for number in NUMBERS:
            yield name, number


def _check(name: str, number: int, result: float, out: list[float]) -> None:
    expected, expected_out = PROGRAMS[name].expect(number)
    np.testing.assert_array_equal([result, *out], [expected, *expected_out], f"{name}({number})")


@pytest.mark.parametrize("memory", ["auto", "managed"])
def test_on_the_cpu(memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror is memory of its own there: a copy that is missing shows."""
    monkeypatch.setenv("AOTC_DEVICE", "cpu")
    library = build_library(_text(), tmp_path, "--memory", memory, "-O1")
    for name, number in _runs():
        out = np.zeros(N, np.float32)
        result = library.call(name, out, number)
        _check(name, number, result, out.tolist())


def test_where_streams_work_late(tmp_path: Path) -> None:
    """A wait that is missing shows there, too."""
    requests = [
        {"entry": name, "arguments": [[0.0] * N, number], "has_result": True}
        for name, number in _runs()
    ]
    answers = call_on_fake_gpu(_text(), requests, tmp_path, "-O1")
    for (name, number), twice in zip(_runs(), answers, strict=True):
        for answer in twice:
            assert answer["error"] == ""
            _check(name, number, answer["result"], answer["buffers"][0])
