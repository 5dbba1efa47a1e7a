"""Products of a vector and quantized weights: one pass over the weights as they are packed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import ml_dtypes
import numpy as np
import pytest
from helpers.command import Outcome
from helpers.shared import made_once, shared_folder
from msgspec import Struct

import aotc as package
from aotc import ops
from aotc.analysis.aliasing import Roots
from aotc.analysis.functions import Functions
from aotc.builder import Builder
from aotc.kernels.matmul.dequantized import mma_sync, persistent
from aotc.kernels.matmul.dequantized.body import is_implied
from aotc.kernels.matmul.dequantized.kernel import Kernel, Variant
from aotc.kernels.matmul.dequantized.operands import Result
from aotc.kernels.matmul.dequantized.recognition import Product, matmul_of, recognise_product
from aotc.kernels.matmul.fusion.fuse import fuse, remove_temporary, unfused
from aotc.mlir import ir


class Case(Struct, frozen=True):
    """`bits` of a weight; `body` makes %w of %byte, the shift %s, %scale and %zero. `group`: of
    inputs that have them in common. `element`: of x, and of scales where it is a half. `adds`: to
    what is in y. `variant`: of the kernel on tensor cores. `columns`: several vectors.
    `has_epilogue`: y is doubled and added to what is there."""

    bits: int
    rows: int
    group: int
    groups: int
    body: str
    element: str = "f16"
    adds: bool = False
    variant: mma_sync.Variant | persistent.Variant | None = None
    columns: int = 0
    has_epilogue: bool = False
    packed: str = "i8"

    @property
    def in_a_byte(self) -> int:
        return 8 // self.bits

    @property
    def inputs(self) -> int:
        return self.group * self.groups

    @property
    def half(self) -> str:
        return "bf16" if self.element == "bf16" else "f16"


UNSIGNED = """
    %wide = arith.extui %byte : i8 to i32
    %moved = arith.shrsi %wide, %s : i32
    %bits = arith.andi %moved, %mask : i32
    %number = arith.sitofp %bits : i32 to f16
    %less = arith.subf %number, %zero : f16
    %w = arith.mulf %less, %scale : f16"""
SIGNED = """
    %number = arith.sitofp %byte : i8 to f16
    %w = arith.mulf %number, %scale : f16"""
# Of integers that are no bits of a byte alone.
BIASED = """
    %wide = arith.extui %byte : i8 to i32
    %moved = arith.shrui %wide, %s : i32
    %bits = arith.andi %moved, %mask : i32
    %less = arith.subi %bits, %bias : i32
    %number = arith.sitofp %less : i32 to f16
    %w = arith.mulf %number, %scale : f16"""
BIASED_WITH_ZERO = BIASED.replace(
    "%w = arith.mulf %number",
    """%other = arith.subf %number, %zero : f16
    %w = arith.mulf %other""",
)
# Of numbers whose highest bits are signs: of 4 bits, and of one, which is -1 or 0.
NARROW = """
    %wide = arith.extui %byte : i8 to i32
    %moved = arith.shrui %wide, %s : i32
    %four = arith.trunci %moved : i32 to i4
    %signed = arith.extsi %four : i4 to i32
    %no = arith.constant 0 : index
    %is_second = arith.cmpi ne, %h, %no : index
    %minus = arith.extsi %is_second : i1 to i32
    %both = arith.addi %signed, %minus : i32
    %number = arith.sitofp %both : i32 to f16
    %w = arith.mulf %number, %scale : f16"""
E4M3 = """
    %number = arith.extf %byte : f8E4M3FN to f16
    %w = arith.mulf %number, %scale : f16"""
E5M2 = E4M3.replace("f8E4M3FN", "f8E5M2")
# Without a scale.
E4M3_ALONE = """
    %w = arith.extf %byte : f8E4M3FN to f16"""
TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
FLOATS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
TO_F32 = """
    %number = arith.sitofp %byte : i8 to f32
    %ws = arith.extf %scale : f16 to f32
    %w = arith.mulf %number, %ws : f32"""

CASES = {
    "int4": Case(4, 72, 128, 10, UNSIGNED),
    "int4_few_groups": Case(4, 16, 64, 2, UNSIGNED, adds=True),
    "int4_epilogue": Case(4, 9, 64, 2, UNSIGNED, has_epilogue=True),
    "int2": Case(2, 9, 64, 8, UNSIGNED),
    "int8": Case(8, 33, 32, 40, SIGNED),
    "int4_biased": Case(4, 8, 32, 33, BIASED),
    "int8_f32": Case(8, 12, 16, 9, TO_F32, element="f32"),
    "e4m3": Case(8, 33, 32, 40, E4M3, packed="f8E4M3FN"),
    "e5m2": Case(8, 9, 64, 3, E5M2, packed="f8E5M2", adds=True),
    "e4m3_alone": Case(8, 9, 32, 4, E4M3_ALONE, packed="f8E4M3FN"),
    # With a loop, and steps before it; fewer rows than a tile; two tiles of columns.
    "mma_int4": Case(
        4, 72, 128, 10, UNSIGNED, variant=mma_sync.Variant(1, 2, 2, 4, loads_first=True)
    ),
    "mma_int4_bf16": Case(
        4, 16, 128, 4, UNSIGNED, element="bf16", variant=mma_sync.Variant(1, 1, 2, 1)
    ),
    "mma_int8_bf16": Case(
        8, 16, 64, 4, SIGNED, element="bf16", variant=mma_sync.Variant(1, 1, 2, 1)
    ),
    "mma_int4_adds": Case(4, 9, 64, 4, BIASED, adds=True, variant=mma_sync.Variant(1, 1, 2, 1)),
    "mma_int4_biased": Case(4, 9, 64, 2, BIASED_WITH_ZERO, variant=mma_sync.Variant(1, 1, 1, 1)),
    "mma_int4_narrow": Case(4, 9, 64, 2, NARROW, variant=mma_sync.Variant(1, 1, 1, 1)),
    "mma_int2": Case(2, 40, 64, 16, UNSIGNED, variant=mma_sync.Variant(2, 1, 1, 2)),
    "mma_int8": Case(
        8, 33, 32, 8, SIGNED, variant=mma_sync.Variant(1, 4, 1, 4), columns=3, has_epilogue=True
    ),
    "mma_e4m3": Case(
        8, 33, 32, 8, E4M3, variant=mma_sync.Variant(1, 4, 1, 4), columns=3, packed="f8E4M3FN"
    ),
    # Blocks that stay, with two or three strips each: of a group, of two; the last rows missing.
    "persistent_int4": Case(
        4, 80, 128, 4, UNSIGNED, adds=True, variant=persistent.Variant(2, 2, 2, 2)
    ),
    "persistent_int4_groups": Case(
        4, 73, 128, 5, UNSIGNED, variant=persistent.Variant(1, 1, 3, 2), has_epilogue=True
    ),
    "persistent_int8": Case(
        8, 33, 128, 2, SIGNED, element="bf16", variant=persistent.Variant(1, 2, 1, 1)
    ),
    "mma_int8_wide": Case(8, 33, 32, 6, SIGNED, variant=mma_sync.Variant(2, 1, 2, 1), columns=11),
}

# Rows that are no multiple of those of a block, or too many columns for several rows at once.
CPU_CASES = {
    "cpu_int4_rows": Case(4, 515, 32, 3, UNSIGNED),
    "cpu_int4_columns": Case(4, 10, 64, 2, UNSIGNED, columns=16),
    "cpu_int1": Case(1, 7, 128, 2, UNSIGNED),
    "cpu_int2_columns": Case(2, 67, 64, 2, UNSIGNED, columns=5, has_epilogue=True),
    "cpu_narrow": Case(4, 9, 64, 2, NARROW),
    "cpu_biased": Case(4, 9, 64, 2, BIASED_WITH_ZERO, columns=2),
}


def _function(name: str, case: Case) -> str:
    """The operation as it is on buffers: loops for rows, groups, bytes and weights of a byte."""
    bytes_, count = case.group // case.in_a_byte, case.in_a_byte
    wide = "" if case.element == "f32" else f"    %wx = arith.extf %x : {case.half} to f32\n"
    of_x = "%x" if case.element == "f32" else "%wx"
    body = case.body.replace("f16", case.half)
    of_w = "" if "f16 to f32" in body else f"    %ww = arith.extf %w : {case.half} to f32\n"
    m, of_m, loop = (f"{case.columns}x", "m, ", '"parallel", ') if case.columns else ("", "", "")
    last = 4 if case.columns else 3
    x, packed = (
        f"memref<{m}{case.groups}x{bytes_}x{count}x{case.element}>",
        (f"memref<{case.rows}x{case.groups}x{bytes_}x{case.packed}>"),
    )
    scales, y = f"memref<{case.rows}x{case.groups}x{case.half}>", f"memref<{m}{case.rows}xf32>"
    ids = "affine_map<(i, j) -> (i, j)>" if case.columns else "affine_map<(i) -> (i)>"
    fill = f"""  linalg.generic {{indexing_maps = [{ids}], iterator_types = [{loop}"parallel"]}}
      outs(%y : {y}) {{
  ^bb0(%o: f32):
    linalg.yield %none : f32
  }}
