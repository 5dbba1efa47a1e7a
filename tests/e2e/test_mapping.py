"""What loops are mapped to computes what NumPy does, in the forms that people bring, for shapes
that divide nothing, on the CPU device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.command import build_here
from helpers.native import Library, build_library

SIZES = (0, 1, 31, 33, 1000, 1025)
SHAPES = ((1, 1), (3, 31), (33, 33), (31, 1000), (8, 1025), (1, 5000), (130, 16))
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


@pytest.fixture(scope="module")
def elements(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(ELEMENTS + TOTALS, tmp_path_factory.mktemp("elements"), "-O1")


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = DYNAMIC_ROWS + DYNAMIC_TRANSPOSES + BATCH_TRANSPOSE
    for rows, columns in SHAPES:
        text += _static_matrices(rows, columns)
    for rows, columns in PHASES:
        text += _alternating(rows, columns)
    return build_library(text, tmp_path_factory.mktemp("matrices"), "-O1")


def _random(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


# --- Elementwise -------------------------------------------------------------------------

ELEMENTS = """
#id = affine_map<(i) -> (i)>
func.func @axpy_memrefs(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : memref<?xf32>, memref<?xf32>) outs(%z : memref<?xf32>) {
  ^bb0(%xi: f32, %yi: f32, %out: f32):
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    linalg.yield %s : f32
  }
  return
}
func.func @axpy_affine(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    %xi = affine.load %x[%i] : memref<?xf32>
    %yi = affine.load %y[%i] : memref<?xf32>
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    affine.store %s, %z[%i] : memref<?xf32>
  }
  return
}
func.func @axpy_blocks(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %xi = memref.load %x[%i] : memref<?xf32>
    %yi = memref.load %y[%i] : memref<?xf32>
    %ax = arith.mulf %a, %xi : f32
    %s = arith.addf %ax, %yi : f32
    memref.store %s, %z[%i] : memref<?xf32>
  } {aotc.block = array<i32: 32, 4>}
  return
}
"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("entry", ["axpy_memrefs", "axpy_affine", "axpy_blocks"])
def test_elements(entry: str, size: int, elements: Library) -> None:
    x, y, z = _random(size), _random(size), np.full(size, np.nan, np.float32)
    elements.call(entry, 1.5, x, y, z)
    np.testing.assert_allclose(z, 1.5 * x.astype(np.float64) + y, rtol=1e-5, atol=1e-6)


# --- Everything to one value -------------------------------------------------------------


def _total(name: str, dtype: str, operation: str, init: str) -> str:
    """One reduction as an affine loop, as an scf.parallel, and into memory."""
    return f"""
func.func @{name}_affine(%x: memref<?x{dtype}>) -> {dtype} attributes {{llvm.emit_c_interface}} {{
  %init = arith.constant {init} : {dtype}
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x{dtype}>
  %r = affine.for %i = 0 to %n iter_args(%s = %init) -> ({dtype}) {{
    %v = affine.load %x[%i] : memref<?x{dtype}>
    %next = arith.{operation} %s, %v : {dtype}
    affine.yield %next : {dtype}
  }}
  return %r : {dtype}
}}
func.func @{name}_parallel(%x: memref<?x{dtype}>) -> {dtype} attributes {{llvm.emit_c_interface}} {{
  %init = arith.constant {init} : {dtype}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x{dtype}>
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%init) -> {dtype} {{
    %v = memref.load %x[%i] : memref<?x{dtype}>
    scf.reduce(%v : {dtype}) {{
    ^bb0(%left: {dtype}, %right: {dtype}):
      %s = arith.{operation} %left, %right : {dtype}
      scf.reduce.return %s : {dtype}
    }}
  }}
  return %r : {dtype}
}}
func.func @{name}_memory(%x: memref<?x{dtype}>, %r: memref<{dtype}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x{dtype}>
  affine.for %i = 0 to %n {{
    %v = affine.load %x[%i] : memref<?x{dtype}>
    %s = affine.load %r[] : memref<{dtype}>
    %next = arith.{operation} %s, %v : {dtype}
    affine.store %next, %r[] : memref<{dtype}>
  }}
  return
}}
"""


