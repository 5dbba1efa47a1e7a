"""Which kernels compute which rows of C, if sizes are unknown."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library
from matmul.test_dispatch import module

import aotc
from aotc.attributes import RUNS_ON
from aotc.kernels.matmul.waves import (
    Shape,
    Tiles,
    clocks_of_tiles,
    parts_of_tiles,
    rows_of_waves,
)

LARGE = Tiles((256, 128), 244_000)
SMALL = Tiles((64, 64), 41_000, has_parts=True, least_waves=2)
BOTH = Tiles((128, 64), 68_000, are_alone=False)


@pytest.mark.parametrize(
    ("m", "n", "rows"),
    [
        (256, 2304, 0),  # less than a wave
        (1576, 2304, 1576),  # 126 of the 132 tiles of a wave
        (1576, 3072, 1280),  # 168 tiles: 120 of them, and 296 rows
        (1792 + 256, 2304, 1792),
        (0, 2304, 0),
    ],
)
def test_rows_after_whole_waves_are_of_the_smaller_tiles(m: int, n: int, rows: int) -> None:
    assert rows_of_waves(Shape(m, n, 768), LARGE, SMALL)[0] == rows


def test_tiles_that_share_a_multiprocessor_have_all_rows() -> None:
    assert rows_of_waves(Shape(2048, 2304, 768), BOTH, SMALL) == (2048, 5 * 68_000)


def test_rows_are_whole_tiles_and_take_no_longer() -> None:
    for m, n, k, batches in itertools.product((1, 255, 700, 5000), (64, 1000), (64, 4096), (1, 3)):
        shape = Shape(m, n, k, batches)
        rows, clocks = rows_of_waves(shape, LARGE, SMALL)
        assert rows == m or rows % LARGE.size[0] == 0
        assert 0 <= rows <= m
        assert clocks <= clocks_of_tiles(shape.tiles(m, LARGE.size), LARGE)


def test_parts_have_enough_of_k() -> None:
    for m, k in itertools.product((64, 512, 4096), (0, 100, 128, 1000, 10000)):
        parts, _ = parts_of_tiles(Shape(m, 768, k), m, SMALL)
        assert parts == 1 or k // parts >= 128
    assert parts_of_tiles(Shape(64, 64, 4096), 64, Tiles((64, 64), 1000)) == (1, 1000)


def _built(text: str, folder: Path) -> str:
    """The module with its kernels for GPUs."""
    options = {"emit": "mlir", "chips": "sm_80", "cpu_kernels": False}
    return aotc.build(text, name="x", out=folder / "x.mlir", **options).path.read_text()


def test_each_kernel_is_built_once(tmp_path: Path) -> None:
    """Rows of an unknown number are divided among a kernel of large tiles and one of small ones.
    The latter also has a form for other addresses, and the kernels that add parts."""
    text = module("?x768xf32", "768x3072xf32", "?x3072xf32")
    launched = re.findall(r"launch_func +@\S+::@\S*_simt_(\S+)", _built(text, tmp_path))
    small = "64x64x32_s3_slicedk4_splitk"
    parts = [f"{small}{suffix}" for suffix in ("", "_reduction", "_align4", "_align4_reduction")]
    assert launched == ["128x256x8_s4", *parts]


def test_divided_rows_are_right(tmp_path: Path) -> None:
    """132 of 144 tiles of 128x256 of the first rows, and smaller ones of the others."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(size, np.float32) for size in ((1500, 32), (32, 3072)))
    built = _built(module("?x32xf32", "32x3072xf32", "?x3072xf32"), tmp_path)
    # The CPU device would refuse kernels that are for GPUs alone.
    text = re.sub(rf'{RUNS_ON} = "[^"]*"(, )?', "", built)
    c = np.full((1500, 3072), np.nan, np.float32)
    build_library(text, tmp_path, "-O1").call("product", a, b, c)
    assert np.abs(c - a.astype(np.float64) @ b).max() < 1e-4
