"""Batched matmuls of which one matrix is gathered for each row, as of experts: against NumPy."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import made_once, shared_folder

import aotc

# Experts, rows, K and columns: tiles that no row chose, several steps along K, columns that are no
# whole vectors.
SIZES = ((5, 201, 330, 112), (9, 40, 64, 50))
SELECTED = "_cpu_192x192_selected"
_SHARED = "affine_map<(e, m, n, k) -> (m, k)>"
_BATCHED = "affine_map<(e, m, n, k) -> (e, m, k)>"


def experts(
    sizes: tuple[int, int, int, int],
    *,
    element: str = "f32",
    is_shared: bool = True,
    is_read: bool = False,
    reads_row: bool = True,
    is_late: bool = False,
) -> str:
    """`%chosen` has the expert of each row, negative ones from the last expert on. `is_shared`: all
    experts multiply the same rows. The product is returned with `is_read`. Without `reads_row`, row
    0 is gathered. With `is_late`, the experts are computed behind the matmul."""
    e, m, k, n = sizes
    a = f"tensor<{m}x{k}x{element}>" if is_shared else f"tensor<{e}x{m}x{k}x{element}>"
    w, product, result = f"tensor<{e}x{k}x{n}xf32>", f"tensor<{e}x{m}x{n}xf32>", f"{m}x{n}xf32"
    result = f"tensor<{result}>"
    chosen = f"""
  %own = linalg.generic {{
      indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>],
      iterator_types = ["parallel"]}}
      ins(%chosen : tensor<{m}xi64>) outs(%chosen : tensor<{m}xi64>) {{
  ^bb0(%in: i64, %out: i64):
    %1 = arith.divsi %in, %two : i64
    linalg.yield %1 : i64
  }} -> tensor<{m}xi64>
  %barrier = linalg.reduce ins(%own : tensor<{m}xi64>) outs(%none : tensor<i64>) dimensions = [0]
      (%in: i64, %sum: i64) {{
    %1 = arith.maxsi %in, %sum : i64
    linalg.yield %1 : i64
  }}"""
    early, late = ("", chosen) if is_late else (chosen, "")
    more = f", {product}" if is_read else ""
    values = "%found, %product" if is_read else "%found"
    widened = "%x" if element == "f32" else "%y"
    widen = "" if element == "f32" else f"%y = arith.extf %x : {element} to f32"
    return f"""
func.func @experts_{e}(%a: {a}, %w: {w}, %chosen: tensor<{m}xi64>) -> ({result}{more}, tensor<i64>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2 : i64
  %none = arith.constant dense<0> : tensor<i64>
  %c0 = arith.constant 0 : index
  %0 = arith.constant 0 : i64
  %count = arith.constant {e} : i64
  %experts = arith.constant {e} : index{early}
  %empty = tensor.empty() : {product}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {product}) -> {product}
  %product = linalg.generic {{
      indexing_maps = [{_SHARED if is_shared else _BATCHED},
        affine_map<(e, m, n, k) -> (e, k, n)>, affine_map<(e, m, n, k) -> (e, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %w : {a}, {w}) outs(%zeros : {product}) {{
  ^bb0(%x: {element}, %b: f32, %sum: f32):
    {widen}
    %1 = arith.mulf {widened}, %b : f32
    %2 = arith.addf %sum, %1 : f32
    linalg.yield %2 : f32
  }} -> {product}{late}
  %found_empty = tensor.empty() : {result}
  %found = linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%own : tensor<{m}xi64>) outs(%found_empty : {result}) {{
  ^bb0(%in: i64, %out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %is_negative = arith.cmpi slt, %in, %0 : i64
    %from_end = arith.addi %in, %count : i64
    %1 = arith.select %is_negative, %from_end, %in : i64
    %2 = arith.index_cast %1 : i64 to index
    %exists = arith.cmpi ult, %2, %experts : index
    %expert = arith.select %exists, %2, %c0 : index
    %value = tensor.extract %product[%expert, {"%row" if reads_row else "%c0"}, %column] : {product}
    linalg.yield %value : f32
  }} -> {result}
  return {values}, %barrier : {result}{more}, tensor<i64>
}}"""


def launched(text: str, folder: Path) -> str:
    out = folder / "built.mlir"
    aotc.build(text, emit="mlir", out=str(out), chips=("sm_80",))
    return " ".join(re.findall(r"gpu\.launch_func +@(\w+)::", out.read_text()))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        text = experts(SIZES[0]) + experts(SIZES[1], element="f16", is_shared=False)
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))

    return made_once(shared_folder(tmp_path_factory) / "selection", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_rows_are_right(
    built: Path, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of experts in any order, with infinities and NaN in rows and experts: only a row's own expert
    matters."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    monkeypatch.setenv("AOTC_CPU_THREADS", "2")
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    library.set_device("cpu")
    random = np.random.default_rng(0)
    for (e, m, k, n), element in zip(SIZES, (np.float32, np.float16), strict=True):
        shape = (m, k) if element is np.float32 else (e, m, k)
        a = random.standard_normal(shape).astype(element)
        w = random.standard_normal((e, k, n)).astype(np.float32)
        a[..., 3, 5], a[..., 4, 6], w[e - 1] = np.inf, np.nan, np.nan
        rows = np.broadcast_to(a, (e, m, k))
        # No row chose expert 2 or the last one. An expert that is out of bounds is expert 0.
        chosen = np.array([0, 1, 3, -2, 9], np.int64)[random.integers(0, 5, m)]
        own = np.where(chosen == -2, e - 2, np.where(chosen == 9, 0 if e <= 9 else 9, chosen))
        expected = np.stack([rows[own[i], i].astype(np.float64) @ w[own[i]] for i in range(m)])
        found, _ = getattr(library, f"experts_{e}")(a, w, chosen * 2)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "text", [experts(SIZES[0]), experts(SIZES[1], element="f16", is_shared=False)]
)
def test_only_rows_that_are_read_are_computed(text: str, tmp_path: Path) -> None:
    assert launched(text, tmp_path).count(SELECTED) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(experts(SIZES[0], is_read=True), id="a product that others read"),
        pytest.param(experts(SIZES[0], reads_row=False), id="another row"),
        pytest.param(experts(SIZES[0], is_late=True), id="experts that are chosen later"),
    ],
)
def test_all_rows_are_computed(text: str, tmp_path: Path) -> None:
    assert SELECTED not in launched(text, tmp_path)
