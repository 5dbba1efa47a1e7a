"""One module of many small kernels with tensor cores, ldmatrix and asynchronous copies.

`source()` is its text, `CASES` what its entries are called with and what must come out. It runs
on GPUs from Ampere on as well as on the CPU device, with the same expectations: the layouts of
registers are the PTX manual's, computed here in NumPy, not what aotc thinks of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from samples import F16_RTOL, F32_RTOL, Array, Case, Values, rng, uniform

PROGRAM = "matrices"

# Of 4 or 8 products, in one order or another.
F64_SUM_RTOL = 1e-15

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "si8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
}
RTOLS = {"f16": F16_RTOL, "f32": F32_RTOL, "f64": F64_SUM_RTOL, "i32": 0.0}

# The launches of mma and ldmatrix: blocks of two warps each, every warp with its own data.
BLOCKS, BLOCK_SIZE = 3, 64
THREADS = BLOCKS * BLOCK_SIZE
WARPS = THREADS // 32

_LAUNCH = f"""
  %one = arith.constant 1 : index
  %blocks = arith.constant {BLOCKS} : index
  %size = arith.constant {BLOCK_SIZE} : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)"""
_THREAD = """
    %c0 = arith.constant 0 : index
    %before = arith.muli %bx, %sx : index
    %i = arith.addi %before, %tx : index"""


def as_tf32(array: Array) -> Array:
    """f32 as tensor cores read them: without the last 13 bits."""
    return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def random_matrix(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Positive reals, so that relative errors of sums say something; integers of all values."""
    if np.dtype(dtype) == np.int32:
        return generator.integers(-(2**20), 2**20, shape, np.int32)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return uniform(generator, shape, dtype, 0.25, 1)


def product(a: Array, b: Array, c: Array) -> Array:
    """A @ B + C of all warps, in f64 or exactly."""
    if np.issubdtype(c.dtype, np.integer):
        return a.astype(np.int64) @ b.astype(np.int64) + c
    if a.dtype == np.float32:
        a, b = as_tf32(a), as_tf32(b)
    a, b, c = (array.astype(np.float64) for array in (a, b, c))
    return a @ b + c


# nvgpu.mma.sync


@dataclass(frozen=True)
class Mma:
    """One kind of mma.sync: the types of the multiplicands and of the accumulators."""

    element: str
    accumulator: str
    m: int
    n: int
    k: int

    @property
    def name(self) -> str:
        return f"mma_{self.element}_{self.accumulator}_m{self.m}n{self.n}k{self.k}"

    @property
    def width(self) -> int:
        """Elements in a register: 32 bits of them, or one f64."""
        return {"f64": 1, "f32": 1, "f16": 2, "bf16": 2, "i8": 4, "i4": 8}[self.element]

    @property
    def registers(self) -> tuple[int, int, int]:
        """How many a lane has of A, of B, and pairs of C."""
        return (
            self.m * self.k // 32 // self.width,
            self.k * self.n // 32 // self.width,
            self.m * self.n // 64,
        )


MMAS = [
    *(Mma("f16", c, 16, 8, k) for c in ("f16", "f32") for k in (8, 16)),
    *(Mma("bf16", "f32", 16, 8, k) for k in (8, 16)),
    *(Mma("f32", "f32", 16, 8, k) for k in (4, 8)),
    Mma("f64", "f64", 8, 8, 4),
    *(Mma("i8", "i32", m, 8, k) for m, k in ((8, 16), (16, 16), (16, 32))),
    *(Mma("i4", "i32", m, 8, k) for m, k in ((8, 32), (16, 32), (16, 64))),
]


