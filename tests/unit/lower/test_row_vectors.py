"""Rows on the CPU device: one thread goes along a row, in vectors of columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.native import Library, build_library

from aotc import build

Array = np.ndarray[Any, Any]
# A part of a vector, whole ones, several at a time, and what is left of each of these.
LENGTHS = (4, 15, 16, 17, 49, 64, 100, 128, 150)
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}
KINDS: dict[str, tuple[str, Callable[..., Array], float]] = {
    "sum": ("arith.addf", np.sum, 0),
    "largest": ("arith.maximumf", np.max, -np.inf),
    "smallest": ("arith.minimumf", np.min, np.inf),
    "most": ("arith.maxnumf", np.fmax.reduce, -np.inf),
    "total": ("arith.addi", np.sum, 0),
    "greatest": ("arith.maxsi", np.max, -128),
    "bits": ("arith.xori", np.bitwise_xor.reduce, 0),
}


def reduction(name: str, type_: str, columns: str, body: str = "") -> str:
    """An entry whose result is the rows' reductions, of values to which `body` changes %v."""
    operation, _, start = KINDS[name]
    text = {-np.inf: "0xFF800000", np.inf: "0x7F800000"}.get(start, str(start))
    if type_ == "f16" and "0x" in text:
        text = "0xFC00" if start < 0 else "0x7C00"
    if type_ == "f64" and "0x" in text:
        text = "0xFFF0000000000000" if start < 0 else "0x7FF0000000000000"
    if type_.startswith("f") and "0x" not in text:
        text += ".0"
    return f"""
func.func @{name}(%x: memref<?x{columns}x{type_}>, %r: memref<?x{type_}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = arith.constant {text} : {type_}
  %rows = memref.dim %x, %c0 : memref<?x{columns}x{type_}>
  %columns = memref.dim %x, %c1 : memref<?x{columns}x{type_}>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {{
    %all = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %start) -> ({type_}) {{
      %v = memref.load %x[%i, %j] : memref<?x{columns}x{type_}>
      {body}
      %next = {operation} %s, %{"w" if body else "v"} : {type_}
      scf.yield %next : {type_}
    }}
    memref.store %all, %r[%i] : memref<?x{type_}>
  }}
  return
}}
"""


def lowered(text: str, folder: Path) -> str:
    return build(text, emit="mlir", out=folder / "x.mlir", chips="sm_90").path.read_text()


def cpu_kernels(text: str, folder: Path) -> str:
    """The kernels that the CPU alone has."""
    return lowered(text, folder).partition('attributes {aotc.runs_on = "cpu"}')[2]


def some(type_: str, shape: tuple[int, int]) -> Array:
    rng = np.random.default_rng(shape[1])
    if type_.startswith("i"):
        return rng.integers(-100, 100, shape).astype(TYPES[type_])
    return rng.standard_normal(shape).astype(TYPES[type_])


@pytest.mark.parametrize("type_", ["f16", "f32", "f64"])
@pytest.mark.parametrize("known", [True, False])
def test_floats(type_: str, known: bool, tmp_path: Path) -> None:
    check(("sum", "largest", "smallest", "most"), type_, known, tmp_path)


@pytest.mark.parametrize("type_", ["i8", "i32"])
@pytest.mark.parametrize("known", [True, False])
def test_integers(type_: str, known: bool, tmp_path: Path) -> None:
    check(("total", "greatest", "bits"), type_, known, tmp_path)


def check(names: tuple[str, ...], type_: str, known: bool, folder: Path) -> None:
    for length in LENGTHS if not known else (17, 150):
        place = folder / str(length if known else "any")
        if not (place / "program.mlir").exists():
            place.mkdir()
            columns = str(length) if known else "?"
            text = "".join(reduction(name, type_, columns) for name in names)
            assert "vector.load" in cpu_kernels(text, place)
            library = build_library(text, place, "-O1")
        for rows in (1, 9):
            x = some(type_, (rows, length))
            for name in names:
                result = np.zeros(rows, x.dtype)
                library.call(name, x, result)
                wide = x.astype(np.float64) if name == "sum" else x
                expected = KINDS[name][1](wide, axis=1)
                np.testing.assert_allclose(
                    result.astype(np.float64),
                    expected.astype(x.dtype).astype(np.float64),
                    rtol={"f16": 2e-2, "f32": 1e-5, "f64": 1e-13}.get(type_, 0),
                    atol={"f16": 2e-2, "f32": 1e-5, "f64": 1e-13}.get(type_, 0),
                )


