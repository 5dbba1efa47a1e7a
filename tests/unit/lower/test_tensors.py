"""Input on tensors, of linalg and tosa: what becomes of arguments and results; right numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.command import Outcome
from helpers.native import build_library

from aotc import build

ATTRIBUTE = "attributes {llvm.emit_c_interface}"


def test_arguments_are_not_written(tmp_path: Path) -> None:
    """A tensor is a value: that the result differs in one element is the result's."""
    library = build_library(
        f"""
func.func @set(%x: tensor<8xf32>, %v: f32, %i: index) -> tensor<8xf32> {ATTRIBUTE} {{
  %y = tensor.insert %v into %x[%i] : tensor<8xf32>
  return %y : tensor<8xf32>
}}""",
        tmp_path,
    )
    (entry,) = library.manifest["entries"]
    assert [(a["name"], a["is_written"]) for a in entry["arguments"]] == [
        ("x", False),
        ("v", False),
        ("i", False),
        ("result0", True),
    ]
    assert entry["results"] == []
    x, result = np.arange(8, dtype=np.float32), np.full(8, -1, np.float32)
    library.call("set", x, 70.0, 3, result)
    np.testing.assert_array_equal(x, np.arange(8))
    np.testing.assert_array_equal(result, np.where(np.arange(8) == 3, 70, x))


def test_results_of_unknown_size_are_returned(tmp_path: Path) -> None:
    library = build_library(
        f"""
func.func @twice(%x: tensor<?xf32>) -> (tensor<?xf32>, f32) {ATTRIBUTE} {{
  %zero = arith.constant 0 : index
  %first = tensor.extract %x[%zero] : tensor<?xf32>
  %y = arith.addf %x, %x : tensor<?xf32>
  return %y, %first : tensor<?xf32>, f32
}}""",
        tmp_path,
    )
    (entry,) = library.manifest["entries"]
    assert [(r["type"], r["is_owned"]) for r in entry["results"]] == [
        ("memref<?xf32>", True),
        ("f32", False),
    ]
    x = np.arange(1, 1001, dtype=np.float32)
    y, first = library.call("twice", x)
    np.testing.assert_array_equal(y, 2 * x)
    assert first == 1


def test_a_result_may_collapse_sizes_of_1(tmp_path: Path) -> None:
    """The factor 1 is known only after the sizes of the result are computed."""
    library = build_library(
        f"""
func.func @collapsed(%x: tensor<?x1x?x1x1xf32>) -> tensor<?x?xf32> {ATTRIBUTE} {{
  %y = tensor.collapse_shape %x [[0], [1, 2, 3, 4]]
    : tensor<?x1x?x1x1xf32> into tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}}
func.func @divided(%x: tensor<?x1x?x1x1x?xf32>) -> tensor<?x?x?xf32> {ATTRIBUTE} {{
  %y = tensor.collapse_shape %x [[0], [1, 2], [3, 4, 5]]
    : tensor<?x1x?x1x1x?xf32> into tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}}""",
        tmp_path,
    )
    x = np.arange(6, dtype=np.float32)
    y = library.call("collapsed", x.reshape(2, 1, 3, 1, 1))
    np.testing.assert_array_equal(y, x.reshape(2, 3))
    y = library.call("divided", x.reshape(1, 1, 3, 1, 1, 2))
    np.testing.assert_array_equal(y, x.reshape(1, 3, 2))


def test_results_keep_their_order(tmp_path: Path) -> None:
    library = build_library(
        f"""
func.func @three(%x: tensor<5xi32>) -> (tensor<5xi32>, tensor<i32>, tensor<5xi32>) {ATTRIBUTE} {{
  %one = arith.constant dense<1> : tensor<5xi32>
  %up = arith.addi %x, %one : tensor<5xi32>
  %index = arith.constant 4 : index
  %last = tensor.extract %x[%index] : tensor<5xi32>
  %scalar = tensor.from_elements %last : tensor<i32>
  return %up, %scalar, %x : tensor<5xi32>, tensor<i32>, tensor<5xi32>
}}""",
        tmp_path,
    )
    x = np.array([5, 3, 9, 1, 7], np.int32)
    up, same = np.zeros(5, np.int32), np.zeros(5, np.int32)
    last = np.zeros((), np.int32)
    library.call("three", x, up, last, same)
    np.testing.assert_array_equal(up, x + 1)
    np.testing.assert_array_equal(same, x)
    assert last == 7