def _mma_text(mma: Mma) -> str:
    a, b, c = mma.registers
    e, d, w = mma.element, mma.accumulator, mma.width
    tf32 = ", tf32Enabled" if e == "f32" else ""
    # Elements of 4 bits come packed: a memref would unpack them.
    held, held_width = ("i32", 1) if e == "i4" else (e, w)

    def fetch(name: str, count: int) -> str:
        zero = "0 : " + held if held[0] == "i" else "0.0 : " + held
        memref = f"memref<{THREADS}x{count}x{held_width}x{held}>"
        own = f"vector<{count}x{held_width}x{held}>"
        return f"""
    %pad_{name} = arith.constant {zero}
    %in_{name} = vector.transfer_read %{name}[%i, %c0, %c0], %pad_{name}
        {{in_bounds = [true, true]}} : {memref}, {own}
    %{name}_registers = vector.bitcast %in_{name} : {own} to vector<{count}x{w}x{e}>"""

    types = f"(vector<{a}x{w}x{e}>, vector<{b}x{w}x{e}>, vector<{c}x2x{d}>)"
    c_memref = f"memref<{THREADS}x{c}x2x{d}>"
    zero = f"0 : {d}" if d == "i32" else f"0.0 : {d}"
    return f"""
func.func @{mma.name}(%a: memref<{THREADS}x{a}x{held_width}x{held}>,
    %b: memref<{THREADS}x{b}x{held_width}x{held}>, %c: {c_memref}, %d: {c_memref})
    attributes {{llvm.emit_c_interface}} {{{_LAUNCH} {{{_THREAD}{fetch("a", a)}{fetch("b", b)}
    %pad = arith.constant {zero}
    %sums = vector.transfer_read %c[%i, %c0, %c0], %pad {{in_bounds = [true, true]}}
        : {c_memref}, vector<{c}x2x{d}>
    %result = nvgpu.mma.sync (%a_registers, %b_registers, %sums)
        {{mmaShape = [{mma.m}, {mma.n}, {mma.k}]{tf32}}} : {types} -> vector<{c}x2x{d}>
    vector.transfer_write %result, %d[%i, %c0, %c0] {{in_bounds = [true, true]}}
        : vector<{c}x2x{d}>, {c_memref}
    gpu.terminator
  }}
  return
}}"""


