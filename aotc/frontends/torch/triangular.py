"""Decomposes `torch.linalg.solve_triangular` into forward substitution, sequential for each column
and parallel over the columns, and `torch.linalg.cholesky` into a column-by-column factorization,
parallel over the matrices."""

from __future__ import annotations

import functools
import math
from typing import Any

from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators

Tensor = Any


def triangular_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.linalg_solve_triangular.default: solve_triangular,
        aten.linalg_cholesky.default: _cholesky,
        aten.cholesky.default: _cholesky,
        aten.cholesky_solve.default: _solve_by_factor,
    }


def _cholesky(a: Tensor, upper: bool = False) -> Any:
    if a.is_complex():
        return NotImplemented
    lower = (a.mT if upper else a).tril()
    made = _operators().cholesky.default(
        lower.reshape(math.prod(a.shape[:-2]), *a.shape[-2:]).contiguous()
    )
    made = made.reshape(a.shape)
    return made.mT if upper else made


def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Uses the operator for lower triangular matrices. For an upper one, rows and columns are
    reversed; if `left` is false, both operands are transposed."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    shapes: Any = torch.broadcast_shapes
    if a.is_complex() or b.is_complex():
        return NotImplemented
    if not left:
        solved = solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular)
        return solved.mT
    batch = shapes(a.shape[:-2], b.shape[:-2])
    rows, columns = b.shape[-2:]
    # The batch is computed explicitly: without rows or columns, -1 in a shape would be ambiguous.
    count = math.prod(batch)
    matrices = a.expand(*batch, rows, rows).reshape(count, rows, rows)
    values = b.expand(*batch, rows, columns).reshape(count, rows, columns)
    if upper:
        matrices, values = matrices.flip(1, 2), values.flip(1)
    if unitriangular:
        is_diagonal = torch.eye(rows, dtype=torch.bool, device=a.device)
        matrices = torch.where(is_diagonal, torch.ones_like(matrices), matrices)
    solved = _operators().solve_lower.default(matrices.contiguous(), values.contiguous())
    return (solved.flip(1) if upper else solved).reshape(*batch, rows, columns)


def _solve_by_factor(b: Tensor, factor: Tensor, upper: bool = False) -> Any:
    """Solves by the Cholesky factor of a matrix."""
    if b.is_complex() or factor.is_complex():
        return NotImplemented
    lower = factor.mT if upper else factor
    half = solve_triangular(lower, b, upper=False)
    return solve_triangular(lower.mT, half, upper=True)


@functools.cache
def _operators() -> Any:
    return define_operators(
        {
            "solve_lower(Tensor a, Tensor b) -> Tensor": lambda a, b: b.new_empty(b.shape),
            "cholesky(Tensor a) -> Tensor": lambda a: a.new_empty(a.shape),
        }
    )


def _solve_text(call: OperatorCall) -> str:
    a, b = call.operands
    (result,) = call.results
    element = b.removesuffix(">").split("x")[-1]
    rows = b.removeprefix("tensor<").split("x")[1]
    column = f"tensor<{rows}x{element}>"
    size = "1, %rows, 1" if rows == "?" else f"1, {rows}, 1"
    return f"""
func.func @solve_lower(%a: {a}, %b: {b}) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %batch = tensor.dim %b, %c0 : {b}
  %rows = tensor.dim %b, %c1 : {b}
  %columns = tensor.dim %b, %c2 : {b}
  %made = scf.forall (%s, %j) in (%batch, %columns) shared_outs(%shared = %b) -> ({result}) {{
    %given = tensor.extract_slice %shared[%s, 0, %j] [{size}] [1, 1, 1] : {b} to {column}
    %solved = scf.for %i = %c0 to %rows step %c1 iter_args(%values = %given) -> ({column}) {{
      %own = tensor.extract %values[%i] : {column}
      %rest = scf.for %k = %c0 to %i step %c1 iter_args(%left = %own) -> ({element}) {{
        %factor = tensor.extract %a[%s, %i, %k] : {a}
        %value = tensor.extract %values[%k] : {column}
        %product = arith.mulf %factor, %value : {element}
        %less = arith.subf %left, %product : {element}
        scf.yield %less : {element}
      }}
      %divisor = tensor.extract %a[%s, %i, %i] : {a}
      %quotient = arith.divf %rest, %divisor : {element}
      %put = tensor.insert %quotient into %values[%i] : {column}
      scf.yield %put : {column}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %solved into %shared[%s, 0, %j] [{size}] [1, 1, 1]
          : {column} into {result}
    }}
  }}
  return %made : {result}
}}
"""


def _cholesky_text(call: OperatorCall) -> str:
    """Factors in place. The input is a lower triangular matrix with zeros above the diagonal."""
    (a,), (result,) = call.operands, call.results
    element = a.removesuffix(">").split("x")[-1]
    rows = a.removeprefix("tensor<").split("x")[1]
    matrix = f"tensor<{rows}x{rows}x{element}>"
    size = "1, %rows, %rows" if rows == "?" else f"1, {rows}, {rows}"
    return f"""
func.func @cholesky(%a: {a}) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : {element}
  %batch = tensor.dim %a, %c0 : {a}
  %rows = tensor.dim %a, %c1 : {a}
  %made = scf.forall (%s) in (%batch) shared_outs(%shared = %a) -> ({result}) {{
    %given = tensor.extract_slice %shared[%s, 0, 0] [{size}] [1, 1, 1] : {a} to {matrix}
    %whole = scf.for %j = %c0 to %rows step %c1 iter_args(%columns = %given) -> ({matrix}) {{
      %own = tensor.extract %columns[%j, %j] : {matrix}
      %square = scf.for %k = %c0 to %j step %c1 iter_args(%left = %own) -> ({element}) {{
        %value = tensor.extract %columns[%j, %k] : {matrix}
        %product = arith.mulf %value, %value : {element}
        %less = arith.subf %left, %product : {element}
        scf.yield %less : {element}
      }}
      %is_positive = arith.cmpf ogt, %square, %zero : {element}
      cf.assert %is_positive, "linalg.cholesky: a matrix is not positive-definite"
      %root = math.sqrt %square : {element}
      %begun = tensor.insert %root into %columns[%j, %j] : {matrix}
      %next = arith.addi %j, %c1 : index
      %column = scf.for %i = %next to %rows step %c1 iter_args(%values = %begun) -> ({matrix}) {{
        %below = tensor.extract %values[%i, %j] : {matrix}
        %rest = scf.for %k = %c0 to %j step %c1 iter_args(%left = %below) -> ({element}) {{
          %value = tensor.extract %values[%i, %k] : {matrix}
          %factor = tensor.extract %values[%j, %k] : {matrix}
          %product = arith.mulf %value, %factor : {element}
          %less = arith.subf %left, %product : {element}
          scf.yield %less : {element}
        }}
        %quotient = arith.divf %rest, %root : {element}
        %put = tensor.insert %quotient into %values[%i, %j] : {matrix}
        scf.yield %put : {matrix}
      }}
      scf.yield %column : {matrix}
    }}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %whole into %shared[%s, 0, 0] [{size}] [1, 1, 1]
          : {matrix} into {result}
    }}
  }}
  return %made : {result}
}}
"""


LOWERINGS = (
    OperatorLowering("aotc::solve_lower", to_mlir=_solve_text),
    OperatorLowering("aotc::cholesky", to_mlir=_cholesky_text),
)