"""
    if case.adds:
        fill = ""
    maps = ", ".join(
        f"affine_map<({of_m}n, g, b, h) -> ({one})>"
        for one in (f"{of_m}g, b, h", "n, g, b", "n, g", "n, g", f"{of_m}n")
    )
    given, end = "%y", ""
    if case.has_epilogue:
        given = "%z"
        fill = f"  %y = memref.alloc() : {y}\n{fill}"
        end = f"""  linalg.generic {{indexing_maps = [{ids}, {ids}],
      iterator_types = [{loop}"parallel"]}} ins(%y : {y}) outs(%z : {y}) {{
  ^bb0(%a: f32, %o: f32):
    %twice = arith.addf %a, %a : f32
    %more = arith.addf %twice, %o : f32
    linalg.yield %more : f32
  }}
"""
    return f"""
func.func @{name}(%X: {x}, %packed: {packed}, %scales: {scales}, %zeros: {scales}, {given}: {y})
    attributes {{llvm.emit_c_interface}} {{
  %none = arith.constant 0.0 : f32
  %mask = arith.constant {(1 << case.bits) - 1} : i32
  %bias = arith.constant 8 : i32
  %bits_of_one = arith.constant {case.bits} : index
{fill}  linalg.generic {{indexing_maps = [{maps}],
      iterator_types = [{loop}"parallel", "reduction", "reduction", "reduction"]}}
      ins(%X, %packed, %scales, %zeros : {x}, {packed}, {scales}, {scales}) outs(%y : {y}) {{
  ^bb0(%x: {case.element}, %byte: {case.packed}, %scale: {case.half}, %zero: {case.half}, %o: f32):
    %h = linalg.index {last} : index
    %hs = arith.muli %h, %bits_of_one : index
    %s = arith.index_cast %hs : index to i32{body}
{wide}{of_w}    %p = arith.mulf {of_x}, {"%ww" if of_w else "%w"} : f32
    %sum = arith.addf %o, %p : f32
    linalg.yield %sum : f32
  }}
{end}  return
}}
"""


def _with_kernels(text: str) -> str:
    """The module with kernels in the place of the operations, on every device."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        roots = Roots(Functions(module))
        generics = ops.find(module.operation, "linalg.generic")
        products = [one for one in (recognise_product(each, roots) for each in generics) if one]
        assert len(products) == len(CASES)
        for product, case in zip(products, CASES.values(), strict=True):
            fused = fuse(matmul_of(product), roots, [], [])
            assert (fused.epilogue is not None) == case.has_epilogue
            with ir.InsertionPoint(fused.replaced[-1]):
                c, *values = [one.make() for one in fused.operands[2:]]
                epilogue = fused.epilogue and fused.epilogue.bind(
                    fused.problem.epilogue_operands, values
                )
                b, result = Builder(), Result(c, case.adds, epilogue)
                if case.variant is None:
                    Kernel(b, product, Variant(), result).build()
                elif isinstance(case.variant, persistent.Variant):
                    persistent.PersistentKernel(b, product, case.variant, result).build()
                else:
                    assert mma_sync.can_implement(product)
                    mma_sync.TensorCoreKernel(b, product, case.variant, result).build()
            for operation in reversed(fused.replaced):
                ops.erase(operation)
            for temporary in fused.temporaries:
                remove_temporary(temporary)
        module.operation.verify()
        return str(module)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> package.Library:
    def make(folder: Path) -> None:
        text = _with_kernels("\n".join(_function(name, case) for name, case in CASES.items()))
        package.build(text, emit="shared", out=f"{folder}/", name="q", chips=("sm_80",))

    folder = made_once(shared_folder(tmp_path_factory) / "dequantized", make)
    loaded = package.load(folder / "lib" / "libq.so")
    loaded.set_device("cpu")
    return loaded


