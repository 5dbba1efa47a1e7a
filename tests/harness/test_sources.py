"""What arguments hold: defaults, numbers, files, and how they are laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Run, Save, aotc_random, report, sample


def test_defaults(run: Run) -> None:
    """Read: random; read and written: zeros; written: poison; unused: zeros."""

    def sources(*words: str) -> list[str]:
        return [argument["source"] for argument in report(run, *words)["arguments"]]

    assert sources("matmul") == ["random:seed=0", "random:seed=0", "zeros"]
    assert sources("matmul", "--seed", "5", "--A", "random:low=-1") == [
        "random:seed=5,low=-1",
        "random:seed=5",
        "zeros",
    ]
    assert sources("kernels", "places") == [*["random:seed=0"] * 3, "zeros"]
    assert sources("kernels", "half") == ["poison"] * 3
    # Positions: a guess could lead outside of a buffer.
    dims = ["--dim", "source=2x2", "--dim", "target=2x2"]
    assert sources("kernels", "copy_index", *dims) == ["zeros", "poison"]


SOURCES: dict[str, tuple[str, Any]] = {
    "zeros": ("f32", 0),
    "ones": ("c64", 1),
    "2.5": ("f16", 2.5),
    "0x1p-3": ("f64", 0.125),
    "-7": ("i8", -7),
    "1e6": ("i32", 1000000),
    "0xff": ("ui8", 255),
    "18446744073709551615": ("ui64", 2**64 - 1),
    "-9223372036854775808": ("i64", -(2**63)),
    "True": ("i1", True),
    "false": ("i1", False),
    "-inf": ("f32", -np.inf),
    "1-2j": ("c128", 1 - 2j),
    "(-1+0.5j)": ("c64", -1 + 0.5j),
    "3j": ("c64", 3j),
    "-4": ("c64", -4),
}


@pytest.mark.parametrize("source", SOURCES)
def test_number_sources(run: Run, tmp_path: Path, source: str) -> None:
    name, value = SOURCES[source]
    words = [f"--source={source}", "--dim", "source=2x2", "--dim", "target=2x2"]
    ran = run("kernels", f"copy_{name}", *words, "--out", "target=t.npy")
    assert ran.code == 0, ran.stderr
    got = np.load(tmp_path / "t.npy")
    assert np.array_equal(got, np.full((2, 2), value, COPIED_DTYPES[name]))


@pytest.mark.parametrize("name", [name for name in COPIED_DTYPES if name != "bf16"])
def test_arange(run: Run, tmp_path: Path, name: str) -> None:
    """As np.arange(n).astype(dtype), past what the narrow types hold."""
    words = ["--source", "arange", "--dim", "source=300x2", "--dim", "target=300x2"]
    ran = run("kernels", f"copy_{name}", *words, "--out", "target=t.npy")
    assert ran.code == 0, ran.stderr
    expected = np.arange(600).astype(COPIED_DTYPES[name]).reshape(300, 2)
    assert np.array_equal(np.load(tmp_path / "t.npy"), expected)


def test_scalars(run: Run, save: Save) -> None:
    """Scalars go in and come out, from numbers and from files of shape ()."""
    words = ["kernels", "scalars", "--i", "-3", "--f", "2.5", "--b", "True", "--z", "1-2j"]
    results = report(run, *words, "--u", "7")["results"]
    assert [result["min"] for result in results] == [-7.5, [2, -4]]
    save("u.npy", np.array(9, "u1"))
    results = report(run, *words, "--u", "u.npy")["results"]
    assert results[0]["min"] == -9.5
    save("u.npy", np.array([9], "u1"))
    ran = run(*words, "--u", "u.npy")
    assert ran.code == 2
    message = "--u: 'u' is ui8 and takes uint8 of shape (); 'u.npy' holds uint8 of shape (1,)\n"
    assert ran.stderr == f"kernels: error: {message}"
    # All draws of a scalar are those of an array of one element.
    value = report(run, "kernels", "scalars", "--print", "f", "--print", "b")
    printed = {result["name"]: result.get("values") for result in value["results"]}
    assert printed["f"] == aotc_random("f", (1,), "f4")[0]
    assert printed["b"] == aotc_random("b", (1,), "bool")[0]


def test_unsigned_files_of_integers_without_a_sign(run: Run, save: Save, tmp_path: Path) -> None:
    array = np.array([[200, 3]], "u1")
    save("a.npy", array)
    words = ["--source", "a.npy", "--dim", "target=1x2", "--out", "target=t.npy"]
    ran = run("kernels", "copy_i8", *words)
    assert ran.code == 0, ran.stderr
    assert np.array_equal(np.load(tmp_path / "t.npy"), array.view("i1"))


def test_layouts(run: Run, save: Save, tmp_path: Path) -> None:
    """Strides with gaps, an offset, and negative strides, on a device that traps outside."""
    array = sample("i2", (3, 4)).astype("i4")
    save("a.npy", array)
    for device in ("cpu", "cuda"):
        words = ["--source", "a.npy", "--out", "target=t.npy", "--print", "gaps"]
        ran = run("kernels", "layout", *words, FAKE_DEVICE=device)
        assert ran.code == 0, ran.stderr
        assert np.array_equal(np.load(tmp_path / "t.npy"), array * 2)
        # The entry found only poison between the elements.
        assert "gaps = 0\n" in ran.stdout


def test_dynamic_strides(run: Run) -> None:
    """A dynamic stride packs its dimension on the next one, a dynamic offset is 0."""
    words = ["kernels", "strides", "--dim", "x=3x4", "--print", "seen"]
    assert report(run, *words)["results"][0]["values"] == [0, 3, 4, 8, 2, 1]


def test_too_large(run: Run) -> None:
    ran = run("kernels", "huge")
    assert ran.code == 2
    assert ran.stderr == (
        "kernels: error: 'x' (memref<2x3xf32, strided<[4611686018427387903, 1]>>) "
        "is larger than memory can be\n"
    )
