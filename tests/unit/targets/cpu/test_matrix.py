"""Tensor core operations on the CPU device: what no GPU program shows, and what is refused.

What GPUs run as well is in tests/e2e/matrix_programs.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.targets.cpu.cpu_device import CpuDevice, gpu_module

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "i32": np.int32}


def rng(name: str) -> np.random.Generator:
    return np.random.default_rng(list(name.encode()))


def kernel(arguments: str, *body: str) -> str:
    lines = "\n".join(body)
    return f"""gpu.func @k({arguments}) kernel {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{lines}
  gpu.return
}}"""


def matrix(element: str, rows: int = 16, columns: int = 16, operand: str = "COp") -> str:
    return f'!gpu.mma_matrix<{rows}x{columns}x{element}, "{operand}">'


def load(result: str, memref: str, element: str) -> str:
    return (
        f"  %{result} = gpu.subgroup_mma_load_matrix %{memref}[%c0, %c0] "
        f"{{leadDimension = 16 : index}} : memref<16x16x{element}> -> {matrix(element)}"
    )


def store(value: str, memref: str, element: str) -> str:
    return (
        f"  gpu.subgroup_mma_store_matrix %{value}, %{memref}[%c0, %c0] "
        f"{{leadDimension = 16 : index}} : {matrix(element)}, memref<16x16x{element}>"
    )


UNARY: dict[str, tuple[str, str, Callable[[Array], Any]]] = {
    "negatef": ("f32", "f32", lambda x: -x),
    "negates": ("i32", "i32", lambda x: -x),
    "extf": ("f16", "f32", lambda x: x.astype(np.float32)),
    "truncf": ("f32", "f16", lambda x: x.astype(np.float16)),
}
BINARY: dict[str, tuple[str, Callable[[Array, Array], Any]]] = {
    "addf": ("f32", np.add),
    "subf": ("f32", np.subtract),
    "mulf": ("f32", np.multiply),
    "divf": ("f32", np.divide),
    # A NaN wins.
    "maxf": ("f16", np.maximum),
    "minf": ("f16", np.minimum),
    "addi": ("i32", np.add),
    "subi": ("i32", np.subtract),
    "muli": ("i32", np.multiply),
    "divs": ("i32", lambda x, y: np.trunc(x / y).astype(np.int32)),
    "divu": ("i32", lambda x, y: (x.view(np.uint32) // y.view(np.uint32)).view(np.int32)),
}


def elements(name: str, element: str) -> Array:
    """A matrix of that type: floats of both signs and a NaN, integers that are not 0."""
    r = rng(name)
    if element == "i32":
        return r.integers(1, 2**30, (16, 16), np.int32) * r.choice(np.array([-1, 1], np.int32))
    values: Array = r.uniform(-2, 2, (16, 16)).astype(DTYPES[element])
    values[tuple(r.integers(0, 16, 2))] = np.nan
    return values


@pytest.mark.parametrize("kind", UNARY)
def test_each_element(kind: str, tmp_path: Path) -> None:
    """Every operation on single elements gives NumPy's result, to the bit."""
    element, result, compute = UNARY[kind]
    body = [
        load("a", "x", element),
        f"  %b = gpu.subgroup_mma_elementwise {kind} %a : ({matrix(element)}) -> {matrix(result)}",
        store("b", "y", result),
    ]
    source = kernel(f"%x: memref<16x16x{element}>, %y: memref<16x16x{result}>", *body)
    x, y = elements(kind, element), np.zeros((16, 16), DTYPES[result])
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x, y)
    np.testing.assert_array_equal(y, compute(x))


@pytest.mark.parametrize("kind", BINARY)
def test_pairs_of_elements(kind: str, tmp_path: Path) -> None:
    """Every operation on pairs of elements gives NumPy's result, to the bit."""
    element, compute = BINARY[kind]
    type_, memref = matrix(element), f"memref<16x16x{element}>"
    body = [
        load("a", "x", element),
        load("b", "y", element),
        f"  %c = gpu.subgroup_mma_elementwise {kind} %a, %b : ({type_}, {type_}) -> {type_}",
        store("c", "z", element),
    ]
    source = kernel(f"%x: {memref}, %y: {memref}, %z: {memref}", *body)
    x, y = elements("x", element), elements("y", element)
    z = np.zeros_like(x)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x, y, z)
    np.testing.assert_array_equal(z, compute(x, y))


