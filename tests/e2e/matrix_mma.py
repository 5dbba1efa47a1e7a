"""Kernels with nvgpu.mma.sync and nvgpu.ldmatrix, whose registers the program sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from e2e.matrix_values import (
    BLOCK_SIZE,
    DTYPES,
    LAUNCH,
    THREAD,
    THREADS,
    WARPS,
    product,
    random_matrix,
)

from samples import Array, Values, rng

# nvgpu.mma.sync


@dataclass(frozen=True)
class Mma:
    """One kind of mma.sync: the types of the multiplicands and of the accumulators."""

    element: str
    accumulator: str
    m: int
    n: int
    k: int
    # Which lanes of a group of four tell where the elements of a sparse A are; None: A is dense.
    selector: int | None = None

    @property
    def name(self) -> str:
        if self.selector is not None:
            shape = f"m{self.m}n{self.n}k{self.k}_{self.selector}"
            return f"mma_sparse_{self.element}_{self.accumulator}_{shape}"
        return f"mma_{self.element}_{self.accumulator}_m{self.m}n{self.n}k{self.k}"

    @property
    def width(self) -> int:
        """Elements in a register: 32 bits of them, or one f64."""
        return {"f64": 1, "f32": 1, "f16": 2, "bf16": 2, "i8": 4, "i4": 8}[self.element]

    @property
    def registers(self) -> tuple[int, int, int]:
        """How many a lane has of A, of B, and pairs of C."""
        return (
            self.m * self.k // 32 // self.width // (1 if self.selector is None else 2),
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


SPARSE_MMAS = [
    *(Mma("f16", c, 16, 8, 16, selector) for c, selector in (("f16", 0), ("f32", 1))),
    *(Mma("f16", c, 16, 8, 32, selector) for c, selector in (("f16", 1), ("f32", 0))),
    *(Mma("bf16", "f32", 16, 8, k, 1) for k in (16, 32)),
    *(Mma("f32", "f32", 16, 8, k, k // 8 - 1) for k in (8, 16)),
]


def mma_text(mma: Mma) -> str:
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
    name, metadata, selector, parameter, loaded = "nvgpu.mma.sync", "", "", "", ""
    if mma.selector is not None:
        name, metadata = "nvgpu.mma.sp.sync", " metadata(%word)"
        selector = f", sparsitySelector = {mma.selector} : i32"
        parameter = f", %m: memref<{THREADS}x2xi16>"
        loaded = f"""
    %word = vector.load %m[%i, %c0] : memref<{THREADS}x2xi16>, vector<2xi16>"""
    return f"""
func.func @{mma.name}(%a: memref<{THREADS}x{a}x{held_width}x{held}>,
    %b: memref<{THREADS}x{b}x{held_width}x{held}>, %c: {c_memref}, %d: {c_memref}{parameter})
    attributes {{llvm.emit_c_interface}} {{{LAUNCH} {{{THREAD}{fetch("a", a)}{fetch("b", b)}{loaded}
    %pad = arith.constant {zero}
    %sums = vector.transfer_read %c[%i, %c0, %c0], %pad {{in_bounds = [true, true]}}
        : {c_memref}, vector<{c}x2x{d}>
    %result = {name} (%a_registers, %b_registers, %sums){metadata}
        {{mmaShape = [{mma.m}, {mma.n}, {mma.k}]{selector}{tf32}}} : {types} -> vector<{c}x2x{d}>
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


def mma_values(name: str, mma: Mma, *, saturates: bool) -> Values:
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


def sparse_mma_values(name: str, mma: Mma) -> Values:
    """A has two elements of four, of f32 one of two, at columns of its own in each chunk."""
    assert mma.selector is not None
    r = rng(name)
    w, k_tiles = mma.width, mma.k // 8 // mma.width
    kept = random_matrix(r, (WARPS, mma.m, mma.k // 2), DTYPES[mma.element])
    b = random_matrix(r, (WARPS, mma.k, mma.n), DTYPES[mma.element])
    c = random_matrix(r, (WARPS, mma.m, mma.n), DTYPES[mma.accumulator])
    chunks = (WARPS, mma.m, mma.k // 2 // w)
    # The columns of a chunk's elements, in order, and the four bits that say so.
    order = np.argsort(r.random((*chunks, 2 * w)), -1)[..., :w]
    columns = np.sort(order, -1)
    bits = columns[..., 0] | columns[..., -1] << 2 if w == 2 else np.where(columns, 14, 4)[..., 0]
    dense = np.zeros((*chunks, 2 * w), kept.dtype)
    np.put_along_axis(dense, columns, kept.reshape(*chunks, w), -1)
    d = product(dense.reshape(WARPS, mma.m, mma.k), b, c)
    # Rows g in the lower half of the word of a lane of group g, rows g + 8 in the upper half.
    halves = (bits.reshape(WARPS, 2, 8, k_tiles, 4) << np.arange(0, 16, 4)).sum(-1)
    words = np.full((WARPS, 8, 4, 2), 0x7777)  # of lanes that nobody asks
    first = k_tiles * mma.selector
    words[:, :, first : first + k_tiles] = halves.transpose(0, 2, 3, 1)
    return Values(
        {
            "a": a_fragment(mma, kept),
            "b": b_fragment(mma, b),
            "c": c_fragment(c),
            "d": c_fragment(d).shape,
            "m": words.astype(np.uint16).view(np.int16).reshape(THREADS, 2),
        },
        {"d": c_fragment(d)},
        {"d": DTYPES[mma.accumulator]},
    )


# nvgpu.ldmatrix: the rows come in an order that no other instruction would have.

LDMATRICES = [
    *((tiles, "f16", transpose) for tiles in (1, 2, 4) for transpose in (False, True)),
    (4, "i8", False),
    (4, "f32", False),
    (2, "f32", False),
]


def ldmatrix_name(tiles: int, element: str, transpose: bool) -> str:
    return f"ldmatrix_x{tiles}_{element}{'_transposed' if transpose else ''}"


def ldmatrix_text(tiles: int, element: str, transpose: bool) -> str:
    width = {"f16": 2, "i8": 4, "f32": 1}[element]
    in_row = 4 * width
    # Rows stay aligned to 16 bytes.
    shared = f"memref<{BLOCK_SIZE}x{3 * in_row}x{element}, #gpu.address_space<workgroup>>"
    source = f"memref<{THREADS}x{in_row}x{element}>"
    target = f"memref<{THREADS}x{tiles}x{width}x{element}>"
    row, own = f"vector<{in_row}x{element}>", f"vector<{tiles}x{width}x{element}>"
    return f"""
func.func @{ldmatrix_name(tiles, element, transpose)}(%x: {source}, %y: {target})
    attributes {{llvm.emit_c_interface}} {{{LAUNCH}
             workgroup(%shared : {shared}) {{{THREAD}
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


def ldmatrix_values(name: str, tiles: int, element: str, transpose: bool) -> Values:
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
