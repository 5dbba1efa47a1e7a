"""Entries for combinations of parameters, and the entry that picks one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ladder.blocks import Tile
from ladder.expressions import Array, Scalar, arith
from ladder.gemm import gemm, is_possible, tile_for
from ladder.generics import Parameters, generic
from ladder.module import new_module
from ladder.steps import candidate, shared_memory

from .conftest import load
from .test_steps import check


@generic(m=(16, 8), n=(16, 8), element=("f32", "f64"), where=lambda p: p["m"] >= p["n"])
def product(name: str, a: Array, b: Array, c: Array, *, m: int, n: int, element: str) -> None:
    shared_memory(name, Tile(m, n, 16), a, b, c)


def divides(m: Scalar, n: Scalar, k: Scalar, parameters: Parameters) -> Scalar:
    return (m % parameters["m"]).equals(0) & (n % parameters["n"]).equals(0)


def test_each_possible_combination_has_an_entry_with_its_name(tmp_path: Path) -> None:
    with new_module() as module:
        names = product.entries()
    expected = ["m16n16_f32", "m16n16_f64", "m16n8_f32", "m16n8_f64", "m8n8_f32", "m8n8_f64"]
    assert names == [f"product_{name}" for name in expected]
    library = load(module, tmp_path)
    for name in names:
        check(getattr(library, name), name[-3:], (33, 20, 9))


def test_the_dispatcher_takes_the_first_that_fits_else_the_last(tmp_path: Path) -> None:
    """Each of these writes its own numbers into C: so one sees which it was."""

    @generic(m=(16, 8), n=(16, 8), element=("f32",))
    def mark(name: str, a: Array, b: Array, c: Array, *, m: int, n: int, element: str) -> None:
        c[0, 0], c[0, 1] = _number(c, m), _number(c, n)

    with new_module() as module:
        mark.entries()
        assert mark.dispatcher("f32", divides) == "mark_f32"
    library = load(module, tmp_path)

    def picked(m: int, n: int) -> tuple[float, float]:
        c = np.zeros((m, n), np.float32)
        library.mark_f32(np.zeros((m, 4), np.float32), np.zeros((4, n), np.float32), c)
        return float(c[0, 0]), float(c[0, 1])

    sizes = [(32, 48), (32, 24), (24, 32), (24, 24), (7, 7)]
    assert [picked(m, n) for m, n in sizes] == [(16, 16), (16, 8), (8, 16), (8, 8), (8, 8)]


def _number(c: Array, value: int) -> Scalar:
    """A float constant of C's type."""
    return Scalar(arith.constant(c.element, float(value)))


def test_no_kernel_of_the_samples_has_more_tiles_than_memory() -> None:
    for parameters in gemm.combinations():
        tile = tile_for(**parameters)
        assert is_possible(parameters)
        assert tile.threads <= 1024
        assert tile.warp_m * tile.warp_n == 32 * tile.thread_m * tile.thread_n
    assert "gemm_m256n128k8_f32" in [gemm.name(p) for p in gemm.combinations()]


def test_candidates_differ() -> None:
    names: list[Any] = [candidate.name(parameters) for parameters in candidate.combinations()]
    assert len(set(names)) == len(names) > 10
