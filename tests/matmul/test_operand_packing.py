"""Products of copies, on the CPU device, against NumPy's in f64."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.shared import shared_folder
from matmul.scalar_products import Product, build, call
from msgspec.structs import replace

from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC, Variant
from aotc.kernels.matmul.operand_packing import (
    PACK_3XTF32,
    PACK_F8_AS_F16,
    PACK_K_MAJOR,
    OperandPacking,
)
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.request import Chip

SMALL = Variant(64, 64, 16, 2, 2, 2)
SMALL_F16 = Variant(64, 64, 32, 2, 2, 2)

# f32 in parts has f32's accuracy: `call` allows 1e-6 of the sums of absolute values.
IN_PARTS = [
    Product("parts_nn", 70, 65, 100),
    Product("parts_tt", 33, 47, 65, transposed_a=True, transposed_b=True),
    Product("parts_tn", 64, 64, 64, dynamic="", transposed_a=True, adds=True),
    Product("parts_batched", 20, 30, 40, batches=3),
    Product("parts_of_nothing", 5, 7, 0),
]
AS_WIDER = [
    Product("wide_nn", 33, 47, 65, element="f8E4M3FN"),
    Product("wide_tt", 40, 16, 176, element="f8E5M2", transposed_a=True, transposed_b=True),
    Product("wide_batched", 20, 30, 40, element="f8E4M3FN", result="f16", batches=2),
]


def text_of(product: Product) -> str:
    if product in AS_WIDER:
        return PACK_F8_AS_F16.function(product.problem, SMALL_F16, product.name)
    return PACK_3XTF32.function(_in_parts(product.problem), SMALL, product.name)


def _in_parts(problem: Problem) -> Problem:
    return replace(problem, allow_3xtf32=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_folder(tmp_path_factory) / "operand_packing"
    return build([*IN_PARTS, *AS_WIDER], text_of, folder, "--chip", "sm_80")


@pytest.mark.parametrize("product", [*IN_PARTS, *AS_WIDER], ids=lambda product: product.name)
def test_products_are_right(product: Product, program: Path, tmp_path: Path) -> None:
    assert call(program, product, tmp_path / "data") == ""


def _family(product: Product) -> OperandPacking:
    return PACK_F8_AS_F16 if product in AS_WIDER else PACK_3XTF32


@pytest.mark.parametrize("product", [IN_PARTS[0], AS_WIDER[0]], ids=lambda product: product.name)
def test_the_tests_kernels_are_possible(product: Product) -> None:
    variant = SMALL_F16 if product in AS_WIDER else SMALL
    assert _family(product).can_implement(_in_parts(product.problem), variant)


def test_f32_is_exact_unless_something_else_is_allowed() -> None:
    problem = Product("x", 1024, 1024, 1024, dynamic="", alignment=16).problem
    exact, in_3xtf32, rounded = (
        [str(choice) for choice in choose(changed, [Chip("sm_90a")])]
        for changed in (problem, _in_parts(problem), replace(problem, allow_tf32=True))
    )
    assert all(choice.startswith("multiply-adds") for choice in exact)
    assert in_3xtf32[0].startswith("wgmma of 3 x tf32")
    assert in_3xtf32[-1].startswith("multiply-adds")
    assert rounded[0].startswith("wgmma with")


def test_small_products_are_not_of_copies() -> None:
    problem = _in_parts(Product("x", 256, 1024, 1024, dynamic="", alignment=16).problem)
    assert all(not choice.packs_large_operands for choice in choose(problem, [Chip("sm_90a")]))


@pytest.mark.parametrize(
    ("a", "b", "copies"),
    [(False, False, False), (False, True, False), (True, False, True), (True, True, True)],
)
def test_wgmma_has_copies_of_what_it_cannot_read(a: bool, b: bool, copies: bool) -> None:
    product = Product(
        *("x", 1024, 1024, 1024),
        element="i8",
        accumulator="i32",
        result="i32",
        dynamic="",
        transposed_a=a,
        transposed_b=b,
        alignment=16,
    )
    first = choose(product.problem, [Chip("sm_90a")])[0]
    assert first.target == "sm_90a"
    assert first.family is (PACK_K_MAJOR if copies else WGMMA)


def test_f8_is_for_any_gpu() -> None:
    problem = Product("x", 1000, 1000, 1000, element="f8E4M3FN", alignment=1).problem
    choices = choose(problem, [Chip("sm_80"), Chip("sm_90a")])
    assert {choice.family for choice in choices} >= {PACK_F8_AS_F16}
    assert MMA_SYNC.variants(problem) == ()
