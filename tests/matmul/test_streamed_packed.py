"""A row times a constant matrix, which the runtime packs once, against NumPy in f64."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.shared import made_once, shared_folder

import aotc

# Elements of A and B, and of C; K and N. Columns and k that are whole panels and groups, and not;
# columns of more than one block.
KINDS = (
    *(("f32", "f32", *size) for size in ((256, 128), (37, 413), (67, 2500))),
    ("f64", "f64", 75, 203),
    ("f16", "f32", 123, 330),
    ("bf16", "f32", 122, 331),
    ("i8", "i32", 131, 333),
)
_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "i32": "int32"}


def matrix(element: str, shape: tuple[int, int]) -> np.ndarray:
    """Small integers in halves, which every type but i8 has."""
    found = np.random.default_rng(shape[1]).integers(-9, 9, shape)
    if element == "i8":
        return found.astype(np.int8)
    return (found / 2).astype(_NUMPY.get(element, "float32"))


def bits(element: str, values: np.ndarray) -> np.ndarray:
    """What `element` has for the values, in memory."""
    if element == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values


def name_of(kind: tuple[str, str, int, int]) -> str:
    return "_".join(map(str, kind))


def text_of(kind: tuple[str, str, int, int]) -> str:
    """A row times a constant, plus the column's number."""
    element, result, k, n = kind
    data = bits(element, matrix(element, (k, n))).tobytes().hex().upper()
    is_float = result.startswith("f")
    add, cast = ("arith.addf", "arith.sitofp") if is_float else ("arith.addi", "arith.trunci")
    to = result if is_float else "i32"
    return f"""
func.func @row_{name_of(kind)}(%a: tensor<1x{k}x{element}>) -> tensor<1x{n}x{result}>
    attributes {{llvm.emit_c_interface}} {{
  %b = arith.constant dense<"0x{data}"> : tensor<{k}x{n}x{element}>
  %zero = arith.constant {"0.0" if is_float else "0"} : {result}
  %empty = tensor.empty() : tensor<1x{n}x{result}>
  %zeros = linalg.fill ins(%zero : {result}) outs(%empty : tensor<1x{n}x{result}>)
      -> tensor<1x{n}x{result}>
  %c = linalg.matmul ins(%a, %b : tensor<1x{k}x{element}>, tensor<{k}x{n}x{element}>)
      outs(%zeros : tensor<1x{n}x{result}>) -> tensor<1x{n}x{result}>
  %d = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%c : tensor<1x{n}x{result}>) outs(%empty : tensor<1x{n}x{result}>) {{
  ^bb0(%x: {result}, %old: {result}):
    %j = linalg.index 1 : index
    %i = arith.index_cast %j : index to i64
    %number = {cast} %i : i64 to {to}
    %sum = {add} %x, %number : {result}
    linalg.yield %sum : {result}
  }} -> tensor<1x{n}x{result}>
  return %d : tensor<1x{n}x{result}>
}}"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        text = "\n".join(map(text_of, KINDS))
        aotc.build(text, emit="shared", out=f"{folder}/", name="built", chips=("sm_80",))

    return made_once(shared_folder(tmp_path_factory) / "streamed_packed", build)


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_rows_are_right(
    built: Path, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each level of x86-64. Sums of small numbers are exact, in any order."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = aotc.load(shutil.copytree(built, tmp_path / "own"))
    for kind in KINDS:
        element, result, k, n = kind
        a, b = (matrix(element, shape) for shape in ((1, k), (k, n)))
        found = np.full((1, n), 77, _NUMPY[result])
        getattr(library, f"row_{name_of(kind)}")(bits(element, a), found)
        expected = a.astype(np.float64) @ b.astype(np.float64) + np.arange(n)
        np.testing.assert_array_equal(found, expected, err_msg=name_of(kind))


def test_each_reads_a_packed_matrix(tmp_path: Path) -> None:
    out = tmp_path / "built.mlir"
    aotc.build("\n".join(map(text_of, KINDS)), emit="mlir", out=str(out), chips=("sm_80",))
    launched = set(re.findall(r"gpu.launch_func +@(matmul_\w+_cpu_\w+)::", out.read_text()))
    assert len(launched) == len(KINDS)
    assert all("_cpu_packed_gemv_" in one for one in launched)