# Name → (dtype, operation, initial value, the same in NumPy).
REDUCTIONS = {
    "sum_f32": ("f32", "addf", "1.5", lambda x: 1.5 + x.astype(np.float64).sum()),
    "sum_f64": ("f64", "addf", "1.5", lambda x: 1.5 + x.sum()),
    "max_f32": ("f32", "maximumf", "0xFF800000", lambda x: x.max(initial=-np.inf)),
    "min_f32": ("f32", "minnumf", "0x7F800000", lambda x: x.min(initial=np.inf)),
    "sum_i32": ("i32", "addi", "7", lambda x: 7 + x.sum(dtype=np.int32)),
    "product_i64": ("i64", "muli", "3", lambda x: 3 * x.prod()),
    "min_i32": ("i32", "minsi", "100", lambda x: x.min(initial=100)),
    "max_i32": ("i32", "maxui", "1", lambda x: x.view(np.uint32).max(initial=1).view(np.int32)),
    "and_i32": ("i32", "andi", "-1", lambda x: np.bitwise_and.reduce(x, initial=-1)),
    "xor_i32": ("i32", "xori", "5", lambda x: np.bitwise_xor.reduce(x, initial=5)),
}
TOTALS = "".join(_total(name, *parts[:3]) for name, parts in REDUCTIONS.items())
_DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}


@pytest.mark.parametrize("size", [*SIZES, 100_003])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_totals(name: str, size: int, elements: Library) -> None:
    dtype, _, init, expect = REDUCTIONS[name]
    numpy_type = _DTYPES[dtype]
    if dtype.startswith("f"):
        x = RANDOM.standard_normal(size).astype(numpy_type)
        start = {"0xFF800000": -np.inf, "0x7F800000": np.inf}.get(init) or float(init)
    else:
        x = RANDOM.integers(-1000, 1000, size).astype(numpy_type)
        start = int(init)
    with np.errstate(over="ignore"):
        expected = expect(x)
    tolerance = {"rtol": 1e-5, "atol": 1e-3} if dtype == "f32" else {"rtol": 1e-12, "atol": 1e-9}
    np.testing.assert_allclose(elements.call(f"{name}_affine", x), expected, **tolerance)
    np.testing.assert_allclose(elements.call(f"{name}_parallel", x), expected, **tolerance)
    result = np.array(start, numpy_type)
    elements.call(f"{name}_memory", x, result)
    np.testing.assert_allclose(result, expected, **tolerance)


def test_a_sum_reproduces(elements: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with another number of threads: who adds what is decided by the shape alone."""
    x = _random(300_001)
    first = elements.call("sum_f32_parallel", x)
    assert [elements.call("sum_f32_parallel", x) for _ in range(3)] == [first] * 3


# --- Rows --------------------------------------------------------------------------------


def _softmax_loops(name: str, memref: str, rows: str, columns: str) -> str:
    """Rows in an scf.parallel, loops along them in the three forms."""
    return f"""
func.func @{name}(%x: {memref}, %y: {memref}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  {rows}
  {columns}
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {{
    %max = scf.for %j = %c0 to %columns step %c1 iter_args(%m = %least) -> (f32) {{
      %v = memref.load %x[%i, %j] : {memref}
      %next = arith.maximumf %m, %v : f32
      scf.yield %next : f32
    }}
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
      %v = memref.load %x[%i, %j] : {memref}
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      memref.store %e, %y[%i, %j] : {memref}
    }}
    %sum = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {{
      %e = memref.load %y[%i, %j] : {memref}
      scf.reduce(%e : f32) {{
      ^bb0(%l: f32, %r: f32):
        %s = arith.addf %l, %r : f32
        scf.reduce.return %s : f32
      }}
    }}
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
      %e = memref.load %y[%i, %j] : {memref}
      %q = arith.divf %e, %sum : f32
      memref.store %q, %y[%i, %j] : {memref}
    }}
  }}
  return
}}
"""


def _reversed_rows(name: str, memref: str, rows: str, columns: str) -> str:
    """y = x + its row's sum; then z = y, each row from its end: another thread's elements."""
    return f"""
