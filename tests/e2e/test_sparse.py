"""Sparse tensors on the CPU device: kernels over stored elements, entries, files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from e2e.support import Programs, run
from helpers.command import REPOSITORY, Outcome
from jsonschema import Draft202012Validator

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


def test_results_are_the_callers(library: aotc.Library) -> None:
    """An entry changes none of its arguments."""
    arrays = _csr(DENSE)
    np.testing.assert_array_equal(library.from_dense(DENSE).toarray(), DENSE)
    scaled = library.scale(*arrays, 2.0)
    np.testing.assert_array_equal(scaled.toarray(), 2 * DENSE)
    scaled.data[:] = scaled.indptr[:] = scaled.indices[:] = 0
    for array, expected in zip(arrays, _csr(DENSE), strict=True):
        np.testing.assert_array_equal(array, expected)


A = scipy.sparse.csr_array(DENSE)


def test_objects_of_scipy(library: aotc.Library) -> None:
    """They stand for the arrays of a sparse tensor, also of sizes that no type tells."""
    y = np.arange(ROWS, dtype=np.float32)
    expected = DENSE @ X + y
    np.testing.assert_allclose(library.matvec(A, X, y), expected, rtol=1e-5)
    wide = scipy.sparse.csr_matrix((A.data, A.indices.astype("i8"), A.indptr.astype("i8")))
    wide.resize(DENSE.shape)
    np.testing.assert_allclose(library.matvec(x=X, y=y, a=wide), expected, rtol=1e-5)
    np.testing.assert_allclose(library.any_matvec(A, X, y), expected, rtol=1e-5)
    np.testing.assert_allclose(library.any_matvec(A[:7], X, y[:7]), expected[:7], rtol=1e-5)
    scaled = library.any_scale(2.0, A[:7], t=4.0)
    assert (scaled.format, scaled.shape) == ("csr", (7, 90))
    np.testing.assert_array_equal(scaled.toarray(), 8 * DENSE[:7])
    made = library.csr_to_csc(A)
    assert (made.format, made.shape) == ("csc", DENSE.shape)
    np.testing.assert_array_equal(made.toarray(), DENSE)
    made = library.csc_to_coo(made)
    assert (made.format, made.shape) == ("coo", DENSE.shape)
    np.testing.assert_array_equal(made.toarray(), DENSE)
    blocks = library.dense_to_bsr(DENSE)
    assert (blocks.format, blocks.blocksize) == ("bsr", (2, 3))
    np.testing.assert_array_equal(library.bsr_to_dense(blocks), DENSE)
    np.testing.assert_allclose(library.bsr_matvec(blocks, X, y), expected, rtol=1e-5)
    ones, result, count = library.coo_to_dcsr(made)
    assert (ones.tolist(), count, result.shape) == ([1, 1], A.nnz, DENSE.shape)
    np.testing.assert_array_equal(
        library.dcsr_to_dense(*result.arrays.values(), *result.shape), DENSE
    )
    vector = scipy.sparse.coo_array(DENSE[1])
    np.testing.assert_allclose(library.list_sum(vector), DENSE[1].sum(), rtol=1e-5)


def test_elements_in_any_order(library: aotc.Library) -> None:
    """What the levels exclude, elements out of order and repeated ones, is mended in a copy."""
    rows, columns = np.array([3, 0, 3, 3]), np.array([1, 2, 1, 0])
    values = np.array([1, 2, 4, 8], np.float32)
    coo = scipy.sparse.coo_array((values, (rows, columns)), shape=(5, 6))
    _, result, count = library.coo_to_dcsr(coo)
    assert count == 3
    np.testing.assert_array_equal(result.arrays["values"], [2, 8, 5])
    csr = scipy.sparse.csr_array((values, columns, np.array([0, 1, 1, 4])), shape=(3, 90))
    expected = csr.toarray()
    np.testing.assert_array_equal(library.any_scale(1.0, csr, 1.0).toarray(), expected)
    assert csr.nnz == 4


@pytest.mark.parametrize(
    ("entry", "arguments", "message"),
    [
        ("matvec", (A.tocsc(), X, X), "argument 'a' must be CSR, and is CSC: give a.tocsr()"),
        (
            "bsr_to_dense",
            (A.tobsr((2, 2)),),
            "must be BSR with blocks of 2x3, and is BSR with blocks of 2x2: give "
            "a.tobsr(blocksize=(2, 3))",
        ),
        ("matvec", (A[:7], X, X), "argument 'a' must have the shape 50x90, and has (7, 90)"),
        ("dcsr_to_dense", (A,), "argument 'a' has levels that no format of SciPy has"),
        ("matvec", (A.astype("f8"), X, X), "argument 'a_values' (memref<?xf32>): its elements are"),
        (
            "list_sum",
            (scipy.sparse.coo_array(np.eye(1, 300, 256, np.float32)[0]),),
            "argument 'a': 256 has more than the 8 bits of its indices",
        ),
    ],
)
def test_objects_that_do_not_fit(
    library: aotc.Library, entry: str, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(aotc.InputError, match=re.escape(message)):
        library[entry](*arguments)
    with pytest.raises(aotc.InputError, match="is a sparse tensor, and was given ndarray: give an"):
        library.any_matvec(a=DENSE, x=X, y=X)


def test_sorted_vector(library: aotc.Library) -> None:
    values = np.array([50, 10, 30], np.float32)
    arrays = (np.array([0, 3]), np.array([5, 1, 3], np.int16), values)
    result = library.sort(*arrays, 8)
    np.testing.assert_array_equal(result.toarray(), [0, 10, 0, 30, 0, 50, 0, 0])


def test_lists_of_coordinates(library: aotc.Library) -> None:
    rows, columns = map(np.ascontiguousarray, np.nonzero(DENSE))
    positions = np.array([0, len(rows)])
    result = library.to_dense(positions, rows, columns, DENSE[rows, columns])
    np.testing.assert_array_equal(result, DENSE)


def test_rows_are_kernels(library: aotc.Library) -> None:
    kernels = {kernel.name for kernel in library.manifest.kernels}
    names = ("matvec", "matmul", "any_matvec", "bsr_matvec")
    assert {f"{name}_sparse_kernel" for name in names} <= kernels
    # Nothing of the arrays is read on the host.
    entries = {entry.name: entry for entry in library.manifest.entries}
    assert [entries[name].why_not_async for name in names] == [None] * len(names)
    schema = json.loads((REPOSITORY / "docs" / "manifest.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(library.manifest.to_json()))


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
            "(i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4])",
            ":2:14: error: 'f' takes a sparse tensor of unknown sizes, from which those of its "
            "level 'd1 mod 4 : structured' do not follow",
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


VECTOR = "# extended FROSTT format\n1 3\n6\n1 -1\n4 2.5\n6 7\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tns", "1 3\n6\n4 2.5\n1 -1\n6 7\n"),
        ("b.tns", "2 3\n6 1\n4 1 2.5\n1 1 -1\n6 1 7\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n6 1 3\n4 1 2.5\n6 1 7\n1 1 -1\n"),
        ("c.tns", "2 1\n6 4\n1 1 1\n"),
        ("d.tns", "1 1\n6\n7 1\n"),
    ],
)
def test_vectors(programs: Programs, tmp_path: Path, name: str, text: str) -> None:
    """A vector is read from a file of one dimension, or of a matrix of one column."""
    failures = {
        "c.tns": "c.tns:2: the tensor has size 1 in dimension 1, the file 4",
        "d.tns": "d.tns:3: the coordinate 7 of dimension 0 is not from 1 to 6",
    }
    program = programs.build(DATA / "sparse_vector.mlir", "--chip", "sm_90a", "-O1")
    (tmp_path / name).write_text(text)
    done = run(program, env={"TENSOR0": name, "AOTC_DEVICE": "cpu"}, cwd=tmp_path)
    if name in failures:
        assert done.returncode != 0
        assert failures[name] in done.stderr
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "( -1, 0, 0, 2.5, 0, 7 )\n" + VECTOR


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