def test_functions_call_each_other(tmp_path: Path) -> None:
    """What is no entry is inlined or called, with tensors of its own."""
    library = build_library(
        f"""
func.func private @square(%x: tensor<16xf32>) -> tensor<16xf32> {{
  %y = arith.mulf %x, %x : tensor<16xf32>
  return %y : tensor<16xf32>
}}
func.func @fourth(%x: tensor<16xf32>) -> tensor<16xf32> {ATTRIBUTE} {{
  %y = call @square(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %z = call @square(%y) : (tensor<16xf32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}}""",
        tmp_path,
    )
    x, result = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    library.call("fourth", x, result)
    np.testing.assert_array_equal(result, x**4)


def test_elementwise_chains_are_one_kernel(tmp_path: Path) -> None:
    library = build_library(
        f"""
func.func @chain(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {ATTRIBUTE} {{
  %a = arith.addf %x, %y : tensor<64x64xf32>
  %b = math.exp %a : tensor<64x64xf32>
  %c = arith.mulf %b, %x : tensor<64x64xf32>
  %d = arith.subf %c, %y : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}}""",
        tmp_path,
    )
    assert len(library.manifest["kernels"]) == 1
    rng = np.random.default_rng(5)
    x, y = rng.random((64, 64), np.float32), rng.random((64, 64), np.float32)
    result = np.zeros_like(x)
    library.call("chain", x, y, result)
    np.testing.assert_allclose(result, np.exp(x + y) * x - y, rtol=1e-5, atol=1e-6)


def test_buffers_freed_by_hand_beside_tensors(tmp_path: Path) -> None:
    """Their functions free what they allocate; those of tensors have it freed for them."""
    text = """\
func.func @on_tensors(%x: tensor<?xf32>) -> tensor<?xf32> attributes {llvm.emit_c_interface} {
  %t = math.exp %x : tensor<?xf32>
  %y = math.exp %t : tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func private @make(%n: index) -> memref<?xf32> {
  %t = memref.alloc(%n) : memref<?xf32>
  return %t : memref<?xf32>
}
func.func @on_buffers(%x: memref<?xf32>, %y: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %t = call @make(%n) : (index) -> memref<?xf32>
  linalg.transpose ins(%x : memref<?xf32>) outs(%t : memref<?xf32>) permutation = [0]
  %first = memref.load %t[%c0] : memref<?xf32>
  linalg.fill ins(%first : f32) outs(%y : memref<?xf32>)
  memref.dealloc %t : memref<?xf32>
  return
}
"""
    library = build_library(text, tmp_path)
    x = np.linspace(0, 1, 33, dtype=np.float32)
    y = np.zeros_like(x)
    library.call("on_buffers", x, y)
    np.testing.assert_array_equal(y, np.full_like(x, x[0]))
    result = library.call("on_tensors", x)
    np.testing.assert_allclose(result, np.exp(np.exp(x)), rtol=1e-6)


def test_tosa(tmp_path: Path) -> None:
    library = build_library(
        f"""
func.func @net(%x: tensor<1x7x16xf32>, %w: tensor<1x16x5xf32>, %b: tensor<1x1x5xf32>)
    -> tensor<1x7x5xf32> {ATTRIBUTE} {{
  %zero = "tosa.const"() <{{values = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
  %m = tosa.matmul %x, %w, %zero, %zero
    : (tensor<1x7x16xf32>, tensor<1x16x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x7x5xf32>
  %s = tosa.add %m, %b : (tensor<1x7x5xf32>, tensor<1x1x5xf32>) -> tensor<1x7x5xf32>
  %r = tosa.tanh %s : (tensor<1x7x5xf32>) -> tensor<1x7x5xf32>
  return %r : tensor<1x7x5xf32>
}}""",
        tmp_path,
    )
    rng = np.random.default_rng(6)
    x, w, b = (rng.random(s, np.float32) for s in ((1, 7, 16), (1, 16, 5), (1, 1, 5)))
    result = np.zeros((1, 7, 5), np.float32)
    library.call("net", x, w, b, result)
    np.testing.assert_allclose(result, np.tanh(x @ w + b), rtol=1e-5)


