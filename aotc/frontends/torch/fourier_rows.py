"""aotc's operators for Fourier transforms that have a kernel: rows whose length is a power of two.

The operator becomes a function on tensors that computes each point by the definition of the
transform, with the attribute `aotc.attributes.FOURIER`. `aotc.kernels.fourier` replaces the
function by its kernel.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from aotc.attributes import FOURIER
from aotc.frontends.fourier_numbers import roots_of_unity
from aotc.frontends.torch.constants import constant
from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators

Tensor = Any

# The limits of a row, in complex numbers. A shorter row is one matmul, and a longer one does not
# fit into a block's shared memory.
_LEAST = 64
_MOST = {"float32": 4096, "float64": 2048}


def has_kernel(length: int, like: Tensor, *, is_real: bool = False) -> bool:
    """Whether rows of `length` points, of the element type of `like`, have a kernel."""
    count = length // 2 if is_real else length
    most = _MOST.get(str(like.dtype).removeprefix("torch."), 0)
    return length & (length - 1) == 0 and _LEAST <= count <= most


def transform_rows(
    x: Tensor,
    length: int,
    sign: int,
    *,
    kind: str = "c2c",
    lies_last: bool = True,
    is_written_last: bool = True,
) -> Tensor:
    """The sums of x[j] exp(sign 2πi jk / length) over j, for all k of each row.

    `x` is [outer, rows, points] with `lies_last`, and otherwise [outer, points, rows]. The result
    has the layout that `is_written_last` says in the same way. Complex tensors have a last
    dimension of two in addition. `kind` is a kind of `aotc.kernels.fourier`: for r2c the result has
    length / 2 + 1 points, for c2r `x` has as many.
    """
    import torch

    outer, rows = x.shape[0], x.shape[1 if lies_last else 2]
    count = length // 2 + 1 if kind == "r2c" else length
    shape = [outer, rows, count] if is_written_last else [outer, count, rows]
    empty = torch.empty(shape if kind == "c2r" else [*shape, 2], dtype=x.dtype, device=x.device)
    table = _roots(length, length, sign, x)
    return _operators().fourier_rows.default(
        x, empty, table, kind, length, sign, lies_last, is_written_last
    )


def half_of_real(z: Tensor) -> Tensor:
    """Converts [rows, n, 2], the transform of 2n real numbers as n complex ones (pairs of
    neighbours), to [rows, n + 1, 2], the first half of the transform of the real numbers."""
    n = z.shape[1]
    return _operators().fourier_halves.default(z, _roots(2 * n, n + 1, -1, z), n + 1)


def pairs_of_half(x: Tensor) -> Tensor:
    """Converts [rows, n + 1, 2], the first half of the transform of 2n real numbers, to [rows, n,
    2], whose inverse transform has these numbers as pairs of neighbours. Without normalization,
    that is 2n times the numbers."""
    n = x.shape[1] - 1
    return _operators().fourier_halves.default(x, _roots(2 * n, n + 1, 1, x), n)


def _roots(length: int, count: int, sign: int, like: Tensor) -> Tensor:
    """[count, 2]: exp(sign 2πi k / length) for each k."""
    roots = roots_of_unity(length, sign * np.arange(count))
    return constant(np.stack([roots.real, roots.imag], -1), like.dtype)


@functools.cache
def _operators() -> Any:
    rows = (
        "fourier_rows(Tensor x, Tensor result, Tensor roots, str kind, int length, int sign, "
        "bool lies_last, bool is_written_last) -> Tensor"
    )
    halves = "fourier_halves(Tensor x, Tensor roots, int count) -> Tensor"
    return define_operators({rows: _like_result, halves: _of_count})


def _like_result(x: Tensor, result: Tensor, *arguments: Any) -> Tensor:
    return result.new_empty(result.shape)


def _of_count(x: Tensor, roots: Tensor, count: int) -> Tensor:
    return x.new_empty([x.shape[0], count, 2])


def _rows_text(call: OperatorCall) -> str:
    x, y, roots = call.operands
    kind, length, sign, lies_last, is_written_last = call.constants
    element = x.rsplit("x", 1)[1].rstrip(">")
    forms = {True: ("%row, {}", "points_last", 1), False: ("{}, %row", "rows_last", 2)}
    read, source, dimension = forms[lies_last]
    written, target, _ = forms[is_written_last]
    of_x = read.format("%j")
    of_y = written.format("%k")
    sizes = written.format(length // 2 + 1 if kind == "r2c" else length).replace("%row", "%rows")
    counts = f"%outer, {sizes}" + ("" if kind == "c2r" else ", 2")
    index = f"%o, {of_y}" + ("" if kind == "c2r" else ", %part")
    ones = ", ".join("1" * (3 if kind == "c2r" else 4))
    unit = f"tensor<{ones.replace(', ', 'x')}x{element}>"
    if kind == "r2c":
        value = f"%a = tensor.extract %x[%o, {of_x}] : {x}\n%b = arith.constant 0.0 : {element}"
    else:
        value = (
            f"%a = tensor.extract %x[%o, {of_x}, %c0] : {x}\n"
            f"%b = tensor.extract %x[%o, {of_x}, %c1] : {x}"
        )
    part = "%part = arith.constant 0 : index" if kind == "c2r" else ""
    # Only the first half of the points is stored; the other half is its conjugate, so all points
    # but the first and the middle one count twice.
    last = length // 2
    weight = f"""
      %is_first = arith.cmpi eq, %j, %c0 : index
      %last = arith.constant {last} : index
      %is_last = arith.cmpi eq, %j, %last : index
      %is_alone = arith.ori %is_first, %is_last : i1
      %one = arith.constant 1.0 : {element}
      %two = arith.constant 2.0 : {element}
      %weight = arith.select %is_alone, %one, %two : {element}
      %term = arith.mulf %own, %weight : {element}"""
    whole = f"%term = arith.addf %own, %none : {element}"
    marks = (
        f'{{kind = "{kind}", length = {length} : i64, sign = {sign} : i64, '
        f'in = "{source}", out = "{target}"}}'
    )
    return f"""
