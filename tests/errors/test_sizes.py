"""Sizes that operations do not fit, in modules that a person wrote: an error, before memory outside
of a buffer is read or written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aotc

ENTRY = "attributes {llvm.emit_c_interface}"
VECTOR, MATRIX = "tensor<?xf32>", "tensor<?x?xf32>"
# Every operation whose sizes are computed from values or are in common with another's, as entries
# of one library.
PROGRAM = f"""
func.func @pad(%x: tensor<4xf32>, %n: index) -> {VECTOR} {ENTRY} {{
  %c = arith.constant 7.0 : f32
  %p = tensor.pad %x low[%n] high[%n] {{
  ^bb0(%i: index):
    tensor.yield %c : f32
  }} : tensor<4xf32> to {VECTOR}
  return %p : {VECTOR}
}}
func.func @pad_in_a_loop(%x: tensor<4xf32>, %n: index) -> f32 {ENTRY} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c = arith.constant 7.0 : f32
  %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%s = %c) -> f32 {{
    %p = tensor.pad %x low[%n] high[%n] {{
    ^bb0(%i: index):
      tensor.yield %s : f32
    }} : tensor<4xf32> to {VECTOR}
    %e = tensor.extract %p[%c0] : {VECTOR}
    %r = arith.addf %s, %e : f32
    scf.yield %r : f32
  }}
  return %sum : f32
}}
func.func @slice(%x: {VECTOR}, %o: index, %n: index, %s: index) -> {VECTOR} {ENTRY} {{
  %y = tensor.extract_slice %x[%o] [%n] [%s] : {VECTOR} to {VECTOR}
  return %y : {VECTOR}
}}
func.func @backward(%x: {VECTOR}, %o: index, %n: index) -> {VECTOR} {ENTRY} {{
  %y = tensor.extract_slice %x[%o] [%n] [-2] : {VECTOR} to {VECTOR}
  return %y : {VECTOR}
}}
func.func @insert(%x: {VECTOR}, %y: {VECTOR}, %o: index) -> {VECTOR} {ENTRY} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : {VECTOR}
  %z = tensor.insert_slice %y into %x[%o] [%n] [1] : {VECTOR} into {VECTOR}
  return %z : {VECTOR}
}}
func.func @expand(%x: {VECTOR}, %n: index) -> tensor<3x?xf32> {ENTRY} {{
  %y = tensor.expand_shape %x [[0, 1]] output_shape [3, %n] : {VECTOR} into tensor<3x?xf32>
  return %y : tensor<3x?xf32>
}}
func.func @expand_by(%x: {VECTOR}, %m: index, %n: index) -> {MATRIX} {ENTRY} {{
  %y = tensor.expand_shape %x [[0, 1]] output_shape [%m, %n] : {VECTOR} into {MATRIX}
  return %y : {MATRIX}
}}
func.func @concat(%x: {MATRIX}, %y: {MATRIX}) -> {MATRIX} {ENTRY} {{
  %z = tensor.concat dim(0) %x, %y : ({MATRIX}, {MATRIX}) -> {MATRIX}
  return %z : {MATRIX}
}}
func.func @generate(%n: index) -> {VECTOR} {ENTRY} {{
  %y = tensor.generate %n {{
  ^bb0(%i: index):
    %k = arith.index_cast %i : index to i64
    %f = arith.sitofp %k : i64 to f32
    tensor.yield %f : f32
  }} : {VECTOR}
  return %y : {VECTOR}
}}
func.func @splat(%n: index, %f: f32) -> {VECTOR} {ENTRY} {{
  %y = tensor.splat %f[%n] : {VECTOR}
  return %y : {VECTOR}
}}
func.func @filled(%n: index, %f: f32) -> {VECTOR} {ENTRY} {{
  %e = tensor.empty(%n) : {VECTOR}
  %y = linalg.fill ins(%f : f32) outs(%e : {VECTOR}) -> {VECTOR}
  return %y : {VECTOR}
}}
func.func @add(%x: {VECTOR}, %y: {VECTOR}) -> {VECTOR} {ENTRY} {{
  %z = linalg.add ins(%x, %y : {VECTOR}, {VECTOR}) outs(%x : {VECTOR}) -> {VECTOR}
  return %z : {VECTOR}
}}
func.func @cast(%x: {VECTOR}) -> tensor<4xf32> {ENTRY} {{
  %y = tensor.cast %x : {VECTOR} to tensor<4xf32>
  %z = arith.negf %y : tensor<4xf32>
  return %z : tensor<4xf32>
}}
func.func @copy(%x: memref<?xf32>, %y: memref<?xf32>) {ENTRY} {{
  memref.copy %x, %y : memref<?xf32> to memref<?xf32>
  return
}}
func.func @exponentials(%x: memref<?xf32>, %y: memref<?xf32>) {ENTRY} {{
  linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}}
