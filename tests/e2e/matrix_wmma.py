"""Kernels with gpu.subgroup_mma_*, whose matrices are spread over a warp somehow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from e2e.matrix_values import DTYPES, product, random_matrix

from samples import Array, Values, rng, uniform

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


def wmma_text(wmma: Wmma) -> str:
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


def wmma_values(name: str, wmma: Wmma) -> Values:
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


def elementwise_text(element: str) -> str:
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


def elementwise_values(name: str, dtype: Any) -> Values:
    r = rng(name)
    x, y = (uniform(r, (16, 16), dtype, 0.5, 1.5) for _ in "xy")
    a, b = x.astype(np.float64), y.astype(np.float64)
    ratio = (a + b - 0.5) * b / a
    z = np.clip(ratio, 0.5, 1.5) if dtype == np.float32 else (ratio + 0.5) * 1.5
    return Values({"x": x, "y": y, "z": (16, 16)}, {"z": z}, {"z": dtype})