def product_kernel(element: str, accumulator: str, m: int, n: int, k: int) -> str:
    stored = element.lstrip("su")
    a, b = matrix(element, m, k, "AOp"), matrix(element, k, n, "BOp")
    c = matrix(accumulator, m, n)
    a_memref, b_memref = f"memref<{m}x{k}x{stored}>", f"memref<{k}x{n}x{stored}>"
    c_memref = f"memref<{m}x{n}x{accumulator}>"
    return kernel(
        f"%x: {a_memref}, %y: {b_memref}, %z: {c_memref}",
        f"""
  %a = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {{leadDimension = {k} : index}}
    : {a_memref} -> {a}
  %b = gpu.subgroup_mma_load_matrix %y[%c0, %c0] {{leadDimension = {n} : index}}
    : {b_memref} -> {b}
  %c = gpu.subgroup_mma_load_matrix %z[%c0, %c0] {{leadDimension = {n} : index}}
    : {c_memref} -> {c}
  %d = gpu.subgroup_mma_compute %a, %b, %c : {a}, {b} -> {c}
  gpu.subgroup_mma_store_matrix %d, %z[%c0, %c0] {{leadDimension = {n} : index}}
    : {c}, {c_memref}""",
    )


@pytest.mark.parametrize("element", ["si8", "ui8"])
@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
def test_integers_wrap(element: str, shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Every shape for integers, of which upstream lowers one alone for GPUs; sums wrap."""
    m, n, k = shape
    r = rng(element)
    dtype = np.dtype(np.int8 if element == "si8" else np.uint8)
    a, b = (
        r.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, size, dtype, endpoint=True)
        for size in ((m, k), (k, n))
    )
    c = r.integers(2**31 - 2**19, 2**31, (m, n), np.int32)
    expected = a.astype(np.int32) @ b.astype(np.int32) + c
    assert expected.min() < 0 < expected.max()
    CpuDevice(gpu_module(product_kernel(element, "i32", m, n, k)), tmp_path).run(
        "k", 1, 32, a, b, c
    )
    np.testing.assert_array_equal(c, expected)


def test_f16_sums_are_rounded_once(tmp_path: Path) -> None:
    """2048 + 1 is 2048 in f16; 2048 + 16 is not."""
    a, b = np.ones((16, 16), np.float16), np.ones((16, 16), np.float16)
    c = np.full((16, 16), 2048, np.float16)
    source = product_kernel("f16", "f16", 16, 16, 16)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 16), 2064, np.float16))


def test_f32_are_truncated_to_tf32(tmp_path: Path) -> None:
    """The last 13 bits of the multiplicands do not count, and those of the accumulators do."""
    a = np.full((16, 8), 1 + 2.0**-10 + 2.0**-11 + 2.0**-23, np.float32)
    b = np.full((8, 16), -1 - 2.0**-11, np.float32)
    c = np.full((16, 16), 2.0**-20, np.float32)
    source = product_kernel("f32", "f32", 16, 16, 8)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 16), -8 - 2.0**-7 + 2.0**-20, np.float32))


def test_f64_sums_are_a_chain_of_fma(tmp_path: Path) -> None:
    """Each product is added with one rounding, in order of k."""
    r = rng("f64")
    a, b, c = (r.uniform(-1, 1, size) for size in ((8, 4), (4, 8), (8, 8)))
    expected = c.copy()
    for (i, j), k in ((place, k) for place in np.ndindex(8, 8) for k in range(4)):
        exact = Fraction(a[i, k]) * Fraction(b[k, j]) + Fraction(expected[i, j])
        expected[i, j] = float(exact)
    assert (expected != c + a @ b).any()
    source = product_kernel("f64", "f64", 8, 8, 4)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_thread_local_elements_are_the_matrix(tmp_path: Path) -> None:
    """What the lanes hold at the indices from 0 to M * N / 32 is every element, once."""
    body = f"""
  %count = arith.constant 8 : index
{load("m", "x", "f32")}
  %r = scf.for %i = %c0 to %count step %c1 iter_args(%n = %m) -> ({matrix("f32")}) {{
    %e = gpu.subgroup_mma_extract_thread_local %n[%i] : {matrix("f32")} -> f32
    %twice = arith.addf %e, %e : f32
    %o = gpu.subgroup_mma_insert_thread_local %twice, %n[%i]
      : f32, {matrix("f32")} -> {matrix("f32")}
    scf.yield %o : {matrix("f32")}
  }}
{store("r", "x", "f32")}"""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    expected = 2 * x
    source = kernel("%x: memref<16x16xf32>", body)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x)
    np.testing.assert_array_equal(x, expected)


def test_matrices_flow_anywhere(tmp_path: Path) -> None:
    """Through functions, branches, choices and blocks' arguments."""
    type_ = matrix("f32")
    function = f"""
func.func private @twice(%m: {type_}) -> {type_} {{
  %s = gpu.subgroup_mma_elementwise addf %m, %m : ({type_}, {type_}) -> {type_}
  return %s : {type_}
}}"""
    source = kernel(
        "%x: memref<16x16xf32>, %n: i32",
        f"""
{load("m", "x", "f32")}
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  cf.br ^next(%zero, %m : i32, {type_})
^next(%i: i32, %a: {type_}):
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^end
^body:
  %b = func.call @twice(%a) : ({type_}) -> {type_}
  %j = arith.addi %i, %one : i32
  cf.br ^next(%j, %b : i32, {type_})
^end:
  %is_three = arith.cmpi eq, %n, %three : i32
  %c = scf.if %is_three -> ({type_}) {{
    %d = func.call @twice(%a) : ({type_}) -> {type_}
    scf.yield %d : {type_}
  }} else {{
    scf.yield %a : {type_}
  }}
  %e = arith.select %is_three, %c, %m : {type_}
{store("e", "x", "f32")}""",
    )
    device = CpuDevice(gpu_module(function, source), tmp_path)
    first = np.arange(256, dtype=np.float32).reshape(16, 16)
    for count, factor in ((3, 16), (2, 1)):
        x = first.copy()
        device.run("k", 1, 32, x, np.int32(count))
        np.testing.assert_array_equal(x, factor * first)


def test_some_warps_alone(tmp_path: Path) -> None:
    """Warps may multiply different things, as often as they like."""
    a, b, c = (
        matrix("f16", operand="AOp"),
        matrix("f16", operand="BOp"),
        matrix("f32"),
    )
    memref = "memref<3x16x16xf16>"
    source = kernel(
        f"%x: {memref}, %z: memref<3x16x16xf32>",
        f"""
  %thread = gpu.thread_id x
  %c32 = arith.constant 32 : index
  %warp = arith.divui %thread, %c32 : index
  %zero = arith.constant 0.0 : f32
  %zeros = gpu.subgroup_mma_constant_matrix %zero : {c}
  %a = gpu.subgroup_mma_load_matrix %x[%warp, %c0, %c0] {{leadDimension = 16 : index}}
    : {memref} -> {a}
  %b = gpu.subgroup_mma_load_matrix %x[%warp, %c0, %c0] {{leadDimension = 16 : index}}
    : {memref} -> {b}
  %r = scf.for %i = %c0 to %warp step %c1 iter_args(%sum = %zeros) -> ({c}) {{
    %next = gpu.subgroup_mma_compute %a, %b, %sum : {a}, {b} -> {c}
    scf.yield %next : {c}
  }}
  gpu.subgroup_mma_store_matrix %r, %z[%warp, %c0, %c0] {{leadDimension = 16 : index}}
    : {c}, memref<3x16x16xf32>""",
    )
    x = rng("warps").integers(-8, 8, (3, 16, 16)).astype(np.float16)
    z = np.full((3, 16, 16), np.nan, np.float32)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 96, x, z)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(z, np.arange(3)[:, None, None] * (wide @ wide))


