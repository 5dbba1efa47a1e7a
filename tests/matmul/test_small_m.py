"""Which kernels few rows of C get on Hopper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.kernel_targets import kernel_targets
from matmul.scalar_products import Product
from matmul.test_dispatch import TRANSPOSED_B, explanation, module
from matmul.test_wgmma import problem

import aotc
from aotc.kernels.matmul.choice import choose
from aotc.kernels.matmul.gemv.family import GEMV
from aotc.kernels.matmul.small_m import SmallM, small_m_kernels
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.request import Chip

HALF = {"element": "f16", "result": "f16", "dynamic": "", "alignment": 16}


def found(m: int, n: int, k: int, **fields: object) -> list[SmallM]:
    return small_m_kernels(Product("product", m, n, k, **{**HALF, **fields}).problem)


@pytest.mark.parametrize(
    ("n", "k", "split_k"),
    [(4096, 4096, 2), (11008, 4096, 1), (1024, 4096, 8), (1024, 256, 1), (5120, 4096, 2)],
)
def test_k_is_divided_until_all_multiprocessors_have_a_part(n: int, k: int, split_k: int) -> None:
    [few] = found(16, n, k)
    assert few.family is WGMMA
    variant = few.variant
    assert (variant.cluster_split_k, variant.small_m, few.rows) == (split_k, 16, None)


def test_one_row_is_one_pass_where_that_is_faster() -> None:
    [along] = found(1, 4096, 4096, transposed_b=True)
    [across] = found(1, 11008, 4096)
    [narrow] = found(1, 4096, 4096)
    assert [along.family, across.family, narrow.family] == [GEMV, GEMV, WGMMA]
    assert along.variant.uses_pdl
    assert across.variant.uses_pdl


def test_rows_that_are_not_known_have_a_kernel_for_each_range() -> None:
    kernels = found(5, 4096, 4096, dynamic="m", transposed_b=True)
    assert [few.rows for few in kernels] == [(1, 1), (2, 16), (17, 64)]
    assert [few.family for few in kernels] == [GEMV, WGMMA, WGMMA]
    assert kernels[0].problem.m == 1
    assert kernels[1].problem.m is None


def test_rows_of_f32_that_are_not_known_have_one_pass() -> None:
    """Up to 24 of them, and if the other matrix is large."""
    fields = {"element": "f32", "result": "f32", "dynamic": "m", "transposed_b": True}
    kernels = found(5, 4096, 4096, **fields)
    assert [(few.family, few.rows) for few in kernels] == [(GEMV, (1, 1)), (GEMV, (2, 24))]
    assert kernels[1].problem.m is None
    assert kernels[1].variant.small == 8
    assert [few.rows for few in found(5, 256, 256, **fields)] == [(1, 1)]


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_rows_that_are_not_known_have_kernels_on_any_gpu(element: str) -> None:
    """One pass for a row, and for up to eight; then tiles, with parts of K."""
    product = Product("product", 5, 4096, 4096, dynamic="m", element=element, alignment=16)
    kernels = choose(product.problem, [Chip("sm_80")])
    assert [(one.family, one.rows) for one in kernels[:2]] == [(GEMV, (1, 1)), (GEMV, (2, 8))]
    assert [one.variant.split_k for one in kernels if one.most_tiles] == [0]
    assert kernels[-1].problem.a.alignment < 16


@pytest.mark.parametrize(
    ("m", "n", "transposed_b", "width", "blocks"),
    [
        (16, 11008, True, 96, 132),
        (16, 11008, False, 64, 264),
        (16, 32000, True, 64, 264),
        (64, 11008, True, 96, 132),
        (64, 11008, False, 192, 132),
        (64, 32000, False, 256, 132),
        (64, 4096, False, 64, 132),
    ],
)
def test_tiles_are_as_wide_as_leaves_each_multiprocessor_one(
    m: int, n: int, transposed_b: bool, width: int, blocks: int
) -> None:
    [few] = found(m, n, 4096, transposed_b=transposed_b)
    assert (few.variant.n, few.variant.blocks) == (width, blocks)


@pytest.mark.parametrize("size", [512, 1024, 4096])
def test_squares_are_not_divided(size: int) -> None:
    assert found(size, size, size) == []


def test_a_transposed_a_is_fetched_whole() -> None:
    [few] = found(16, 4096, 4096, transposed_a=True)
    assert few.variant.small_m == 0


@pytest.mark.parametrize(
    ("m", "fields"), [(65, {}), (0, {}), (4, {"element": "f32", "result": "f32"})]
)
def test_others_have_none(m: int, fields: dict[str, str]) -> None:
    assert found(m, 4096, 4096, **fields) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ("?x512xf16", "1024x512xf16", "?x1024xf16"),
        ("?x?xf16", "?x?xf16", "?x?xf16"),
        ("?x512xf32", "1024x512xf32", "?x1024xf32"),
    ],
)
def test_kernels_are_chosen_by_rows(a: str, b: str, c: str, tmp_path: Path) -> None:
    text = module(a, b, c, TRANSPOSED_B)
    artifact = aotc.build(text, emit="shared", out=f"{tmp_path}/", name="built", chips=("sm_90",))
    assert {"sm_90a", "gpu"} <= set(kernel_targets(artifact))
    file = tmp_path / "product.mlir"
    file.write_text(text)
    said = explanation(file)
    assert "one pass over the large matrix on sm_90a, one row" in said
    assert ("17 to 64 rows" in said) is ("f16" in a)


def test_one_row_may_begin_while_the_kernel_before_ends(tmp_path: Path) -> None:
    text = module("1x512xf16", "1024x512xf16", "1x1024xf16", TRANSPOSED_B)
    aotc.build(text, emit="ptx", out=f"{tmp_path}/", chips=("sm_90a",))
    [path] = tmp_path.glob("*_sm_90a.sm_90a.ptx")
    assert "griddepcontrol.wait" in path.read_text()


@pytest.mark.parametrize("layers", [1, 2])
def test_constant_weights_are_loaded_before_the_kernel_before_has_ended(
    layers: int, tmp_path: Path
) -> None:
    """Equal layers have one launch function, whose arguments are the weights."""
    row, weights, result = "tensor<1x1024xf16>", "tensor<128x1024xf16>", "tensor<1x128xf16>"
    body = ""
    for number in range(layers):
        halves = np.full(128 * 1024, 1 + number, np.float16)
        halves[0] = 0
        body += f"""
  %w{number} = arith.constant dense<"0x{halves.tobytes().hex().upper()}"> : {weights}
  %y{number} = linalg.{TRANSPOSED_B}
      ins(%x, %w{number} : {row}, {weights}) outs(%zeros : {result}) -> {result}"""
    results = ", ".join(f"%y{number}" for number in range(layers))
    types = ", ".join([result] * layers)
    text = f"""