def fragment(matrices: Array, places: Callable[[int, int, int], tuple[int, int]]) -> Array:
    """What the lanes of all warps hold of their matrices, by the manual's formula.

    `places` gives row and column of element i of the lane in place t of group g.
    """
    _, rows, columns = matrices.shape
    count = rows * columns // 32
    taken = [[places(lane // 4, lane % 4, i) for i in range(count)] for lane in range(32)]
    index = np.array(taken)
    return matrices[:, index[..., 0], index[..., 1]].reshape(-1, count)


def a_fragment(mma: Mma, a: Array) -> Array:
    """Registers of A: 8 rows, then 8 rows further if there are 16, then the next part of k."""
    w, halves = mma.width, mma.m // 8

    def place(g: int, t: int, i: int) -> tuple[int, int]:
        register, e = divmod(i, w)
        return g + 8 * (register % halves), 4 * w * (register // halves) + w * t + e

    return fragment(a, place).reshape(THREADS, -1, w)


def b_fragment(mma: Mma, b: Array) -> Array:
    w = mma.width
    return fragment(b, lambda g, t, i: (4 * w * (i // w) + w * t + i % w, g)).reshape(
        THREADS, -1, w
    )


def c_fragment(c: Array) -> Array:
    return fragment(c, lambda g, t, i: (g + 8 * (i // 2), 2 * t + i % 2)).reshape(THREADS, -1, 2)


def pack_nibbles(array: Array) -> Array:
    """Registers of eight elements of 4 bits, the first one lowest."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    nibbles = (array.astype(np.int64) & 0xF).astype(np.uint32) << shifts
    packed: Array = nibbles.sum(-1, keepdims=True, dtype=np.uint32).view(np.int32)
    return packed


def _mma_values(name: str, mma: Mma, *, saturates: bool) -> Values:
    r = rng(name)
    if mma.element == "i4":
        a, b = (
            r.integers(-8, 8, (WARPS, *shape), np.int8)
            for shape in ((mma.m, mma.k), (mma.k, mma.n))
        )
    else:
        a, b = (
            random_matrix(r, (WARPS, *shape), DTYPES[mma.element])
            for shape in ((mma.m, mma.k), (mma.k, mma.n))
        )
    c = random_matrix(r, (WARPS, mma.m, mma.n), DTYPES[mma.accumulator])
    if saturates:
        # All products of a row have one sign: it does not matter where they are cut off.
        a, b = np.abs(a // 2), np.abs(b // 2)
        a[:, 1::2] *= -1
        c[:, ::2] = 2**31 - 1 - np.abs(c[:, ::2]) // 2**4
        c[:, 1::2] = -(2**31) + np.abs(c[:, 1::2]) // 2**4
    d = product(a, b, c)
    if mma.accumulator == "i32":
        d = np.clip(d, -(2**31), 2**31 - 1)
    own_a, own_b = a_fragment(mma, a), b_fragment(mma, b)
    if mma.element == "i4":
        own_a, own_b = pack_nibbles(own_a), pack_nibbles(own_b)
    return Values(
        {"a": own_a, "b": own_b, "c": c_fragment(c)},
        {"d": c_fragment(d)},
        {"d": DTYPES[mma.accumulator]},
    )


# gpu.subgroup_mma_*: each block multiplies a row of tiles by two columns of tiles, with a warp
# for each, in a loop over three tiles along k.

TILES_M, TILES_N, TILES_K = 3, 2, 3


@dataclass(frozen=True)
class Wmma:
    """One kind of wmma; the operands that lie transposed in memory are named."""

    element: str
    accumulator: str
    m: int
    n: int
    k: int
    transposed: str = ""

    @property
    def name(self) -> str:
        shape = f"m{self.m}n{self.n}k{self.k}"
        suffix = f"_{self.transposed}_transposed" if self.transposed else ""
        return f"wmma_{self.element}_{self.accumulator}_{shape}{suffix}"


_SHAPES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
WMMAS = [
    *(Wmma("f16", c, *shape) for c in ("f16", "f32") for shape in _SHAPES),
    # Of the shapes for integers, upstream lowers this one alone for GPUs.
    *(Wmma(element, "i32", *_SHAPES[0]) for element in ("si8", "ui8")),
    Wmma("f32", "f32", 16, 16, 8),
    Wmma("f64", "f64", 8, 8, 4),
    *(Wmma("f16", "f32", *shape, t) for shape in _SHAPES for t in ("a", "b", "c", "abc")),
    Wmma("si8", "i32", *_SHAPES[0], "ab"),
    Wmma("f32", "f32", 16, 16, 8, "ab"),
    Wmma("f64", "f64", 8, 8, 4, "abc"),
]


def _wmma_text(wmma: Wmma) -> str:
    m, n, k, e, d = wmma.m, wmma.n, wmma.k, wmma.element, wmma.accumulator
    stored = e.lstrip("su")
    rows = {"a": m * TILES_M, "b": k * TILES_K, "c": m * TILES_M}
    columns = {"a": k * TILES_K, "b": n * TILES_N, "c": n * TILES_N}
    memrefs, leads, marks, flags, swaps = {}, {}, {}, [], {}
    for name in "abc":
        size = (rows[name], columns[name])
        is_transposed = name in wmma.transposed
        first, second = size[::-1] if is_transposed else size
        memrefs[name] = f"memref<{first}x{second}x{d if name == 'c' else stored}>"
        leads[name] = f"leadDimension = {second} : index"
        marks[name] = ", transpose" if is_transposed else ""
        swaps[name] = is_transposed
    for name in "ab":
        if swaps[name]:
            flags.append(f"{name}_transpose")
    flag_text = f" {{{', '.join(flags)}}}" if flags else ""

    def at(name: str, row: str, column: str) -> str:
        return f"%{name}[{column}, {row}]" if swaps[name] else f"%{name}[{row}, {column}]"

    types = {
        "a": f'!gpu.mma_matrix<{m}x{k}x{e}, "AOp">',
        "b": f'!gpu.mma_matrix<{k}x{n}x{e}, "BOp">',
        "c": f'!gpu.mma_matrix<{m}x{n}x{d}, "COp">',
    }
    return f"""
func.func @{wmma.name}(%a: {memrefs["a"]}, %b: {memrefs["b"]}, %c: {memrefs["c"]})
    attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1 : index
  %blocks = arith.constant {TILES_M} : index
  %size = arith.constant {32 * TILES_N} : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one) {{
    %c0 = arith.constant 0 : index
    %m = arith.constant {m} : index
    %n = arith.constant {n} : index
    %k = arith.constant {k} : index
    %depth = arith.constant {k * TILES_K} : index
    %lanes = arith.constant 32 : index
    %warp = arith.divui %tx, %lanes : index
    %row = arith.muli %bx, %m : index
    %column = arith.muli %warp, %n : index
    %first = gpu.subgroup_mma_load_matrix {at("c", "%row", "%column")}
        {{{leads["c"]}{marks["c"]}}} : {memrefs["c"]} -> {types["c"]}
    %total = scf.for %p = %c0 to %depth step %k iter_args(%sum = %first) -> ({types["c"]}) {{
      %x = gpu.subgroup_mma_load_matrix {at("a", "%row", "%p")}
          {{{leads["a"]}{marks["a"]}}} : {memrefs["a"]} -> {types["a"]}
      %y = gpu.subgroup_mma_load_matrix {at("b", "%p", "%column")}
          {{{leads["b"]}{marks["b"]}}} : {memrefs["b"]} -> {types["b"]}
      %next = gpu.subgroup_mma_compute %x, %y, %sum{flag_text}
          : {types["a"]}, {types["b"]} -> {types["c"]}
      scf.yield %next : {types["c"]}
    }}
    gpu.subgroup_mma_store_matrix %total, {at("c", "%row", "%column")}
        {{{leads["c"]}{marks["c"]}}} : {types["c"]}, {memrefs["c"]}
    gpu.terminator
  }}
  return
}}"""


def _wmma_values(name: str, wmma: Wmma) -> Values:
    r = rng(name)
    m, n, k = wmma.m * TILES_M, wmma.n * TILES_N, wmma.k * TILES_K
    a = random_matrix(r, (m, k), DTYPES[wmma.element])
    b = random_matrix(r, (k, n), DTYPES[wmma.element])
    if wmma.accumulator == "i32":
        # Sums wrap.
        c = r.integers(-(2**31), 2**31, (m, n), np.int32)
    else:
        c = random_matrix(r, (m, n), DTYPES[wmma.accumulator])
    total = product(a, b, c)
    if wmma.accumulator == "i32":
        total = total.astype(np.int32)

    def stored(letter: str, array: Array) -> Array:
        swapped = array.T if letter in wmma.transposed else array
        return np.ascontiguousarray(swapped)

    signless = np.int8 if wmma.element == "ui8" else a.dtype
    return Values(
        {
            "a": stored("a", a.view(signless)),
            "b": stored("b", b.view(signless)),
            "c": stored("c", c),
        },
        {"c": stored("c", total)},
        {"c": DTYPES[wmma.accumulator]},
    )


# What is done with the elements of a matrix.


def _elementwise_text(element: str) -> str:
    matrix = f'!gpu.mma_matrix<16x16x{element}, "COp">'
    memref = f"memref<16x16x{element}>"

    def step(result: str, kind: str, *operands: str) -> str:
        types = ", ".join([matrix] * len(operands))
        return (
            f"    %{result} = gpu.subgroup_mma_elementwise {kind} "
            f"{', '.join('%' + name for name in operands)} : ({types}) -> {matrix}"
        )

    def load(name: str) -> str:
        return (
            f"    %in_{name} = gpu.subgroup_mma_load_matrix %{name}[%c0, %c0] "
            f"{{leadDimension = 16 : index}} : {memref} -> {matrix}"
        )

    steps = "\n".join(
        [
            step("sum", "addf", "in_x", "in_y"),
            step("rest", "subf", "sum", "half"),
            step("scaled", "mulf", "rest", "in_y"),
            step("ratio", "divf", "scaled", "in_x"),
            # For GPUs upstream lowers the two for f32 alone.
            step("above", "maxf" if element == "f32" else "addf", "ratio", "half"),
            step("result", "minf" if element == "f32" else "mulf", "above", "most"),
        ]
    )
    return f"""
func.func @elementwise_{element}(%x: {memref}, %y: {memref}, %z: {memref})
    attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1 : index
  %size = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %one, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one) {{
    %c0 = arith.constant 0 : index
    %half_value = arith.constant 0.5 : {element}
    %most_value = arith.constant 1.5 : {element}
    %half = gpu.subgroup_mma_constant_matrix %half_value : {matrix}
    %most = gpu.subgroup_mma_constant_matrix %most_value : {matrix}
{load("x")}
{load("y")}
{steps}
    gpu.subgroup_mma_store_matrix %result, %z[%c0, %c0] {{leadDimension = 16 : index}}
        : {matrix}, {memref}
    gpu.terminator
  }}
  return
}}"""


def _elementwise_values(name: str, dtype: Any) -> Values:
    r = rng(name)
    x, y = (uniform(r, (16, 16), dtype, 0.5, 1.5) for _ in "xy")
    a, b = x.astype(np.float64), y.astype(np.float64)
    ratio = (a + b - 0.5) * b / a
    z = np.clip(ratio, 0.5, 1.5) if dtype == np.float32 else (ratio + 0.5) * 1.5
    return Values({"x": x, "y": y, "z": (16, 16)}, {"z": z}, {"z": dtype})


# nvgpu.ldmatrix: the rows come in an order that no other instruction would have.

LDMATRICES = [
    *((tiles, "f16", transpose) for tiles in (1, 2, 4) for transpose in (False, True)),
    (4, "i8", False),
    (4, "f32", False),
    (2, "f32", False),
]


def _ldmatrix_name(tiles: int, element: str, transpose: bool) -> str:
    return f"ldmatrix_x{tiles}_{element}{'_transposed' if transpose else ''}"


def _ldmatrix_text(tiles: int, element: str, transpose: bool) -> str:
    width = {"f16": 2, "i8": 4, "f32": 1}[element]
    in_row = 4 * width
    # Rows stay aligned to 16 bytes.
    shared = f"memref<{BLOCK_SIZE}x{3 * in_row}x{element}, #gpu.address_space<workgroup>>"
    source = f"memref<{THREADS}x{in_row}x{element}>"
    target = f"memref<{THREADS}x{tiles}x{width}x{element}>"
    row, own = f"vector<{in_row}x{element}>", f"vector<{tiles}x{width}x{element}>"
    return f"""
func.func @{_ldmatrix_name(tiles, element, transpose)}(%x: {source}, %y: {target})
    attributes {{llvm.emit_c_interface}} {{{_LAUNCH}
             workgroup(%shared : {shared}) {{{_THREAD}
    %lanes = arith.constant 32 : index
    %five = arith.constant 5 : index
    %three = arith.constant 3 : index
    %elements = arith.constant {in_row} : index
    %copied = vector.load %x[%i, %c0] : {source}, {row}
    vector.store %copied, %shared[%tx, %elements] : {shared}, {row}
    gpu.barrier
    %lane = arith.remui %tx, %lanes : index
    %start = arith.subi %tx, %lane : index
    %fives = arith.muli %lane, %five : index
    %moved = arith.addi %fives, %three : index
    %place = arith.remui %moved, %lanes : index
    %row = arith.addi %start, %place : index
    %loaded = nvgpu.ldmatrix %shared[%row, %elements]
        {{numTiles = {tiles} : i32, transpose = {str(transpose).lower()}}} : {shared} -> {own}
    vector.transfer_write %loaded, %y[%i, %c0, %c0] {{in_bounds = [true, true]}} : {own}, {target}
    gpu.terminator
  }}
  return
}}"""


def _ldmatrix_values(name: str, tiles: int, element: str, transpose: bool) -> Values:
    dtype = DTYPES[element]
    x = random_matrix(rng(name), (THREADS, 16 // np.dtype(dtype).itemsize), dtype)
    lane = np.arange(32)
    rows = x.view(np.int8).reshape(WARPS, 32, 16)[:, (5 * lane + 3) % 32]
    in_tiles = rows.reshape(WARPS, 4, 8, 16)[:, :tiles]
    if transpose:
        halves = in_tiles.view(np.int16)
        taken = halves[:, :, 2 * (lane[:, None] % 4) + np.arange(2), lane[:, None] // 4]
    else:
        taken = in_tiles.view(np.int32)[:, :, lane // 4, lane % 4, None]
    # (warp, tile, lane, part) → (thread, tile, element)
    y = np.ascontiguousarray(taken.transpose(0, 2, 1, 3)).view(dtype).reshape(THREADS, tiles, -1)
    return Values({"x": x, "y": y.shape}, {"y": y}, {"y": dtype})


# nvgpu.device_async_copy: each thread copies a few elements, of which the next thread reads.

COPIES = [("f32", 1), ("f16", 4), ("f64", 1), ("f32", 4), ("i8", 16)]


def _copy_name(element: str, count: int, is_partial: bool) -> str:
    return f"copy_{count}_{element}{'_partial' if is_partial else ''}"


def _copy_text(element: str, count: int, is_partial: bool) -> str:
    shared = f"memref<{BLOCK_SIZE}x{count}x{element}, #gpu.address_space<workgroup>>"
    memref = f"memref<{THREADS}x{count}x{element}>"
    row = f"vector<{count}x{element}>"
    dirt = f"arith.constant dense<{'7' if element[0] == 'i' else '7.0'}> : {row}"
    bypass = " {bypassL1}" if np.dtype(DTYPES[element]).itemsize * count == 16 else ""
    known = ", %known" if is_partial else ""
    return f"""
func.func @{_copy_name(element, count, is_partial)}(%x: {memref},
    %counts: memref<{THREADS}xi32>, %y: {memref})
    attributes {{llvm.emit_c_interface}} {{{_LAUNCH}
             workgroup(%shared : {shared}) {{{_THREAD}
    %next = arith.constant 1 : index
    %dirt = {dirt}
    vector.store %dirt, %shared[%tx, %c0] : {shared}, {row}
    gpu.barrier
    %read = memref.load %counts[%i] : memref<{THREADS}xi32>
    %known = arith.index_cast %read : i32 to index
    %copy = nvgpu.device_async_copy %x[%i, %c0], %shared[%tx, %c0], {count}{known}{bypass}
        : {memref} to {shared}
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {{numGroups = 0 : i32}}
    gpu.barrier
    %moved = arith.addi %tx, %next : index
    %other = arith.remui %moved, %sx : index
    %copied = vector.load %shared[%other, %c0] : {shared}, {row}
    vector.store %copied, %y[%i, %c0] : {memref}, {row}
    gpu.terminator
  }}
  return
}}"""


def _copy_values(name: str, element: str, count: int, is_partial: bool) -> Values:
    r = rng(name)
    dtype = DTYPES[element]
    x = random_matrix(r, (THREADS, count), dtype)
    counts = r.integers(0, count + 1, THREADS, np.int32)
    copied = np.where(np.arange(count) < counts[:, None], x, 0) if is_partial else x
    y = np.roll(copied.reshape(BLOCKS, BLOCK_SIZE, count), -1, axis=1).reshape(x.shape)
    return Values({"x": x, "counts": counts, "y": x.shape}, {"y": y}, {"y": dtype})


# All together, as a matrix product is written: copies two stages deep, ldmatrix, mma.sync.
# Each block has a tile of 16 x 16, each of its two warps 8 columns of it.

PRODUCT_BLOCKS, PRODUCT_DEPTH = 2, 64
_M, _N = 16 * PRODUCT_BLOCKS, 16


def _product_text() -> str:
    a, b, c = (
        f"memref<{_M}x{PRODUCT_DEPTH}xf16>",
        f"memref<{PRODUCT_DEPTH}x{_N}xf16>",
        f"memref<{_M}x{_N}xf32>",
    )
    stages = "memref<2x16x16xf16, #gpu.address_space<workgroup>>"

    def copy(stage: str, buffer: str, number: str) -> str:
        return f"""
    %{number}_p = arith.muli {stage}, %c16 : index
    %{number}_k = arith.addi %{number}_p, %chunk : index
    %{number}_j = arith.addi %{number}_p, %line : index
    %{number}_a = nvgpu.device_async_copy %a[%row, %{number}_k],
        %a_tiles[{buffer}, %line, %chunk], 4 : {a} to {stages}
    %{number}_b = nvgpu.device_async_copy %b[%{number}_j, %chunk],
        %b_tiles[{buffer}, %line, %chunk], 4 : {b} to {stages}
    %{number} = nvgpu.device_async_create_group %{number}_a, %{number}_b"""

    return f"""
func.func @product(%a: {a}, %b: {b}, %c: {c}) attributes {{llvm.emit_c_interface}} {{
  %one = arith.constant 1 : index
  %blocks = arith.constant {PRODUCT_BLOCKS} : index
  %size = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
             threads(%tx, %ty, %tz) in (%sx = %size, %sy = %one, %sz = %one)
             workgroup(%a_tiles : {stages}, %b_tiles : {stages}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %stage_count = arith.constant {PRODUCT_DEPTH // 16} : index
    %last = arith.constant {PRODUCT_DEPTH // 16 - 1} : index
    %zeros = arith.constant dense<0.0> : vector<2x2xf32>
    %first_row = arith.muli %bx, %c16 : index
    %line = arith.divui %tx, %c4 : index
    %row = arith.addi %first_row, %line : index
    %place = arith.remui %tx, %c4 : index
    %chunk = arith.muli %place, %c4 : index
    %lane = arith.remui %tx, %c32 : index
    %warp = arith.divui %tx, %c32 : index
    %column = arith.muli %warp, %c8 : index
    %tile_row = arith.remui %lane, %c16 : index
    %half = arith.divui %lane, %c16 : index
    %tile_column = arith.muli %half, %c8 : index{copy("%c0", "%c0", "before")}
    %loop:2 = scf.for %s = %c0 to %stage_count step %c1 iter_args(%pending = %before, %sum = %zeros)
        -> (!nvgpu.device.async.token, vector<2x2xf32>) {{
      %buffer = arith.remui %s, %c2 : index
      %following = arith.addi %s, %c1 : index
      %other = arith.remui %following, %c2 : index
      %stage = arith.minui %following, %last : index{copy("%stage", "%other", "next")}
      nvgpu.device_async_wait %pending {{numGroups = 1 : i32}}
      gpu.barrier
      %x = nvgpu.ldmatrix %a_tiles[%buffer, %tile_row, %tile_column]
          {{numTiles = 4 : i32, transpose = false}} : {stages} -> vector<4x2xf16>
      %y = nvgpu.ldmatrix %b_tiles[%buffer, %tile_row, %column]
          {{numTiles = 2 : i32, transpose = true}} : {stages} -> vector<2x2xf16>
      %more = nvgpu.mma.sync (%x, %y, %sum) {{mmaShape = [16, 8, 16]}}
          : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      gpu.barrier
      scf.yield %next, %more : !nvgpu.device.async.token, vector<2x2xf32>
    }}
    %group = arith.divui %lane, %c4 : index
    %member = arith.remui %lane, %c4 : index
    %pair = arith.muli %member, %c2 : index
    %to_column = arith.addi %column, %pair : index
    %to_row = arith.addi %first_row, %group : index
    %to_row_8 = arith.addi %to_row, %c8 : index
    %upper = vector.extract %loop#1[0] : vector<2xf32> from vector<2x2xf32>
    %lower = vector.extract %loop#1[1] : vector<2xf32> from vector<2x2xf32>
    vector.store %upper, %c[%to_row, %to_column] : {c}, vector<2xf32>
    vector.store %lower, %c[%to_row_8, %to_column] : {c}, vector<2xf32>
    gpu.terminator
  }}
  return
}}"""


def _product_values(name: str) -> Values:
    r = rng(name)
    a = random_matrix(r, (_M, PRODUCT_DEPTH), np.float16)
    b = random_matrix(r, (PRODUCT_DEPTH, _N), np.float16)
    c = a.astype(np.float64) @ b.astype(np.float64)
    return Values({"a": a, "b": b, "c": c.shape}, {"c": c}, {"c": np.float32})


def source() -> str:
    """The module."""
    return "\n".join(
        [
            "// Generated by tests/e2e/matrix_programs.py.",
            *map(_mma_text, MMAS),
            *map(_wmma_text, WMMAS),
            *map(_elementwise_text, ("f16", "f32")),
            *(_ldmatrix_text(*kind) for kind in LDMATRICES),
            *(_copy_text(*kind, part) for kind in COPIES for part in (False, True)),
            _product_text(),
            "",
        ]
    )


def _cases() -> Iterator[Case]:
    def case(entry: str, make: Callable[[str], Values], rtol: float, suffix: str = "") -> Case:
        name = f"{PROGRAM}-{entry}{suffix}"
        return Case(name, PROGRAM, partial(make, name), rtol, entry=entry)

    for mma in MMAS:
        rtol = RTOLS[mma.accumulator]
        yield case(mma.name, partial(_mma_values, mma=mma, saturates=False), rtol)
        if mma.accumulator == "i32":
            make = partial(_mma_values, mma=mma, saturates=True)
            yield case(mma.name, make, rtol, "-saturates")
    for wmma in WMMAS:
        # Three sums one after the other, each rounded.
        rtol = RTOLS[wmma.accumulator] * TILES_K
        yield case(wmma.name, partial(_wmma_values, wmma=wmma), rtol)
    for element in ("f16", "f32"):
        # Six operations.
        rtol = 6 * {"f16": 2.0**-11, "f32": 2.0**-24}[element]
        make = partial(_elementwise_values, dtype=DTYPES[element])
        yield case(f"elementwise_{element}", make, rtol)
    for kind in LDMATRICES:
        tiles, element, transpose = kind
        make = partial(_ldmatrix_values, tiles=tiles, element=element, transpose=transpose)
        yield case(_ldmatrix_name(*kind), make, 0)
    for (element, count), part in itertools.product(COPIES, (False, True)):
        make = partial(_copy_values, element=element, count=count, is_partial=part)
        yield case(_copy_name(element, count, part), make, 0)
    yield case("product", _product_values, F32_RTOL)


CASES: dict[str, Case] = {case.name: case for case in _cases()}
