"""`Function.result_shapes`: the sizes of results, before the call, as the call has them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import aotc

PROGRAM = """\
#row = affine_map<(i, j) -> (i, j)>
func.func @joined(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %s: f32)
    -> (tensor<?x4xf32>, f32, tensor<2xf32>) attributes {llvm.emit_c_interface} {
  %xy = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %two = tensor.empty() : tensor<2xf32>
  %filled = linalg.fill ins(%s : f32) outs(%two : tensor<2xf32>) -> tensor<2xf32>
  return %xy, %s, %filled : tensor<?x4xf32>, f32, tensor<2xf32>
}
func.func @padded(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32>
    attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %x low[1, 0] high[%n, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
func.func @flattened(%x: tensor<?x?x3xf32>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %r = tensor.collapse_shape %x [[0, 1, 2]] : tensor<?x?x3xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @in_rows(%x: tensor<?xf32>) -> tensor<?x5xf32> attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %rows = arith.divsi %n, %c5 : index
  %shape = tensor.from_elements %rows, %c5 : tensor<2xindex>
  %r = tensor.reshape %x(%shape) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}
func.func @outer(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, #row],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<?x?xf32>
  %f = tensor.collapse_shape %r [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %r, %f : tensor<?x?xf32>, tensor<?xf32>
}
func.func @added(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>)
    -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @multiplied(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {llvm.emit_c_interface} {
  %r = arith.mulf %x, %y : tensor<?x?xf32>
  %s = math.exp %r : tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
func.func @counted(%x: tensor<?xindex>, %y: tensor<?xf32>) -> (tensor<?x3xf32>, tensor<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.extract %x[%c0] : tensor<?xindex>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %r = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %f = tensor.empty(%m) : tensor<?xf32>
  %s = linalg.exp ins(%y : tensor<?xf32>) outs(%f : tensor<?xf32>) -> tensor<?xf32>
  return %r, %s : tensor<?x3xf32>, tensor<?xf32>
}
func.func @chosen(%x: tensor<?xf32>, %n: i64, %all: i1, %s: f16) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %few = arith.index_cast %n : i64 to index
  %count = arith.minsi %few, %size : index
  %r = scf.if %all -> tensor<?xf32> {
    scf.yield %x : tensor<?xf32>
  } else {
    %part = tensor.extract_slice %x[0] [%count] [1] : tensor<?xf32> to tensor<?xf32>
    scf.yield %part : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @repeated(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?x4xf32> {
    %m = linalg.exp ins(%t : tensor<?x4xf32>) outs(%t : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %m : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}
func.func @growing(%x: tensor<?xf32>, %n: index) -> tensor<?xf32>
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<?xf32> {
    %m = tensor.pad %t low[0] high[1] {
    ^bb0(%j: index):
      tensor.yield %zero : f32
    } : tensor<?xf32> to tensor<?xf32>
    scf.yield %m : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @fixed(%x: tensor<?xf32>, %s: f32) -> tensor<2x3xf32>
    attributes {llvm.emit_c_interface} {
  %e = tensor.empty() : tensor<2x3xf32>
  %r = linalg.fill ins(%s : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
func.func @written(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
  return
}
"""
ON_MEMREFS = """\
func.func private @elsewhere(%n: index) -> memref<?xf32> {
  %r = memref.alloc(%n) : memref<?xf32>
  return %r : memref<?xf32>
}
func.func @copied(%x: memref<?x4xf32>, %n: index) -> (memref<?x4xf32>, memref<?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %rows = memref.dim %x, %c0 : memref<?x4xf32>
  %more = arith.addi %rows, %n : index
  %r = memref.alloc(%more) : memref<?x4xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %c4) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x4xf32>
    memref.store %v, %r[%i, %j] : memref<?x4xf32>
  }
  %e = func.call @elsewhere(%n) : (index) -> memref<?xf32>
  return %r, %e : memref<?x4xf32>, memref<?xf32>
}
"""


def build(text: str, folder: Path) -> aotc.Library:
    library = aotc.load(aotc.build(text, emit="shared", out=f"{folder}/", name="s", chips="sm_80"))
    library.set_device("cpu")
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> aotc.Library:
    return build(PROGRAM, tmp_path_factory.mktemp("shapes"))


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


CASES = (
    ("joined", [ones(3, 4), ones(5, 4), 2.0], ((8, 4), (), (2,))),
    ("joined", [ones(0, 4), ones(0, 4), 2.0], ((0, 4), (), (2,))),
    ("padded", [ones(3, 1), 4], ((8, 3),)),
    ("flattened", [ones(2, 5, 3)], ((30,),)),
    ("flattened", [ones(0, 5, 3)], ((0,),)),
    ("in_rows", [ones(35)], ((7, 5),)),
    ("outer", [ones(3), ones(4)], ((3, 4), (12,))),
    ("added", [ones(3), ones(3)], ((3,),)),
    ("chosen", [ones(9), 4, True, 0.5], ((9,),)),
    ("chosen", [ones(9), 4, False, 0.5], ((4,),)),
    ("chosen", [ones(9), 40, False, 0.5], ((9,),)),
    ("repeated", [ones(3, 4), 2], ((3, 4),)),
    ("fixed", [ones(3), 1.0], ((2, 3),)),
)


@pytest.mark.parametrize(("entry", "given", "shapes"), CASES)
def test_shapes_are_those_of_the_call(
    entry: str, given: list[Any], shapes: Any, library: aotc.Library
) -> None:
    """Of arrays, and of their shapes alone."""
    function = library[entry]
    results = function(*given)
    assert tuple(map(np.shape, results if isinstance(results, tuple) else [results])) == shapes
    assert function.result_shapes(*given) == shapes
    as_shapes = [one.shape if isinstance(one, np.ndarray) else one for one in given]
    assert function.result_shapes(*as_shapes) == shapes
    as_lists = [list(one) if isinstance(one, tuple) else one for one in as_shapes]
    assert function.result_shapes(*as_lists) == shapes


def test_ways_to_give_them(library: aotc.Library) -> None:
    """By name; with an array for a result; as an object with a shape, which need be no array."""
    assert library.padded.result_shapes(n=4, x=(3, 1)) == ((8, 3),)
    assert library.fixed.result_shapes((3,), 1.0, ones(2, 3)) == ((2, 3),)
    assert library.added.result_shapes(SimpleNamespace(shape=(3,)), (3,)) == ((3,),)
    assert library.written.result_shapes((3,)) == ()


def test_a_size_that_depends_on_elements(library: aotc.Library) -> None:
    """It is -1; the others are told."""
    x = np.array([5], np.int64)
    assert library.counted.result_shapes(x, ones(7)) == ((-1, 3), (7,))
    first, second = library.counted(x, ones(7))
    assert (first.shape, second.shape) == ((5, 3), (7,))
    assert library.growing.result_shapes((4,), 2) == ((-1,),)


def test_operands_of_elementwise_operations(library: aotc.Library) -> None:
    assert library.multiplied.result_shapes((3, 5), (3, 5)) == ((3, 5),)


@pytest.mark.parametrize(
    ("entry", "given", "name", "message"),
    [
        ("added", [(3,), (4,)], "ASSERTION_FAILED", "'y' has another size in dimension 0 than 'x'"),
        (
            "multiplied",
            [(3, 5), (3, 4)],
            "ASSERTION_FAILED",
            "'y' has another size in dimension 1 than 'x'",
        ),
        ("in_rows", [(34,)], "ASSERTION_FAILED", "the sizes of 'x' do not fit"),
        ("padded", [(3, 1), -1], "ASSERTION_FAILED", "sizes that depend on values do not fit"),
        ("added", [(-3,), (-3,)], "INVALID_ARGUMENT", "argument 'x' .* negative size -3"),
        ("flattened", [(2**30, 2**30, 3)], "INVALID_ARGUMENT", "more elements than memory"),
        ("outer", [(2**30,), (2**30,)], "OUT_OF_MEMORY", r"no memory for a memref<\?x\?xf32>"),
        ("outer", [(2**40,), (2**40,)], "OUT_OF_MEMORY", "no memory for results of these sizes"),
        (
            "joined",
            [(2**52, 4), (2**52, 4), 1],
            "OUT_OF_MEMORY",
            r"no memory for a memref<\?x4xf32",
        ),
    ],
)
def test_sizes_that_are_refused(
    entry: str, given: list[Any], name: str, message: str, library: aotc.Library
) -> None:
    """As by the entry: the status is its own, and the next call is a new one."""
    with pytest.raises(aotc.LibraryError, match=rf"{entry}: .*{message}") as caught:
        library[entry].result_shapes(*given)
    assert caught.value.name == f"AOTC_{name}"
    assert library.flattened.result_shapes((2, 5, 3)) == ((30,),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(3, 5), (3, 4), 1], r"argument 'x' \(memref<\?x4xf32>\): its shape is \(3, 5\)"),
        ([(3,), (3, 4), 1], r"its shape is \(3,\)"),
        ([(3, "4"), (3, 4), 1], "its shape is"),
        ([3, (3, 4), 1], r"its shape is \(\)"),
        ([(3, 4), (3, 4)], "was given 2 by position"),
        ([(3, 4), (3, 4), "x"], "'s' .* cannot be 'x'"),
    ],
)
def test_what_is_no_shape(given: list[Any], message: str, library: aotc.Library) -> None:
    with pytest.raises(aotc.InputError, match=message):
        library.joined.result_shapes(*given)


def test_a_module_on_memrefs(tmp_path: Path) -> None:
    """What another function allocates is told by the call alone."""
    library = build(ON_MEMREFS, tmp_path)
    assert library.copied.result_shapes((3, 4), 2) == ((5, 4), (-1,))
    first, second = library.copied(ones(3, 4), 2)
    assert (first.shape, second.shape) == ((5, 4), (2,))


def test_a_library_without_such_functions(tmp_path: Path) -> None:
    """What the types say is told."""
    artifact = aotc.build(PROGRAM, emit="shared", out=f"{tmp_path}/", name="s", chips="sm_80")
    manifest = tmp_path / "s.json"
    manifest.write_text(manifest.read_text().replace('"result_shapes"', '"other"'))
    library = aotc.load(artifact.path)
    assert library.joined.result_shapes((3, 4), (5, 4), 1.0) == ((-1, 4), (), (2,))


# Each loop reads another element than it writes: so there are three kernels.
CHAINED = (
    """\
func.func @chained(%x: memref<?x16xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x16xf32>
  %a = memref.alloc(%n) : memref<?x16xf32>
  %b = memref.alloc(%n) : memref<?x16xf32>
"""
    + "".join(
        f"""\
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %end = arith.subi %n, %c1 : index
    %last = arith.subi %end, %i : index
    %v = memref.load %{source}[%last, %c0] : memref<?x16xf32>
    %s = arith.addf %v, %v : f32
    memref.store %s, %{target}[%i, %c0] : memref<?x16xf32>
  }}
"""
        for source, target in ("xa", "ab", "bx")
    )
    + """\
  memref.dealloc %a : memref<?x16xf32>
  memref.dealloc %b : memref<?x16xf32>
  return
}
"""
)


def test_the_bytes_of_temporaries(tmp_path: Path) -> None:
    """They are told for the sizes of a call, in parts of 256 bytes; wrong sizes are refused."""
    library = build(CHAINED, tmp_path)
    entry = library.chained.entry
    assert entry.workspace_bytes is None
    size_of = library.function(entry.functions["workspace_size"])
    found = ctypes.c_uint64(1)
    for rows, expected in ((3, 512), (5, 1024), (1000, 128000), (0, 256)):
        library.check(size_of(ctypes.c_int64(rows), ctypes.byref(found)))
        assert found.value == expected
    assert size_of(ctypes.c_int64(-1), ctypes.byref(found)) == 1
    assert found.value == 0
    x = np.arange(5 * 16, dtype=np.float32).reshape(5, 16)
    expected_column = 8 * x[::-1, 0]
    library.chained(x)
    np.testing.assert_array_equal(x[:, 0], expected_column)


def test_a_module_that_was_outlined_before(tmp_path: Path) -> None:
    """`--emit mlir` has the functions: what is built of it has them, too."""
    options = {"name": "s", "chips": "sm_80"}
    outlined = aotc.build(PROGRAM, emit="mlir", out=tmp_path / "s.mlir", **options)
    library = build(Path(outlined.path).read_text(), tmp_path)
    assert library.joined.result_shapes((3, 4), (5, 4), 1.0)[0] == (8, 4)
    with pytest.raises(aotc.LibraryError, match="'y' has another size"):
        library.added.result_shapes((3,), (4,))
