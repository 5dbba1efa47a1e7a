"""`--verify` on the CPU device: what does not fit is a failure that names its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from e2e.support import Programs, run
from helpers.command import Outcome

DATA = Path(__file__).parent / "data"
SOURCE, KERNEL = DATA / "verification.mlir", DATA / "verified_kernel.mlir"
OPTIONS = ("--chip", "sm_90a", "-O1", "--verify")
X = np.arange(8, dtype=np.float32) + 1
AT = np.array([0, 7, 3, 2, 5])
ENV = {"AOTC_DEVICE": "cpu", "AOTC_CPU_THREADS": "1"}


def _call(
    program: Path, folder: Path, entry: str, words: str, **arrays: np.ndarray
) -> tuple[int, str]:
    """The exit status and standard error of a call; y is in y.npy behind it."""
    arguments = words.split()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        arguments += ["--arg", f"{name}={folder / f'{name}.npy'}"]
    done = run(program, entry, *arguments, env=ENV, cwd=folder)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("entry", "words", "arrays", "expected"),
    [
        ("gather", "--dim y=5 --out y=y.npy", {"at": AT}, X[AT]),
        ("copy", "--dim y=8 --n 8 --out y=y.npy", {}, X),
        ("sum", "--n 8 --out y=y.npy", {}, X.sum(keepdims=True)),
        ("take", "--out result0=y.npy", {"at": AT}, X[AT]),
        ("cast", "--out x=y.npy", {}, np.append(X[:7], 0)),
    ],
)
def test_what_fits_is_computed(
    programs: Programs,
    tmp_path: Path,
    entry: str,
    words: str,
    arrays: dict[str, np.ndarray],
    expected: np.ndarray,
) -> None:
    """Verification changes no value."""
    program = programs.build(SOURCE, *OPTIONS)
    assert _call(program, tmp_path, entry, words, x=X, **arrays) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


# The index and the size, and the thread in whose kernel it is.
FAILURES = {
    "element": ("gather", "--dim y=3", {"at": np.array([0, 8, 3])}, "memref.load", "8:10", 8, 8, 1),
    "negative": (
        *("gather", "--dim y=3", {"at": np.array([0, 3, -1])}),
        *("memref.load", "8:10", -1, 8, 2),
    ),
    "loop": ("gather", "--dim y=6", {"at": AT}, "memref.load", "7:10", 5, 5, 5),
    "affine load": ("copy", "--dim y=9 --n 9", {}, "memref.load", "15:10", 8, 8, 8),
    "affine store": ("copy", "--dim y=6 --n 8", {}, "memref.store", "16:5", 6, 6, 6),
    "reduction": ("sum", "--n 9", {}, "memref.load", "25:10", 8, 8, None),
    "body": ("take", "", {"at": np.array([0, 8, 3])}, "memref.load", "44:10", 8, 8, 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_index_out_of_bounds(programs: Programs, tmp_path: Path, name: str) -> None:
    """A failure names the access and its place, the index and the size, and the kernel and thread
    if it is in a kernel."""
    entry, words, arrays, operation, place, index, size, thread = FAILURES[name]
    program = programs.build(SOURCE, *OPTIONS)
    code, message = _call(program, tmp_path, entry, words, x=X, **arrays)
    assert code == 4
    access = (
        f"assertion failed: {operation}: index {index} is out of bounds for dimension 0 of size "
        f"{size} (verification.mlir:{place})"
    )
    assert access in message
    if thread is not None:
        assert f"kernel '{entry}_kernel': block (0, 0, 0), thread ({thread}, 0, 0)" in message


def test_index_of_each_dimension(programs: Programs, tmp_path: Path) -> None:
    """The failure says which dimension's index it is."""
    program = programs.build(SOURCE, *OPTIONS)
    m = np.arange(15, dtype=np.float32).reshape(3, 5)
    words = "--down {} --right {} --out y=y.npy"
    assert _call(program, tmp_path, "shift", words.format(1, 1), m=m) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), m[1:, 1:] + m[:2, :4])
    for down, right, said in (
        (2, 1, "3 is out of bounds for dimension 0 of size 3"),
        (1, 2, "5 is out of bounds for dimension 1 of size 5"),
    ):
        code, message = _call(program, tmp_path, "shift", words.format(down, right), m=m)
        assert code == 4
        assert f"memref.load: index {said} (verification.mlir:" in message


def test_wrong_cast(programs: Programs, tmp_path: Path) -> None:
    """A cast to a static size that the buffer does not have fails on the host."""
    program = programs.build(SOURCE, *OPTIONS)
    expected = (
        "verification: error: assertion failed: memref.cast: size mismatch of dim 0: 7 is not 8 "
        "(verification.mlir:50:11)\n"
    )
    assert _call(program, tmp_path, "cast", "", x=X[:7]) == (4, expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("window --at 3 --count 1 --step 7", None),
        # An empty view may begin at the end.
        ("window --at 4 --count 0 --step 1", None),
        ("window --at 5 --count 0 --step 1", "offset 5 is out of bounds for dimension 0 of size 4"),
        ("window --at -1 --count 1 --step 1", "offset -1 is out of bounds for dimension 0 of size"),
        ("window --at 1 --count 2 --step 3", "last index 4 is out of bounds for dimension 0 of"),
        ("window --at 1 --count 3 --step -1", "last index -1 is out of bounds for dimension 0 of"),
        ("size --number 1", None),
        ("size --number 2", "memref.dim: 2 is no dimension of a value of rank 2"),
        ("size --number -1", "memref.dim: -1 is no dimension of a value of rank 2"),
    ],
)
def test_numbers(programs: Programs, tmp_path: Path, words: str, said: str | None) -> None:
    """Views and dimensions say what does not fit."""
    program = programs.build(SOURCE, *OPTIONS)
    entry, words = words.split(" ", 1)
    code, message = _call(program, tmp_path, entry, f"--dim x=4x3 {words}")
    assert code == (0 if said is None else 4)
    assert (said or "") in message


def test_kernel_by_hand(programs: Programs, tmp_path: Path) -> None:
    """Accesses of the input's own kernels are verified."""
    program = programs.build(KERNEL, *OPTIONS)
    words = "--dim x=8 --out x=y.npy --blocks"
    assert _call(program, tmp_path, "count", f"{words} 2") == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.arange(8))
    code, message = _call(program, tmp_path, "count", f"{words} 3")
    assert code == 4
    assert (
        "kernel 'count': block (2, 0, 0), thread (0, 0, 0): assertion failed: memref.store: "
        "index 8 is out of bounds for dimension 0 of size 8 (verified_kernel.mlir:7:7)" in message
    )


def test_own_pipeline(aotc: Callable[..., Outcome], tmp_path: Path) -> None:
    """A pipeline of the user's says itself where verification stands."""
    out = tmp_path / "x.mlir"
    options = ("--emit", "mlir", "-o", out, "--pipeline")
    outcome = aotc("build", KERNEL, *options, "builtin.module(cse)", "--verify")
    assert outcome.code == 2
    assert "--verify is for aotc's own pipeline: put its pass, aotc-verify-oper" in outcome.stderr
    passes = "builtin.module(aotc-verify-operations{part=accesses})"
    assert aotc("build", KERNEL, *options, passes).code == 0
    assert "memref.store: an index is out of bounds for dimension 0" in out.read_text()
