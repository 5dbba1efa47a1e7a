"""vector.mask around what moves or reduces vectors: masked lanes are neither read nor written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.native import build_library

KERNEL = """
func.func @f(%A: memref<?x?xf32>, %B: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %pad = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?x?xf32>
  %k = memref.dim %A, %c1 : memref<?x?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.for %j = %c0 to %k step %c4 {
      %r = affine.min affine_map<(d0)[s0] -> (4, s0 - d0)>(%j)[%k]
      %m = vector.create_mask %r : vector<4xi1>
      %v = vector.mask %m { vector.transfer_read %A[%i, %j], %pad {in_bounds = [true]}
        : memref<?x?xf32>, vector<4xf32> } : vector<4xi1> -> vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      vector.mask %m { vector.transfer_write %w, %B[%i, %j] {in_bounds = [true]}
        : vector<4xf32>, memref<?x?xf32> } : vector<4xi1>
    }
  }
  return
}
"""
HOST = """
func.func @f(%A: memref<8xf32>, %n: index) -> (f32, f32) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %p = arith.constant 100.0 : f32
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.mask %m { vector.transfer_read %A[%c0], %p {in_bounds = [true]}
    : memref<8xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %r = vector.reduction <add>, %v : vector<8xf32> into f32
  %s = vector.mask %m { vector.reduction <add>, %v : vector<8xf32> into f32 }
    : vector<8xi1> -> f32
  return %r, %s : f32, f32
}
"""
# The buffer is one that a kernel writes: its memory has a place, and the mask an operation in it.
PLACED = """
func.func @f(%n: index, %B: memref<8xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %pad = arith.constant -3.0 : f32
  %a = memref.alloc() : memref<8xf32>
  linalg.fill ins(%one : f32) outs(%a : memref<8xf32>)
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.mask %m { vector.transfer_read %a[%c0], %pad {in_bounds = [true]}
    : memref<8xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  vector.transfer_write %v, %B[%c0] {in_bounds = [true]} : vector<8xf32>, memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  return
}
"""
TENSOR = """
func.func @f(%A: memref<8xf32>, %n: index, %t: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %v = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
  %m = vector.create_mask %n : vector<8xi1>
  %r = vector.mask %m { vector.transfer_write %v, %t[%c0] {in_bounds = [true]}
    : vector<8xf32>, tensor<?xf32> } : vector<8xi1> -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOTC_DEVICE", "cpu")


def test_masked_accesses_of_a_kernel_stay_in_the_memref(tmp_path: Path) -> None:
    a = np.arange(21, dtype=np.float32).reshape(3, 7)
    around = np.full((5, 7), -1, np.float32)
    build_library(KERNEL, tmp_path).call("f", a, around[1:4])
    np.testing.assert_array_equal(around[1:4], 2 * a)
    np.testing.assert_array_equal(around[[0, 4]], -1)


def test_masked_lanes_are_the_padding(tmp_path: Path) -> None:
    library = build_library(HOST, tmp_path)
    a = np.arange(1, 9, dtype=np.float32)
    for n in (0, 3, 8):
        assert library.call("f", a, n) == (a[:n].sum() + 100 * (8 - n), a[:n].sum())


def test_a_masked_read_of_a_kernels_buffer(tmp_path: Path) -> None:
    library, b = build_library(PLACED, tmp_path), np.zeros(8, np.float32)
    library.call("f", 2, b)
    np.testing.assert_array_equal(b, [1, 1, *[-3] * 6])


def test_masked_reductions_of_whole_matrices(tmp_path: Path) -> None:
    """Beside the same operation without a mask, whose result they must not share."""
    maps = "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>"
    kinds = '["parallel", "reduction"]'
    contract = (
        f"vector.contract {{indexing_maps = [{maps}], iterator_types = {kinds}, "
        "kind = #vector.kind<add>} %v, %one, %acc "
        ": vector<4x8xf32>, vector<8xf32> into vector<4xf32>"
    )
    reduction = "vector.multi_reduction <add>, %v, %acc [1] : vector<4x8xf32> to vector<4xf32>"
    mask = "vector.mask %m {{ {} }} : vector<4x8xi1> -> vector<4xf32>"
    values = [contract, reduction, mask.format(contract), mask.format(reduction)]
    rows = "".join(
        f"  %c{i} = arith.constant {i} : index\n  %r{i} = {value}\n"
        f"  vector.transfer_write %r{i}, %B[%c{i}, %c0] {{in_bounds = [true]}} "
        ": vector<4xf32>, memref<4x4xf32>\n"
        for i, value in enumerate(values)
    )
    library = build_library(
        f"""
func.func @f(%A: memref<4x8xf32>, %B: memref<4x4xf32>, %n: index)
    attributes {{llvm.emit_c_interface}} {{
  %z = arith.constant 0 : index
  %four = arith.constant 4 : index
  %p = arith.constant 0.0 : f32
  %acc = arith.constant dense<0.0> : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<8xf32>
  %m = vector.create_mask %four, %n : vector<4x8xi1>
  %v = vector.transfer_read %A[%z, %z], %p {{in_bounds = [true, true]}}
    : memref<4x8xf32>, vector<4x8xf32>
{rows}  return
}}
""",
        tmp_path,
    )
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.zeros((4, 4), np.float32)
    library.call("f", a, b, 3)
    np.testing.assert_array_equal(b[:2], [a.sum(1)] * 2)
    np.testing.assert_array_equal(b[2:], [a[:, :3].sum(1)] * 2)


def test_a_masked_write_leaves_the_callers_tensor_alone(tmp_path: Path) -> None:
    """The tensor that it writes into is an argument, of which there must be a copy."""
    library = build_library(TENSOR, tmp_path)
    x, y = np.arange(8, dtype=np.float32), np.full(6, 9, np.float32)
    np.testing.assert_array_equal(library.call("f", x, 3, y), [0, 1, 2, 9, 9, 9])
    np.testing.assert_array_equal(y, np.full(6, 9))
