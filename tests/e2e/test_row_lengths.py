"""Rows whose length the host asks for at run time: the kernels for all ranges of it compute what
NumPy does, on the CPU device."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from helpers.native import Library, build_library

RANDOM = np.random.default_rng(11)
# Around the ends of the ranges for blocks of 512 threads: 2049 to 4096, 4097 to 8192.
LENGTHS = (0, 1, 33, 1000, 2048, 2049, 4096, 4097, 5000, 8191, 8192, 8193)

SOFTMAX = """
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  linalg.softmax dimension(1) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>)
  return
}
"""
# In place: what ran twice, or for a column twice, would be seen.
LAYER_NORM = """
#point = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @layer_norm(%x: memref<?x?xf32>, %sums: memref<?xf32>, %squares: memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %columns = memref.dim %x, %c1 : memref<?x?xf32>
  %number = arith.index_cast %columns : index to i32
  %n = arith.sitofp %number : i32 to f32
  linalg.fill ins(%zero : f32) outs(%sums : memref<?xf32>)
  linalg.fill ins(%zero : f32) outs(%squares : memref<?xf32>)
  linalg.reduce {arith.addf} ins(%x : memref<?x?xf32>) outs(%sums : memref<?xf32>) dimensions = [1]
  linalg.generic {indexing_maps = [#point, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %sums : memref<?x?xf32>, memref<?xf32>) outs(%squares : memref<?xf32>) {
  ^bb0(%v: f32, %s: f32, %out: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %dd = arith.mulf %d, %d : f32
    %next = arith.addf %out, %dd : f32
    linalg.yield %next : f32
  }
  linalg.generic {indexing_maps = [#row, #row, #point], iterator_types = ["parallel", "parallel"]}
      ins(%sums, %squares : memref<?xf32>, memref<?xf32>) outs(%x : memref<?x?xf32>) {
  ^bb0(%s: f32, %q: f32, %v: f32):
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %v, %mean : f32
    %variance = arith.divf %q, %n : f32
    %positive = arith.addf %variance, %epsilon : f32
    %factor = math.rsqrt %positive : f32
    %normal = arith.mulf %d, %factor : f32
    linalg.yield %normal : f32
  }
  return
}
"""
# Every third column from `first` on: less their least, in integers of 16 bits.
EVERY_THIRD = """
func.func @every_third(%x: memref<6x?xi16>, %first: index) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %most = arith.constant 32767 : i16
  %columns = memref.dim %x, %c1 : memref<6x?xi16>
  scf.parallel (%i) = (%c0) to (%c6) step (%c1) {
    %least = scf.for %j = %first to %columns step %c3 iter_args(%m = %most) -> (i16) {
      %v = memref.load %x[%i, %j] : memref<6x?xi16>
      %next = arith.minsi %m, %v : i16
      scf.yield %next : i16
    }
    scf.parallel (%j) = (%first) to (%columns) step (%c3) {
      %v = memref.load %x[%i, %j] : memref<6x?xi16>
      %w = arith.subi %v, %least : i16
      memref.store %w, %x[%i, %j] : memref<6x?xi16>
    }
  }
  return
}
"""


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


@pytest.fixture(scope="module")
def normalized(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(LAYER_NORM, tmp_path_factory.mktemp("normalized"), "-O1")


@pytest.fixture(scope="module", params=["-O0", "-O3"])
def softmax(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(SOFTMAX, tmp_path_factory.mktemp("softmax"), request.param)


def _random(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def _at_the_end(x: np.ndarray) -> np.ndarray:
    """The same right before memory that nobody may read."""
    size = -(-x.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    made = np.frombuffer(memory, x.dtype, x.size, size - x.nbytes).reshape(x.shape)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    forbidden = ctypes.c_void_p(start + size)
    assert ctypes.CDLL(None).mprotect(forbidden, mmap.PAGESIZE, 0) == 0
    made[:] = x
    return made


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, initial=-np.inf, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("columns", LENGTHS)
def test_softmax(columns: int, softmax: Library) -> None:
    x, y = _at_the_end(_random(3, columns)), np.full((3, columns), np.nan, np.float32)
    softmax.call("softmax", x, y)
    np.testing.assert_allclose(y, _softmax(x), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("columns", LENGTHS)
def test_layer_norm(columns: int, normalized: Library) -> None:
    x, rows = _random(3, columns), np.empty(3, np.float32)
    d = x.astype(np.float64) - x.sum(axis=1, dtype=np.float64, keepdims=True) / max(1, columns)
    expected = d / np.sqrt((d * d).sum(axis=1, keepdims=True) / max(1, columns) + 1e-5)
    normalized.call("layer_norm", x, rows, np.empty(3, np.float32))
    np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)


def test_no_rows(softmax: Library, normalized: Library) -> None:
    for columns in (0, 5000):
        softmax.call("softmax", _random(0, columns), _random(0, columns))
        normalized.call("layer_norm", _random(0, columns), _random(0), _random(0))


@pytest.mark.parametrize("columns", [20, 50, 4096, 8191])
def test_bits_are_those_of_a_length_that_is_known(
    columns: int, softmax: Library, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Vectors are of the same columns, and are added in the same order."""
    text = SOFTMAX.replace("?x?", f"64x{columns}")
    folder = tmp_path_factory.mktemp("known")
    known = build_library(text, folder, "-O0")
    x, y, z = (_random(64, columns) for _ in range(3))
    known.call("softmax", x, y)
    softmax.call("softmax", x, z)
    np.testing.assert_array_equal(y, z)


@pytest.fixture(scope="module", params=["64", "32x2", "1", "96"])
def every_third(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Library, int]:
    """For blocks that somebody asks for; with how many threads there are for each row."""
    x, *_ = request.param.split("x")
    folder = tmp_path_factory.mktemp("every_third")
    return build_library(EVERY_THIRD, folder, "-O1", "--block", request.param), int(x)


@pytest.mark.parametrize("first", [0, 2])
def test_rows_that_start_and_step_otherwise(first: int, every_third: tuple[Library, int]) -> None:
    library, threads = every_third
    for count in {0, 1, *(threads * kept + more for kept in (4, 8, 16) for more in (0, 1))}:
        x = RANDOM.integers(-1000, 1000, (6, first + 3 * count), dtype=np.int16)
        expected = x.copy()
        taken = expected[:, first::3]
        taken -= taken.min(axis=1, initial=32767, keepdims=True)
        library.call("every_third", x, first)
        np.testing.assert_array_equal(x, expected, err_msg=str(count))
