"""What the program tells of results: statistics, and their elements with --print."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Run, Save, aotc_random, report, sample


def test_text_report(run: Run) -> None:
    """The line of a matmul is NumPy's A @ B."""
    a, b = aotc_random("A", (4, 3), "f4"), aotc_random("B", (3, 5), "f4")
    c = np.zeros((4, 5), "f4")
    for k in range(3):
        c += a[:, k : k + 1] * b[k]
    ran = run("matmul")
    assert (ran.code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0] == "matmul on cpu"
    assert lines[1].split() == ["result", "type", "shape", "crc32", "min", "max", "mean"]
    name, kind, shape, crc, *numbers = re.split(r"  +", lines[2])
    assert (name, kind, shape) == ("C", "memref<4x5xf32>", "(4, 5)")
    assert len(lines) == 3
    assert [float(number) for number in numbers] == pytest.approx(
        [c.min(), c.max(), c.mean(dtype=np.float64)], rel=1e-6
    )
    assert crc == report(run, "matmul")["results"][0]["crc32"]


@pytest.mark.parametrize("name", COPIED_DTYPES)
def test_statistics(run: Run, save: Save, name: str) -> None:
    """crc32, min, max and mean are NumPy's, for every type."""
    array = sample(COPIED_DTYPES[name], (40, 50))
    if name == "bf16":
        array = array & np.uint16(0xBFFF)  # no NaN, nothing large
    save("a.npy", array)
    value = report(run, "kernels", f"copy_{name}", "--source", "a.npy", "--dim", "target=40x50")
    (result,) = value["results"]
    assert result["crc32"] == f"{zlib.crc32(array.tobytes()):08x}"
    assert result["shape"] == [40, 50]
    assert result["nan_count"] == 0
    assert result["comparison"] is None
    if name == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if array.dtype.kind == "c":
        least, most, mean = array.min(), array.max(), array.mean(dtype=np.complex128)
        assert complex(*result["min"]) == least
        assert complex(*result["max"]) == most
        assert complex(*result["mean"]) == pytest.approx(mean, rel=1e-12)
    else:
        assert result["min"] == array.min()
        assert result["max"] == array.max()
        assert result["mean"] == pytest.approx(array.mean(dtype=np.float64), rel=1e-12)


def test_not_a_number(run: Run, save: Save) -> None:
    """NaN is counted, and left out of the rest; infinity is a string in JSON."""
    array = np.array([[1, np.nan, np.inf], [np.nan, -2, np.nan]])
    save("a.npy", array)
    words = ["kernels", "copy_f64", "--source", "a.npy", "--dim", "target=2x3"]
    (result,) = report(run, *words, "--print", "target")["results"]
    assert (result["nan_count"], result["min"], result["max"]) == (3, -2, "inf")
    assert result["mean"] == "inf"
    assert result["values"] == [[1, "nan", "inf"], ["nan", -2, "nan"]]
    assert run(*words).stdout.splitlines()[2].endswith("-2   inf  inf   3 NaN")
    save("a.npy", np.full((2, 3), np.nan))
    (result,) = report(run, *words)["results"]
    assert (result["min"], result["max"], result["mean"]) == (None, None, None)


def test_integers_are_exact(run: Run, save: Save) -> None:
    """The least and greatest of 64-bit integers are not rounded to doubles."""
    limits = np.iinfo(np.int64)
    save("a.npy", np.array([[limits.min + 1, limits.max - 1]]))
    words = ["copy_i64", "--source", "a.npy", "--dim", "target=1x2"]
    (result,) = report(run, "kernels", *words)["results"]
    assert (result["min"], result["max"]) == (limits.min + 1, limits.max - 1)
    save("a.npy", np.array([[2**64 - 1, 2**64 - 2]], dtype=np.uint64))
    words = ["copy_ui64", "--source", "a.npy", "--dim", "target=1x2"]
    (result,) = report(run, "kernels", *words)["results"]
    assert (result["min"], result["max"]) == (2**64 - 2, 2**64 - 1)


