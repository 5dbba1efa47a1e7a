"""What the program tells of results: statistics, printing, comparison, files, JSON."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Array, Build, Run, aotc_random, sample

Save = Callable[..., str]


def report(run: Run, *words: object, **environment: str) -> dict[str, Any]:
    ran = run(*map(str, words), "--json", **environment)
    assert ran.code == 0, ran.stderr
    value = json.loads(ran.stdout)
    assert isinstance(value, dict)
    return value


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


def test_too_large(run: Run) -> None:
    ran = run("kernels", "huge")
    assert ran.code == 2
    assert ran.stderr == (
        "kernels: error: 'x' (memref<2x3xf32, strided<[4611686018427387903, 1]>>) "
        "is larger than memory can be\n"
    )


def test_no_results(run: Run) -> None:
    assert run("kernels", "nothing").stdout == "nothing on cpu\nno results\n"


# --- --print ---


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


# --- --expect ---


def expectation(run: Run, save: Save, name: str, got: Array, expected: Array, *words: str) -> Any:
    save("got.npy", got)
    save("expected.npy", expected)
    dim = "x".join(map(str, got.shape))
    ran = run(
        "kernels", f"copy_{name}", "--source", "got.npy", "--dim", f"target={dim}",
        "--expect", "target=expected.npy", "--json", *words,
    )  # fmt: skip
    value = json.loads(ran.stdout)
    comparison = value["results"][0]["comparison"]
    assert ran.code == (0 if comparison["passed"] else 1)
    assert value["passed"] == comparison["passed"]
    assert (ran.stderr == "") == comparison["passed"]
    return comparison


FLOATS: dict[str, list[tuple[Any, Any]]] = {
    "equal": [(1.5, 1.5)],
    "near": [(1.0, 1.000001), (0, 5e-8), (-1, -1.000001)],
    "far": [(1.0, 1.1)],
    "nan": [(np.nan, 1.0)],
    "nan expected": [(1.0, np.nan)],
    "both nan": [(np.nan, np.nan)],
    "infinities": [(np.inf, np.inf), (-np.inf, -np.inf)],
    "infinity expected": [(1e30, np.inf)],
    "infinity": [(np.inf, 1e30)],
    "other infinity": [(np.inf, -np.inf)],
    "zeros": [(0.0, -0.0)],
}


@pytest.mark.parametrize("case", FLOATS)
@pytest.mark.parametrize("name", ["f32", "f64", "c64"])
def test_comparison_is_allclose(run: Run, save: Save, name: str, case: str) -> None:
    """The verdict is numpy.allclose's, with the tolerances of the type."""
    dtype = COPIED_DTYPES[name]
    pairs = [*FLOATS[case], (3, 3)]
    got, expected = (np.array([[pair[i]] for pair in pairs], dtype) for i in range(2))
    rtol, atol = {"f32": (1e-5, 1e-7), "f64": (1e-12, 1e-14), "c64": (1e-5, 1e-7)}[name]
    comparison = expectation(run, save, name, got, expected)
    wide = np.complex128 if name == "c64" else np.float64
    with np.errstate(invalid="ignore"):
        close = np.isclose(got.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)
    assert (comparison["rtol"], comparison["atol"]) == (rtol, atol)
    assert comparison["mismatch_count"] == (~close).sum()
    assert comparison["passed"] == close.all()
    assert comparison["nan_count_got"] == np.isnan(got).sum()
    assert comparison["nan_count_expected"] == np.isnan(expected).sum()


def test_given_tolerance(run: Run, save: Save) -> None:
    """--rtol and --atol replace the type's, each for itself."""
    got, expected = np.array([[1.25, 100.0]]), np.array([[1.0, 101.0]])
    comparison = expectation(run, save, "f64", got, expected, "--rtol", "0", "--atol", "1")
    assert comparison["passed"]
    assert comparison["tolerance_used"] == 1
    assert comparison["largest_error"] == 1
    assert comparison["at_largest_error"] == {"index": [0, 1], "got": 100, "expected": 101}
    comparison = expectation(run, save, "f64", got, expected, "--rtol", "0.125")
    assert not comparison["passed"]
    assert comparison["atol"] == 1e-14
    assert comparison["mismatch_count"] == 1
    assert comparison["tolerance_used"] == pytest.approx(2)
    # The largest error is elsewhere.
    assert comparison["at_tolerance_used"] == {"index": [0, 0], "got": 1.25, "expected": 1}
    assert comparison["at_largest_error"]["index"] == [0, 1]


