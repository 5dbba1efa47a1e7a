"""Decomposes `torch.linalg.solve_triangular` into forward substitution, sequential for each column
and parallel over the columns, and `torch.linalg.cholesky` into a column-by-column factorization,
parallel over the matrices."""

from __future__ import annotations

import functools
import math
from typing import Any

from aotc.frontends.factorization_text import cholesky_text, solve_text
from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators

Tensor = Any


def triangular_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.linalg_solve_triangular.default: solve_triangular,
        aten.linalg_cholesky.default: _cholesky,
        aten.cholesky.default: _cholesky,
        aten.linalg_cholesky_ex.default: _cholesky_and_info,
        aten.cholesky_solve.default: _solve_by_factor,
        aten.cholesky_inverse.default: _inverse_by_factor,
    }


def _cholesky_and_info(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Returns the factor and, for each matrix, 0, or k if its leading k x k matrix is the first
    that is not positive definite. The factor of such a matrix has no meaning."""
    if a.is_complex():
        return NotImplemented
    made = _cholesky(a, upper, is_checked=check_errors)
    is_positive = made.diagonal(0, -2, -1) > 0
    return made, first_of(is_positive.logical_not())


def first_of(is_wrong: Tensor) -> Tensor:
    """The number of the first true element of each row, counted from 1, or 0 if there is none."""
    import torch

    before = (is_wrong.cumsum(-1) == 0).sum(-1)
    return torch.where(before == is_wrong.shape[-1], 0, before + 1).to(torch.int32)


def _cholesky(a: Tensor, upper: bool = False, *, is_checked: bool = True) -> Any:
    if a.is_complex():
        return NotImplemented
    lower = (a.mT if upper else a).tril()
    operators = _operators()
    factor = (operators.cholesky if is_checked else operators.cholesky_unchecked).default
    made = factor(lower.reshape(math.prod(a.shape[:-2]), *a.shape[-2:]).contiguous())
    made = made.reshape(a.shape)
    return made.mT if upper else made


def solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """Uses the operator for lower triangular matrices. For an upper one, rows and columns are
    reversed; if `left` is false, both operands are transposed."""
    import torch

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


def _inverse_by_factor(factor: Tensor, upper: bool = False) -> Any:
    """The inverse of the matrix with this Cholesky factor."""
    import torch

    identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return _solve_by_factor(identity.expand(factor.shape), factor, upper)


@functools.cache
def _operators() -> Any:
    return define_operators(
        {
            "solve_lower(Tensor a, Tensor b) -> Tensor": lambda a, b: b.new_empty(b.shape),
            "cholesky(Tensor a) -> Tensor": lambda a: a.new_empty(a.shape),
            "cholesky_unchecked(Tensor a) -> Tensor": lambda a: a.new_empty(a.shape),
        }
    )


def _solve_text(call: OperatorCall) -> str:
    return solve_text(*call.operands)


def _cholesky_text(call: OperatorCall, is_checked: bool) -> str:
    return cholesky_text(*call.operands, is_checked=is_checked)


LOWERINGS = (
    OperatorLowering("aotc::solve_lower", to_mlir=_solve_text),
    *(
        OperatorLowering(
            f"aotc::{name}", to_mlir=functools.partial(_cholesky_text, is_checked=is_checked)
        )
        for name, is_checked in (("cholesky", True), ("cholesky_unchecked", False))
    ),
)
