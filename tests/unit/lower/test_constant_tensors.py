"""What is computed from constants alone is computed at build time, in the order in which it is
read; and what a call then still does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from helpers.native import Library, build_library

import aotc

ENTRY = "attributes {llvm.emit_c_interface}"
ROWS, COLUMNS = 5, 3
WEIGHT = np.arange(1, 1 + ROWS * COLUMNS).reshape(ROWS, COLUMNS) / 4


def transposed_product(type_: str, rows: int = 7) -> str:
    """A product with a weight that is there by its rows."""
    t = {
        "x": f"tensor<{rows}x{COLUMNS}x{type_}>",
        "w": f"tensor<{ROWS}x{COLUMNS}x{type_}>",
        "wt": f"tensor<{COLUMNS}x{ROWS}x{type_}>",
        "y": f"tensor<{rows}x{ROWS}x{type_}>",
    }
    return f"""
func.func @product_{type_}_{rows}(%x: {t["x"]}) -> {t["y"]} {ENTRY} {{
  %weight = arith.constant dense<{WEIGHT.tolist()}> : {t["w"]}
  %zero = arith.constant 0.0 : {type_}
  %empty = tensor.empty() : {t["wt"]}
  %turned = linalg.transpose ins(%weight : {t["w"]}) outs(%empty : {t["wt"]}) permutation = [1, 0]
  %start = tensor.empty() : {t["y"]}
  %zeros = linalg.fill ins(%zero : {type_}) outs(%start : {t["y"]}) -> {t["y"]}
  %y = linalg.matmul ins(%x, %turned : {t["x"]}, {t["wt"]}) outs(%zeros : {t["y"]}) -> {t["y"]}
  return %y : {t["y"]}
}}"""


# The scale of a norm: of 4 channels, as torch-mlir has it, with what it asserts.
NORM = f"""
func.func @norm(%x: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {ENTRY} {{
  %variance = arith.constant dense<[VARIANCES]> : tensor<4xf32>
  %epsilon = arith.constant 0.25 : f64
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %root = linalg.generic {{indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>],
      iterator_types = ["parallel"]}} ins(%variance : tensor<4xf32>) outs(%empty : tensor<4xf32>) {{
  ^bb0(%v: f32, %unused: f32):
    %small = arith.truncf %epsilon : f64 to f32
    %sum = arith.addf %v, %small : f32
    %r = math.sqrt %sum : f32
    linalg.yield %r : f32
  }} -> tensor<4xf32>
  %scale = linalg.generic {{indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>],
      iterator_types = ["parallel"]}} ins(%root : tensor<4xf32>) outs(%empty : tensor<4xf32>) {{
  ^bb0(%v: f32, %unused: f32):
    %is_right = arith.cmpf one, %v, %zero : f32
    cf.assert %is_right, "a scale of nothing"
    %r = arith.divf %one, %v : f32
    linalg.yield %r : f32
  }} -> tensor<4xf32>
  %wide = tensor.expand_shape %scale [[0, 1]] output_shape [4, 1]
      : tensor<4xf32> into tensor<4x1xf32>
  %start = tensor.empty() : tensor<2x4x6xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(n, c, i) -> (n, c, i)>,
      affine_map<(n, c, i) -> (c, 0)>, affine_map<(n, c, i) -> (n, c, i)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x, %wide : tensor<2x4x6xf32>, tensor<4x1xf32>) outs(%start : tensor<2x4x6xf32>) {{
  ^bb0(%a: f32, %s: f32, %unused: f32):
    %r = arith.mulf %a, %s : f32
    linalg.yield %r : f32
  }} -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}}"""
VARIANCES = [0.0, 3.75, 8.75, -0.125]

# What may be seen: places, of which a table says more. Bits on the way, numbers in the end.
MASK = f"""
func.func @mask(%x: tensor<6x6xf32>) -> tensor<6x6xf32> {ENTRY} {{
  %allowed = arith.constant dense<true> : tensor<6x6xi1>
  %zero = arith.constant 0 : i64
  %kept = arith.constant 0.0 : f32
  %hidden = arith.constant -1.0e3 : f32
  %empty = tensor.empty() : tensor<6xi64>
  %places = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} outs(%empty : tensor<6xi64>) {{
  ^bb0(%unused: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    linalg.yield %n : i64
  }} -> tensor<6xi64>
  %bits = tensor.empty() : tensor<6x6xi1>
  %seen = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%places, %places, %allowed : tensor<6xi64>, tensor<6xi64>, tensor<6x6xi1>)
      outs(%bits : tensor<6x6xi1>) {{
  ^bb0(%j: i64, %i: i64, %a: i1, %unused: i1):
    %d = arith.subi %j, %i : i64
    %before = arith.cmpi sle, %d, %zero : i64
    %r = arith.andi %before, %a : i1
    linalg.yield %r : i1
  }} -> tensor<6x6xi1>
  %start = tensor.empty() : tensor<6x6xf32>
  %mask = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%seen : tensor<6x6xi1>) outs(%start : tensor<6x6xf32>) {{
  ^bb0(%s: i1, %unused: f32):
    %r = arith.select %s, %kept, %hidden : f32
    linalg.yield %r : f32
  }} -> tensor<6x6xf32>
  %y = arith.addf %x, %mask : tensor<6x6xf32>
  return %y : tensor<6x6xf32>
}}"""

PAD = f"""
func.func @pad(%x: tensor<3x4xf32>) -> tensor<3x9xf32> {ENTRY} {{
  %seven = arith.constant 7.0 : f32
  %y = tensor.pad %x low[0, 2] high[0, 3] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %seven : f32
  }} : tensor<3x4xf32> to tensor<3x9xf32>
  return %y : tensor<3x9xf32>
}}"""

# Two sums that begin with one tensor of zeros, in two shapes.
SUMS = f"""
func.func @sums(%x: tensor<4x6xf32>, %z: tensor<24x2xf32>)
    -> (tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>) {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %square = tensor.expand_shape %zeros [[0, 1]] output_shape [2, 2]
      : tensor<4xf32> into tensor<2x2xf32>
  %a = linalg.reduce {{arith.addf}} ins(%x : tensor<4x6xf32>) outs(%zeros : tensor<4xf32>)
      dimensions = [1]
  %b = linalg.reduce {{arith.maximumf}} ins(%x : tensor<4x6xf32>) outs(%zeros : tensor<4xf32>)
      dimensions = [1]
  %t = tensor.expand_shape %z [[0, 1], [2]] output_shape [12, 2, 2]
      : tensor<24x2xf32> into tensor<12x2x2xf32>
  %c = linalg.reduce {{arith.addf}} ins(%t : tensor<12x2x2xf32>) outs(%square : tensor<2x2xf32>)
      dimensions = [0]
  return %a, %c, %b : tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>
}}"""


def norm(variances: list[float]) -> str:
    return NORM.replace("VARIANCES", ", ".join(map(str, variances)))


PROGRAM = "\n".join(
    [
        *(transposed_product(type_) for type_ in ("f16", "f32", "f64")),
        transposed_product("f32", 1),
        norm(VARIANCES),
        MASK,
        PAD,
        SUMS,
    ]
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_library(PROGRAM, tmp_path_factory.mktemp("constants"), "-O1")


def lowered(text: str, folder: Path) -> str:
    return aotc.build(text, emit="mlir", out=folder / "x.mlir", chips="sm_90").path.read_text()


@pytest.mark.parametrize(
    ("type_", "rows"), [("f16", 7), ("f32", 7), ("f64", 7), ("f32", 1)], ids=str
)
def test_a_transposed_weight(type_: str, rows: int, library: Library) -> None:
    dtype = np.dtype(f"f{type_[1:]}".replace("16", "2").replace("32", "4").replace("64", "8"))
    x = np.arange(rows * COLUMNS).reshape(rows, COLUMNS).astype(dtype)
    y = np.full((rows, ROWS), 77, dtype)
    library.call(f"product_{type_}_{rows}", x, y)
    np.testing.assert_array_equal(y, x @ WEIGHT.T)


def test_weights_are_in_the_order_that_is_read(tmp_path: Path) -> None:
    text = lowered(transposed_product("f32"), tmp_path)
    (variable,) = re.findall(r"constant @__constant\S* : (\S+) = dense", text)
    assert variable == f"memref<{COLUMNS}x{ROWS}xf32>"


def test_what_takes_nothing_is_not_run_by_the_build(tmp_path: Path) -> None:
    """A program of literals is to be run where it is called."""
    program = """func.func @f() -> tensor<3x2xf32> attributes {llvm.emit_c_interface} {
      %a = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
      %e = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>)
        permutation = [1, 0]
      return %t : tensor<3x2xf32>
    }"""
    assert "gpu.launch_func" in lowered(program, tmp_path)


def test_a_vector_is_multiplied_by_rows(tmp_path: Path) -> None:
    """A warp for each row: of columns, each would be one thread's. (MLIR itself folds what is no
    resource.)"""
    program = transposed_product("f32", 1)
    digits = np.ones(ROWS * COLUMNS, np.float32).tobytes().hex()
    program = program.replace(f"dense<{WEIGHT.tolist()}>", "dense_resource<weight>")
    program += (
        f"""\n{{-# dialect_resources: {{ builtin: {{ weight: "0x04000000{digits}" }} }} #-}}"""
    )
    text = lowered(program, tmp_path)
    (variable,) = re.findall(r"constant @__constant\S* : (\S+) = dense", text)
    assert variable == f"memref<{ROWS}x{COLUMNS}xf32>"


@pytest.mark.parametrize(("size", "count"), [(100, 2), (200, 1)])
def test_a_weight_that_is_used_in_both_orders(size: int, count: int, tmp_path: Path) -> None:
    """A small one is there twice, a large one once."""
    t = f"tensor<{size}x{size}xf32>"
    digits = np.arange(size * size, dtype=np.float32).tobytes().hex()
    text = lowered(
        f"""
func.func @both(%x: {t}) -> ({t}, {t}) {ENTRY} {{
  %weight = arith.constant dense<"0x{digits}"> : {t}
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {t}
  %turned = linalg.transpose ins(%weight : {t}) outs(%empty : {t}) permutation = [1, 0]
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {t}) -> {t}
  %a = linalg.matmul ins(%x, %turned : {t}, {t}) outs(%zeros : {t}) -> {t}
  %b = linalg.matmul ins(%x, %weight : {t}, {t}) outs(%zeros : {t}) -> {t}
  return %a, %b : {t}, {t}
}}""",
        tmp_path,
    )
    assert len(re.findall(r"constant @__constant\S* : \S+ = dense", text)) == count


def test_a_weight_in_two_products(tmp_path: Path) -> None:
    """Two transposes of one weight are one."""
    t = "tensor<200x200xf32>"
    digits = np.arange(200 * 200, dtype=np.float32).tobytes().hex()
    lines = [
        f"""%e{i} = tensor.empty() : {t}
  %w{i} = linalg.transpose ins(%weight : {t}) outs(%e{i} : {t}) permutation = [1, 0]
  %z{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {t}) -> {t}
  %p{i} = linalg.matmul ins(%p{i - 1}, %w{i} : {t}, {t}) outs(%z{i} : {t}) -> {t}"""
        for i in (1, 2)
    ]
    text = lowered(
        f"""
func.func @twice(%p0: {t}) -> {t} {ENTRY} {{
  %weight = arith.constant dense<"0x{digits}"> : {t}
  %zero = arith.constant 0.0 : f32
  {lines[0]}
  {lines[1]}
  return %p2 : {t}
}}""",
        tmp_path,
    )
    (variable,) = re.findall(r"constant @(__constant\S*) : \S+ = dense", text)
    (folded,) = set(re.findall(r"(aotc_folded\S*): \"0x(?:.{8})(.{16})", text))
    assert folded[1] == np.array([0, 200], np.float32).tobytes().hex().upper()
    assert variable


def test_a_norm(library: Library) -> None:
    x = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    y = np.zeros_like(x)
    library.call("norm", x, y)
    root = np.sqrt(np.array(VARIANCES, np.float32) + np.float32(0.25))
    np.testing.assert_array_equal(y, x * (np.float32(1) / root).reshape(4, 1))


def test_a_norm_is_one_kernel(tmp_path: Path) -> None:
    text = lowered(norm(VARIANCES), tmp_path)
    assert text.count("gpu.launch_func") == 1
    assert "cf.assert" not in text
    assert "math.sqrt" not in text


def test_an_assertion_that_fails_is_left(tmp_path: Path) -> None:
    """It fails where it always did: in a call."""
    assert "cf.assert" in lowered(norm([-0.25, 1.0, 1.0, 1.0]), tmp_path)


def test_a_mask(library: Library) -> None:
    x = np.arange(36, dtype=np.float32).reshape(6, 6)
    y = np.zeros_like(x)
    library.call("mask", x, y)
    np.testing.assert_array_equal(y, np.where(np.tri(6, dtype=bool), x, x - 1000))


def test_a_mask_is_one_kernel(tmp_path: Path) -> None:
    text = lowered(MASK, tmp_path)
    assert text.count("gpu.launch_func") == 1
    assert "arith.cmpi sle" not in text


def test_pads(library: Library, tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = np.zeros((3, 9), np.float32)
    library.call("pad", x, y)
    np.testing.assert_array_equal(y, np.pad(x, ((0, 0), (2, 3)), constant_values=7))
    # One on GPUs, and one of vectors on the CPU.
    assert lowered(PAD, tmp_path).count("gpu.launch_func") == 2


def test_sums_that_begin_alike(library: Library, tmp_path: Path) -> None:
    numbers = np.random.default_rng(2)
    x, z = (numbers.random(s).astype(np.float32) for s in ((4, 6), (24, 2)))
    a, c, b = np.zeros(4, np.float32), np.zeros((2, 2), np.float32), np.zeros(4, np.float32)
    library.call("sums", x, z, a, c, b)
    np.testing.assert_allclose(a, x.sum(1), rtol=1e-6)
    np.testing.assert_allclose(b, x.max(1), rtol=0)
    np.testing.assert_allclose(c, z.reshape(12, 2, 2).sum(0), rtol=1e-6)
    assert "gpu.alloc" not in lowered(SUMS, tmp_path)


def test_a_product_repeats_no_work(tmp_path: Path) -> None:
    """exp is computed once for each element, not once for each column of the weight."""
    text = lowered(
        f"""
func.func @layer(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>) -> tensor<64x48xf32> {ENTRY} {{
  %zero = arith.constant 0.0 : f32
  %e = math.exp %x : tensor<64x32xf32>
  %s = arith.addf %e, %x : tensor<64x32xf32>
  %empty = tensor.empty() : tensor<64x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %y = linalg.matmul ins(%s, %w : tensor<64x32xf32>, tensor<32x48xf32>)
      outs(%zeros : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}}""",
        tmp_path,
    )
    kernels = text.split("gpu.func")[1:]
    assert [("math.exp" in kernel, "scf.for" in kernel) for kernel in kernels] == [
        (True, False),
        (False, True),
    ]


def test_a_flipped_weight_is_a_constant(tmp_path: Path) -> None:
    """Transposed convolutions flip their filters: torch-mlir extracts the elements of a flip."""
    size = 160
    t, r = f"tensor<{size}x{size}xf32>", f"tensor<8x{size}xf32>"
    weight = np.random.default_rng(5).random((size, size)).astype(np.float32)
    text = f"""
func.func @flipped(%x: {r}) -> {r} {ENTRY} {{
  %weight = arith.constant dense<"0x{weight.tobytes().hex()}"> : {t}
  %last = arith.constant {size - 1} : index
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {t}
  %flip = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} outs(%empty : {t}) {{
  ^bb0(%unused: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %from = arith.subi %last, %i : index
    %element = tensor.extract %weight[%from, %j] : {t}
    linalg.yield %element : f32
  }} -> {t}
  %start = tensor.empty() : {r}
  %zeros = linalg.fill ins(%zero : f32) outs(%start : {r}) -> {r}
  %y = linalg.matmul ins(%x, %flip : {r}, {t}) outs(%zeros : {r}) -> {r}
  return %y : {r}
}}"""
    made = lowered(text, tmp_path)
    assert len(re.findall(r"constant @__constant\S* : \S+ = dense", made)) == 1
    assert "arith.subi %c159" not in made
    x, y = np.random.default_rng(6).random((8, size)).astype(np.float32), np.zeros((8, size), "f4")
    build_library(text, tmp_path).call("flipped", x, y)
    np.testing.assert_allclose(y, x.astype(np.float64) @ weight[::-1], rtol=1e-5)