def test_unwritten_elements_show(run: Run) -> None:
    """What the entry left out of a buffer that it only writes is poison."""
    ran = run("kernels", "half", "--print", "f", "--print", "i", "--print", "b")
    assert "f = [  0   0 nan nan]\n" in ran.stdout
    assert "i = [          0           0 -1515870811 -1515870811]\n" in ran.stdout
    assert "b = [False False  0xa5  0xa5]\n" in ran.stdout


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("count", [0, 5])
def test_returned_memrefs(run: Run, count: int, device: str) -> None:
    """New memory, a reversed view of it, the argument itself, and nothing; freed once each."""
    words = ["kernels", "returns", "--x", "arange", "--dim", f"x={count}", "--repeat", "2"]
    words += [word for name in ("copy", "reversed", "same", "empty") for word in ("--print", name)]
    results = report(run, *words, FAKE_DEVICE=device)["results"]
    assert [result["shape"] for result in results] == [[count]] * 3 + [[0]]
    plus_one = [i + 1 for i in range(count)]
    same = list(range(count))
    assert [result["values"] for result in results] == [plus_one, plus_one[::-1], same, []]


LIES = {
    ("lies", 0): "the entry returned 'result0' (memref<?x?xf32>) with no memory",
    ("lies", 1): "the entry returned 'result0' (memref<?x?xf32>) with impossible sizes or strides",
    ("lies", 2): "the entry returned 'result0' (memref<?x?xf32>) with impossible sizes or strides",
    ("lies_static", 3): "the entry returned 'result0' (memref<2x?xf32>) with another shape",
}


@pytest.mark.parametrize(("entry", "how"), LIES)
def test_impossible_results(run: Run, entry: str, how: int) -> None:
    ran = run("kernels", entry, "--how", how)
    assert (ran.code, ran.stderr) == (4, f"kernels: error: {LIES[entry, how]}\n")


def test_empty_buffers(run: Run, tmp_path: Path) -> None:
    words = ["--dim", "source=0x3", "--dim", "target=0x3", "--out", "target=t.npy"]
    ran = run("kernels", "copy_f32", *words, "--print", "target", FAKE_DEVICE="cuda")
    assert ran.code == 0, ran.stderr
    assert ran.stdout.endswith(
        "target  memref<?x?xf32>  (0, 3)  00000000  -    -    -\ntarget = [] of shape (0, 3)\n"
    )
    assert np.load(tmp_path / "t.npy").shape == (0, 3)
    ran = run("kernels", "copy_f32", *words[:4], "--expect", "target=t.npy")
    assert ran.code == 0
    assert "target matches t.npy: all 0 elements are equal\n" in ran.stdout


def test_no_results(run: Run) -> None:
    assert run("kernels", "nothing").stdout == "nothing on cpu\nno results\n"


def test_print(run: Run, save: Save) -> None:
    """Rows and columns as NumPy has them."""
    save("a.npy", np.array([[1, -2.5, 3e10], [0.1, 1 / 3, 100]], "f4"))
    words = ["--source", "a.npy", "--dim", "target=2x3", "--print", "target"]
    ran = run("kernels", "copy_f32", *words)
    assert ran.stdout.endswith(
        "target = [[         1       -2.5      3e+10]\n"
        "          [       0.1 0.33333334        100]]\n"
    )


def test_print_summarizes(run: Run) -> None:
    words = ["--source", "arange", "--dim", "source=40x30", "--dim", "target=40x30"]
    ran = run("kernels", "copy_i16", *words, "--print", "target")
    printed = ran.stdout.partition("target = ")[2]
    expected = np.array2string(
        np.arange(1200, dtype="i2").reshape(40, 30), threshold=1000, prefix="target = "
    )
    assert printed == expected + "\n"


def test_print_wraps(run: Run) -> None:
    """Long rows are wrapped within 75 columns."""
    words = ["--source", "arange", "--dim", "source=1x60", "--dim", "target=1x60"]
    ran = run("kernels", "copy_i32", *words, "--print", "target")
    printed = ran.stdout.partition("target = ")[2]
    expected = np.array2string(np.arange(60).reshape(1, 60), prefix="target = ")
    assert printed == expected + "\n"