func.func @{name}(%x: {memref}, %y: {memref}, %z: {memref}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  {rows}
  {columns}
  %end = arith.subi %columns, %c1 : index
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {{
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %zero) -> (f32) {{
      %v = memref.load %x[%i, %j] : {memref}
      %next = arith.addf %s, %v : f32
      scf.yield %next : f32
    }}
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
      %v = memref.load %x[%i, %j] : {memref}
      %w = arith.addf %v, %sum : f32
      memref.store %w, %y[%i, %j] : {memref}
    }}
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {{
      %k = arith.subi %end, %j : index
      %w = memref.load %y[%i, %k] : {memref}
      memref.store %w, %z[%i, %j] : {memref}
    }}
  }}
  return
}}
"""


_DYNAMIC = (
    "memref<?x?xf32>",
    "%rows = memref.dim %x, %c0 : memref<?x?xf32>",
    "%columns = memref.dim %x, %c1 : memref<?x?xf32>",
)
DYNAMIC_ROWS = _softmax_loops("softmax_dynamic", *_DYNAMIC) + _reversed_rows(
    "reversed_dynamic", *_DYNAMIC
)


def _static_matrices(rows: int, columns: int) -> str:
    memref, tensor = f"memref<{rows}x{columns}xf32>", f"tensor<{rows}x{columns}xf32>"
    by_rows, turned = f"tensor<{rows}xf32>", f"tensor<{columns}x{rows}xf32>"
    shape = f"{rows}_{columns}"
    bounds = (
        f"%rows = arith.constant {rows} : index",
        f"%columns = arith.constant {columns} : index",
    )
    point, row = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"
    return (
        _softmax_loops(f"softmax_loops_{shape}", memref, *bounds)
        + _reversed_rows(f"reversed_{shape}", memref, *bounds)
        + f"""
func.func @softmax_tensors_{shape}(%x: {tensor}) -> {tensor} attributes {{llvm.emit_c_interface}} {{
  %empty = tensor.empty() : {tensor}
  %r = linalg.softmax dimension(1) ins(%x : {tensor}) outs(%empty : {tensor}) -> {tensor}
  return %r : {tensor}
}}
func.func @layer_norm_{shape}(%x: {tensor}) -> ({tensor}, {by_rows})
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %n = arith.constant {columns}.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %rows = tensor.empty() : {by_rows}
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : {by_rows}) -> {by_rows}
  %sum = linalg.reduce {{arith.addf}} ins(%x : {tensor}) outs(%zeros : {by_rows}) dimensions = [1]
  %squares = linalg.generic {{indexing_maps = [{point}, {row}, {row}],
                              iterator_types = ["parallel", "reduction"]}}
      ins(%x, %sum : {tensor}, {by_rows}) outs(%zeros : {by_rows}) {{
  ^bb0(%v: f32, %s: f32, %out: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %dd = arith.mulf %d, %d : f32
    %next = arith.addf %out, %dd : f32
    linalg.yield %next : f32
  }} -> {by_rows}
  %empty = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [{point}, {row}, {row}, {point}],
                        iterator_types = ["parallel", "parallel"]}}
      ins(%x, %sum, %squares : {tensor}, {by_rows}, {by_rows}) outs(%empty : {tensor}) {{
  ^bb0(%v: f32, %s: f32, %q: f32, %out: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %variance = arith.divf %q, %n : f32
    %positive = arith.addf %variance, %epsilon : f32
    %factor = math.rsqrt %positive : f32
    %normal = arith.mulf %d, %factor : f32
    linalg.yield %normal : f32
  }} -> {tensor}
  return %r, %sum : {tensor}, {by_rows}
}}
func.func @sums_{shape}(%x: {tensor}) -> ({by_rows}, tensor<f32>)
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : {by_rows}
  %zeros = linalg.fill ins(%zero : f32) outs(%rows : {by_rows}) -> {by_rows}
  %sums = linalg.reduce {{arith.addf}} ins(%x : {tensor}) outs(%zeros : {by_rows}) dimensions = [1]
  %one = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%one : tensor<f32>) -> tensor<f32>
  %all = linalg.reduce {{arith.addf}} ins(%x : {tensor}) outs(%start : tensor<f32>)
      dimensions = [0, 1]
  return %sums, %all : {by_rows}, tensor<f32>
}}
func.func @transpose_{shape}(%x: {tensor}) -> {turned} attributes {{llvm.emit_c_interface}} {{
  %empty = tensor.empty() : {turned}
  %r = linalg.transpose ins(%x : {tensor}) outs(%empty : {turned}) permutation = [1, 0]
  return %r : {turned}
}}
"""
    )


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, initial=-np.inf, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["tensors", "loops"])
def test_softmax(form: str, shape: tuple[int, int], matrices: Library) -> None:
    x, y = _random(*shape), np.full(shape, np.nan, np.float32)
    matrices.call(f"softmax_{form}_{shape[0]}_{shape[1]}", x, y)
    np.testing.assert_allclose(y, _softmax(x), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("shape", [*SHAPES, (0, 5), (5, 0), (3, 4096)])
def test_dynamic_rows(shape: tuple[int, int], matrices: Library) -> None:
    x, y, z = _random(*shape), np.full(shape, np.nan, np.float32), np.full(shape, 5, np.float32)
    matrices.call("softmax_dynamic", x, y)
    np.testing.assert_allclose(y, _softmax(x), rtol=1e-5, atol=1e-8)
    matrices.call("reversed_dynamic", x, y, z)
    expected = x.astype(np.float64) + x.sum(axis=1, dtype=np.float64, keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(z, y[:, ::-1])


@pytest.mark.parametrize("shape", SHAPES)
def test_static_rows(shape: tuple[int, int], matrices: Library) -> None:
    """Also where threads need what others stored, and where sums are results of their own."""
    name = f"{shape[0]}_{shape[1]}"
    x, y, z = _random(*shape), np.full(shape, np.nan, np.float32), np.full(shape, 5, np.float32)
    sums = x.sum(axis=1, dtype=np.float64)
    matrices.call(f"reversed_{name}", x, y, z)
    np.testing.assert_allclose(y, x + sums[:, None], rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(z, y[:, ::-1])
    by_rows, total = np.full(shape[0], np.nan, np.float32), np.array(np.nan, np.float32)
    matrices.call(f"sums_{name}", x, by_rows, total)
    np.testing.assert_allclose(by_rows, sums, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(total, sums.sum(), rtol=1e-5, atol=1e-2)
    matrices.call(f"layer_norm_{name}", x, y, by_rows)
    d = x.astype(np.float64) - sums[:, None] / shape[1]
    expected = d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_rows, sums, rtol=1e-5, atol=1e-3)


# --- Transposes --------------------------------------------------------------------------

# name: (the memref whose sizes the loops have, what they read of %x, and write of %y)
_TRANSPOSES = {
    "reading": ("%y", "%j, %i", "%i, %j"),
    "writing": ("%x", "%i, %j", "%j, %i"),
}
DYNAMIC_TRANSPOSES = "".join(
    f"""
