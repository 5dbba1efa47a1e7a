"""Sparse tensors on the CPU device: kernels over stored elements, entries, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from e2e.support import Programs, run
from helpers.command import Outcome

import aotc

DATA = Path(__file__).parent / "data"
ROWS, COLUMNS = 50, 90
RANDOM = np.random.default_rng(7)
# With rows that have no element.
DENSE = np.where(RANDOM.random((ROWS, COLUMNS)) < 0.1, RANDOM.random((ROWS, COLUMNS)), 0)
DENSE = (DENSE * (np.arange(ROWS) % 5 > 0)[:, None]).astype(np.float32)
X = RANDOM.random(COLUMNS, dtype=np.float32)
MATRIX = """%%MatrixMarket matrix coordinate real general
% out of order
3 4 4
3 4 2.5
1 2 1
1 1 -4
3 1 8
"""


def _csr(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, columns and values of the elements that are not 0."""
    rows, columns = np.nonzero(dense)
    positions = np.searchsorted(rows, np.arange(len(dense) + 1))
    return positions.astype(np.int32), columns.astype(np.int32), dense[rows, columns]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    out = f"{tmp_path_factory.mktemp('sparse')}/"
    aotc.build(DATA / "sparse.mlir", emit="shared", out=out, chips="sm_90a", optimization=1)
    library = aotc.load(out)
    library.set_device("cpu")
    return library


def test_arguments_are_the_arrays_of_levels(library: aotc.Library) -> None:
    arrays = _csr(DENSE)
    before = [array.copy() for array in arrays]
    y = np.arange(ROWS, dtype=np.float32)
    once = library.matvec(*arrays, X, y)
    np.testing.assert_allclose(once, DENSE @ X + y, rtol=1e-5)
    positions, columns, values = arrays
    named = {"a_positions1": positions, "a_coordinates1": columns, "a_values": values}
    np.testing.assert_array_equal(library.matvec(**named, x=X, y=y), once)
    np.testing.assert_allclose(library.twice(*arrays, X, y), 2 * (DENSE @ X) + y, rtol=1e-5)
    matrix = RANDOM.random((COLUMNS, 7), dtype=np.float32)
    np.testing.assert_allclose(library.matmul(*arrays, matrix), DENSE @ matrix, rtol=1e-5)
    left, right = RANDOM.random((ROWS, 4), np.float32), RANDOM.random((4, COLUMNS), np.float32)
    sampled = library.sampled(*arrays, left, right)
    np.testing.assert_allclose(sampled, DENSE * (left @ right), rtol=1e-5)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_results_are_the_arrays_of_levels(library: aotc.Library) -> None:
    """They are the caller's own: an entry changes none of its arguments."""
    arrays = _csr(DENSE)
    for result, expected in zip(library.from_dense(DENSE), arrays, strict=True):
        np.testing.assert_array_equal(result, expected)
    positions, columns, values = library.scale(*arrays, 2.0)
    np.testing.assert_array_equal(values, 2 * arrays[2])
    np.testing.assert_array_equal(arrays[2], _csr(DENSE)[2])
    values[:] = positions[:] = columns[:] = 0
    for array, expected in zip(arrays, _csr(DENSE), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_lists_of_coordinates(library: aotc.Library) -> None:
    rows, columns = map(np.ascontiguousarray, np.nonzero(DENSE))
    positions = np.array([0, len(rows)])
    result = library.to_dense(positions, rows, columns, DENSE[rows, columns])
    np.testing.assert_array_equal(result, DENSE)


def test_rows_are_kernels(library: aotc.Library) -> None:
    kernels = {kernel.name for kernel in library.manifest.kernels}
    assert {"matvec_sparse_kernel", "matmul_sparse_kernel"} <= kernels


ENTRY = """#E = #sparse_tensor.encoding<{map = (i, j) -> ENCODING}>
func.func @f(%a: tensor<SIZExf32, #E>) -> f32 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %a[%c0, %c0] : tensor<SIZExf32, #E>
  return %v : f32
}"""


@pytest.mark.parametrize(
    ("size", "encoding", "message"),
    [
        (
            "?x4",
            "(i : dense, j : compressed)",
            ":2:14: error: 'f' takes a sparse tensor of unknown",
        ),
        ("4x4", "(i : compressed(nonunique), j : singleton)", "give each its own, singleton(soa)"),
    ],
)
def test_entries_that_are_refused(
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
    size: str,
    encoding: str,
    message: str,
) -> None:
    text = ENTRY.replace("SIZE", size).replace("ENCODING", encoding)
    outcome = aotc("build", mlir_file(text), "--emit", "mlir", "-o", "-")
    assert outcome.code == 2
    assert message in outcome.stderr


def _read(programs: Programs, folder: Path, name: str, text: str) -> tuple[int, str, str]:
    program = programs.build(DATA / "sparse_files.mlir", "--chip", "sm_90a", "-O1")
    (folder / name).write_text(text)
    done = run(program, env={"TENSOR0": name, "AOTC_DEVICE": "cpu"}, cwd=folder)
    return done.returncode, done.stdout, done.stderr


FROSTT = "# extended FROSTT format\n2 4\n3 4\n1 1 -4\n1 2 1\n3 1 8\n3 4 2.5\n"


@pytest.mark.parametrize(("name", "text"), [("a.mtx", MATRIX), ("a.tns", FROSTT)])
def test_files(programs: Programs, tmp_path: Path, name: str, text: str) -> None:
    """Both formats are read in any order, and written in that of the levels."""
    code, stdout, stderr = _read(programs, tmp_path, name, text)
    assert (code, stderr) == (0, "")
    assert stdout == "( -3, 0, 10.5 )\n" + FROSTT + "( 2, 0, 0, 0 )\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "a.mtx",
            "3 4 2.5",
            "3 5 2.5",
            "a.mtx:4: the coordinate 5 of dimension 1 is not from 1 to 4",
        ),
        (
            "a.mtx",
            "3 4 2.5",
            "0 4 2.5",
            "a.mtx:4: the coordinate 0 of dimension 0 is not from 1 to 3",
        ),
        ("a.mtx", "3 4 2.5", "3 4", "a.mtx:4: expected a number"),
        ("a.mtx", "1 2 1", "1 x 1", "a.mtx:5: expected a whole number, got 'x 1"),
        ("a.mtx", "3 1 8\n", "", "a.mtx:7: the file ends here, before all of its elements"),
        ("a.mtx", "3 4 4", "3 4 4000", "a.mtx:3: the file is too short for 4000 elements"),
        ("a.mtx", "3 4 4", "2 4 4", "the tensor has size 3 in dimension 0, the file 2"),
        ("a.mtx", "real", "complex", "the tensor's type cannot hold the file's values"),
        ("a.mtx", "general", "hermitian", "the symmetry 'hermitian' is neither general nor symm"),
        ("a.mtx", "%%", "##", "a.mtx:1: expected '%%MatrixMarket matrix coordinate"),
        ("a.txt", "", "", "expected a file whose name ends in .mtx or .tns"),
        ("b/a.mtx", "", "", "cannot open the file: No such file"),
    ],
)
def test_files_that_are_refused(
    programs: Programs, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    """The failure names the file and the line."""
    program = programs.build(DATA / "sparse_files.mlir", "--chip", "sm_90a", "-O1")
    if "/" not in name:
        (tmp_path / name).write_text(MATRIX.replace(old, new) if old else MATRIX)
    done = run(program, env={"TENSOR0": name, "AOTC_DEVICE": "cpu"}, cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
