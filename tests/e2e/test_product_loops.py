"""Loops that compute products of matrices, and such as look like them, on the CPU device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library

PROGRAM = Path(__file__).parent / "data" / "product_loops.mlir"
RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM.read_text(), tmp_path_factory.mktemp("loops"))


def _normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def _check(library: Library, entry: str, arguments: list[Any], expected: np.ndarray) -> None:
    """`expected` is what the last memref holds after the call."""
    result = [one for one in arguments if isinstance(one, np.ndarray)][-1]
    library.call(entry, *arguments)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6 * scale)


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


@pytest.mark.parametrize("sizes", [(33, 47, 65), (1, 300, 5), (130, 1, 70), (3, 0, 4)])
def test_sizes_are_those_of_the_call(library: Library, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b, c = _normal(m, k), _normal(k, n), _normal(m, n)
    _check(library, "ikj", [a, b, c], c + _wide(a) @ _wide(b))


def test_a_carried_sum_starts_from_its_number(library: Library) -> None:
    a, b, c = _normal(70, 50), _normal(50, 90), _normal(70, 90)
    _check(library, "carried", [a, b, c], 2 + _wide(a) @ _wide(b))


def test_elements_beside_the_loops_bounds_stay(library: Library) -> None:
    a, b, c = _normal(4, 50, 70), _normal(4, 90, 50), _normal(4, 70, 90)
    expected = _wide(c)
    left, right = _wide(a[1:, 5:, 3:66]), _wide(b[1:, :80, 5:])
    expected[1:, 3:66, :80] = np.einsum("bki,bjk->bij", left, right)
    _check(library, "parts", [a, b, c], expected)


def test_one_of_a_batch_and_a_loop_behind_it(library: Library) -> None:
    a, b = _normal(4, 70, 50, dtype=np.float16), _normal(50, 90, dtype=np.float16)
    c = _normal(70, 90)
    _check(library, "one", [a, b, c, 2], 0.5 * (c + _wide(a[2]) @ _wide(b)))


def test_integers(library: Library) -> None:
    a, x, y = (RANDOM.integers(-99, 99, shape, np.int32) for shape in ((70, 50), 50, 70))
    _check(library, "vector", [a, x, y], y + a @ x)


def test_loops_that_are_no_contraction(library: Library) -> None:
    a, b, c = _normal(70, 70), _normal(70, 70), _normal(70, 70)
    below = np.tril(_wide(a), -1)
    _check(library, "triangle", [a, b, c.copy()], c + below @ _wide(b))
    _check(library, "diagonal", [a, b, c.copy()], c + (_wide(a) @ np.diag(_wide(b)))[:, None])
    square = 0.02 * _normal(20, 20)
    expected = _wide(square)
    for i, j, k in np.ndindex(20, 20, 20):
        expected[i, j] += expected[i, k] * expected[k, j]
    _check(library, "power", [square], expected)