# Of the CPU device's kernel: the processor's highest level, AVX2, and none.
LEVELS = {"": None, "avx2": "3", "oldest": "1"}


@pytest.fixture(scope="module", params=LEVELS)
def cpu_library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[package.Library]:
    def make(folder: Path) -> None:
        cases = {**CASES, **CPU_CASES}
        text = "\n".join(_function(name, case) for name, case in cases.items())
        package.build(text, emit="shared", out=f"{folder}/", name="q", chips=())

    folder = made_once(shared_folder(tmp_path_factory) / "dequantized_cpu", make)
    # A copy of its own asks for the level once.
    own = shutil.copytree(folder, tmp_path_factory.mktemp("level") / "q")
    with pytest.MonkeyPatch.context() as patch:
        if (level := LEVELS[request.param]) is not None:
            patch.setenv("AOTC_CPU_LEVEL", level)
        yield package.load(own)


@pytest.mark.parametrize("name", CASES)
def test_products_are_right(library: package.Library, name: str) -> None:
    _check(library, name, CASES[name])


@pytest.mark.parametrize("name", [*CASES, *CPU_CASES])
def test_the_cpus_products_are_right(cpu_library: package.Library, name: str) -> None:
    _check(cpu_library, name, {**CASES, **CPU_CASES}[name])


