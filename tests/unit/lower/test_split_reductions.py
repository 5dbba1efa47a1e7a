"""Reductions of few rows or columns whose length is not known: GPUs reduce long ones in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_for_gpus, build_library

from aotc import build

LAST = """
func.func @f(%x: memref<?x{inner}xf32>, %y: memref<{rows}xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<{rows}xf32>)
  linalg.reduce ins(%x : memref<?x{inner}xf32>) outs(%y : memref<{rows}xf32>) dimensions = [{along}]
    (%a: f32, %b: f32) {{
      %sum = arith.addf %a, %b : f32
      linalg.yield %sum : f32
    }}
  return
}}
"""
SOFTMAX = """
func.func @f(%x: tensor<?x{inner}xf32>) -> tensor<?x{inner}xf32>
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0 : index
  %size = tensor.dim %x, %zero : tensor<?x{inner}xf32>
  %out = tensor.empty(%size) : tensor<?x{inner}xf32>
  %y = linalg.softmax dimension(0) ins(%x : tensor<?x{inner}xf32>)
    outs(%out : tensor<?x{inner}xf32>) -> tensor<?x{inner}xf32>
  return %y : tensor<?x{inner}xf32>
}}
"""


@pytest.mark.parametrize(
    ("inner", "along", "parts", "counts"),
    [
        ("64", (0,), 2048, (0, 1, 255, 256, 5000)),  # partial results are rows
        ("3000", (0,), 90, (3, 400)),
        ("40x2000", (0, 1), 135, (2, 7)),  # one loop along 40 n elements
        ("8x300", (0, 2), 33, (2, 55, 100)),  # rows of two dimensions
    ],
)
def test_sums(
    inner: str, along: tuple[int, ...], parts: int, counts: tuple[int, ...], tmp_path: Path
) -> None:
    shape = [int(size) for size in inner.split("x")]
    rows = [size for at, size in enumerate(shape, 1) if at not in along]
    names = {"inner": inner, "rows": rows[0], "along": ", ".join(map(str, along))}
    module, library = build_for_gpus(LAST.format(**names), tmp_path)
    assert f"memref<{parts}x{rows[0]}xf32" in module or f"memref<{rows[0]}x{parts}xf32" in module
    rng = np.random.default_rng(0)
    for count in counts:
        x = rng.standard_normal((count, *shape)).astype(np.float32)
        y = np.full(rows, np.nan, np.float32)
        library.call("f", x, y)
        np.testing.assert_allclose(y, x.sum(along, np.float64), rtol=1e-4, atol=2e-3)


def test_the_cpu_device_keeps_its_kernel(tmp_path: Path) -> None:
    """A thread for each column, of which neighbours are vectors."""
    text = LAST.format(inner="64", rows="64", along=0)
    module = build(text, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    launches = [line for line in module.splitlines() if "gpu.launch_func" in line]
    (on_cpu,) = [line for line in launches if "_cpu::" in line]
    assert "threads in (%c256" in on_cpu


def test_unknown_numbers_of_columns(tmp_path: Path) -> None:
    text = LAST.format(inner="?", rows="?", along=0)
    module, library = build_for_gpus(text, tmp_path)
    assert "memref<?x?xf32" in module
    rng = np.random.default_rng(0)
    for count, columns in ((3, 5), (0, 7), (300, 0), (256, 1), (5000, 64), (300, 3000)):
        x = rng.standard_normal((count, columns)).astype(np.float32)
        y = np.full(columns, np.nan, np.float32)
        library.call("f", x, y)
        np.testing.assert_allclose(y, x.sum(0, np.float64), rtol=1e-4, atol=2e-3)


def test_loops_between_the_reductions(tmp_path: Path) -> None:
    module, library = build_for_gpus(SOFTMAX.format(inner=100), tmp_path)
    assert module.count("memref<100x2048xf32") >= 2
    for count in (1, 255, 3000):
        x = np.random.default_rng(0).standard_normal((count, 100)).astype(np.float32)
        powers = np.exp(x - x.max(0))
        y = library.call("f", x)
        np.testing.assert_allclose(y, powers / powers.sum(0), rtol=2e-5)


@pytest.mark.parametrize(("rows", "counts"), [("?", (1, 255, 4000)), ("8192", (8192,))])
def test_argmax(rows: str, counts: tuple[int, ...], tmp_path: Path) -> None:
    text = f"""
    func.func @f(%x: tensor<{rows}x64xf32>) -> tensor<64xi32>
        attributes {{llvm.emit_c_interface}} {{
      %y = tosa.argmax %x {{axis = 0 : i32}} : (tensor<{rows}x64xf32>) -> tensor<64xi32>
      return %y : tensor<64xi32>
    }}
    """
    module, library = build_for_gpus(text, tmp_path)
    assert module.count("gpu.launch_func") >= 2
    for count in counts:
        # Most are equal to others.
        x = np.random.default_rng(0).integers(-9, 9, (count, 64)).astype(np.float32)
        y = np.full(64, -1, np.int32)
        library.call("f", x, y)
        assert np.array_equal(y, x.argmax(0))


@pytest.mark.parametrize("along", [0, 1])
def test_argmax_of_unknown_sizes(along: int, tmp_path: Path) -> None:
    """A search along columns becomes two reductions on GPUs, and stays one loop on the CPU."""
    text = f"""
    func.func @f(%x: tensor<?x?xf32>) -> tensor<?xi32> attributes {{llvm.emit_c_interface}} {{
      %y = tosa.argmax %x {{axis = {along} : i32}} : (tensor<?x?xf32>) -> tensor<?xi32>
      return %y : tensor<?xi32>
    }}
    """
    found, on_cpu = _libraries(text, tmp_path)
    for sizes in ((1, 1), (300, 5), (7, 300), (3000, 2), (40, 5000)):
        x = np.random.default_rng(0).integers(-9, 9, sizes).astype(np.float32)
        for library in (found, on_cpu):
            np.testing.assert_array_equal(library.call("f", x), x.argmax(along))


@pytest.mark.parametrize("along", [(0, 2), (1, 2), (0, 1), (1,), (2,)])
def test_sums_of_unknown_sizes(along: tuple[int, ...], tmp_path: Path) -> None:
    """Few long rows and columns are split along the first dimensions with elements to divide."""
    rows = "x".join("?" * (3 - len(along)))
    text = LAST.format(inner="?x?", rows=rows, along=", ".join(map(str, along)))
    found, on_cpu = _libraries(text, tmp_path)
    random = np.random.default_rng(0)
    for sizes in (
        (1, 1, 1),
        (3, 700, 1),
        (1, 3, 70000),
        (70000, 3, 1),
        (150, 2, 150),
        (2, 40000, 3),
    ):
        x = random.standard_normal(sizes).astype(np.float32)
        exact = x.sum(along, np.float64)
        for library in (found, on_cpu):
            y = np.full(exact.shape, np.nan, np.float32)
            library.call("f", x, y)
            np.testing.assert_allclose(y, exact, rtol=1e-4, atol=2e-2)


def _libraries(text: str, folder: Path) -> tuple[Library, Library]:
    """Libraries in which the CPU runs the kernels for GPUs, and its own."""
    _, found = build_for_gpus(text, folder)
    (folder / "cpu").mkdir()
    return found, build_library(text, folder / "cpu", "-O1")


def test_reductions_of_different_dimensions(tmp_path: Path) -> None:
    """The second loop along the row goes through contiguous elements, and is merged; the first one
    does not. Each has parts of its own."""
    text = """
    func.func @f(%x: memref<?x?x?xf32>, %y: memref<?x?x?xf32>, %r: memref<?xf32>)
        attributes {llvm.emit_c_interface} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant 0.0 : f32
      %rows = memref.dim %x, %c0 : memref<?x?x?xf32>
      %m = memref.dim %x, %c1 : memref<?x?x?xf32>
      %n = memref.dim %x, %c2 : memref<?x?x?xf32>
      scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
        %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> (f32) {
          %of_row = scf.for %k = %c0 to %n step %c1 iter_args(%t = %s) -> (f32) {
            %v = memref.load %y[%j, %i, %k] : memref<?x?x?xf32>
            %next = arith.addf %t, %v : f32
            scf.yield %next : f32
          }
          scf.yield %of_row : f32
        }
        %product = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> (f32) {
          %of_row = scf.for %k = %c0 to %n step %c1 iter_args(%t = %s) -> (f32) {
            %v = memref.load %x[%i, %j, %k] : memref<?x?x?xf32>
            %w = arith.mulf %v, %sum : f32
            %next = arith.addf %t, %w : f32
            scf.yield %next : f32
          }
          scf.yield %of_row : f32
        }
        memref.store %product, %r[%i] : memref<?xf32>
      }
      return
    }
    """
    found, on_cpu = _libraries(text, tmp_path)
    random = np.random.default_rng(0)
    for rows, m, n in ((2, 3, 5), (3, 200, 200), (1, 1, 40000)):
        x = random.random((rows, m, n)).astype(np.float32)
        y = random.random((m, rows, n)).astype(np.float32)
        exact = y.sum((0, 2), np.float64) * x.sum((1, 2), np.float64)
        for library in (found, on_cpu):
            r = np.full(rows, np.nan, np.float32)
            library.call("f", x, y, r)
            np.testing.assert_allclose(r, exact, rtol=1e-4)
