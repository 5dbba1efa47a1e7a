"""Convolutions of narrow elements for the CPU device, with each instruction set that this processor
has, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.guarded import at_end_of_page
from helpers.native import Library, build_library
from helpers.shared import made_once, shared_folder
from matmul.contracted import Contraction, convolution
from matmul.emulated_tiles import emulate_tiles, needs_avx512
from matmul.scalar_products import entry
from matmul.test_grouped import check_every_level
from msgspec import structs

from aotc.kernels.matmul.cpu.blocked import CPU_BLOCKED
from aotc.kernels.matmul.implicit_gemm.cpu.family import IMPLICIT_CPU
from aotc.kernels.matmul.implicit_gemm.cpu.grouped import takes_groups

BYTES = {"element": "i8", "result": "i32"}
BF16 = {"element": "bf16", "result": "f32"}
# Several steps along K, of a tile of two groups of rows.
BLOCKS = CPU_BLOCKED.variant_type(6, 1, 24, 192, 32)

# K that is no multiple of a group, and one that is; runs of less than a vector, of one and more.
STRIDED = convolution("strided", (1, 3, 5, 33), (35, 3, 3), strides=(2, 2))
OF_GROUPS = Contraction(
    *("of_groups", {"n": 2, "g": 2, "f": 12, "h": 6, "w": 31, "c": 5, "p": 3, "q": 3}),
    *(("n", "g", "c", "h + p", "w + q"), ("g", "f", "c", "p", "q"), ("n", "g", "f", "h", "w")),
)
IMAGES = replace(
    convolution("images", (3, 24, 7, 7), (35, 3, 3)), dynamic=(("a", 0), ("c", 0)), adds=True
)
# Whose bytes have no sign.
UNSIGNED = replace(STRIDED, name="unsigned", **BYTES)
CASES = (
    *(replace(case, **BYTES) for case in (STRIDED, OF_GROUPS, IMAGES)),
    UNSIGNED,
    replace(STRIDED, name="strided_bf16", **BF16),
)
_CHECK = """
import pathlib, sys
from matmul.test_grouped import library_in
from matmul.test_grouped_convolutions import check
check(library_in(pathlib.Path(sys.argv[1])))
"""


def check(library: Library) -> None:
    """Nothing is read behind the operands, whose last elements are the last of a page."""
    for case in CASES:
        a, b, before = case.operands()
        given = [one.view(np.uint8) if case == UNSIGNED else one for one in (a, b)]
        expected, size = case.expected(*given, before)
        found = []
        for _ in range(2):
            c = before.copy()
            library.call(case.name, at_end_of_page(b), at_end_of_page(a), c)
            found.append(c)
        assert found[0].tobytes() == found[1].tobytes(), case.name
        # Sums of f32, of exact products.
        allowed = 0 if case.element == "i8" else size * 1e-6
        assert np.all(np.abs(found[0].astype(np.float64) - expected) <= allowed), case.name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, built once for all workers."""

    def text_of(case: Contraction) -> str:
        problem = case.problem
        assert problem is not None
        if case == UNSIGNED:
            a, b = (structs.replace(one, unsigned=True) for one in (problem.a, problem.b))
            problem = structs.replace(problem, a=a, b=b)
        assert takes_groups(problem)
        return entry(IMPLICIT_CPU.function(problem, BLOCKS, case.name))

    def make(folder: Path) -> None:
        build_library("\n".join(map(text_of, CASES)), folder, "--emit", "host-ll", name="grouped")

    return made_once(shared_folder(tmp_path_factory) / "grouped_convolutions", make)


def test_every_level(folder: Path) -> None:
    check_every_level(_CHECK, folder)


@needs_avx512
def test_tiles(folder: Path, tmp_path: Path) -> None:
    """The copies of kernels for AMX, with emulated instructions."""
    emulate_tiles(folder / "grouped.ll", tmp_path / "libgrouped.so")
    check(Library(tmp_path / "libgrouped.so", folder / "grouped.json"))


def test_what_has_no_instructions_is_gathered() -> None:
    """Other elements, and rows of B whose columns are far apart."""
    last = convolution("last", (2, 5, 5, 7), (34, 3, 2), layout="nhwc")
    for case in (STRIDED, replace(STRIDED, element="f16"), replace(last, **BYTES)):
        problem = case.problem
        assert problem is not None
        assert not takes_groups(problem)