func.func @transpose_{name}(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim {sized}, %c0 : memref<?x?xf32>
  %columns = memref.dim {sized}, %c1 : memref<?x?xf32>
  affine.for %i = 0 to %rows {{
    affine.for %j = 0 to %columns {{
      %v = affine.load %x[{read}] : memref<?x?xf32>
      affine.store %v, %y[{written}] : memref<?x?xf32>
    }}
  }}
  return
}}
"""
    for name, (sized, read, written) in _TRANSPOSES.items()
)
BATCH_TRANSPOSE = """
// y[a, c, b] = x[a, b, c] + y[a, c, b]
func.func @transpose_batches(%x: memref<?x?x?xf32>, %y: memref<?x?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %as = memref.dim %x, %c0 : memref<?x?x?xf32>
  %bs = memref.dim %x, %c1 : memref<?x?x?xf32>
  %cs = memref.dim %x, %c2 : memref<?x?x?xf32>
  scf.parallel (%a, %b, %c) = (%c0, %c0, %c0) to (%as, %bs, %cs) step (%c1, %c1, %c1) {
    %v = memref.load %x[%a, %b, %c] : memref<?x?x?xf32>
    %w = memref.load %y[%a, %c, %b] : memref<?x?x?xf32>
    %s = arith.addf %v, %w : f32
    memref.store %s, %y[%a, %c, %b] : memref<?x?x?xf32>
  }
  return
}
"""


@pytest.mark.parametrize("shape", [*SHAPES, (0, 5), (64, 96), (65, 127)])
def test_transposes(shape: tuple[int, int], matrices: Library) -> None:
    x = _random(*shape)
    forms = [f"transpose_{name}" for name in _TRANSPOSES]
    if shape in SHAPES:
        forms.append(f"transpose_{shape[0]}_{shape[1]}")
    for form in forms:
        y = np.full(shape[::-1], np.nan, np.float32)
        matrices.call(form, x, y)
        np.testing.assert_array_equal(y, x.T, err_msg=form)


@pytest.mark.parametrize("shape", [(3, 31, 33), (2, 64, 32), (5, 1, 70), (0, 3, 4)])
def test_a_transpose_of_the_last_dimensions(shape: tuple[int, int, int], matrices: Library) -> None:
    x, y = _random(*shape), _random(shape[0], shape[2], shape[1])
    expected = y + x.transpose(0, 2, 1)
    matrices.call("transpose_batches", x, y)
    np.testing.assert_array_equal(y, expected)


PHASES = ((16, 8), (5, 17), (130, 3), (7, 1))


def _alternating(rows: int, columns: int) -> str:
    """Pixels of two phases beside each other: y[i, j, p] = x[p, i, j] + 1."""
    x, y = f"memref<2x{rows}x{columns}xf32>", f"memref<{rows}x{columns}x2xf32>"
    return f"""
