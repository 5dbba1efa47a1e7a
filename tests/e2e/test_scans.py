"""Scans of rows: those that the threads of a block compute together, which a GPU has, and those of
one thread for each row, which the CPU has. Both run on the CPU device here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import Library, build_library

from aotc.lower.mapping import loops

RANDOM = np.random.default_rng(23)
# Around a warp's 32 and 128 elements, and a block's 1024.
LENGTHS = (0, 1, 17, 31, 32, 33, 127, 128, 129, 1000, 1024, 1025, 3001)
OPERATIONS: dict[str, tuple[str, str, Any, Callable[..., np.ndarray]]] = {
    "f16": ("addf", "-0.0", np.float16, np.cumsum),
    "f32": ("addf", "-0.0", np.float32, np.cumsum),
    "f64": ("mulf", "1.0", np.float64, np.cumprod),
    "i8": ("addi", "0", np.int8, np.cumsum),
    "i16": ("maxsi", "-32768", np.int16, np.maximum.accumulate),
    "i32": ("muli", "1", np.int32, np.cumprod),
    "i64": ("xori", "0", np.int64, np.bitwise_xor.accumulate),
}


def _rows(type_: str, columns: str) -> str:
    """A scan of each row of x, to y; `columns` is a number or "?"."""
    operation, neutral, *_ = OPERATIONS[type_]
    matrix = f"memref<?x{columns}x{type_}>"
    name = "known" if columns != "?" else "any"
    return f"""
func.func @{name}_{type_}(%x: {matrix}, %y: {matrix}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %neutral = arith.constant {neutral} : {type_}
  %m = memref.dim %x, %c0 : {matrix}
  %n = memref.dim %x, %c1 : {matrix}
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {{
    %all = scf.for %j = %c0 to %n step %c1 iter_args(%s = %neutral) -> ({type_}) {{
      %v = memref.load %x[%i, %j] : {matrix}
      %t = arith.{operation} %s, %v : {type_}
      memref.store %t, %y[%i, %j] : {matrix}
      scf.yield %t : {type_}
    }}
  }}
  return
}}
"""


# In place: the sums of squares, divided by that of the whole row.
SHARES = """
func.func @shares(%x: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    %all = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.mulf %v, %v : f32
      %t = arith.addf %w, %s : f32
      memref.store %t, %x[%i, %j] : memref<?x?xf32>
      scf.yield %t : f32
    }
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %w = arith.divf %v, %all : f32
      memref.store %w, %x[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
"""
# An iteration reads what the one before it stored.
SHIFTED = (
    _rows("f32", "?")
    .replace("%x[%i, %j]", "%y[%i, %k]")
    .replace("      %v =", "      %k = arith.subi %j, %c1 : index\n      %v =")
    .replace("%j = %c0", "%j = %c1")
)
TEXT = "".join(_rows(type_, columns) for type_ in OPERATIONS for columns in ("?", "1000")) + SHARES


def _launch_together(loop: Any, name: str, launch_on_gpu: Callable[[], None], points: Any) -> None:
    """In the place of what launches this on GPUs alone."""
    del loop, name, points
    launch_on_gpu()


@pytest.fixture(scope="module", params=["together", "alone"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "together":
            patch.setattr(loops, "_launch_by_device", _launch_together)
        return build_library(TEXT, folder, "--no-cache")


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


def _values(type_: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = OPERATIONS[type_][2]
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return RANDOM.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    # Sums of 16 bits stay small, and products near 1.
    if type_ == "f64":
        return RANDOM.uniform(0.99, 1.01, shape)
    return (RANDOM.integers(-4, 5, shape) / 8).astype(dtype)


@pytest.mark.parametrize("type_", OPERATIONS)
def test_any_length(type_: str, library: Library) -> None:
    *_, dtype, scan = OPERATIONS[type_]
    for columns in LENGTHS:
        x = _values(type_, (5, columns))
        y = np.full_like(x, 77)
        library.call(f"any_{type_}", x, y)
        expected = scan(x.astype(np.float64 if type_[0] == "f" else dtype), axis=1)
        np.testing.assert_allclose(y, expected.astype(dtype), rtol=1e-12)


@pytest.mark.parametrize("type_", OPERATIONS)
def test_known_length(type_: str, library: Library) -> None:
    *_, dtype, scan = OPERATIONS[type_]
    x = _values(type_, (9, 1000))
    y = np.full_like(x, 77)
    library.call(f"known_{type_}", x, y)
    expected = scan(x.astype(np.float64 if type_[0] == "f" else dtype), axis=1)
    np.testing.assert_allclose(y, expected.astype(dtype), rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 300, 2049])
def test_in_place_and_its_total(columns: int, library: Library) -> None:
    x = RANDOM.uniform(1, 2, (4, columns)).astype(np.float32)
    squares = np.cumsum(x.astype(np.float64) ** 2, axis=1)
    library.call("shares", x)
    np.testing.assert_allclose(x, squares / squares[:, -1:], rtol=1e-5)


def test_no_rows(library: Library) -> None:
    empty = np.empty((0, 5), np.float32)
    library.call("any_f32", empty, empty.copy())


def test_each_is_explained(aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]) -> None:
    found = aotc("build", mlir_file(_rows("f32", "1000")), "--explain", "--emit", "mlir", "-o", "-")
    assert "whose threads scan it together" in found.succeeded().stderr


def test_a_row_that_reads_what_it_wrote(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    """Its iterations depend on each other in memory, too: they stay a loop."""
    found = aotc("build", mlir_file(SHIFTED), "--explain", "--emit", "mlir", "-o", "-")
    assert "scan it together" not in found.succeeded().stderr


@pytest.mark.parametrize("option", [[], ["--no-cpu-kernels"]])
def test_what_the_cpu_runs(
    option: list[str], aotc: Callable[..., Outcome], mlir_file: Callable[..., Path]
) -> None:
    found = aotc("build", mlir_file(_rows("f32", "?")), *option, "--emit", "mlir", "-o", "-")
    kernels = found.succeeded().stdout.count("gpu.launch_func")
    assert kernels == (1 if option else 2)
