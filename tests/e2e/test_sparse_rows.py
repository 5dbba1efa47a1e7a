"""Reductions along rows of different lengths: the kernel whose lanes share a row, which is GPUs'
alone in programs, on the CPU device, beside NumPy. tests/gpu has it on GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import aotc

DATA = Path(__file__).parent / "data" / "sparse_rows.mlir"
RANDOM = np.random.default_rng(11)
COLUMNS = 300
ENTRIES = {"max": "f4", "min": "i4", "f32": "f4", "f64": "f8", "f16": "f2", "i64": "i8"}
# Lanes for each row: 1 (with one row that is much longer), 2, 8 (with such rows), a warp, a block.
LENGTHS = {
    "short": np.r_[RANDOM.integers(0, 3, 700), 150, RANDOM.integers(0, 3, 90)],
    "few": np.full(301, 4),
    "power": np.r_[0, 5000 // np.arange(1, 300), 0, 0],
    "long": RANDOM.integers(60, 200, 37),
    "blocks": np.array([2000, 0, 1500, 3]),
    "none": np.zeros(5, int),
    "no rows": np.zeros(0, int),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    """Lowered for GPUs, and then built for both."""
    folder = tmp_path_factory.mktemp("rows")
    lowered = folder / "rows.mlir"
    to = {"chips": "sm_90a", "optimization": 1}
    aotc.build(DATA, emit="mlir", out=str(lowered), cpu_kernels=False, **to)
    assert lowered.read_text().count("gpu.shuffle") == len(ENTRIES)
    aotc.build(lowered, emit="shared", out=f"{folder}/", **to)
    library = aotc.load(folder)
    library.set_device("cpu")
    return library


def _reduced(lengths: Sequence[int], products: np.ndarray, y: np.ndarray, kind: str) -> np.ndarray:
    """Row by row, in the type of the products."""
    reduce = {"max": np.maximum, "min": np.minimum}.get(kind, np.add).reduce
    ends = np.cumsum(lengths)
    rows = zip(ends - lengths, ends, y, strict=True)
    return np.array([reduce(np.r_[old, products[begin:end]]) for begin, end, old in rows])


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_rows(library: aotc.Library, entry: str, lengths: np.ndarray) -> None:
    type_ = np.dtype(ENTRIES[entry])
    width = "i8" if entry == "f64" else "i4"
    count = int(lengths.sum())
    columns = RANDOM.integers(0, COLUMNS, count).astype(width)
    positions = np.r_[0, np.cumsum(lengths)].astype(width)

    def random(size: int) -> np.ndarray:
        if type_.kind == "f":
            return RANDOM.standard_normal(size).astype(type_)
        return RANDOM.integers(-1000, 1000, size).astype(type_)

    values, x, y = random(count), random(COLUMNS), random(len(lengths))
    vectors = (y,) if entry == "min" else (x, y)
    # A reduction of sparse_tensor begins with its identity.
    identity = {"max": -np.inf, "min": np.iinfo("i4").max}.get(entry)
    result = library[entry](positions, columns, values, len(lengths), COLUMNS, *vectors)
    wide = np.dtype("f8") if type_.kind == "f" else type_
    products = values.astype(wide) * (1 if entry == "min" else x.astype(wide)[columns])
    first = y.astype(wide) if identity is None else np.full(len(y), identity, wide)
    expected = _reduced(lengths, products, first, entry)
    if type_.kind == "i" or entry == "max":
        np.testing.assert_array_equal(result, expected.astype(type_))
        return
    size = _reduced(lengths, np.abs(products), np.abs(y).astype(wide), entry)
    bound = {"f2": 2e-2, "f4": 1e-6, "f8": 1e-14}[type_.str[1:]]
    assert np.all(np.abs(result.astype("f8") - expected) <= bound * size.clip(1e-30))