func.func @fourier(%x: {x}, %y: {y}, %roots: {roots}) -> {y}
    attributes {{no_inline, {FOURIER} = {marks}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %length = arith.constant {length} : index
  %count = arith.constant {last + 1 if kind == "c2r" else length} : index
  %none = arith.constant 0.0 : {element}
  %outer = tensor.dim %x, %c0 : {x}
  %dimension = arith.constant {dimension} : index
  %rows = tensor.dim %x, %dimension : {x}
  %made = scf.forall ({index}) in ({counts}) shared_outs(%shared = %y) -> ({y}) {{
    {part}
    %is_real = arith.cmpi eq, %part, %c0 : index
    %sum = scf.for %j = %c0 to %count step %c1 iter_args(%before = %none) -> ({element}) {{
      {value}
      %turn = arith.muli %j, %k : index
      %number = arith.remui %turn, %length : index
      %c = tensor.extract %roots[%number, %c0] : {roots}
      %s = tensor.extract %roots[%number, %c1] : {roots}
      %ac = arith.mulf %a, %c : {element}
      %bs = arith.mulf %b, %s : {element}
      %as = arith.mulf %a, %s : {element}
      %bc = arith.mulf %b, %c : {element}
      %real = arith.subf %ac, %bs : {element}
      %imag = arith.addf %as, %bc : {element}
      %own = arith.select %is_real, %real, %imag : {element}
      {weight if kind == "c2r" else whole}
      %after = arith.addf %before, %term : {element}
      scf.yield %after : {element}
    }}
    %put = tensor.from_elements %sum : {unit}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %put into %shared[{index}] [{ones}] [{ones}] : {unit} into {y}
    }}
  }}
  return %made : {y}
}}
"""


def _halves_text(call: OperatorCall) -> str:
    """With x' = conj(x[n - k]), computes (x[k] + x' - i root(k) (x[k] - x')) / 2 if `x` has n
    points, and x[k] + x' + i root(k) (x[k] - x') if it has n + 1. Both parts of a point are
    computed for each of them."""
    x, roots = call.operands
    (y,) = call.results
    (count,) = call.constants
    element = x.rsplit("x", 1)[1].rstrip(">")
    is_half = f"x{count - 1}x2x" in x
    n, factor = (count - 1, 0.5) if is_half else (count, 1.0)
    # With n points, index n wraps around to 0.
    numbers = (
        """%near = arith.remui %k, %n : index
    %far = arith.remui %rest, %n : index"""
        if is_half
        else """%near = arith.addi %k, %c0 : index
    %far = arith.addi %rest, %c0 : index"""
    )
    real, imag = ("addf", "subf") if is_half else ("subf", "addf")
    return f"""
func.func @halves(%x: {x}, %roots: {roots}) -> {y} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {n} : index
  %factor = arith.constant {factor} : {element}
  %rows = tensor.dim %x, %c0 : {x}
  %empty = tensor.empty({"%rows" if y.startswith("tensor<?") else ""}) : {y}
  %made = linalg.generic {{indexing_maps = [affine_map<(r, k, p) -> (r, k, p)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} outs(%empty : {y}) {{
  ^bb0(%unused: {element}):
    %row = linalg.index 0 : index
    %k = linalg.index 1 : index
    %part = linalg.index 2 : index
    %rest = arith.subi %n, %k : index
    {numbers}
    %a = tensor.extract %x[%row, %near, %c0] : {x}
    %b = tensor.extract %x[%row, %near, %c1] : {x}
    %c = tensor.extract %x[%row, %far, %c0] : {x}
    %d = tensor.extract %x[%row, %far, %c1] : {x}
    %cos = tensor.extract %roots[%k, %c0] : {roots}
    %sin = tensor.extract %roots[%k, %c1] : {roots}
    %real_sum = arith.addf %a, %c : {element}
    %imag_sum = arith.subf %b, %d : {element}
    %real_rest = arith.subf %a, %c : {element}
    %imag_rest = arith.addf %b, %d : {element}
    %rc = arith.mulf %real_rest, %cos : {element}
    %is = arith.mulf %imag_rest, %sin : {element}
    %rs = arith.mulf %real_rest, %sin : {element}
    %ic = arith.mulf %imag_rest, %cos : {element}
    %real_turned = arith.subf %rc, %is : {element}
    %imag_turned = arith.addf %rs, %ic : {element}
    %real = arith.{real} %real_sum, %imag_turned : {element}
    %imag = arith.{imag} %imag_sum, %real_turned : {element}
    %is_real = arith.cmpi eq, %part, %c0 : index
    %own = arith.select %is_real, %real, %imag : {element}
    %scaled = arith.mulf %own, %factor : {element}
    linalg.yield %scaled : {element}
  }} -> {y}
  return %made : {y}
}}
"""


LOWERINGS = (
    OperatorLowering("aotc::fourier_rows", to_mlir=_rows_text),
    OperatorLowering("aotc::fourier_halves", to_mlir=_halves_text),
)
