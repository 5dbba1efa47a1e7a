"""Matmuls of narrow elements for the CPU device, with each instruction set that this processor has,
against NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.emulated_tiles import emulate_tiles, needs_avx512
from matmul.test_blocked import DTYPES, Case
from msgspec import Struct
from msgspec.structs import replace

from aotc.kernels.cpu.levels import AMX, AVX2
from aotc.kernels.matmul.cpu.grouped import CPU_GROUPED
from aotc.kernels.matmul.problem import Matrix

# M, N and K: a group, just over groups, vectors and steps, none, several tiles.
SIZES = ((1, 1, 1), (6, 16, 256), (7, 17, 1283), (5, 3, 0), (57, 40, 96), (97, 210, 301))
LEVELS = (1, AVX2, *range(4, AMX + 1))


class Grouped(Struct, frozen=True):
    """A product, and which of A and B are unsigned; `k`, if it is known when built."""

    case: Case
    unsigned: tuple[bool, bool] = (False, False)
    k: int | None = None

    @property
    def name(self) -> str:
        kinds = "".join("u" if one else "s" for one in self.unsigned)
        return f"{self.case.name}_{kinds}_{self.k or 'any'}"

    @property
    def text(self) -> str:
        problem = self.case.problem
        a, b = (
            replace(one, unsigned=unsigned)
            for one, unsigned in zip((problem.a, problem.b), self.unsigned, strict=True)
        )
        if self.k is not None:
            a = Matrix(f"memref<?x{self.k}x{a.element}>", a.element, (None, self.k), self.k, 1)
        problem = replace(problem, a=a, b=b)
        made = CPU_GROUPED.function(problem, CPU_GROUPED.variants(problem)[0], self.name)
        return made.replace(") {", ") attributes {llvm.emit_c_interface} {", 1)


CASES = (
    Grouped(Case("bf16", "f32", "f32"), k=1284),
    Grouped(Case("bf16", "bf16", "f32", "tt", batched=True, adds=True)),
    Grouped(Case("i8", "i32", "i32", "nt")),
    Grouped(Case("i8", "i32", "i32", "tn"), (True, False)),
    Grouped(Case("i8", "i32", "i32"), (False, True), k=1284),
    Grouped(Case("i8", "i32", "i32"), (True, True)),
    Grouped(Case("i16", "i32", "i32", "nt")),
)
_CHECK = """
import pathlib, sys
from matmul.test_grouped import check, library_in
check(library_in(pathlib.Path(sys.argv[1])))
"""
_TYPES = {**DTYPES, "i16": np.dtype(np.int16)}


def _inputs(one: Grouped, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C; integers have all their values, but that sums of i16 stay in 32 bits."""
    rng, case = np.random.default_rng(m + n + k), one.case
    batch = (3,) if case.batched else ()

    def random(rows: int, columns: int) -> np.ndarray:
        dtype = _TYPES[case.element]
        if case.element == "bf16":
            return rng.uniform(-1, 1, (*batch, rows, columns)).astype(dtype)
        limit = 1 << 7 if case.element == "i8" else 1 << 10
        return rng.integers(-limit, limit, (*batch, rows, columns)).astype(dtype)

    c = np.full((*batch, m, n), 0.5 if case.adds else 7, _TYPES[case.result])
    return random(m, k), random(k, n), c


def _exact(one: Grouped, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    factors = [
        x.view(np.uint8).astype(np.int64) if unsigned else x.astype(np.float64)
        for x, unsigned in zip((a, b), one.unsigned, strict=True)
    ]
    return factors[0] @ factors[1] + (c.astype(np.float64) if one.case.adds else 0)


def library_in(folder: Path) -> Library:
    return Library(folder / "lib" / "libgrouped.so", folder / "grouped.json")


def check(library: Library) -> None:
    for one in CASES:
        for m, n, k in SIZES:
            a, b, c = _inputs(one, m, n, one.k or k)
            exact = _exact(one, a, b, c)
            stored = [
                np.ascontiguousarray(np.swapaxes(x, -1, -2)) if way == "t" else x
                for x, way in zip((a, b), one.case.transposed, strict=True)
            ]
            again = c.copy()
            library.call(one.name, *stored, c)
            library.call(one.name, *stored, again)
            assert c.tobytes() == again.tobytes(), one.name
            found = c.astype(np.float64)
            if one.case.element != "bf16":
                assert np.array_equal(found, exact), (one.name, m, n, k)
                continue
            # f32 sums of at most 1284 products below 1, rounded once to bf16.
            rounding = 2.0**-8 * np.abs(exact) if one.case.result == "bf16" else 0
            assert np.all(np.abs(found - exact) <= 1e-4 + rounding), (one.name, m, n, k)


def check_every_level(code: str, folder: Path) -> None:
    """Runs Python's code with the folder as its argument, at each level. One that the processor
    lacks is the highest that it has."""
    for level in LEVELS:
        settings = {"AOTC_CPU_LEVEL": str(level), "AOTC_DEVICE": "cpu"}
        path = {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
        command = [sys.executable, "-c", code, str(folder)]
        subprocess.run(command, env=os.environ | settings | path, check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, built once for all workers."""

    def make(folder: Path) -> None:
        text = "\n".join(one.text for one in CASES)
        build_library(text, folder, "--emit", "host-ll", name="grouped")

    return made_once(shared_folder(tmp_path_factory) / "grouped", make)


def test_every_level(folder: Path) -> None:
    check_every_level(_CHECK, folder)


@needs_avx512
def test_tiles(folder: Path, tmp_path: Path) -> None:
    """The copies of kernels for AMX, with emulated instructions."""
    emulate_tiles(folder / "grouped.ll", tmp_path / "libgrouped.so")
    check(Library(tmp_path / "libgrouped.so", folder / "grouped.json"))


def test_which_problems_it_takes() -> None:
    """Pairs of elements for which there are instructions, and no sums of other types."""
    taken = {
        (element, accumulator)
        for element in ("f16", "bf16", "f32", "i8", "i16", "i32")
        for accumulator in ("f32", "f64", "i32")
        if CPU_GROUPED.variants(Case(element, accumulator, accumulator).problem)
    }
    assert {("bf16", "f32"), ("i8", "i32"), ("i16", "i32")} == taken
