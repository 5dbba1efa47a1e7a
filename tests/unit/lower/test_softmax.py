"""Softmax on buffers, of every type, rank, axis and layout, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

from aotc import ops
from aotc.input.place import Place
from aotc.input.source import find_place, parse_source
from aotc.lower.tensors.softmax import expand_softmax_of_buffers
from aotc.mlir import make_context

# In f16, a difference of 8 and more has an error of up to 2^-8, and exp as much relative to it.
TOLERANCE = {"f16": 1e-2, "f32": 1e-5, "f64": 1e-12}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}

ENTRY = """
func.func @softmax(%x: {type}, %y: {type}) attributes {{llvm.emit_c_interface}} {{
  linalg.softmax dimension({axis}) ins(%x : {type}) outs(%y : {type})
  return
}}
"""


@pytest.mark.parametrize(
    ("type_", "axis"),
    [
        ("memref<?x?xf64>", 0),
        ("memref<3x5x7xf32>", 1),
        ("memref<?x5x?xf16>", 2),
        ("memref<9xf32>", 0),
    ],
)
def test_softmax_of_buffers(tmp_path: Path, type_: str, axis: int) -> None:
    """The rows' sums are 1, also where exp of the numbers themselves would overflow."""
    element = type_.removesuffix(">").rpartition("x")[2]
    sizes = type_.removeprefix("memref<").split("x")[:-1]
    shape = tuple(4 if size == "?" else int(size) for size in sizes)
    x = np.random.default_rng(axis).uniform(-5, 5, shape).astype(DTYPES[element])
    x.flat[0] = 1000
    y = np.empty_like(x)
    build_library(ENTRY.format(type=type_, axis=axis), tmp_path).call("softmax", x, y)
    wide = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    expected = wide / wide.sum(axis, keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=TOLERANCE[element], atol=1e-6)


def test_in_place(tmp_path: Path) -> None:
    """The source may be the result."""
    text = ENTRY.format(type="memref<?x?xf32>", axis=1).replace("outs(%y", "outs(%x")
    x = np.random.default_rng(0).uniform(-5, 5, (7, 33)).astype(np.float32)
    wide = np.exp(x.astype(np.float64))
    build_library(text, tmp_path).call("softmax", x, np.empty_like(x))
    np.testing.assert_allclose(x, wide / wide.sum(1, keepdims=True), rtol=1e-5)


def test_places_are_those_of_the_input() -> None:
    """Remarks about the loops that softmax becomes name its line."""
    text = ENTRY.format(type="memref<?x?xf32>", axis=1)
    source = parse_source("rows.mlir", text.encode(), make_context())
    expand_softmax_of_buffers(source.module)
    made = [op for op in ops.walk(source.module.operation) if op.name == "linalg.generic"]
    assert len(made) == 4
    places = {find_place(str(op.location), source.name) for op in made}
    assert places == {Place("rows.mlir", 3, 3)}