func.func @alternating_{rows}_{columns}(%x: {x}, %y: {y}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant {rows} : index
  %m = arith.constant {columns} : index
  %one = arith.constant 1.0 : f32
  scf.parallel (%i, %j, %p) = (%c0, %c0, %c0) to (%n, %m, %c2) step (%c1, %c1, %c1) {{
    %v = memref.load %x[%p, %i, %j] : {x}
    %s = arith.addf %v, %one : f32
    memref.store %s, %y[%i, %j, %p] : {y}
  }}
  return
}}
"""


@pytest.mark.parametrize("shape", PHASES)
def test_pixels_of_two_phases(shape: tuple[int, int], matrices: Library) -> None:
    x, y = _random(2, *shape), _random(*shape, 2)
    matrices.call(f"alternating_{shape[0]}_{shape[1]}", x, y)
    np.testing.assert_array_equal(y, x.transpose(1, 2, 0) + 1)


def test_two_phases_are_in_one_loop(tmp_path: Path) -> None:
    """The CPU's loop over the points of both has both, and may be vectorized."""
    source, out = tmp_path / "alternating.mlir", tmp_path / "cpu.mlir"
    source.write_text(_alternating(*PHASES[0]))
    build_here(source, "--emit", "cpu-mlir", "--chip", "sm_80", "-o", out)
    text = out.read_text()
    assert text.count("llvm.fadd") == 2
    assert text.count("{loop_annotation = ") == 1


# --- Rows whose columns depend on the row ------------------------------------------------

_TRIANGLES = {
    "lower": "0 to affine_map<(i) -> (i + 1)>(%i)",
    "upper": "affine_map<(i) -> (i)>(%i) to %n",
    "band": "affine_map<(i) -> (i)>(%i) to min affine_map<(i)[n] -> (i + 9, n)>(%i)[%n]",
}
TRIANGLES = "".join(
    f"""
func.func @{name}(%x: memref<?x?xf32>, %y: memref<?xf32>) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {{
    %sum = affine.for %j = {bounds} iter_args(%s = %zero) -> (f32) {{
      %v = affine.load %x[%i, %j] : memref<?x?xf32>
      %t = arith.addf %s, %v : f32
      affine.yield %t : f32
    }}
    affine.store %sum, %y[%i] : memref<?xf32>
  }}
  return
}}
"""
    for name, bounds in _TRIANGLES.items()
)


def _is_in_band(n: int) -> np.ndarray:
    return np.triu(np.ones((n, n))) - np.triu(np.ones((n, n)), 9)


@pytest.fixture(scope="module")
def triangles(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(TRIANGLES, tmp_path_factory.mktemp("triangles"), "-O1")


@pytest.mark.parametrize("size", [0, 1, 31, 33, 600])
@pytest.mark.parametrize("name", _TRIANGLES)
def test_rows_of_their_own_length(name: str, size: int, triangles: Library) -> None:
    x, y = _random(size, size), _random(size)
    triangles.call(name, x, y)
    kept = {"lower": np.tril(x), "upper": np.triu(x), "band": x * _is_in_band(size)}[name]
    np.testing.assert_allclose(y, kept.sum(axis=1, dtype=np.float64), rtol=1e-4, atol=1e-4)


def test_a_division_behind_a_guard_is_not_run_without_it(tmp_path: Path) -> None:
    """The guards of a loop over blocks become one on the CPU, unless what is between them may
    trap."""
    text = """
func.func @marked(%y: memref<?x?xi32>, %d: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %rows = memref.dim %y, %c0 : memref<?x?xi32>
  %columns = memref.dim %y, %c1 : memref<?x?xi32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
    %e = arith.subi %i, %d : index
    %a = arith.cmpi ne, %e, %c0 : index
    scf.if %a {
      %r = index.remu %j, %e
      %b = arith.cmpi eq, %r, %c0 : index
      scf.if %b {
        memref.store %one, %y[%i, %j] : memref<?x?xi32>
      }
    }
    scf.reduce
  }
  return
}"""
    library = build_library(text, tmp_path, name="guarded")
    y = np.zeros((70, 130), np.int32)
    library.call("marked", y, 0)
    i, j = np.indices(y.shape)
    np.testing.assert_array_equal(y, (i > 0) & (j % np.maximum(i, 1) == 0))