@pytest.fixture(scope="module")
def extremes(tmp_path_factory: pytest.TempPathFactory) -> Library:
    text = reduction("largest", "f32", "?") + reduction("smallest", "f32", "?")
    return build_library(text, tmp_path_factory.mktemp("extremes"))


SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38]


@pytest.mark.parametrize("around", [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf])
def test_extremes_of_special_numbers(extremes: Library, around: float) -> None:
    """NaN of either sign is the result, and -0 is less than 0, wherever in the row they are."""
    rows = [(place, value) for place in (0, 5, 40, 69) for value in SPECIAL]
    x = np.full((len(rows), 70), around, np.float32)
    for row, (place, value) in zip(x, rows, strict=True):
        row[place] = value
    # By the sign, then by the number: numpy's own takes 0 and -0 for equal.
    for name, select in (("largest", max), ("smallest", min)):
        found = np.zeros(len(rows), np.float32)
        extremes.call(name, x, found)
        for row, result in zip(x, found, strict=True):
            if np.isnan(row).any():
                assert np.isnan(result), (name, around)
                continue
            expected = select(row, key=lambda v: (v, not np.signbit(v)))
            assert result == expected, (name, around)
            assert np.signbit(result) == np.signbit(expected), (name, around)


RUN = """\
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from helpers.native import Library
library = Library(Path(sys.argv[2]), Path(sys.argv[3]))
x, result = np.load(sys.argv[4]), np.zeros(33, np.float32)
library.call("sum", x, result)
sys.stdout.write(result.tobytes().hex())
"""


