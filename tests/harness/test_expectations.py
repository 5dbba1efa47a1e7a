"""Results compared with files: --expect, and its tolerances."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from harness.support import COPIED_DTYPES, Array, Run, Save


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