INTEGERS: dict[str, tuple[str, int, int, list[str], bool]] = {
    "equal": ("i64", -(2**63), -(2**63), [], True),
    "one off": ("i64", 2**53 + 1, 2**53, [], False),
    "ends": ("i64", 2**63 - 1, -(2**63), [], False),
    "one allowed": ("i32", 7, 8, ["--atol", "1"], True),
    "one too many": ("i32", 6, 8, ["--atol", "1"], False),
    "no atol": ("i32", 6, 8, ["--rtol", "0.1"], False),
    "rtol": ("ui64", 2**64 - 1, 2**64 - 2, ["--rtol", "1e-6"], True),
    "u64": ("ui64", 0, 2**64 - 1, [], False),
    "bool": ("i1", 1, 0, ["--atol", "1"], False),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_compare_exactly(run: Run, save: Save, case: str) -> None:
    """Integers are equal or not, unless a tolerance is given; bool always."""
    name, one, other, words, passed = INTEGERS[case]
    got, expected = (np.array([[number]], COPIED_DTYPES[name]) for number in (one, other))
    comparison = expectation(run, save, name, got, expected, *words)
    assert comparison["passed"] == passed
    assert comparison["is_exact"] == (not words or name == "i1")
    assert comparison["largest_error"] == float(abs(one - other))


def test_complex_differences(run: Run, save: Save) -> None:
    """The error of complex numbers is the distance; infinite parts must be equal."""
    got = np.array([[3 + 4j, complex(np.inf, 1), complex(np.inf, 1)]])
    expected = np.array([[0, complex(np.inf, 1), complex(np.inf, 2)]])
    comparison = expectation(run, save, "c128", got, expected)
    assert comparison["mismatch_count"] == 2
    assert comparison["largest_error"] == 5
    assert comparison["at_largest_error"]["got"] == [3, 4]


def test_match_text(run: Run, save: Save) -> None:
    save("c.npy", np.full((4, 5), 3.00001, "f4"))
    words = ["matmul", "--A", "ones", "--B", "ones", "--expect", "C=c.npy"]
    ran = run(*words)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == (
        "C matches c.npy: largest error 1.001358e-05 at [0, 0] (got 3, expected 3.00001), "
        "at most 33.3% of the tolerance is used (rtol 1e-05, atol 1e-07)"
    )
    save("c.npy", np.full((4, 5), 3, "f4"))
    assert run(*words).stdout.splitlines()[-1] == "C matches c.npy: all 20 elements are equal"


def test_mismatch_text(run: Run, save: Save) -> None:
    """Exit 1, and on stderr where and by how much; the report is still there."""
    expected = np.full((4, 5), 3, "f4")
    expected[2, 3] = 3.5
    expected[1, 1] = 3.25
    save("c.npy", expected)
    words = ["matmul", "--A", "ones", "--B", "ones", "--expect", "C=c.npy"]
    ran = run(*words)
    assert ran.code == 1
    assert ran.stderr == (
        "matmul: error: 'C' differs from c.npy in 2 of 20 elements (rtol 1e-05, atol 1e-07): "
        "largest error 0.5 at [2, 3] (got 3, expected 3.5), 1.42e+04 times the tolerance\n"
    )
    assert "C       memref<4x5xf32>" in ran.stdout
    expected[0, 0] = np.nan
    save("c.npy", expected)
    ran = run(*words)
    assert ran.code == 1
    assert ran.stderr == (
        "matmul: error: 'C' differs from c.npy in 3 of 20 elements (rtol 1e-05, atol 1e-07): "
        "largest error nan at [0, 0] (got 3, expected nan); "
        "NaN in 0 elements of the result and 1 of the file\n"
    )
    save("s.npy", np.array(6))
    ran = run("kernels", "count", "--n", "4", "--expect", "result0=s.npy")
    assert ran.stderr == (
        "kernels: error: 'result0' differs from s.npy in 1 of 1 elements "
        "(only equal elements pass): largest error 1 (got 5, expected 6)\n"
    )


def test_two_worst_places(run: Run, save: Save) -> None:
    """The largest error and the largest share of the tolerance may be apart."""
    save("got.npy", np.array([[1.25, 100.0]]))
    save("expected.npy", np.array([[1.0, 101.0]]))
    words = ["--source", "got.npy", "--dim", "target=1x2", "--expect", "target=expected.npy"]
    ran = run("kernels", "copy_f64", *words, "--rtol", "0.125", "--atol", "0")
    assert ran.stderr == (
        "kernels: error: 'target' differs from expected.npy in 1 of 2 elements "
        "(rtol 0.125, atol 0): largest error 1 at [0, 1] (got 100, expected 101); "
        "2 times the tolerance at [0, 0] (got 1.25, expected 1)\n"
    )


def test_expected_misfit(run: Run, save: Save) -> None:
    """An expected file of another type or shape is an input error, before anything runs."""
    save("c.npy", np.zeros((4, 5)))
    ran = run("matmul", "--expect", "C=c.npy")
    assert ran.code == 2
    assert ran.stderr == (
        "matmul: error: --expect: 'C' is memref<4x5xf32> and takes float32 of shape (4, 5); "
        "'c.npy' holds float64 of shape (4, 5)\n"
    )
    # The shape of a dynamic argument is known by then, that of a dynamic result is not.
    save("x.npy", np.zeros(4, "f4"))
    ran = run("kernels", "accumulate", "--dim", "x=5", "--expect", "x=x.npy")
    assert ran.code == 2
    assert "takes float32 of shape (5,); 'x.npy' holds float32 of shape (4,)" in ran.stderr
    save("x.npy", np.zeros(4))
    ran = run("kernels", "returns", "--dim", "x=5", "--expect", "copy=x.npy")
    assert ran.code == 2
    assert ran.stderr == "kernels: error: 'copy' has shape (5,); 'x.npy' holds shape (4,)\n"


def test_several_expected(run: Run, save: Save) -> None:
    """Each is compared, and one mismatch is a mismatch."""
    save("x.npy", np.arange(5.0))
    save("y.npy", np.arange(5.0) + 1)
    words = ["kernels", "returns", "--x", "arange", "--dim", "x=5"]
    good = ["--expect", "same=x.npy", "--expect", "copy=y.npy"]
    ran = run(*words, *good)
    assert ran.code == 0
    assert ran.stdout.count("all 5 elements are equal") == 2
    ran = run(*words, *good, "--expect", "reversed=y.npy")
    assert ran.code == 1
    assert ran.stdout.count("all 5 elements are equal") == 2
    assert ran.stderr.count("error:") == 1


# --- --out ---


def test_out_of_everything(run: Run, tmp_path: Path) -> None:
    """Results and arguments, those that are only read too."""
    words = [word for name in "ABC" for word in ("--out", f"{name}={name}.npy")]
    ran = run("matmul", *words)
    assert ran.code == 0, ran.stderr
    a, b, c = (np.load(tmp_path / f"{name}.npy") for name in "ABC")
    assert np.array_equal(a, aotc_random("A", (4, 3), "f4"))
    assert np.array_equal(b, aotc_random("B", (3, 5), "f4"))
    assert np.allclose(c, a @ b)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.npy", "B.npy", "C.npy"]


def test_out_replaces(run: Run, tmp_path: Path) -> None:
    """An existing file is replaced whole, a link keeps leading to it, the mode is the umask's."""
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    assert run("matmul", "--out", "C=link.npy").code == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (4, 5)
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o666 & ~umask


def test_out_to_a_pipe(run: Run) -> None:
    """What is no regular file is written in place, and stays what it is."""
    assert run("matmul", "--out", "C=/dev/null").code == 0
    assert Path("/dev/null").is_char_device()
    ran = run("matmul", "--out", "C=/dev/full")
    assert ran.code == 2
    assert ran.stderr == "matmul: error: cannot write '/dev/full': No space left on device\n"


def test_write_that_fails(build: Build, tmp_path: Path) -> None:
    """A file that cannot be finished leaves the old one, and nothing else."""
    (tmp_path / "t.npy").write_text("old")
    words = ["--dim", "source=1000x10", "--dim", "target=1000x10", "--out", "target=t.npy"]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    ran = subprocess.run(
        [build.program("kernels"), "copy_f32", *words], cwd=tmp_path, env=build.environment,
        capture_output=True, text=True, preexec_fn=limit,
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr == f"kernels: error: cannot write '{tmp_path}/t.npy': File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.npy"]
    assert (tmp_path / "t.npy").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupt(build: Build, tmp_path: Path, number: signal.Signals) -> None:
    """A signal while a file is written ends the program as ever, and leaves no file."""
    with subprocess.Popen(
        [build.program("unit"), "interrupt", "c.npy"], cwd=tmp_path, env=build.environment,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        (half,) = tmp_path.iterdir()
        assert half.name.startswith(".c.npy.")
        process.send_signal(number)
        assert process.wait(timeout=30) == -number
    assert list(tmp_path.iterdir()) == []


def test_ignored_signals_stay_ignored(build: Build, tmp_path: Path) -> None:
    """Under nohup, a hangup does not end the program."""
    with subprocess.Popen(
        [build.program("unit"), "interrupt", "c.npy"], cwd=tmp_path, env=build.environment,
        stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
        process.terminate()
    assert list(tmp_path.iterdir()) == []


# --- JSON ---


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