func.func @f(%x: {row}) -> ({types}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : {result}
  %zeros = linalg.fill ins(%zero : f16) outs(%empty : {result}) -> {result}{body}
  return {results} : {types}
}}"""
    aotc.build(text, emit="ptx", out=f"{tmp_path}/", name="f", chips=("sm_90a",))
    [ptx] = [path.read_text() for path in tmp_path.glob("*_sm_90a.sm_90a.ptx")]
    assert ptx.index("ld.global") < ptx.index("griddepcontrol.wait")


@pytest.mark.parametrize(
    ("batch", "m", "n", "k", "is_worth_it"),
    [
        (None, 64, 64, 64, True),
        (None, 32, 64, 64, False),
        # A thread would add 768 products one after the other.
        (None, 8, 32, 768, True),
        (None, 4, 16, 128, False),
        (96, 32, 32, 196, True),
        (2, 32, 32, 64, False),
        # Most of each tile would be unused.
        (4096, 16, 16, 16, False),
    ],
)
def test_little_work_is_of_loops(
    batch: int | None, m: int, n: int, k: int, *, is_worth_it: bool
) -> None:
    made = problem(m=m, n=n, k=k, batch=batch)
    assert bool(choose(made, [Chip("sm_80"), Chip("sm_90a")])) is is_worth_it
