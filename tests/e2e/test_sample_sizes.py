"""Samples of one size, rewritten for others that divide by nothing, against NumPy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library
from numpy.typing import NDArray

from samples import SIZES, source_of

Array = NDArray[Any]


def rewritten(sample: str, folder: Path, sizes: dict[str, int], *options: str) -> Library:
    """The sample with other numbers for its sizes."""
    text = source_of(sample).read_text()
    for old in sizes:
        assert re.search(rf"\b{old}(?=x|\b)", text), old
    text = re.sub(
        "|".join(rf"(?<![\w.]){old}(?=x|\b)|(?<=\dx){old}(?=x)" for old in sizes),
        lambda found: str(sizes[found[0]]),
        text,
    )
    return build_library(text, folder, *options)


def random(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).uniform(0, 1, shape)


@pytest.mark.parametrize("options", [(), ("-O0",)])
@pytest.mark.parametrize("n", [1, 31, 33])
def test_matmul(tmp_path: Path, n: int, options: tuple[str, ...]) -> None:
    a, b, c = (random(n, n).astype(np.float32) for _ in range(3))
    expected = c + a.astype(np.float64) @ b
    rewritten("matmul", tmp_path, {"1024": n}, *options).call("matmul", a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


@pytest.mark.parametrize("options", [(), ("-O0",)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (31, 1025), (1000, 33)])
def test_stencil(tmp_path: Path, rows: int, columns: int, options: tuple[str, ...]) -> None:
    old, new = random(rows, columns), np.zeros((rows, columns))
    expected = old.copy()
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    expected[1:-1, 1:-1] += 0.1 * (around - 4 * old[1:-1, 1:-1])
    sizes = {"500": rows, "730": columns, "499": rows - 1, "729": columns - 1}
    rewritten("stencil", tmp_path, sizes, *options).call("heat", old, new, 0.1)
    np.testing.assert_allclose(new, expected, rtol=1e-12)


@pytest.mark.parametrize("rows", SIZES)
def test_perceptron(tmp_path: Path, rows: int) -> None:
    x, w1, b1, w2, b2, y = (
        random(*shape).astype(np.float32)
        for shape in ((rows, 100), (100, 65), (65,), (65, 10), (10,), (rows, 10))
    )
    wide = [value.astype(np.float64) for value in (x, w1, b1, w2, b2)]
    expected = np.maximum(wide[0] @ wide[1] + wide[2], 0) @ wide[3] + wide[4]
    rewritten("perceptron", tmp_path, {"33": rows}).call("perceptron", x, w1, b1, w2, b2, y)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