def test_products_in_a_row(tmp_path: Path) -> None:
    """A product does not disturb the one before it, which uses the same memory."""
    a, b, c = (
        matrix("f16", operand="AOp"),
        matrix("f16", operand="BOp"),
        matrix("f32"),
    )
    lead = "{leadDimension = 16 : index}"
    loads = [
        f"  %{operand}{name} = gpu.subgroup_mma_load_matrix %{name}[%c0, %c0] {lead} "
        f": memref<16x16xf16> -> {type_}"
        for operand, type_ in (("a", a), ("b", b))
        for name in "xy"
    ]
    source = kernel(
        "%x: memref<16x16xf16>, %y: memref<16x16xf16>, %z: memref<16x16xf32>",
        *loads,
        load("c", "z", "f32"),
        f"  %d = gpu.subgroup_mma_compute %ax, %by, %c : {a}, {b} -> {c}",
        f"  %e = gpu.subgroup_mma_compute %ay, %bx, %d : {a}, {b} -> {c}",
        store("e", "z", "f32"),
    )
    x, y = rng("row").integers(-8, 8, (2, 16, 16)).astype(np.float16)
    z = np.ones((16, 16), np.float32)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x, y, z)
    wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_array_equal(z, 1 + wide_x @ wide_y + wide_y @ wide_x)


