"""Windows on the CPU device, as those of pooling: vectors of outputs, which load each second
element, and nothing where a window is beyond the image's edge."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.guarded import at_end_of_page
from helpers.native import build_library

from aotc import build

Array = np.ndarray[Any, Any]

POOL = """
func.func @f(%x: memref<3x?x?xTYPE>, %y: memref<3x?x?xTYPE>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %stride = arith.constant STRIDE : index
  %start = arith.constant START : TYPE
  %high = memref.dim %x, %c1 : memref<3x?x?xTYPE>
  %wide = memref.dim %x, %c2 : memref<3x?x?xTYPE>
  %rows = memref.dim %y, %c1 : memref<3x?x?xTYPE>
  %columns = memref.dim %y, %c2 : memref<3x?x?xTYPE>
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c3, %rows, %columns) step (%c1, %c1, %c1) {
    %top = arith.muli %j, %stride : index
    %left = arith.muli %k, %stride : index
    %all = scf.for %u = %c0 to %c3 step %c1 iter_args(%s = %start) -> (TYPE) {
      %row = arith.addi %top, %u : index
      %above = arith.subi %row, %c1 : index
      %is_row = arith.cmpi ult, %above, %high : index
      %part = scf.for %v = %c0 to %c3 step %c1 iter_args(%t = %s) -> (TYPE) {
        %column = arith.addi %left, %v : index
        %beside = arith.subi %column, %c1 : index
        %is_column = arith.cmpi ult, %beside, %wide : index
        %is_in = arith.andi %is_row, %is_column : i1
        %a = arith.select %is_in, %above, %c0 : index
        %b = arith.select %is_in, %beside, %c0 : index
        %loaded = memref.load %x[%i, %a, %b] : memref<3x?x?xTYPE>
        %value = arith.select %is_in, %loaded, %start : TYPE
        %next = COMBINE %t, %value : TYPE
        scf.yield %next : TYPE
      }
      scf.yield %part : TYPE
    }
    memref.store %all, %y[%i, %j, %k] : memref<3x?x?xTYPE>
  }
  return
}
"""
FLOATS = {"f32": ("arith.maximumf", "0xFF800000"), "f16": ("arith.maximumf", "0xFC00")}
KINDS = {**FLOATS, "i32": ("arith.maxsi", "-1000"), "f64": ("arith.addf", "0.0")}
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32}


def program(type_: str, stride: int, source: str = POOL) -> str:
    combine, start = KINDS[type_]
    replaced = source.replace("TYPE", type_).replace("STRIDE", str(stride))
    return replaced.replace("COMBINE", combine).replace("START", start)


def windows_of(x: Array, type_: str, stride: int) -> Array:
    start = 0 if type_ == "f64" else -1000 if type_ == "i32" else -np.inf
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=start)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return windows[:, ::stride, ::stride]


def expected(x: Array, type_: str, stride: int) -> Array:
    reduce = np.sum if type_ == "f64" else np.max
    return reduce(windows_of(x, type_, stride), axis=(3, 4))


def numbers(type_: str, width: int) -> Array:
    """Floats of which the maximum is taken have NaN and infinity of both signs in the second image,
    and nothing but zeros of both signs in the third."""
    x = np.random.default_rng(width).standard_normal((3, 7, width)) * 10
    x = x.astype(TYPES[type_])
    if type_ in FLOATS:
        for start, value in enumerate((np.nan, np.inf, -np.nan, -np.inf)):
            x[1].reshape(-1)[start * 5 :: 23] = value
        x[2] = np.copysign(0, x[2])
    return x


def lowered(text: str, folder: Path) -> str:
    return build(text, emit="mlir", out=folder / "x.mlir", chips="sm_90").path.read_text()


RUN = """\
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from helpers.native import Library
library, folder = Library(Path(sys.argv[2]), Path(sys.argv[3])), sys.argv[4]
for name in sys.argv[5:]:
    library.call("f", np.load(f"{folder}/x{name}.npy"), y := np.load(f"{folder}/y{name}.npy"))
    np.save(f"{folder}/y{name}.npy", y)
