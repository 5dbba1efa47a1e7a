"""Products behind views: several dimensions that follow each other are one of a matrix."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.contracted import Contraction

from aotc.kernels.matmul.implicit_gemm.flattened import flattened
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm

# A linear layer of a batch of sequences.
LINEAR = Contraction(
    *("linear", {"b": 3, "s": 35, "n": 80, "k": 72}),
    *(("b", "s", "k"), ("k", "n"), ("b", "s", "n")),
)
CASES = {
    "rows": (LINEAR, "105x72 72x80 105x80"),
    "turned": (replace(LINEAR, name="turned", b=("n", "k")), "105x72 80x72 105x80"),
    "a batch of any size": (
        replace(LINEAR, name="any", dynamic=(("a", 0), ("c", 0))),
        "?x72 72x80 ?x80",
    ),
    "two dimensions of a batch": (
        Contraction(
            *("heads", {"b": 2, "h": 3, "i": 40, "j": 36, "d": 64}),
            *(("b", "h", "i", "d"), ("b", "h", "d", "j"), ("b", "h", "i", "j")),
        ),
        "6x40x64 6x64x36 6x40x36",
    ),
    "two dimensions of K": (
        Contraction(
            *("deep", {"i": 40, "j": 72, "h": 4, "d": 64}),
            *(("i", "h", "d"), ("h", "d", "j"), ("i", "j")),
        ),
        "40x256 256x72 40x72",
    ),
    "rows and K of two": (
        Contraction(
            *("both", {"b": 3, "s": 35, "h": 4, "d": 18, "n": 80}),
            *(("b", "s", "h", "d"), ("h", "d", "n"), ("b", "s", "n")),
        ),
        "105x72 72x80 105x80",
    ),
    "dimensions of one": (
        Contraction(
            *("ones", {"n": 1, "i": 64, "o": 1, "j": 72, "k": 64}),
            *(("n", "i", "k"), ("k", "o", "j"), ("n", "i", "o", "j")),
        ),
        "64x64 64x72 64x72",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_become_one(name: str) -> None:
    case, shapes = CASES[name]
    found = case.found(flattened)
    assert found is not None
    problem = found.problem
    assert not isinstance(problem, ImplicitGemm)
    types = [matrix.type for matrix in (problem.a, problem.b, problem.c)]
    assert types == [f"memref<{shape}xf32>" for shape in shapes.split()]


@pytest.mark.parametrize("name", ["rows", "a batch of any size", "rows and K of two"])
def test_the_result_stays_the_buffer_that_it_is(name: str) -> None:
    """So that what is done with it is found, and done in the product's kernel."""
    case, _ = CASES[name]
    found = case.found(flattened)
    assert found is not None
    assert found.outer == 2  # dimensions of C that are rows


@pytest.mark.parametrize(
    "case",
    [
        # Images lie between their channels.
        Contraction(
            *("pointwise", {"n": 2, "f": 64, "p": 49, "c": 64}),
            *(("n", "c", "p"), ("f", "c"), ("n", "f", "p")),
        ),
        # The heads of a sequence lie between its positions.
        Contraction(
            *("between", {"b": 2, "h": 3, "i": 40, "j": 36, "d": 64}),
            *(("b", "i", "h", "d"), ("b", "j", "h", "d"), ("b", "h", "i", "j")),
        ),
        # No row of A, no column of it is contiguous.
        Contraction(*("apart", {"i": 8, "j": 16, "k": 8}), ("i*2", "k*2"), ("k", "j"), ("i", "j")),
    ],
    ids=lambda case: case.name,
)
def test_what_is_no_matrix_is_an_implicit_gemm(case: Contraction) -> None:
    assert case.problem is not None
    assert case.found(flattened) is None


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    def make(folder: Path) -> None:
        text = "\n".join(case.module for case, _ in CASES.values())
        build_library(text, folder, name="flattened")

    folder = made_once(shared_folder(tmp_path_factory) / "flattened", make)
    return Library(folder / "lib" / "libflattened.so", folder / "flattened.json")


@pytest.mark.parametrize("name", CASES)
def test_whole_modules_are_right(library: Library, name: str) -> None:
    case, _ = CASES[name]
    os.environ["AOTC_DEVICE"] = "cpu"
    a, b, c = case.operands()
    expected, size = case.expected(a, b, c)
    library.call(case.name, a, b, c)
    assert np.all(np.abs(c - expected) <= size * 1e-6)
