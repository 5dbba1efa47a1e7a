"""The report as JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from harness.support import Build, Run, Save, report


def test_json_fields(run: Run, save: Save) -> None:
    """Every field that docs/harness.md names, and no other."""
    save("c.npy", np.full((4, 5), 3, "f4"))
    words = ["matmul", "--A", "ones", "--B", "ones", "--expect", "C=c.npy", "--out", "C=o.npy"]
    value = report(run, *words, "--print", "C", "--repeat", "2", FAKE_DEVICE="cuda")
    assert list(value) == [
        "program", "aotc_version", "entry", "device", "seed", "arguments", "results", "times",
        "passed",
    ]  # fmt: skip
    assert value["device"] == {
        "kind": "cuda",
        "ordinal": 1,
        "name": "Fake GPU",
        "capability": [9, 0],
        "multiprocessors": 132,
        "memory_bytes": 140 << 30,
        "reason": None,
    }
    assert value["arguments"][0] == {
        "name": "A",
        "type": "memref<4x3xf32>",
        "dtype": "float32",
        "shape": [4, 3],
        "source": "ones",
    }
    (result,) = value["results"]
    assert result["file"] == "o.npy"
    assert result["values"] == [[3] * 5] * 4
    assert (value["passed"], result["comparison"]["passed"]) == (True, True)
    documented = (Path(__file__).parents[2] / "docs" / "harness.md").read_text()

    def keys(item: Any) -> set[str]:
        if isinstance(item, dict):
            return set(item).union(*(keys(part) for part in item.values()))
        return set().union(*(keys(part) for part in item)) if isinstance(item, list) else set()

    for key in keys(value):
        assert f"`{key}`" in documented, key


def test_json_of_strange_names(build: Build, tmp_path: Path) -> None:
    """Whatever bytes a path has, the object is JSON."""
    for name in (
        b'q"uote\\.npy',
        b"tab\t.npy",
        "ü€😀.npy".encode(),
        b"\xff\xc0\x80\xed\xa0\x80.npy",
    ):
        ran = subprocess.run(
            [build.program("matmul"), "--json", b"--out", b"C=" + name], cwd=tmp_path,
            env=build.environment, capture_output=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        got = json.loads(ran.stdout)["results"][0]["file"]
        try:
            assert got == name.decode()
        except UnicodeDecodeError:
            assert got == "\ufffd" * 6 + ".npy"
