"""Decomposes `torch.linalg.solve`, `inv`, `det`, `slogdet` and `logdet` into an LU factorization
with partial pivoting. The matrices of a batch are factored in parallel, each sequentially."""

from __future__ import annotations

import functools
import math
from typing import Any

from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators
from aotc.frontends.torch.triangular import solve_triangular

Tensor = Any


def lu_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.linalg_solve.default: _solve,
        **dict.fromkeys((aten.linalg_inv.default, aten.inverse.default), _inverse),
        **dict.fromkeys((aten.linalg_det.default, aten.det.default), _determinant),
        **dict.fromkeys((aten.linalg_slogdet.default, aten.slogdet.default), _logarithm),
        aten.logdet.default: _logdet,
    }


def _solve(a: Tensor, b: Tensor, *, left: bool = True) -> Any:
    if a.is_complex() or b.is_complex():
        return NotImplemented
    is_vector = b.dim() == 1 or b.shape == a.shape[:-1]
    values = b.unsqueeze(-1) if is_vector else b
    solved = _solved(a, values) if left or is_vector else _solved(a.mT, values.mT).mT
    return solved.squeeze(-1) if is_vector else solved


def _inverse(a: Tensor) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    if a.is_complex():
        return NotImplemented
    return _solved(a, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device))


def _determinant(a: Tensor) -> Any:
    if a.is_complex():
        return NotImplemented
    factors, rows = _factors(a)
    return _parity(rows, a.dtype) * factors.diagonal(0, -2, -1).prod(-1)


def _logarithm(a: Tensor) -> Any:
    if a.is_complex():
        return NotImplemented
    factors, rows = _factors(a)
    diagonal = factors.diagonal(0, -2, -1)
    return _parity(rows, a.dtype) * diagonal.sign().prod(-1), diagonal.abs().log().sum(-1)


def _logdet(a: Tensor) -> Any:
    import torch

    if a.is_complex():
        return NotImplemented
    sign, value = _logarithm(a)
    return torch.where(sign < 0, math.nan, value)


def _solved(a: Tensor, b: Tensor) -> Tensor:
    """The solutions of `a @ x = b`, where the batch dimensions of `a` and `b` are broadcast. A
    singular matrix is an error of the call."""
    factors, rows = _factors(a, is_regular=True)
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    count, columns = a.shape[-1], b.shape[-1]
    places = rows.unsqueeze(-1).expand(*batch, count, columns)
    values = b.expand(*batch, count, columns).gather(-2, places)
    half = solve_triangular(factors, values, upper=False, unitriangular=True)
    return solve_triangular(factors, half, upper=True)


def _broadcast(*shapes: Any) -> Any:
    import torch

    function: Any = torch.broadcast_shapes
    return function(*shapes)