def test_mma_in_a_row(tmp_path: Path) -> None:
    """The same of mma.sync: with ones for B, both add the sums of a row of A."""
    own = "vector<1x4xi8>"
    body = f"""
  %i = gpu.thread_id x
  %zero = arith.constant 0 : i8
  %b = arith.constant dense<1> : {own}
  %c = arith.constant dense<0> : vector<1x2xi32>
  %a = vector.transfer_read %x[%i, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<64x1x4xi8>, {own}
  %c32 = arith.constant 32 : index
  %j = arith.addi %i, %c32 : index
  %o = vector.transfer_read %x[%j, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<64x1x4xi8>, {own}
  %d = nvgpu.mma.sync (%a, %b, %c) {{mmaShape = [8, 8, 16]}}
    : ({own}, {own}, vector<1x2xi32>) -> vector<1x2xi32>
  %e = nvgpu.mma.sync (%o, %b, %d) {{mmaShape = [8, 8, 16]}}
    : ({own}, {own}, vector<1x2xi32>) -> vector<1x2xi32>
  vector.transfer_write %e, %y[%i, %c0, %c0] {{in_bounds = [true, true]}}
    : vector<1x2xi32>, memref<32x1x2xi32>"""
    x = rng("mma").integers(-128, 128, (64, 1, 4), np.int8)
    y = np.zeros((32, 1, 2), np.int32)
    source = kernel("%x: memref<64x1x4xi8>, %y: memref<32x1x2xi32>", body)
    CpuDevice(gpu_module(source), tmp_path).run("k", 1, 32, x, y)
    # A row of A is in four lanes, and so is a row of the sums.
    sums = x.reshape(2, 8, 16).sum((0, 2), np.int32)
    np.testing.assert_array_equal(y.reshape(8, 8), np.repeat(sums, 8).reshape(8, 8))


VIEWS = {
    "static": ("2, 1", "memref<20x20xf32, strided<[64, 1], offset: 129>>"),
    "dynamic": ("%two, 1", "memref<20x20xf32, strided<[64, 1], offset: ?>>"),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("transpose", ["", ", transpose"])
def test_views_and_vectors_in_memory(kind: str, transpose: str, tmp_path: Path) -> None:
    """The leading dimension counts elements from where the indices say, whatever the memref is."""
    start, view = VIEWS[kind]
    hidden = view if kind == "static" else "memref<?x?xf32, strided<[?, 1], offset: ?>>"
    vectors = "memref<32x16xvector<4xf32>>"
    source = kernel(
        f"%x: memref<64x64xf32>, %y: {vectors}, %two: index",
        f"""
  %v = memref.subview %x[{start}] [20, 20] [1, 1] : memref<64x64xf32> to {view}
  %w = memref.cast %v : {view} to {hidden}
  %m = gpu.subgroup_mma_load_matrix %w[%two, %c1] {{leadDimension = 64 : index{transpose}}}
    : {hidden} -> {matrix("f32")}
  gpu.subgroup_mma_store_matrix %m, %y[%two, %c1] {{leadDimension = 64 : index}}
    : {matrix("f32")}, {vectors}""",
    )
    x = rng("views").uniform(-1, 1, (64, 64)).astype(np.float32)
    y = np.zeros((32, 16, 4), np.float32)
    # The descriptor of %y counts vectors.
    descriptor = [y.ctypes.data, y.ctypes.data, 0, 32, 16, 16, 1]
    CpuDevice(gpu_module(source), tmp_path).run(
        "k", 1, 32, x, *map(np.int64, descriptor), np.int64(2)
    )
    taken = x[4:20, 2:18]
    expected = np.zeros((32, 64), np.float32)
    expected[2:18, 4:20] = taken.T if transpose else taken
    np.testing.assert_array_equal(y.reshape(32, 64), expected)