def _check(library: package.Library, name: str, case: Case) -> None:
    """Results as f64 has them, of weights that are rounded as the operation says."""
    random = np.random.default_rng(case.rows)
    half = TYPES[case.half]
    dtype = np.float32 if case.element == "f32" else half
    outer = (case.columns,) if case.columns else ()
    x = random.standard_normal((*outer, case.inputs)).astype(dtype)
    packed = random.integers(-128, 128, (case.rows, case.inputs // case.in_a_byte), np.int8)
    if case.packed in FLOATS:
        packed = packed.view(FLOATS[case.packed])
        packed[~np.isfinite(packed.astype(np.float32))] = 0
    shape = (case.rows, case.groups)
    scales = (random.random(shape) * 0.1).astype(half)
    # Of integers, and of numbers whose difference to 1024 is rounded: in some groups both. (The
    # CPU device does not round between operations of bf16.)
    zeros = random.integers(0, 16, shape).astype(half)
    if case.half == "f16":
        zeros[1::2, ::2] += random.random(shape)[1::2, ::2].astype(half)
    if case.body is BIASED_WITH_ZERO:
        # Its sum with 1032 is rounded, and so is the difference to that, which is the zero again.
        zeros[:] = 32768
    y = random.standard_normal((*outer, case.rows)).astype(np.float32)
    old = y.copy() if case.adds or case.has_epilogue else 0
    bytes_ = case.group // case.in_a_byte
    library[name](
        x.reshape(*outer, case.groups, bytes_, case.in_a_byte),
        packed.reshape(case.rows, case.groups, bytes_),
        scales,
        zeros,
        y,
    )
    q = packed.astype(half)
    if case.bits < 8:
        shifts = np.arange(0, 8, case.bits, np.uint8)
        q = (packed.view(np.uint8)[..., None] >> shifts & ((1 << case.bits) - 1)).astype(half)
    q = q.reshape(case.rows, case.groups, case.group)
    if case.body is UNSIGNED:
        q = q - zeros[..., None]
    elif case.body is BIASED:
        q = q - np.float16(8)
    elif case.body is BIASED_WITH_ZERO:
        q = q - np.float16(8) - zeros[..., None]
    elif case.body is NARROW:
        q = np.where(q > 7, q - 16, q) - np.arange(case.group, dtype=half) % 2
    elif case.body is E4M3_ALONE:
        scales[:] = 1
    w = q.astype(dtype) * scales[..., None].astype(dtype)
    exact = w.reshape(case.rows, -1).astype(np.float64).T
    expected = (1 + case.has_epilogue) * (x.astype(np.float64) @ exact) + old
    scale = np.abs(x).astype(np.float64) @ np.abs(exact)
    assert (np.abs(y - expected) / scale).max() < 1e-6


def test_sums_are_exact_where_those_with_a_larger_number_are() -> None:
    """For all numbers of f16; and for 16, which is no multiple of their last bits, they are not."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = numbers[np.isfinite(numbers)]

    def are_exact(excess: int) -> np.ndarray:
        exact = numbers.astype(np.float64) + excess
        return exact.astype(np.float16) == exact

    powers = [1 << i for i in range(4, 11)]
    with np.errstate(over="ignore"):
        exact = {one: are_exact(one) for one in powers}
    for larger in powers:
        for excess in (one for one in powers if one < larger):
            follows = bool(np.all(exact[excess] | ~exact[larger]))
            assert is_implied(excess, larger) == follows, (excess, larger)


@pytest.mark.parametrize(
    ("rows", "groups", "is_chosen"), [(28672, 32, True), (6144, 32, False), (28672, 400, False)]
)
def test_many_rows_have_blocks_that_stay(rows: int, groups: int, is_chosen: bool) -> None:
    """A block with few strips has no next one whose copies go on. Shared memory has place for x."""
    case = Case(4, rows, 128, groups, UNSIGNED)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(_function("product", case))
        roots = Roots(Functions(module))
        generics = ops.find(module.operation, "linalg.generic")
        (product,) = [one for each in generics if (one := recognise_product(each, roots))]
        variant = persistent.choose_variant(product, overlaps_previous=True)
        assert (variant is not None) == is_chosen


def _quantized(element: str = "f16", weight: str = "i8", rows: int = 0) -> str:
    """A product as people write it, of weights of a byte with a scale for 32 inputs."""
    cast = "sitofp" if weight.startswith("i") else "extf"
    m, of_m, loop = (f"{rows}x", "m, ", '"parallel", ') if rows else ("", "", "")
    y = f"tensor<{m}512xf32>"
    return f"""
func.func @product(%x: tensor<{m}1024xf16>, %q: tensor<512x1024x{weight}>,
                   %scales: tensor<512x32x{element}>) -> {y}
    attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %groups = tensor.expand_shape %q [[0], [1, 2]] output_shape [512, 32, 32]
      : tensor<512x1024x{weight}> into tensor<512x32x32x{weight}>
  %e = tensor.empty() : tensor<512x32x32x{element}>
  %scaled = linalg.generic {{indexing_maps = [affine_map<(n, g, k) -> (n, g, k)>,
      affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%groups, %scales : tensor<512x32x32x{weight}>, tensor<512x32x{element}>)
      outs(%e : tensor<512x32x32x{element}>) {{
  ^bb0(%byte: {weight}, %scale: {element}, %o: {element}):
    %number = arith.{cast} %byte : {weight} to {element}
    %w = arith.mulf %number, %scale : {element}
    linalg.yield %w : {element}
  }} -> tensor<512x32x32x{element}>
  %W = tensor.collapse_shape %scaled [[0], [1, 2]]
      : tensor<512x32x32x{element}> into tensor<512x1024x{element}>
  %empty = tensor.empty() : {y}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %y = linalg.generic {{indexing_maps = [affine_map<({of_m}n, k) -> ({of_m}k)>,
      affine_map<({of_m}n, k) -> (n, k)>, affine_map<({of_m}n, k) -> ({of_m}n)>],
      iterator_types = [{loop}"parallel", "reduction"]}}
      ins(%x, %W : tensor<{m}1024xf16>, tensor<512x1024x{element}>) outs(%zeros : {y}) {{
  ^bb0(%a: f16, %b: {element}, %o: f32):
    %wa = arith.extf %a : f16 to f32
    %wb = arith.extf %b : {element} to f32
    %p = arith.mulf %wa, %wb : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {y}
  return %y : {y}
}}
"""


@pytest.mark.parametrize(
    ("why", "text", "is_found"),
    [
        ("weights of a byte", _quantized(), True),
        ("floats of a byte", _quantized(weight="f8E4M3FN"), True),
        ("several vectors", _quantized(rows=5), True),
        ("many vectors are a matmul's", _quantized(rows=17), False),
        ("weights of two bytes are no narrower", _quantized(weight="i16"), False),
    ],
)
def test_what_is_found(
    why: str,
    text: str,
    is_found: bool,
    aotc: Callable[..., Outcome],
    mlir_file: Callable[..., Path],
    tmp_path: Path,
) -> None:
    arguments = ("--chip", "sm_90a", "--emit", "mlir", "--explain", "-o", tmp_path / "out.mlir")
    done = aotc("build", mlir_file(text), *arguments).succeeded()
    found = re.findall(
        r"product of (a vector|5 vectors) and weights of a byte: .* by mma.sync",
        done.stderr + done.stdout,
    )
    assert bool(found) == is_found, why


@pytest.mark.parametrize("count", [3, 6])
def test_a_byte_has_any_number_of_weights(tmp_path: Path, count: int) -> None:
    bits = 8 // count
    text = _function("product", Case(bits, 5, 32 * (8 // bits), 3, UNSIGNED))
    text = text.replace(f"x{8 // bits}xf16>", f"x{count}xf16>")
    package.build(text, emit="shared", out=f"{tmp_path}/", name="q", chips=())
    random = np.random.default_rng(3)
    x = random.standard_normal((3, 32, count)).astype(np.float16)
    packed = random.integers(-128, 128, (5, 3, 32), np.int8)
    scales = (random.random((5, 3)) * 0.1).astype(np.float16)
    zeros = random.integers(0, 1 << bits, (5, 3)).astype(np.float16)
    y = np.full(5, np.nan, np.float32)
    package.load(tmp_path).product(x, packed, scales, zeros, y)
    q = packed.view(np.uint8)[..., None] >> np.arange(0, bits * count, bits, np.uint8)
    q = (q & ((1 << bits) - 1)).astype(np.float16)
    w = (q - zeros[..., None, None]) * scales[..., None, None]
    expected = w.astype(np.float64).reshape(5, -1) @ x.astype(np.float64).ravel()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("rows", [0, 3])
def test_a_build_for_gpus_has_the_cpus_kernel(tmp_path: Path, rows: int) -> None:
    text = _quantized(rows=rows)
    package.build(text, emit="shared", out=f"{tmp_path}/", name="q", chips=("sm_90a",))
    random = np.random.default_rng(2)
    outer = (rows,) if rows else ()
    x = random.standard_normal((*outer, 1024)).astype(np.float16)
    q = random.integers(-128, 128, (512, 1024), np.int8)
    scales = (random.random((512, 32)) * 0.1).astype(np.float16)
    y = np.full((*outer, 512), np.nan, np.float32)
    library = package.load(tmp_path)
    library.set_device("cpu")
    library.product(x, q, scales, y)
    w = q.astype(np.float16).reshape(512, 32, 32) * scales[..., None]
    expected = x.astype(np.float64) @ w.reshape(512, 1024).astype(np.float64).T
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("load", ["vector.load", "nvgpu.device_async_copy"])
def test_constant_weights_are_read_before_the_wait(load: str, is_constant: bool) -> None:
    """For the previous kernel, which may have written all others."""
    case = Case(8, 32, 64, 4, SIGNED)
    text = _function("product", case)
    for name, type_ in (("packed", "memref<32x4x64xi8>"), ("scales", "memref<32x4xf16>")):
        if is_constant:
            get = f"  %{name} = memref.get_global @{name} : {type_}\n"
            text = text.replace(f"%{name}: {type_}, ", "")
            text = text.replace("  %none =", f"{get}  %none =")
            text = f"memref.global constant @{name} : {type_} = dense<1>\n{text}".replace(
                "xf16> = dense<1>", "xf16> = dense<1.0>"
            )
    text = text.replace("%scales, %zeros : ", "%scales, %scales : ").replace(
        "%zeros: memref<32x4xf16>, ", ""
    )
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        roots = Roots(Functions(module))
        (product,) = [
            one
            for generic in ops.find(module.operation, "linalg.generic")
            if (one := recognise_product(generic, roots))
        ]
        with ir.InsertionPoint(product.operation):
            c = unfused(matmul_of(product)).operands[2].make()
            given = Builder(), product
            if load == "vector.load":
                variant = mma_sync.choose_variant(product, overlaps_previous=True)
                mma_sync.TensorCoreKernel(*given, variant, Result(c, adds=False)).build()
            else:
                stays = persistent.Variant(1, 4, 1, 1, overlaps_previous=True)
                persistent.PersistentKernel(*given, stays, Result(c, adds=False)).build()
        (launch,) = ops.find(module.operation, "gpu.launch")
        control = "nvvm.griddepcontrol"
        texts = [str(one) if one.name == control else one.name for one in ops.walk(launch)]
    first_load, wait = texts.index(load), texts.index(f"{control} wait")
    assert (first_load < wait) == is_constant
    # Else kernels that wait fill the multiprocessors.
    assert texts.index(f"{control} launch_dependents") > wait


@pytest.mark.parametrize(("rows", "warps"), [(4096, 16), (6144, 8), (28672, 8)])
def test_all_blocks_with_more_warps_run_at_once(rows: int, warps: int) -> None:
    product = SimpleNamespace(row_bytes=2048, row=0, sizes=(rows,), columns=1)
    variant = mma_sync.choose_variant(cast("Product", product), overlaps_previous=True)
    assert variant.warps == warps