def _factors(a: Tensor, is_regular: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the packed LU factors and the row permutation.

    The strict lower triangle of a matrix is L, whose diagonal is all ones; the upper triangle is U.
    Row i of the factors is from row `permutation[i]` of `a`.
    """
    import torch

    count, size = math.prod(a.shape[:-2]), a.shape[-1]
    order = torch.arange(size, device=a.device).expand(count, size).contiguous()
    operators = _operators()
    factor = (operators.lu_regular if is_regular else operators.lu).default
    made, rows = factor(a.reshape(count, size, size).contiguous(), order)
    return made.reshape(a.shape), rows.reshape(a.shape[:-1])


def _parity(rows: Tensor, dtype: Any) -> Tensor:
    """-1 for each odd permutation, 1 for each even one."""
    is_inverted = (rows.unsqueeze(-1) > rows.unsqueeze(-2)).triu()
    return (1 - 2 * (is_inverted.sum((-2, -1)) % 2)).to(dtype)


@functools.cache
def _operators() -> Any:
    def fake(a: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        return a.new_empty(a.shape), order.new_empty(order.shape)

    names = ("lu", "lu_regular")
    return define_operators(
        {f"{name}(Tensor a, Tensor order) -> (Tensor, Tensor)": fake for name in names}
    )


def _text(call: OperatorCall, is_regular: bool) -> str:
    (a, order), (made, rows) = call.operands, call.results
    element = a.removesuffix(">").split("x")[-1]
    size = a.removeprefix("tensor<").split("x")[1]
    if size == "0":
        return f"func.func @lu(%a: {a}, %order: {order}) -> ({made}, {rows}) {{\n" + (
            f"  return %a, %order : {made}, {rows}\n}}\n"
        )
    matrix, row = f"tensor<{size}x{size}x{element}>", f"tensor<{size}xi64>"
    extent = "%size" if size == "?" else size
    check = (
        'cf.assert %is_regular, "linalg: a matrix that is to be inverted is singular"'
        if is_regular
        else ""
    )
    return f"""
func.func @lu(%a: {a}, %order: {order}) -> ({made}, {rows}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {element}
  %none = arith.constant -1.0 : {element}
  %batch = tensor.dim %a, %c0 : {a}
  %size = tensor.dim %a, %c1 : {a}
  %made:2 = scf.forall (%s) in (%batch) shared_outs(%shared = %a, %places = %order)
      -> ({made}, {rows}) {{
    %given = tensor.extract_slice %shared[%s, 0, 0] [1, {extent}, {extent}] [1, 1, 1]
        : {made} to {matrix}
    %own = tensor.extract_slice %places[%s, 0] [1, {extent}] [1, 1] : {rows} to {row}
    %whole:2 = scf.for %k = %c0 to %size step %c1 iter_args(%m = %given, %o = %own)
        -> ({matrix}, {row}) {{
      %found:2 = scf.for %i = %k to %size step %c1 iter_args(%p = %k, %most = %none)
          -> (index, {element}) {{
        %value = tensor.extract %m[%i, %k] : {matrix}
        %absolute = math.absf %value : {element}
        %is_larger = arith.cmpf ogt, %absolute, %most : {element}
        %is_nan = arith.cmpf uno, %absolute, %absolute : {element}
        %is_more = arith.ori %is_larger, %is_nan : i1
        %place = arith.select %is_more, %i, %p : index
        %larger = arith.select %is_more, %absolute, %most : {element}
        scf.yield %place, %larger : index, {element}
      }}
      %swapped = scf.for %j = %c0 to %size step %c1 iter_args(%x = %m) -> ({matrix}) {{
        %upper = tensor.extract %x[%k, %j] : {matrix}
        %lower = tensor.extract %x[%found#0, %j] : {matrix}
        %first = tensor.insert %lower into %x[%k, %j] : {matrix}
        %second = tensor.insert %upper into %first[%found#0, %j] : {matrix}
        scf.yield %second : {matrix}
      }}
      %here = tensor.extract %o[%k] : {row}
      %there = tensor.extract %o[%found#0] : {row}
      %begun = tensor.insert %there into %o[%k] : {row}
      %permuted = tensor.insert %here into %begun[%found#0] : {row}
      %pivot = tensor.extract %swapped[%k, %k] : {matrix}
      %is_regular = arith.cmpf une, %pivot, %zero : {element}
      {check}
      %next = arith.addi %k, %c1 : index
      %eliminated = scf.for %i = %next to %size step %c1 iter_args(%x = %swapped) -> ({matrix}) {{
        %below = tensor.extract %x[%i, %k] : {matrix}
        %quotient = arith.divf %below, %pivot : {element}
        %factor = arith.select %is_regular, %quotient, %zero : {element}
        %kept = tensor.insert %factor into %x[%i, %k] : {matrix}
        %rest = scf.for %j = %next to %size step %c1 iter_args(%y = %kept) -> ({matrix}) {{
          %value = tensor.extract %y[%k, %j] : {matrix}
          %product = arith.mulf %factor, %value : {element}
          %old = tensor.extract %y[%i, %j] : {matrix}
          %less = arith.subf %old, %product : {element}
          %put = tensor.insert %less into %y[%i, %j] : {matrix}
          scf.yield %put : {matrix}
        }}
        scf.yield %rest : {matrix}
      }}
      scf.yield %eliminated, %permuted : {matrix}, {row}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole#0 into %shared[%s, 0, 0] [1, {extent}, {extent}] [1, 1, 1]
          : {matrix} into {made}
      tensor.parallel_insert_slice %whole#1 into %places[%s, 0] [1, {extent}] [1, 1]
          : {row} into {rows}
    }}
  }}
  return %made#0, %made#1 : {made}, {rows}
}}
"""


LOWERINGS = (
    OperatorLowering("aotc::lu", to_mlir=functools.partial(_text, is_regular=False)),
    OperatorLowering("aotc::lu_regular", to_mlir=functools.partial(_text, is_regular=True)),
)