"""
# With and without whole vectors, and what is left of one.
WIDTHS = (1, 2, 13, 32, 33, 70, 97)


@pytest.mark.parametrize("type_", list(KINDS))
@pytest.mark.parametrize("stride", [1, 2])
def test_pools(type_: str, stride: int, tmp_path: Path) -> None:
    """At each level of instructions: none has an element that is not there. Vectors away from the
    edges are loaded without a mask."""
    text = program(type_, stride)
    assert {"vector.maskedload", "vector.load", "<and>,"} <= set(lowered(text, tmp_path).split())
    build_library(text, tmp_path)
    files = (tmp_path / "lib/libprogram.so", tmp_path / "program.json", tmp_path)
    for level in ("1", "3", "4"):
        for width in WIDTHS:
            x = numbers(type_, width)
            np.save(tmp_path / f"x{width}.npy", x)
            np.save(tmp_path / f"y{width}.npy", np.zeros_like(expected(x, type_, stride)))
        place = str(Path(__file__).parents[2])
        done = subprocess.run(
            [sys.executable, "-c", RUN, place, *map(str, files), *map(str, WIDTHS)],
            env={**os.environ, "AOTC_CPU_LEVEL": level},
            capture_output=True,
            text=True,
            check=False,
        )
        if "AOTC_CPU_LEVEL" in done.stderr:
            continue  # the processor has no such level
        assert done.returncode == 0, done.stderr
        for width in WIDTHS:
            found = np.load(tmp_path / f"y{width}.npy")
            right = expected(numbers(type_, width), type_, stride)
            np.testing.assert_allclose(found, right, rtol=1e-12, err_msg=f"{level} {width}")
            if type_ in FLOATS:
                # Zero is greater with a plus.
                signs = np.signbit(windows_of(numbers(type_, width), type_, stride)[2])
                np.testing.assert_array_equal(np.signbit(found[2]), signs.min(axis=(2, 3)))


PADDED = """
func.func @PLACE(%x: memref<16x9x9xTYPE>, %y: memref<16xSIZExSIZExTYPE>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c9 = arith.constant 9 : index
  %before = arith.constant BEFORE : index
  %size = arith.constant SIZE : index
  %zero = arith.constant 0.0 : TYPE
  scf.parallel (%i, %j, %k) = (%c0, %c0, %c0) to (%c16, %size, %size) step (%c1, %c1, %c1) {
    %row = arith.subi %j, %before : index
    %column = arith.subi %k, %before : index
    %is_row = arith.cmpi ult, %row, %c9 : index
    %is_column = arith.cmpi ult, %column, %c9 : index
    %is_in = arith.andi %is_row, %is_column : i1
    %a = arith.select %is_in, %row, %c0 : index
    %b = arith.select %is_in, %column, %c0 : index
    %loaded = memref.load %x[%i, %a, %b] : memref<16x9x9xTYPE>
    %value = arith.select %is_in, %loaded, %zero : TYPE
    memref.store %value, %y[%i, %j, %k] : memref<16xSIZExSIZExTYPE>
  }
  return
}
"""


def test_rows_padded_by_whole_vectors(tmp_path: Path) -> None:
    """LLVM has code for masks of which it knows that a half of them loads nothing."""
    cases = [(type_, before) for type_ in ("f32", "f64") for before in (3, 8, 14)]
    text = ""
    for type_, before in cases:
        made = PADDED.replace("PLACE", f"{type_}_{before}").replace("TYPE", type_)
        text += made.replace("SIZE", str(9 + 2 * before)).replace("BEFORE", str(before))
    library = build_library(text, tmp_path)
    for type_, before in cases:
        x = np.random.default_rng(before).standard_normal((16, 9, 9)).astype(TYPES[type_])
        right = np.pad(x, ((0, 0), (before, before), (before, before)))
        library.call(f"{type_}_{before}", x, y := np.full_like(right, np.nan))
        np.testing.assert_array_equal(y, right)


def test_beyond_a_page(tmp_path: Path) -> None:
    """Nothing is read behind the image, or in front of it."""
    page = mmap.PAGESIZE
    library = build_library(program("f32", 2), tmp_path)
    for width in (33, 64):
        size = 3 * 7 * width * 4
        pages = -(-size // page)
        memory = mmap.mmap(-1, (pages + 2) * page)
        whole = np.frombuffer(memory, np.uint8)
        start = whole.ctypes.data
        libc = ctypes.CDLL(None, use_errno=True)
        for guard in (start, start + (pages + 1) * page):
            assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
        for offset in (page, (pages + 1) * page - size):
            x = whole[offset : offset + size].view(np.float32).reshape(3, 7, width)
            x[:] = numbers("f32", width)
            right = expected(x, "f32", 2)
            y = np.zeros_like(right)
            library.call("f", x, y)
            np.testing.assert_array_equal(y, right)


BORDER = """
func.func @f(%x: tensor<1x3x5x40xi64>) -> tensor<1x3x8x43xi64>
    attributes {llvm.emit_c_interface} {
  %one = arith.constant 1 : i64
  %p = tensor.pad %x low[0, 0, 3, 4] high[0, 0, 4, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %one : i64
  } : tensor<1x3x5x40xi64> to tensor<1x3x12x45xi64>
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<1x3x8x43xi64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<1x3x8x43xi64>) -> tensor<1x3x8x43xi64>
  %k = tensor.empty() : tensor<3x3xi64>
  %y = linalg.pooling_nchw_sum {dilations = dense<[2, 1]> : tensor<2xi64>}
    ins(%p, %k : tensor<1x3x12x45xi64>, tensor<3x3xi64>)
    outs(%f : tensor<1x3x8x43xi64>) -> tensor<1x3x8x43xi64>
  return %y : tensor<1x3x8x43xi64>
}
"""


@pytest.mark.parametrize("level", ["1", "3", "4"])
def test_borders_of_whole_vectors(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four elements in front of a row are a vector of AVX2, which is outside of the image."""
    monkeypatch.setenv("AOTC_CPU_LEVEL", level)
    library = build_library(BORDER, tmp_path)
    x = np.arange(600, dtype=np.int64).reshape(1, 3, 5, 40)
    padded = np.pad(x, ((0, 0), (0, 0), (3, 4), (4, 1)), constant_values=1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 3), axis=(2, 3))
    y = np.zeros((1, 3, 8, 43), np.int64)
    library.call("f", at_end_of_page(x), y)
    np.testing.assert_array_equal(y, windows[..., ::2, :].sum(axis=(4, 5)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Each third element; another value where there is none; a store across.
        ("constant STRIDE", "constant 3"),
        ("%next = COMBINE %t, %value", "%next = COMBINE %t, %loaded"),
        ("%y[%i, %j, %k]", "%y[%i, %k, %j]"),
        # A loop that the columns run as often as they are.
        ("scf.for %u = %c0 to %c3", "scf.for %u = %c0 to %k"),
    ],
    ids=["a third", "no select", "across", "of the column"],
)
def test_what_has_no_vectors(old: str, new: str, tmp_path: Path) -> None:
    """The CPU has the GPU's kernel."""
    made = lowered(program("f32", 2, POOL.replace(old, new)), tmp_path)
    assert made.count("gpu.launch_func") == 1
    assert "vector.maskedload" not in made