func.func @matmul(%x: memref<?x?xf32>, %y: memref<?x4xf32>, %z: memref<?x4xf32>) {ENTRY} {{
  linalg.matmul ins(%x, %y : memref<?x?xf32>, memref<?x4xf32>) outs(%z : memref<?x4xf32>)
  return
}}
func.func @windows(%x: memref<?xf32>, %k: memref<?xf32>, %y: memref<?xf32>) {ENTRY} {{
  linalg.conv_1d ins(%x, %k : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  return
}}
func.func @points(%x: memref<?xf32>, %k: memref<1xf32>, %y: memref<?xf32>) {ENTRY} {{
  linalg.conv_1d ins(%x, %k : memref<?xf32>, memref<1xf32>) outs(%y : memref<?xf32>)
  return
}}
"""
MOST = 2**63 - 1


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def numbers(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("sizes")
    files = {"emit": "shared", "out": f"{folder}/", "chips": "sm_80"}
    return aotc.load(aotc.build(PROGRAM.encode(), name="sizes", **files))


VALUES = "sizes that depend on values"
# The entry, what does not fit, and what is said.
REFUSED = {
    "a pad of -1": ("pad", (ones(4), -1), f"{VALUES} do not fit tensor.pad"),
    "a pad whose sum wraps": ("pad", (ones(4), MOST), f"{VALUES} do not fit tensor.pad"),
    "a pad in a loop": ("pad_in_a_loop", (ones(4), -1), f"{VALUES} do not fit tensor.pad"),
    "a slice past the end": ("slice", (ones(8), 4, 5, 1), f"{VALUES} and sizes of 'x'"),
    "a slice before the first": ("slice", (ones(8), -1, 5, 1), f"{VALUES} do not fit"),
    "a slice of a negative size": ("slice", (ones(8), 0, -1, 1), f"{VALUES} do not fit"),
    "a slice whose end wraps": ("slice", (ones(8), MOST, 3, 1), f"{VALUES} and sizes of 'x'"),
    "a stride whose end wraps": ("slice", (ones(8), 0, 3, 1 << 62), f"{VALUES} and sizes of 'x'"),
    "a stride of 0": ("slice", (ones(8), 0, 3, 0), f"{VALUES} do not fit tensor.extract_slice"),
    "a backward slice past the first": ("backward", (ones(8), 3, 3), f"{VALUES} do not fit"),
    "a backward slice from the end": ("backward", (ones(8), 8, 3), f"{VALUES} and sizes of 'x'"),
    "an insertion past the end": ("insert", (ones(8), ones(4), 5), f"{VALUES} and sizes of"),
    "a part that is too large": (
        "insert",
        (ones(8), ones(9), 0),
        r"expected y.shape\[0\] <= x.shape\[0\]",
    ),
    "8 as 3x5": ("expand", (ones(8), 5), f"{VALUES} and sizes of 'x'"),
    "8 as 3x3": ("expand_by", (ones(8), 3, 3), f"{VALUES} and sizes of 'x'"),
    "8 as -1x-8": ("expand_by", (ones(8), -1, -8), f"{VALUES} and sizes of 'x'"),
    "a product that wraps": (
        "expand_by",
        (ones(8), 8, (1 << 61) + 1),
        f"{VALUES} and sizes of 'x'",
    ),
    "rows of other lengths": (
        "concat",
        (ones(2, 3), ones(2, 4)),
        "'y' has another size in dimension 1 than 'x' in dimension 1",
    ),
    "numbers of a negative count": ("generate", (-1,), f"{VALUES} do not fit tensor.generate"),
    "a splat of a negative count": ("splat", (-1, 1.0), f"{VALUES} do not fit tensor.splat"),
    "a tensor of a negative size": ("filled", (-1, 1.0), f"{VALUES} do not fit tensor.empty"),
    "tensors of two sizes": (
        "add",
        (ones(4), ones(3)),
        "'y' has another size in dimension 0 than 'x' in dimension 0",
    ),
    "a cast": ("cast", (ones(3),), "'x' has another size in dimension 0 than 4"),
    "a copy to less": (
        "copy",
        (ones(4), ones(3)),
        "'y' has another size in dimension 0 than 'x' in dimension 0",
    ),
    "a result that is too small": (
        "exponentials",
        (ones(4), ones(3)),
        "'y' has another size in dimension 0 than 'x' in dimension 0",
    ),
    "matrices that do not fit": (
        "matmul",
        (ones(2, 3), ones(5, 4), ones(2, 4)),
        "'y' has another size in dimension 0 than 'x' in dimension 1",
    ),
    "windows past the end": (
        "windows",
        (ones(8), ones(3), ones(7)),
        r"expected k.shape\[0\] \+ y.shape\[0\] \+ -1 <= x.shape\[0\]",
    ),
    "windows of one element in more than they cover": (
        "points",
        (ones(8), ones(1), ones(7)),
        "'x' has another size in dimension 0 than 'y' in dimension 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sizes_that_do_not_fit(library: Any, name: str) -> None:
    entry, arguments, message = REFUSED[name]
    if entry == "cast":
        arguments = (*arguments, ones(4))  # the result
    with pytest.raises(aotc.LibraryError, match=message):
        getattr(library, entry)(*arguments)


# Entries with arguments of one size, and what they return.
TAKEN = {
    "pad": ((ones(4), 1), [7, 1, 1, 1, 1, 7]),
    "pad_in_a_loop": ((ones(4), 1), 28),
    "slice": ((numbers(8), 1, 3, 3), [1, 4, 7]),
    "backward": ((numbers(8), 7, 4), [7, 5, 3, 1]),
    "insert": ((ones(4), numbers(2), 2), [1, 1, 0, 1]),
    "expand_by": ((numbers(6), 2, 3), [[0, 1, 2], [3, 4, 5]]),
    "concat": ((ones(1, 2), ones(2, 2)), [[1, 1]] * 3),
    "generate": ((3,), [0, 1, 2]),
    "splat": ((2, 3.0), [3, 3]),
    "filled": ((0, 3.0), []),
    "add": ((numbers(3), numbers(3)), [0, 2, 4]),
}


@pytest.mark.parametrize("entry", TAKEN)
def test_sizes_that_fit(library: Any, entry: str) -> None:
    arguments, expected = TAKEN[entry]
    assert expected == np.asarray(getattr(library, entry)(*arguments)).tolist()


def test_an_empty_slice_with_a_stride_beyond_the_end(library: Any) -> None:
    assert library.slice(numbers(4), 2, 1, 100).tolist() == [2]
    assert library.slice(numbers(4), 4, 0, 3).tolist() == []


def test_buffers_that_fit(library: Any) -> None:
    sums = np.zeros(6, np.float32)
    library.windows(numbers(8), ones(3), sums)
    assert sums.tolist() == [3, 6, 9, 12, 15, 18]
    sums[:] = 1
    library.points(numbers(6), ones(1), sums)
    assert sums.tolist() == [1, 2, 3, 4, 5, 6]
    copied = np.zeros(8, np.float32)
    library.copy(numbers(8), copied)
    assert copied.tolist() == numbers(8).tolist()


def test_an_unranked_buffer_that_is_cast_to_another_shape() -> None:
    text = f"""func.func @f(%x: memref<4xf32>) -> memref<8xf32> {ENTRY} {{
  %any = memref.cast %x : memref<4xf32> to memref<*xf32>
  %y = memref.cast %any : memref<*xf32> to memref<8xf32>
  return %y : memref<8xf32>
}}"""
    with pytest.raises(aotc.InputError, match="memref<4xf32> is cast to memref<8xf32>"):
        aotc.build(text, emit="host-mlir")
