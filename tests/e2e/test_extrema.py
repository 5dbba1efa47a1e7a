"""Where the largest or the least element of a row is, on the CPU device: with NaN, with equal
elements, from a carried start, and without elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library

RANDOM = np.random.default_rng(11)


def _rows(name: str, type_: str, condition: str, start: str) -> str:
    """For each row the extreme and its place, from `start` at place -1."""
    return f"""
func.func @{name}(%x: memref<?x?x{type_}>, %v: memref<?x{type_}>, %i: memref<?xi64>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nowhere = arith.constant -1 : i64
  %start = arith.constant {start} : {type_}
  %m = memref.dim %x, %c0 : memref<?x?x{type_}>
  %n = memref.dim %x, %c1 : memref<?x?x{type_}>
  scf.parallel (%r) = (%c0) to (%m) step (%c1) {{
    %best:2 = scf.for %j = %c0 to %n step %c1 iter_args(%old = %start, %at = %nowhere)
        -> ({type_}, i64) {{
      %new = memref.load %x[%r, %j] : memref<?x?x{type_}>
      %here = arith.index_cast %j : index to i64
      {condition}
      %value = arith.select %c, %new, %old : {type_}
      %place = arith.select %c, %here, %at : i64
      scf.yield %value, %place : {type_}, i64
    }}
    memref.store %best#0, %v[%r] : memref<?x{type_}>
    memref.store %best#1, %i[%r] : memref<?xi64>
  }}
  return
}}
"""


FIRST, LAST = "%c = arith.cmpf ogt, %new, %old : f32", "%c = arith.cmpf ole, %new, %old : f32"
NAN = """%larger = arith.cmpf ugt, %new, %old : f32
      %is_number = arith.cmpf ord, %old, %old : f32
      %c = arith.andi %is_number, %larger : i1"""
FORMS = {
    "first": ("f32", FIRST, "-1.5"),
    "last": ("f32", LAST, "0.5"),
    "nan_first": ("f32", NAN, "0xFF800000"),
    "integer": ("i32", "%c = arith.cmpi sgt, %old, %new : i32", "3"),
    "unsigned": ("i8", "%c = arith.cmpi uge, %new, %old : i8", "0"),
}
# Of a vector, and where its sequence is not said; of columns, two results at once.
OTHERS = """
func.func @total(%x: memref<?xf32>) -> (f32, index) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : index
  %start = arith.constant 0xFF800000 : f32
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %best:2 = scf.for %j = %zero to %n step %c1 iter_args(%old = %start, %at = %zero)
      -> (f32, index) {
    %new = memref.load %x[%j] : memref<?xf32>
    %c = arith.cmpf olt, %old, %new : f32
    %value = arith.select %c, %new, %old : f32
    %place = arith.select %c, %j, %at : index
    scf.yield %value, %place : f32, index
  }
  return %best#0, %best#1 : f32, index
}
func.func @columns(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xi32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %none = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i32
  %a = tensor.empty(%n) : tensor<?xf32>
  %b = tensor.empty(%n) : tensor<?xi32>
  %values = linalg.fill ins(%none : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  %places = linalg.fill ins(%first : i32) outs(%b : tensor<?xi32>) -> tensor<?xi32>
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                       affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%values, %places : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%new: f32, %old: f32, %at: i32):
    %i = linalg.index 0 : index
    %here = arith.index_cast %i : index to i32
    %c = arith.cmpf ogt, %new, %old : f32
    %value = arith.select %c, %new, %old : f32
    %place = arith.select %c, %here, %at : i32
    linalg.yield %value, %place : f32, i32
  } -> (tensor<?xf32>, tensor<?xi32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xi32>
}
"""


# Few long rows, and all elements, of known counts: in parts. What is taken is loaded.
LONG = """
func.func @long(%x: memref<3x300001xf32>, %names: memref<300001xi32>, %v: memref<3xf32>,
                %i: memref<3xi32>) attributes {llvm.emit_c_interface} {
  %start = arith.constant -5.0 : f32
  %nowhere = arith.constant -1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant 3 : index
  %n = arith.constant 300001 : index
  scf.parallel (%r) = (%c0) to (%m) step (%c1) {
    %best:2 = scf.for %j = %c0 to %n step %c1 iter_args(%old = %start, %at = %nowhere)
        -> (f32, i32) {
      %new = memref.load %x[%r, %j] : memref<3x300001xf32>
      %name = memref.load %names[%j] : memref<300001xi32>
      %c = arith.cmpf ogt, %new, %old : f32
      %value = arith.select %c, %new, %old : f32
      %place = arith.select %c, %name, %at : i32
      scf.yield %value, %place : f32, i32
    }
    memref.store %best#0, %v[%r] : memref<3xf32>
    memref.store %best#1, %i[%r] : memref<3xi32>
  }
  return
}
func.func @everything(%x: memref<1000003xi32>, %i: memref<1xindex>)
    attributes {llvm.emit_c_interface} {
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000003 : index
  %best:2 = scf.for %j = %c0 to %n step %c1 iter_args(%old = %none, %at = %c0) -> (i32, index) {
    %new = memref.load %x[%j] : memref<1000003xi32>
    %c = arith.cmpi sgt, %new, %old : i32
    %value = arith.select %c, %new, %old : i32
    %place = arith.select %c, %j, %at : index
    scf.yield %value, %place : i32, index
  }
  memref.store %best#1, %i[%c0] : memref<1xindex>
  return
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = "".join(_rows(name, *form) for name, form in FORMS.items()) + OTHERS + LONG
    return build_library(text, tmp_path_factory.mktemp("extrema"))


def _taken(name: str, new: Any, old: Any) -> bool:
    """What the loop of a name says."""
    if name == "nan_first":
        return bool((new > old or np.isnan(new)) and not np.isnan(old))
    relation = {"first": np.greater, "last": np.less_equal, "integer": np.less}
    return bool(relation.get(name, np.greater_equal)(new, old))


def _elements(name: str, rows: int, columns: int) -> np.ndarray:
    type_ = FORMS[name][0]
    if type_ != "f32":
        element = np.int32 if type_ == "i32" else np.uint8
        return RANDOM.integers(0, 9, (rows, columns)).astype(element)
    # Many that are equal, none that is NaN in the first row, all in the last one.
    x = RANDOM.integers(-3, 4, (rows, columns)).astype(np.float32)
    x[1:][RANDOM.random((rows - 1, columns)) < 0.1] = np.nan
    x[-1] = np.nan
    return x


@pytest.mark.parametrize("columns", [0, 1, 5, 33, 1000])
@pytest.mark.parametrize("name", FORMS)
def test_rows(library: Library, name: str, columns: int) -> None:
    x = _elements(name, 7, columns)
    values, places = np.zeros(7, x.dtype), np.zeros(7, np.int64)
    library.call(name, x, values, places)
    start = np.float32(float(FORMS[name][2]) if name != "nan_first" else -np.inf)
    for row, value, place in zip(x, values, places, strict=True):
        expected, at = start.astype(x.dtype), -1
        for j, new in enumerate(row):
            if _taken(name, new, expected):
                expected, at = new, j
        np.testing.assert_equal((value, place), (expected, at))


@pytest.mark.parametrize("count", [0, 1, 1000, 100_000])
def test_all_of_a_vector(library: Library, count: int) -> None:
    x = RANDOM.integers(-(10**6), 10**6, count).astype(np.float32)
    x[count // 3 :: 7] = np.nan
    value, place = library.call("total", x)
    known = np.nan_to_num(x, nan=-np.inf)
    expected = (known.max(), known.argmax()) if count and known.max() > -np.inf else (-np.inf, 0)
    assert (value, place) == expected


def test_columns(library: Library) -> None:
    x = RANDOM.integers(-9, 9, (40, 70)).astype(np.float32)
    values, places = library.call("columns", x)
    np.testing.assert_array_equal(values, x.max(0))
    np.testing.assert_array_equal(places, x.argmax(0))


def test_few_long_rows(library: Library) -> None:
    x = RANDOM.integers(-9, 9, (3, 300_001)).astype(np.float32)
    x[1] = np.nan
    x[1, 290_000] = -4
    x[2] = -5
    names = RANDOM.permutation(x.shape[1]).astype(np.int32)
    values, taken = np.zeros(3, np.float32), np.zeros(3, np.int32)
    library.call("long", x, names, values, taken)
    np.testing.assert_array_equal(values, [8, -4, -5])
    np.testing.assert_array_equal(taken, [names[x[0].argmax()], names[290_000], -1])


@pytest.mark.parametrize("value", [-1, 5])
def test_everything(library: Library, value: int) -> None:
    x = np.full(1_000_003, -2, np.int32)
    x[[700_000, 900_000]] = value
    place = np.full(1, -1, np.int64)
    library.call("everything", x, place)
    assert place[0] == (700_000 if value > 0 else 0)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_of_sixteen_bits(element: str, tmp_path: Path) -> None:
    """Maxima and minima of rows that loops carry: with infinities, zeros of both signs and NaN of
    both signs, which only two of the operations ignore."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.float16 if element == "f16" else ml_dtypes.bfloat16
    starts = {"maximumf": -np.inf, "minimumf": np.inf, "maxnumf": -np.inf, "minnumf": np.inf}
    bits = {"f16": ("0xFC00", "0x7C00"), "bf16": ("0xFF80", "0x7F80")}[element]
    text = "".join(
        f"""
func.func @{name}(%x: memref<?x?x{element}>, %v: memref<?x{element}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant {bits[start > 0]} : {element}
  %m = memref.dim %x, %c0 : memref<?x?x{element}>
  %n = memref.dim %x, %c1 : memref<?x?x{element}>
  scf.parallel (%r) = (%c0) to (%m) step (%c1) {{
    %best = scf.for %j = %c0 to %n step %c1 iter_args(%old = %start) -> ({element}) {{
      %new = memref.load %x[%r, %j] : memref<?x?x{element}>
      %next = arith.{name} %old, %new : {element}
      scf.yield %next : {element}
    }}
    memref.store %best, %v[%r] : memref<?x{element}>
  }}
  return
}}"""
        for name, start in starts.items()
    )
    library = build_library(text, tmp_path)
    x = (RANDOM.standard_normal((60, 7)) * 100).astype(kind)
    x[:20] = -np.abs(x[:20])
    x[20:30] = np.abs(x[20:30])
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, -0.0], kind)
    for row in range(0, 60, 2):
        places = RANDOM.permutation(7)[:3]
        x[row, places] = RANDOM.permutation(special)[:3]
    x[1], x[3] = special[[4, 5] * 3 + [5]], special[[0, 1] * 3 + [0]]
    references = {
        "maximumf": np.maximum.reduce,
        "minimumf": np.minimum.reduce,
        "maxnumf": np.fmax.reduce,
        "minnumf": np.fmin.reduce,
    }
    for name, start in starts.items():
        wide = np.concatenate([x.astype(np.float32), np.full((60, 1), start, np.float32)], 1)
        expected = references[name](wide, axis=1)
        found = np.zeros(60, kind)
        library.call(name, x, found)
        np.testing.assert_array_equal(found.astype(np.float32), expected)