def test_a_sum_has_the_same_bits_at_each_level(tmp_path: Path) -> None:
    """Whatever the length of its vectors, and the number of its threads."""
    build_library(reduction("sum", "f32", "?"), tmp_path)
    np.save(tmp_path / "x.npy", some("f32", (33, 1000)))
    files = (tmp_path / "lib/libprogram.so", tmp_path / "program.json", tmp_path / "x.npy")
    found = set()
    for level, threads in (("1", "1"), ("3", "2"), ("4", "1"), ("4", "2")):
        settings = {"AOTC_CPU_LEVEL": level, "AOTC_CPU_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(Path(__file__).parents[2]), *map(str, files)],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        if "AOTC_CPU_LEVEL" not in done.stderr:  # else the processor has no such level
            assert done.returncode == 0, done.stderr
            found.add(done.stdout)
    assert len(found) == 1


def test_maxima_have_later_instructions(tmp_path: Path) -> None:
    """They are maxima of integers, which the oldest processors have for other types."""
    text = reduction("largest", "f32", "128")
    path = build(text, emit="host-ll", out=tmp_path / "x.ll", chips="sm_90").path
    assert "_kernel_v4(" in path.read_text()


INDEX = """
      %place = arith.index_cast %j : index to i32
      %number = arith.sitofp %place : i32 to f32
      %w = arith.mulf %v, %number : f32
"""
SHIFTED = """
      %k = arith.subi %j, %i : index
      %l = arith.addi %k, %i : index
      %u = memref.load %x[%c0, %l] : memref<?x?xf32>
      %w = arith.mulf %v, %u : f32
"""


@pytest.mark.parametrize("body", [INDEX, SHIFTED], ids=["its number", "another place"])
def test_what_is_computed_of_the_column(body: str, tmp_path: Path) -> None:
    """Its number, as a vector; and a place that is as far away in each column."""
    text = reduction("sum", "f32", "?", body)
    assert "vector.load" in cpu_kernels(text, tmp_path)
    library = build_library(text, tmp_path)
    for length in (5, 16, 77):
        x, result = some("f32", (7, length)), np.zeros(7, np.float32)
        library.call("sum", x, result)
        factor = x[0] if body == SHIFTED else np.arange(length)
        np.testing.assert_allclose(result, (x * factor).sum(1), rtol=1e-4, atol=1e-4)


GATHERED = """
      %place = arith.fptosi %v : f32 to i32
      %k = arith.index_cast %place : i32 to index
      %w = memref.load %x[%i, %k] : memref<?x?xf32>
"""
ACROSS = """
      %u = memref.load %x[%j, %i] : memref<?x64xf32>
      %w = arith.mulf %v, %u : f32
"""
DIVIDED = """
      %k = arith.divui %j, %i : index
      %place = arith.index_cast %k : index to i32
      %w = arith.sitofp %place : i32 to f32
"""


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_elements_that_a_table_chooses(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are loaded at a vector of indices; those beyond the row's end are not loaded."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    text = reduction("sum", "f32", "?", GATHERED)
    assert "vector.gather" in cpu_kernels(text, tmp_path)
    library = build_library(text, tmp_path)
    for length in (5, 16, 77):
        x = np.random.default_rng(length).integers(0, length, (7, length)).astype(np.float32)
        result = np.zeros(7, np.float32)
        library.call("sum", x, result)
        chosen = np.take_along_axis(x, x.astype(np.int64), 1)
        np.testing.assert_array_equal(result, chosen.sum(1))


CHECKED = """
      %there = arith.index_cast %j : index to i32
      %apart = arith.fptosi %v : f32 to i32
      %place = arith.addi %there, %apart : i32
      %found = arith.index_cast %place : i32 to index
      %is_in = arith.cmpi ult, %found, %columns : index
      %k = arith.select %is_in, %found, %c0 {aotc.check = "an index is out of bounds"} : index
      %w = memref.load %x[%i, %k] : memref<?x?xf32>
"""


def test_checks_of_columns_behind_the_end(tmp_path: Path) -> None:
    """What is computed of a column that is not there is not checked."""
    text = reduction("sum", "f32", "?", CHECKED)
    assert "vector.gather" in cpu_kernels(text, tmp_path)
    library = build_library(text, tmp_path)
    for length in (5, 16, 77):
        columns = np.arange(length)
        places = np.random.default_rng(length).integers(0, length, (7, length))
        x, result = (places - columns).astype(np.float32), np.zeros(7, np.float32)
        library.call("sum", x, result)
        np.testing.assert_array_equal(result, np.take_along_axis(x, places, 1).sum(1))


@pytest.mark.parametrize("body", [ACROSS, DIVIDED], ids=["across", "divided"])
def test_what_has_no_vectors(body: str, tmp_path: Path) -> None:
    """The CPU has the GPU's kernel."""
    made = lowered(reduction("sum", "f32", "64", body), tmp_path)
    assert made.count("gpu.launch_func") == 1
    assert "vector.load" not in made


def test_given_blocks_are_kept(tmp_path: Path) -> None:
    text = reduction("sum", "f32", "?")
    made = build(text, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90", block="64")
    assert made.path.read_text().count("gpu.launch_func") == 1


def test_gpus_have_no_vectors(tmp_path: Path) -> None:
    """Their kernel is the same with and without that of the CPU."""
    text = reduction("sum", "f32", "?")
    kernels = []
    for has_cpu in (True, False):
        options = {"emit": "ptx", "chips": "sm_90", "cpu_kernels": has_cpu}
        built = build(text, out=tmp_path / f"{has_cpu}/", name="program", **options)
        kernels.append(built.path.read_text())
    assert kernels[0] == kernels[1]
    assert "bar.sync" in kernels[0]


BLOCKS = """
func.func @f(%x: memref<5x3x20xf32>, %r: memref<5xf32>) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  affine.parallel (%i) = (0) to (5) {
    %s = affine.for %j = 0 to 3 iter_args(%a = %zero) -> (f32) {
      %t = affine.for %k = 0 to 20 iter_args(%b = %a) -> (f32) {
        %v = affine.load %x[%i, %j, %k] : memref<5x3x20xf32>
        %next = arith.addf %b, %v : f32
        affine.yield %next : f32
      }
      affine.yield %t : f32
    }
    affine.store %s, %r[%i] : memref<5xf32>
  }
  return
}
"""


@pytest.mark.parametrize(
    ("type_", "merged"),
    [
        ("memref<5x3x20xf32>", True),
        # Of each row of the memref, the last column is none of the loop's.
        ("memref<5x3x21xf32>", False),
    ],
    ids=["whole", "a part"],
)
def test_rows_of_two_dimensions(type_: str, merged: bool, tmp_path: Path) -> None:
    """One loop goes along both, where memory has them as one."""
    text = BLOCKS.replace("memref<5x3x20xf32>", type_)
    kernel = cpu_kernels(text, tmp_path)
    assert "vector.load" in kernel
    assert ("memref<5x60xf32>" in kernel) == merged
    shape = (5, 3, 20 if merged else 21)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    result = np.zeros(5, np.float32)
    build_library(text, tmp_path).call("f", x, result)
    np.testing.assert_allclose(result, x[..., :20].sum((1, 2)), rtol=1e-5, atol=1e-5)


SCALED = """
func.func @f(%x: memref<ROWSxCOLUMNSxf32>, %s: memref<ROWSxf32>, %y: memref<ROWSxCOLUMNSxf32>)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i, %j) = (0, 0) to (ROWS, COLUMNS) {
    %v = affine.load %x[%i, %j] : memref<ROWSxCOLUMNSxf32>
    %t = affine.load %s[%i] : memref<ROWSxf32>
    %f = math.FUNCTION %t : f32
    %w = arith.mulf %v, %f : f32
    affine.store %w, %y[%i, %j] : memref<ROWSxCOLUMNSxf32>
  }
  return
}
"""


@pytest.mark.parametrize(
    ("rows", "columns", "function", "is_whole"),
    [
        (40, 49, "absf", True),
        # Whole warps; with a function that each of them would compute again.
        (40, 64, "exp", True),
        (15, 49, "exp", False),
        (40, 5000, "exp", False),
    ],
)
def test_scaled_rows(
    rows: int, columns: int, function: str, is_whole: bool, tmp_path: Path
) -> None:
    """Rows that are not divided among blocks: a function of the row is computed once."""
    text = SCALED.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))
    text = text.replace("FUNCTION", function)
    kernel = cpu_kernels(text, tmp_path)
    assert ("vector.load" in kernel) == is_whole
    assert not is_whole or re.search(rf"math.{function} .* : f32", kernel)
    x, s = some("f32", (rows, columns)), some("f32", (rows, 1))[:, 0].copy()
    y = np.zeros_like(x)
    build_library(text, tmp_path).call("f", x, s, y)
    factor = np.abs(s) if function == "absf" else np.exp(s)
    np.testing.assert_allclose(y, x * factor[:, None], rtol=1e-6)


WIDENED = """
func.func @f(%x: memref<37x100xf32>, %y: memref<37x100xf64>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 37 : index
  %columns = arith.constant 100 : index
  %zero = arith.constant 0.0 : f64
  %t = memref.alloc() : memref<37x100xf64>
  scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %v = memref.load %x[%i, %j] : memref<37x100xf32>
      %w = OPERATION %v : f32 to f64
      memref.store %w, %t[%i, %j] : memref<37x100xf64>
    }
    %sum = scf.for %j = %c0 to %columns step %c1 iter_args(%s = %zero) -> (f64) {
      %v = memref.load %t[%i, %j] : memref<37x100xf64>
      %next = arith.addf %s, %v : f64
      scf.yield %next : f64
    }
    scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
      %v = memref.load %t[%i, %j] : memref<37x100xf64>
      %w = arith.subf %v, %sum : f64
      memref.store %w, %y[%i, %j] : memref<37x100xf64>
    }
  }
  memref.dealloc %t : memref<37x100xf64>
  return
}
"""


def test_what_is_cheap_is_computed_again(tmp_path: Path) -> None:
    """A row in another type needs no memory of its own."""
    text = WIDENED.replace("OPERATION", "arith.extf")
    assert "alloc" not in lowered(text, tmp_path)
    x, y = some("f32", (37, 100)), np.zeros((37, 100))
    build_library(text, tmp_path).call("f", x, y)
    np.testing.assert_allclose(y, x - x.astype(np.float64).sum(1, keepdims=True), rtol=1e-12)


def test_what_is_not_is_kept(tmp_path: Path) -> None:
    """An exponential is; and so is what is computed of a row that is written afterwards."""
    wide = "%e = math.exp %v : f32\n      %w = arith.extf %e : f32 to f64\n"
    text = WIDENED.replace("%w = OPERATION %v : f32 to f64\n", wide)
    assert "alloc" in lowered(text, tmp_path)
    written = "      %z = arith.truncf %w : f64 to f32\n"
    written += "      memref.store %z, %x[%i, %j] : memref<37x100xf32>\n"
    end = "      memref.store %w, %y[%i, %j]"
    text = WIDENED.replace("OPERATION", "arith.extf").replace(end, written + end)
    assert "alloc" in lowered(text, tmp_path)


BY_TABLE = """
func.func @f(%x: memref<9x64xf32>, %table: memref<20xi64>, %y: memref<20x64xf32>)
    attributes {llvm.emit_c_interface} {
  affine.parallel (%i, %j) = (0, 0) to (20, 64) {
    %place = affine.load %table[%i] : memref<20xi64>
    %row = arith.index_cast %place : i64 to index
    %v = memref.load %x[%row, %j] : memref<9x64xf32>
    %w = arith.addf %v, %v : f32
    affine.store %w, %y[%i, %j] : memref<20x64xf32>
  }
  return
}
"""


def test_rows_that_a_table_chooses(tmp_path: Path) -> None:
    """Each is read in vectors, as rows that an embedding or an interpolation chooses."""
    assert "vector.load" in cpu_kernels(BY_TABLE, tmp_path)
    x = np.random.default_rng(0).standard_normal((9, 64)).astype(np.float32)
    table, y = np.arange(20) * 7 % 9, np.zeros((20, 64), np.float32)
    build_library(BY_TABLE, tmp_path).call("f", x, table, y)
    np.testing.assert_array_equal(y, 2 * x[table])
