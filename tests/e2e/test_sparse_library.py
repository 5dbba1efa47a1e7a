"""The sparse operations of the gpu dialect on the CPU device, compared with SciPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import aotc

SOURCE = Path(__file__).parent / "data/sparse_library.mlir"
ROWS, COLUMNS, N = 6, 8, 3
RANDOM = np.random.default_rng(5)
DENSE = np.where(RANDOM.random((ROWS, COLUMNS)) < 0.4, RANDOM.integers(1, 9, (ROWS, COLUMNS)), 0)
DENSE[2] = 0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    out = f"{tmp_path_factory.mktemp('sparse_library')}/"
    aotc.build(SOURCE, emit="shared", out=out, chips="sm_80", optimization=1)
    library = aotc.load(out)
    library.set_device("cpu")
    return library


def _arrays(matrix: Any, index: Any) -> tuple[np.ndarray, ...]:
    values = matrix.data.reshape(-1)
    if matrix.format == "coo":
        return matrix.row.astype(index), matrix.col.astype(index), values
    return matrix.indptr.astype(index), matrix.indices.astype(index), values


def test_products_with_vectors(library: aotc.Library) -> None:
    a = scipy.sparse.coo_array(DENSE.astype(np.float64))
    x, y = RANDOM.random(COLUMNS), RANDOM.random(ROWS)
    expected = a @ x + y
    library.spmv_coo(ROWS, COLUMNS, a.nnz, *_arrays(a, np.int64), x, y)
    np.testing.assert_allclose(y, expected)
    z = scipy.sparse.csr_array((DENSE * (1 - 2j)).astype(np.complex64))
    x = (RANDOM.random(ROWS) + 1j * RANDOM.random(ROWS)).astype(np.complex64)
    y = np.ones(COLUMNS, np.complex64)
    library.spmv_csr(ROWS, COLUMNS, z.nnz, *_arrays(z, np.int32), x, y)
    np.testing.assert_allclose(y, z.toarray().conj().T @ x + 1, rtol=1e-6)


def test_products_with_matrices(library: aotc.Library) -> None:
    a = scipy.sparse.csc_array(DENSE.astype(np.float32))
    b, c = RANDOM.random((COLUMNS, N), np.float32), RANDOM.random((ROWS, N), np.float32)
    expected = DENSE @ b + c
    library.spmm_csc(ROWS, COLUMNS, a.nnz, N, *_arrays(a, np.int64), b.reshape(-1), c.reshape(-1))
    np.testing.assert_allclose(c, expected, rtol=1e-6)
    half = scipy.sparse.csr_array(DENSE.astype(np.float32))
    positions, indices, values = _arrays(half, np.int32)
    b, c = b.astype(np.float16), np.zeros((ROWS, N), np.float16)
    given = (values.astype(np.float16), b.reshape(-1), c.reshape(-1))
    library.spmm_csr(ROWS, COLUMNS, half.nnz, N, positions, indices, *given)
    np.testing.assert_array_equal(c, (DENSE @ b.astype(np.float64)).astype(np.float16))


def test_sampled_product(library: aotc.Library) -> None:
    a = scipy.sparse.csr_array(DENSE.astype(np.float32)).tobsr((2, 4))
    old = a.toarray()
    b, c = RANDOM.random((ROWS, N), np.float32), RANDOM.random((N, COLUMNS), np.float32)
    positions, indices, values = _arrays(a, np.int32)
    sizes = (ROWS // 2, COLUMNS // 4, len(indices), 2, 4, N)
    library.sddmm_bsr(*sizes, positions, indices, values, b.reshape(-1), c.reshape(-1))
    # Blocks are there whole.
    ones = scipy.sparse.bsr_array((np.ones_like(a.data), a.indices, a.indptr), a.shape)
    np.testing.assert_allclose(a.toarray(), old + ones.toarray() * (b @ c), rtol=1e-6)


def test_product_of_sparse_matrices(library: aotc.Library) -> None:
    a = scipy.sparse.csr_array(DENSE[:, :ROWS].astype(np.float32))
    expected = a @ a
    capacity = ROWS * ROWS
    made = (
        np.zeros(ROWS + 1, np.int32),
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.float32),
    )
    count = library.spgemm(ROWS, a.nnz, *_arrays(a, np.int32), *made)
    positions, indices, values = made
    assert count == expected.nnz == positions[-1]
    result = scipy.sparse.csr_array((values[:count], indices[:count], positions), a.shape)
    assert result.has_sorted_indices
    np.testing.assert_array_equal(result.toarray(), expected.toarray())


def test_two_of_four(library: aotc.Library) -> None:
    a = np.array([[1, -4, 2, 3, 0, 0, 0, 5], [1, 1, 1, 1, 6, 0, 7, 0]], np.float16)
    b = RANDOM.integers(-3, 4, (8, 2)).astype(np.float16)
    c = np.ones((2, 2), np.float16)
    with pytest.raises(aotc.LibraryError, match="four elements of A have more than two that are"):
        library.unpruned(a, b, c)
    library.two_of_four(a, b, c)
    pruned = np.array([[0, -4, 0, 3, 0, 0, 0, 5], [0, 0, 1, 1, 6, 0, 7, 0]], np.float16)
    np.testing.assert_array_equal(a, pruned)
    np.testing.assert_array_equal(c, pruned @ b + 1)


def test_what_does_not_fit(library: aotc.Library) -> None:
    """Failures are values, and name the call."""
    a = scipy.sparse.coo_array(DENSE.astype(np.float64))
    arrays = _arrays(a, np.int64)
    x, y = np.zeros(COLUMNS), np.zeros(ROWS)
    for sizes, why in (
        ((ROWS, COLUMNS + 1, a.nnz), "mgpuSpMV: the matrices' sizes do not fit"),
        ((ROWS, COLUMNS, a.nnz), "mgpuSpMV: an index is outside of its matrix"),
    ):
        with pytest.raises(aotc.LibraryError, match=re.escape(why)):
            library.spmv_coo(*sizes, arrays[0] + ROWS, *arrays[1:], x, y)
