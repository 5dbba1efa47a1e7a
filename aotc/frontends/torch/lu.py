"""Decomposes `torch.linalg.solve`, `inv`, `lu`, `det`, `slogdet` and `logdet` into an LU
factorization with partial pivoting. The matrices of a batch are factored in parallel, each
sequentially."""

from __future__ import annotations

import functools
import math
from typing import Any

from aotc.frontends.factorization_text import lu_text
from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators
from aotc.frontends.torch.triangular import first_of, solve_triangular

Tensor = Any


def lu_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.linalg_solve.default: _solve,
        **dict.fromkeys((aten.linalg_inv.default, aten.inverse.default), _inverse),
        **dict.fromkeys((aten.linalg_det.default, aten.det.default), _determinant),
        **dict.fromkeys((aten.linalg_slogdet.default, aten.slogdet.default), _logarithm),
        aten.logdet.default: _logdet,
        aten.linalg_lu.default: _lu,
        aten.linalg_inv_ex.default: _inverse_and_info,
    }


def _solve(a: Tensor, b: Tensor, *, left: bool = True) -> Any:
    if a.is_complex() or b.is_complex():
        return NotImplemented
    is_vector = b.dim() == 1 or b.shape == a.shape[:-1]
    values = b.unsqueeze(-1) if is_vector else b
    solved = _solved(a, values) if left or is_vector else _solved(a.mT, values.mT).mT
    return solved.squeeze(-1) if is_vector else solved


def _inverse(a: Tensor) -> Any:
    import torch

    if a.is_complex():
        return NotImplemented
    return _solved(a, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device))


def _inverse_and_info(a: Tensor, *, check_errors: bool = False) -> Any:
    """Returns the inverse and, for each matrix, 0, or k if the k-th pivot is the first that is 0.
    The inverse of such a matrix has no meaning."""
    import torch

    if a.is_complex():
        return NotImplemented
    factors, rows = _factors(a, is_regular=check_errors)
    inverse = _solved_by(factors, rows, torch.eye(a.shape[-1], dtype=a.dtype, device=a.device))
    return inverse, first_of(factors.diagonal(0, -2, -1) == 0)


def _lu(a: Tensor, *, pivot: bool = True) -> Any:
    """Returns the permutation matrix, and the two factors of a square matrix."""
    import torch

    if a.is_complex() or not pivot or a.shape[-1] != a.shape[-2]:
        return NotImplemented
    factors, rows = _factors(a)
    numbers = torch.arange(a.shape[-1], device=a.device)
    permutation = (rows.unsqueeze(-2) == numbers.unsqueeze(-1)).to(a.dtype)
    lower = torch.where(numbers == numbers.unsqueeze(-1), 1, factors.tril(-1))
    return permutation, lower, factors.triu()


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
    return _solved_by(*_factors(a, is_regular=True), b)


def _solved_by(factors: Tensor, rows: Tensor, b: Tensor) -> Tensor:
    batch = _broadcast(factors.shape[:-2], b.shape[:-2])
    count, columns = factors.shape[-1], b.shape[-1]
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
    return lu_text(*call.operands, is_regular=is_regular)


LOWERINGS = (
    OperatorLowering("aotc::lu", to_mlir=functools.partial(_text, is_regular=False)),
    OperatorLowering("aotc::lu_regular", to_mlir=functools.partial(_text, is_regular=True)),
)
