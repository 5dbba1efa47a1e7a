"""Small programs of operations that few use: each has the right numbers, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome

from aotc import build, load
from aotc.library.opened import LibraryError

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

MAIN = "func.func @main() {{\n{}\n  return\n}}\n"
PRINTED = """func.func private @printMemrefF32(tensor<*xf32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %one = arith.constant 1.5 : f32
  %e = tensor.empty() : tensor<2xf32>
  %a = linalg.fill ins(%one : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %u = tensor.cast %a : tensor<2xf32> to tensor<*xf32>
  func.call @printMemrefF32(%u) : (tensor<*xf32>) -> ()
  %s = linalg.add ins(%a, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>)
    -> tensor<2xf32>
  %w = tensor.cast %s : tensor<2xf32> to tensor<*xf32>
  func.call @printMemrefF32(%w) : (tensor<*xf32>) -> ()
  return
}"""
LINES = """
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
      threads(%x, %y, %z) in (%p = %c2, %q = %c1, %r = %c1) {
    gpu.printf "%lld %lld\\n"
      %a,
      %x
      : index, index
    gpu.terminator
  }"""
MASK = """
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %pad = arith.constant 9.0 : f32
  %a = memref.alloc() : memref<4xf32>
  linalg.fill ins(%one : f32) outs(%a : memref<4xf32>)
  %m = vector.create_mask %c2 : vector<4xi1>
  %v = vector.mask %m { vector.transfer_read %a[%c0], %pad {in_bounds = [true]} :
    memref<4xf32>, vector<4xf32> } : vector<4xi1> -> vector<4xf32>
  vector.print %v : vector<4xf32>"""
MASKED_COLUMN = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %pad = arith.constant 0 : i32
  %seven = arith.constant 7 : i32
  %a = memref.alloca() : memref<7x1xi32>
  memref.store %seven, %a[%c0, %c0] : memref<7x1xi32>
  memref.store %pad, %a[%c1, %c0] : memref<7x1xi32>
  memref.store %seven, %a[%c3, %c0] : memref<7x1xi32>
  %b = memref.cast %a : memref<7x1xi32> to memref<?x1xi32, strided<[?, ?], offset: ?>>
  %m = vector.create_mask %c1, %c1 : vector<8x1xi1>
  %v = vector.mask %m { vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} :
    memref<?x1xi32, strided<[?, ?], offset: ?>>, vector<8x1xi32>
  } : vector<8x1xi1> -> vector<8x1xi32>
  vector.print %v : vector<8x1xi32>"""
OLD_PATTERNS = """module attributes {transform.with_named_sequence} {
  func.func @main() { return }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %m
        : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %f {
      transform.apply_patterns.vector.lower_multi_reduction lowering_strategy = "innerreduction"
    } : !transform.any_op
    transform.yield
  }
}"""
CONSTRUCTOR = """llvm.mlir.global_ctors ctors = [@c], priorities = [0 : i32], data = [#llvm.zero]
llvm.mlir.global internal @n(1 : i32) : i32
llvm.func @c() {
  %p = llvm.mlir.addressof @n : !llvm.ptr
  %v = llvm.mlir.constant(7 : i32) : i32
  llvm.store %v, %p : i32, !llvm.ptr
  llvm.return
}
func.func @main() {
  %p = llvm.mlir.addressof @n : !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> i32
  vector.print %v : i32
  return
}"""
PACK = """
  %a = arith.constant dense<1> : tensor<8x8xi32>
  %e = tensor.empty() : tensor<2x2x4x4xi32>
  %p = tensor.pack %a inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %e
    : tensor<8x8xi32> -> tensor<2x2x4x4xi32>"""
# The program, and what it prints.
PROGRAMS = {
    "a masked read": (MAIN.format(MASK), ["( 1, 1, 9, 9 )"]),
    "a masked read with any strides": (
        MAIN.format(MASKED_COLUMN),
        ["( ( 7 ), ( 0 ), ( 0 ), ( 0 ), ( 0 ), ( 0 ), ( 0 ), ( 0 ) )"],
    ),
    "a constructor": (CONSTRUCTOR, ["7"]),
    "printed, and then used": (PRINTED, ["[1.5,  1.5]", "[3,  3]"]),
}
WINOGRAD = """
func.func @conv(%x: tensor<1x4x4x2xf32>, %w: tensor<3x3x3x2xf32>) -> tensor<1x2x2x3xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x4x2x3xf32>
  %f = linalg.winograd_filter_transform fmr(F_2_3) ins(%w : tensor<3x3x3x2xf32>)
    outs(%e0 : tensor<4x4x2x3xf32>) -> tensor<4x4x2x3xf32>
  %e1 = tensor.empty() : tensor<4x4x1x1x1x2xf32>
  %i = linalg.winograd_input_transform fmr(F_2_3) ins(%x : tensor<1x4x4x2xf32>)
    outs(%e1 : tensor<4x4x1x1x1x2xf32>) -> tensor<4x4x1x1x1x2xf32>
  %fs = tensor.collapse_shape %f [[0, 1], [2], [3]] : tensor<4x4x2x3xf32> into tensor<16x2x3xf32>
  %is = tensor.collapse_shape %i [[0, 1], [2, 3, 4], [5]]
    : tensor<4x4x1x1x1x2xf32> into tensor<16x1x2xf32>
  %zeros = tensor.splat %zero : tensor<16x1x3xf32>
  %m = linalg.batch_matmul ins(%is, %fs : tensor<16x1x2xf32>, tensor<16x2x3xf32>)
    outs(%zeros : tensor<16x1x3xf32>) -> tensor<16x1x3xf32>
  %ms = tensor.expand_shape %m [[0, 1], [2, 3, 4], [5]] output_shape [4, 4, 1, 1, 1, 3]
    : tensor<16x1x3xf32> into tensor<4x4x1x1x1x3xf32>
  %e2 = tensor.splat %zero : tensor<1x2x2x3xf32>
  %o = linalg.winograd_output_transform fmr(F_2_3) ins(%ms : tensor<4x4x1x1x1x3xf32>)
    outs(%e2 : tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  return %o : tensor<1x2x2x3xf32>
}
"""
# MLIR decomposes it to a loop of nothing.
WINOGRAD_OF_ANY_SIZE = """
func.func @f(%x: tensor<?x4x4x2xf32>, %e: tensor<4x4x1x1x?x2xf32>) -> tensor<4x4x1x1x?x2xf32>
    attributes {llvm.emit_c_interface} {
  %i = linalg.winograd_input_transform fmr(F_2_3) ins(%x : tensor<?x4x4x2xf32>)
    outs(%e : tensor<4x4x1x1x?x2xf32>) -> tensor<4x4x1x1x?x2xf32>
  return %i : tensor<4x4x1x1x?x2xf32>
}
"""
# The program, and the words that refuse it.
REFUSED = {
    "patterns that are no more": (
        OLD_PATTERNS,
        "input.mlir:7:7: error: custom op 'transform.apply_patterns.vector.lower_multi_reduction'",
    ),
    "a pack of old": (MAIN.format(PACK), "custom op 'tensor.pack' is unknown"),
    "Winograd's transform of any size": (
        WINOGRAD_OF_ANY_SIZE,
        "input.mlir:4:8: error: linalg.winograd_input_transform is not supported here: its sizes",
    ),
    "printf over lines": (MAIN.format(LINES), "input.mlir:10:8: error: expected integer number"),
}
MASKED = """
func.func @sum(%A: memref<?xf32>, %n: index) -> f32 attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0.0 : f32
  %m = vector.create_mask %n : vector<8xi1>
  %v = vector.mask %m { vector.transfer_read %A[%c0], %p {in_bounds = [true]} :
    memref<?xf32>, vector<8xf32> } : vector<8xi1> -> vector<8xf32>
  %r = vector.reduction <add>, %v : vector<8xf32> into f32
  return %r : f32
}
func.func @doubled(%A: memref<?x?xf32>, %B: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
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
      %v = vector.mask %m { vector.transfer_read %A[%i, %j], %pad {in_bounds = [true]} :
        memref<?x?xf32>, vector<4xf32> } : vector<4xi1> -> vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      vector.mask %m { vector.transfer_write %w, %B[%i, %j] {in_bounds = [true]} :
        vector<4xf32>, memref<?x?xf32> } : vector<4xi1>
    }
  }
  return
}
func.func @matvec(%A: memref<?x?xf32>, %b: memref<?xf32, strided<[?], offset: ?>>,
    %c: memref<?xf32, strided<[?], offset: ?>>) attributes {llvm.emit_c_interface} {
  linalg.matvec ins(%A, %b: memref<?x?xf32>, memref<?xf32, strided<[?], offset: ?>>)
    outs(%c: memref<?xf32, strided<[?], offset: ?>>)
  return
}
"""


# As tutorials schedule an operation of dynamic shapes: tiles, and vectors with masks.
VECTORIZED = """
#map = affine_map<(d0) -> (d0)>
func.func @add(%A: tensor<?xf32>, %B: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %A, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%A, %B : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %g = transform.structured.match ops{["linalg.generic"]} in %m
      : (!transform.any_op) -> !transform.any_op
    %t, %l = transform.structured.tile_using_forall %g tile_sizes [8]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %t vector_sizes [8] : !transform.any_op
    transform.yield
  }
}
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    text, expected = PROGRAMS[name]
    done = aotc("run", mlir_file(text), "--chip", "sm_90").succeeded()
    # Buffers' addresses differ from run to run.
    assert expected == [line for line in done.stdout.splitlines() if "base@" not in line]


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_is_refused(name: str, aotc: Aotc, mlir_file: MlirFile) -> None:
    """By its operation and place."""
    text, words = REFUSED[name]
    done = aotc("run", mlir_file(text), "--chip", "sm_90")
    assert done.code == 2
    assert words in done.stderr


def test_masks_and_strides(tmp_path: Path) -> None:
    """Values, on the CPU device: masks on the host and in a kernel, and a vector with a stride."""
    artifact = build(MASKED.encode(), name="masked", emit="shared", out=f"{tmp_path}/")
    library = load(artifact)
    library.set_device("cpu")
    x = np.arange(1, 9, dtype=np.float32)
    assert [library.sum(x, n) for n in (0, 3, 8)] == [0, 6, 36]
    matrix = np.arange(21, dtype=np.float32).reshape(3, 7)
    twice = np.full((3, 7), -1, np.float32)
    library.doubled(matrix, twice)
    np.testing.assert_array_equal(twice, 2 * matrix)
    vector, sums = np.arange(14, dtype=np.float32)[::2], np.zeros(6, np.float32)
    library.matvec(matrix, vector, sums[::2])
    np.testing.assert_array_equal(sums[::2], matrix @ vector)
    assert not sums[1::2].any()


@pytest.mark.parametrize("size", [1, 8, 21])
def test_a_schedule_of_vector_sizes(size: int, tmp_path: Path) -> None:
    artifact = build(VECTORIZED.encode(), name="vectorized", emit="shared", out=f"{tmp_path}/")
    library = load(artifact)
    library.set_device("cpu")
    x, y = np.random.default_rng(7).random((2, size), np.float32)
    np.testing.assert_array_equal(library.add(x, y), x + y)


PACKS = """
func.func @pack(%a: memref<?x?xf32>, %p: memref<?x?x4x2xf32>)
    attributes {llvm.emit_c_interface} {
  %z = arith.constant -1.0 : f32
  linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
    inner_tiles = [4, 2] into %p : memref<?x?xf32> -> memref<?x?x4x2xf32>
  return
}
func.func @unpack(%p: memref<?x?x4x2xf32>, %a: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.unpack %p outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [4, 2] into %a
    : memref<?x?x4x2xf32> -> memref<?x?xf32>
  return
}
"""


def test_packs_of_buffers(tmp_path: Path) -> None:
    library = load(build(PACKS.encode(), name="packs", emit="shared", out=f"{tmp_path}/"))
    library.set_device("cpu")
    plain = np.arange(35, dtype=np.float32).reshape(5, 7)
    packed, again = np.zeros((2, 3, 4, 2), np.float32), np.zeros((5, 7), np.float32)
    library.pack(plain, packed)
    padded = np.pad(plain, ((0, 1), (0, 1)), constant_values=-1)
    np.testing.assert_array_equal(packed, padded.reshape(3, 2, 2, 4).transpose(2, 0, 3, 1))
    library.unpack(packed, again)
    np.testing.assert_array_equal(again, plain)
    with pytest.raises(LibraryError, match=r"linalg\.unpack: the tiles along dimension 0"):
        library.unpack(packed, np.zeros((7, 7), np.float32))


def test_transforms_of_winograd(tmp_path: Path) -> None:
    library = load(build(WINOGRAD, emit="shared", out=f"{tmp_path}/", chips="sm_80"))
    library.set_device("cpu")
    random = np.random.default_rng(5)
    x = random.standard_normal((1, 4, 4, 2)).astype(np.float32)
    w = random.standard_normal((3, 3, 3, 2)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    expected = np.einsum("nhwckl,fklc->nhwf", windows, w)
    np.testing.assert_allclose(library.conv(x, w), expected, rtol=1e-4, atol=1e-5)
