"""Which kernels compute which rows of C, if sizes are unknown."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from matmul.test_dispatch import kernels, module

from aotc.kernels.matmul.waves import (
    Shape,
    Tiles,
    clocks_of_tiles,
    parts_of_tiles,
    rows_of_waves,
)

LARGE, SMALL = Tiles((256, 128), 6000), Tiles((64, 64), 1000, has_parts=True, least_waves=2)


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


def test_each_kernel_is_built_once(tmp_path: Path) -> None:
    """Rows of an unknown number are divided among three kernels; other addresses have one more."""
    text = module("?x768xf32", "768x3072xf32", "?x3072xf32")
    found = kernels(text, tmp_path, chips=("sm_80",), cpu_kernels=False)
    tiles = [name for name in found if "simt" in name and "reduction" not in name]
    assert len(tiles) == 4, found
