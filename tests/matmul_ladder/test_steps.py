"""Each step of the ladder against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aotc
from build import ladder
from ladder.blocks import Tile
from ladder.module import entry, new_module
from ladder.steps import STEPS, padded

from .conftest import SMALL_STEPS, load

TOLERANCES = {"f32": 2e-6, "f64": 1e-14}
TYPES = {"f32": np.float32, "f64": np.float64}
# m, n, k: what tiles divide; what they do not, with rows of 16 bytes and others; less than a tile.
SIZES = [(64, 64, 32), (40, 68, 20), (33, 67, 13), (5, 3, 1), (1, 1, 70), (70, 1, 4)]
SIZES += [(0, 5, 3), (5, 0, 3), (5, 3, 0)]
NAMES = [step.name for step in STEPS]


def matrix(rows: int, columns: int, type_: Any, offset: int = 0) -> np.ndarray:
    """Random numbers, `offset` elements behind where NumPy begins an array."""
    content = np.random.default_rng(rows * columns).random(rows * columns + offset) - 0.5
    return content.astype(type_)[offset:].reshape(rows, columns)


def check(function: Any, element: str, size: tuple[int, int, int], offset: int = 0) -> None:
    m, n, k = size
    type_ = TYPES[element]
    a, b = matrix(m, k, type_, offset), matrix(k, n, type_, offset)
    c = matrix(m, n, type_, offset)
    c[:] = np.nan
    function(a, b, c)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, exact, rtol=0, atol=TOLERANCES[element] * k)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_step_gives_numpys_product(
    built: Callable[[str], Any], name: str, size: tuple[int, int, int]
) -> None:
    check(getattr(built("f32"), f"sgemm_{name}"), "f32", size)


@pytest.mark.parametrize("name", NAMES)
def test_matrices_may_begin_anywhere(built: Callable[[str], Any], name: str) -> None:
    """4 bytes behind a multiple of 16: rows of 16 bytes then cannot be read in one access."""
    check(getattr(built("f32"), f"sgemm_{name}"), "f32", (64, 64, 32), offset=1)


def test_the_steps_of_a_type_add_in_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each adds the products from the first k to the last: they agree to the bit, where none is
    fused with its sum. (That is left to the compiler.)"""
    monkeypatch.setenv("AOTC_CPU_LEVEL", "1")
    library = load(ladder("f32", steps=SMALL_STEPS), tmp_path)
    a, b = matrix(40, 20, np.float32), matrix(20, 68, np.float32)
    results = []
    for name in NAMES:
        c = np.full((40, 68), np.nan, np.float32)
        getattr(library, f"sgemm_{name}")(a, b, c)
        results.append(c.tobytes())
    assert results == results[:1] * len(NAMES)


def test_the_type_and_the_sizes_are_parameters(tmp_path: Any) -> None:
    steps = tuple(step for step in SMALL_STEPS if step.name in ("shared_memory", "async_copies"))
    library = load(ladder("f64", (40, 68, 21), steps), tmp_path)
    for step in steps:
        check(getattr(library, f"dgemm_{step.name}"), "f64", (40, 68, 21))


def test_tiles_of_f64_fit_into_workgroup_memory(tmp_path: Path) -> None:
    """Those that are built by default; the other tests have smaller ones."""
    built = aotc.build(ladder("f64"), name="ladder", emit="mlir", out=tmp_path / "x.mlir")
    assert built.path.read_text().count("gpu.launch_func") == len(STEPS)
    assert not built.warnings


def test_inputs_are_read_and_the_result_is_written(built: Callable[[str], Any]) -> None:
    """Though some kernels look at the addresses, to see how wide an access may be."""
    for described in built("f32").manifest.entries:
        uses = [(value.is_read, value.is_written) for value in described.arguments]
        assert uses == [(True, False), (True, False), (False, True)], described.name


def test_threads_that_cannot_share_a_tile_are_refused() -> None:
    refusal = pytest.raises(ValueError, match="64 threads cannot share a tile of 32 x 4")
    with refusal, new_module(), entry("narrow", "f32") as (a, b, c):
        padded("kernel", Tile(32, 16, 4, 2, 4), a, b, c)