SCHEDULED = f"""
module attributes {{transform.with_named_sequence}} {{
  func.func @fill(%x: memref<100xf32>, %v: f32) {ATTRIBUTE} {{
    linalg.fill ins(%v : f32) outs(%x : memref<100xf32>)
    return
  }}
  transform.named_sequence @__transform_main(%module: !transform.any_op {{transform.readonly}}) {{
    %fill = transform.structured.match ops{{["OPERATION"]}} in %module
      : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %fill tile_sizes [10]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }}
}}
"""


def test_the_schedule_of_a_module_is_run(tmp_path: Path) -> None:
    """A loop over tiles of ten: sequential, as the schedule says, and in it a kernel."""
    library = build_library(SCHEDULED.replace("OPERATION", "linalg.fill"), tmp_path)
    x = np.zeros(100, np.float32)
    library.call("fill", x, 3.5)
    np.testing.assert_array_equal(x, np.full(100, 3.5))


def test_a_schedule_that_fails_is_the_users(
    aotc: Callable[..., Outcome], mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    path = mlir_file(SCHEDULED.replace("OPERATION", "func.return"))
    done = aotc("build", path, "-o", tmp_path / "program")
    assert (done.code, done.stdout) == (2, "")
    assert "The module's schedule failed:" in done.stderr


def test_results_in_another_shape_are_not_copied(tmp_path: Path) -> None:
    """What is returned is made where the caller wants it."""
    program = f"""
func.func @shapes(%x: tensor<12xf32>) -> (tensor<1x12xf32>, tensor<24xf32>) {ATTRIBUTE} {{
  %y = arith.addf %x, %x : tensor<12xf32>
  %wide = tensor.expand_shape %y [[0, 1]] output_shape [1, 12]
      : tensor<12xf32> into tensor<1x12xf32>
  %empty = tensor.empty() : tensor<2x12xf32>
  %both = linalg.broadcast ins(%x : tensor<12xf32>) outs(%empty : tensor<2x12xf32>) dimensions = [0]
  %flat = tensor.collapse_shape %both [[0, 1]] : tensor<2x12xf32> into tensor<24xf32>
  return %wide, %flat : tensor<1x12xf32>, tensor<24xf32>
}}"""
    library = build_library(program, tmp_path)
    x = np.arange(12, dtype=np.float32)
    wide, flat = np.zeros((1, 12), np.float32), np.zeros(24, np.float32)
    library.call("shapes", x, wide, flat)
    np.testing.assert_array_equal(wide, 2 * x[None])
    np.testing.assert_array_equal(flat, np.tile(x, 2))
    text = build(program, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    assert text.count("gpu.launch_func") == 2
    assert "alloc" not in text


def test_rows_that_are_all_or_any(tmp_path: Path) -> None:
    """Reductions of bits, beside one of numbers: one kernel, right where rows are no warps."""
    reduce = """linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<37x45xf32>) outs(%{start} : tensor<37xi1>) {{
  ^bb0(%v: f32, %old: i1):
    %is = arith.cmpf ogt, %v, %half : f32
    %new = arith.{how} %is, %old : i1
    linalg.yield %new : i1
  }} -> tensor<37xi1>"""
    program = f"""
func.func @bits(%x: tensor<37x45xf32>) -> (tensor<37xi1>, tensor<37xi1>, tensor<37xf32>)
    {ATTRIBUTE} {{
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  %no = arith.constant false
  %bits = tensor.empty() : tensor<37xi1>
  %first = linalg.fill ins(%yes : i1) outs(%bits : tensor<37xi1>) -> tensor<37xi1>
  %last = linalg.fill ins(%no : i1) outs(%bits : tensor<37xi1>) -> tensor<37xi1>
  %numbers = tensor.empty() : tensor<37xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%numbers : tensor<37xf32>) -> tensor<37xf32>
  %all = {reduce.format(start="first", how="andi")}
  %any = {reduce.format(start="last", how="ori")}
  %most = linalg.reduce {{arith.maximumf}} ins(%x : tensor<37x45xf32>)
      outs(%zeros : tensor<37xf32>) dimensions = [1]
  return %all, %any, %most : tensor<37xi1>, tensor<37xi1>, tensor<37xf32>
}}"""
    library = build_library(program, tmp_path)
    x = np.random.default_rng(4).random((37, 45)).astype(np.float32)
    x[::3] += 0.5
    x[1::3] *= 0.5
    results = np.ones(37, bool), np.zeros(37, bool), np.zeros(37, np.float32)
    library.call("bits", x, *results)
    for got, expected in zip(results, ((x > 0.5).all(1), (x > 0.5).any(1), x.max(1)), strict=True):
        np.testing.assert_array_equal(got, expected)
    text = build(program, emit="mlir", out=tmp_path / "x.mlir", chips="sm_90").path.read_text()
    # A GPU's, and the CPU's.
    assert text.count("gpu.launch_func") == 2
    assert text.count("gpu.subgroup_reduce") == 3


PADDED = f"""
func.func @pad(%x: tensor<?x3xf32>) -> tensor<?x6xf32> {ATTRIBUTE} {{
  %one = arith.constant 1.0 : f32
  %y = tensor.pad %x low[0, 1] high[0, 2] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  }} : tensor<?x3xf32> to tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}}"""
# Both begin from one tensor of zeros, as equal operations become one.
SUMS = f"""
func.func @sums(%x: tensor<?x8xf32>) -> (tensor<?xf32>, tensor<?xf32>) {ATTRIBUTE} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x8xf32>
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.reduce {{ arith.addf }} ins(%x : tensor<?x8xf32>) outs(%zeros : tensor<?xf32>)
      dimensions = [1]
  %largest = linalg.reduce {{ arith.maximumf }} ins(%x : tensor<?x8xf32>)
      outs(%zeros : tensor<?xf32>) dimensions = [1]
  return %sum, %largest : tensor<?xf32>, tensor<?xf32>
}}"""


def test_one_loop_for_each_tensor_of_any_size(tmp_path: Path) -> None:
    """What is padded is written once; what is filled is filled by the loop that goes on."""
    for text in (PADDED, SUMS):
        options = {"emit": "mlir", "chips": "sm_90", "cpu_kernels": False}
        module = build(text, out=tmp_path / "out.mlir", **options).path.read_text()
        assert module.count("gpu.launch_func") == 1
        assert "memref.copy" not in module


def test_pads_of_any_batch(tmp_path: Path) -> None:
    library = build_library(PADDED, tmp_path)
    for rows in (0, 5):
        x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
        padded = np.pad(x, ((0, 0), (1, 2)), constant_values=1)
        np.testing.assert_array_equal(library.call("pad", x), padded)


def test_two_results_from_one_fill_of_any_size(tmp_path: Path) -> None:
    x = np.arange(40, dtype=np.float32).reshape(5, 8) - 20
    sums, largest = build_library(SUMS, tmp_path).call("sums", x)
    np.testing.assert_array_equal(sums, x.sum(1))
    np.testing.assert_array_equal(largest, np.maximum(x.max(1), 0))


@pytest.mark.parametrize("loop", ["for", "while"])
def test_what_a_loop_yields_twice_is_two_tensors(loop: str, tmp_path: Path) -> None:
    """One of them, which is changed behind the loop, is not the other one's memory."""
    type_ = "tensor<8x8xi32>"
    types = f"({type_}, {type_})"
    step = f"""%s = tensor.extract_slice %q[0, 0] [4, 8] [1, 1] : {type_} to tensor<4x8xi32>
    %v = tensor.insert_slice %s into %sum[4, 0] [4, 8] [1, 1] : tensor<4x8xi32> into {type_}"""
    loops = {
        "for": f"""%r:2 = scf.for %i = %c0 to %n step %c1
      iter_args(%p = %b, %q = %sum) -> {types} {{
    {step}
    scf.yield %v, %v : {type_}, {type_}
  }}""",
        "while": f"""%r:3 = scf.while (%i = %c0, %p = %b, %q = %sum)
      : (index, {type_}, {type_}) -> (index, {type_}, {type_}) {{
    %goes_on = arith.cmpi slt, %i, %n : index
    scf.condition(%goes_on) %i, %p, %q : index, {type_}, {type_}
  }} do {{
  ^bb0(%i: index, %p: {type_}, %q: {type_}):
    {step}
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %v, %v : index, {type_}, {type_}
  }}""",
    }
    one, other = ("%r#0", "%r#1") if loop == "for" else ("%r#1", "%r#2")
    text = f"""
func.func @f(%a: {type_}, %b: {type_}, %n: index) -> {type_} attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : {type_}
  %sum = linalg.add ins(%a, %b : {type_}, {type_}) outs(%empty : {type_}) -> {type_}
  {loops[loop]}
  %both = linalg.add ins({one}, {other} : {type_}, {type_}) outs(%empty : {type_}) -> {type_}
  %part = tensor.extract_slice %both[2, 0] [4, 8] [1, 1] : {type_} to tensor<4x8xi32>
  %changed = tensor.insert_slice %part into {one}[2, 0] [4, 8] [1, 1]
      : tensor<4x8xi32> into {type_}
  %d = linalg.sub ins(%changed, {other} : {type_}, {type_}) outs(%empty : {type_}) -> {type_}
  return %d : {type_}
}}"""
    library = build_library(text, tmp_path)
    a, b = np.arange(128, dtype=np.int32).reshape(2, 8, 8)
    for count in (0, 1, 3):
        one_, other_ = (b, a + b)
        for _ in range(count):
            one_ = other_ = np.concatenate([(a + b)[:4], other_[:4]])
        expected = one_ - other_
        expected[2:6] += other_[2:6]
        d = np.zeros((8, 8), np.int32)
        library.call("f", a, b, count, d)
        np.testing.assert_array_equal(d, expected)


def test_windows_of_unknown_size_read_the_beginning_of_their_input(tmp_path: Path) -> None:
    """One place along a dimension: the window ends before the image does, whose size is no number
    of iterations."""
    library = build_library(
        f"""
func.func @f(%x: tensor<2x1x5x3xf32>, %w: tensor<4x1x3x?xf32>) -> tensor<2x4x3x1xf32> {ATTRIBUTE} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x4x3x1xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x3x1xf32>) -> tensor<2x4x3x1xf32>
  %r = linalg.conv_2d_nchw_fchw {{strides = dense<[1, 3]> : tensor<2xi64>}}
    ins(%x, %w : tensor<2x1x5x3xf32>, tensor<4x1x3x?xf32>)
    outs(%y : tensor<2x4x3x1xf32>) -> tensor<2x4x3x1xf32>
  return %r : tensor<2x4x3x1xf32>
}}""",
        tmp_path,
    )
    x = np.arange(30, dtype=np.float32).reshape(2, 1, 5, 3)
    for columns in (1, 2, 3):
        w = np.arange(12 * columns, dtype=np.float32).reshape(4, 1, 3, columns)
        windows = np.lib.stride_tricks.sliding_window_view(x[:, 0, :, :columns], 3, axis=1)
        result = np.full((2, 4, 3, 1), -1, np.float32)
        library.call("f", x, w, result)
        np.testing.assert_array_equal(result[..., 0], np.einsum("nycx,fxc->nfy", windows, w[:, 0]))


def test_sizes_that_the_type_of_an_operand_says_hold_for_the_result(tmp_path: Path) -> None:
    library = build_library(
        f"""
func.func @f(%x: tensor<3x1x?x5xf32>, %n: index) -> tensor<3x?x3x1xf32> {ATTRIBUTE} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : tensor<3x?x3x1xf32>
  %y = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x?x3x1xf32>) -> tensor<3x?x3x1xf32>
  %w = tensor.empty() : tensor<2x3xf32>
  %r = linalg.pooling_nchw_sum {{dilations = dense<2> : tensor<2xi64>}}
    ins(%x, %w : tensor<3x1x?x5xf32>, tensor<2x3xf32>)
    outs(%y : tensor<3x?x3x1xf32>) -> tensor<3x?x3x1xf32>
  return %r : tensor<3x?x3x1xf32>
}}""",
        tmp_path,
    )
    x = np.arange(75, dtype=np.float32).reshape(3, 1, 5, 5)
    result = library.call("f", x, 1)
    rows = x[..., ::2].sum(axis=-1, keepdims=True)
    np.testing.assert_array_equal(result, rows[:, :, :3] + rows[:, :, 2:])
