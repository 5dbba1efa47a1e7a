"""Decomposes PyTorch's scatters along one dimension into an operator of aotc's own."""

from __future__ import annotations

import functools
import math
from typing import Any

from aotc.frontends.scatter import Scatter
from aotc.frontends.scatter_text import Points
from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators

Tensor = Any

# The operation on floats and that on integers, by PyTorch's name of the reduction.
_OPERATIONS = {
    "": ("", ""),
    "sum": ("arith.addf", "arith.addi"),
    "prod": ("arith.mulf", "arith.muli"),
    "amax": ("arith.maximumf", "arith.maxsi"),
    "amin": ("arith.minimumf", "arith.minsi"),
}


def scatter_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.scatter.src: _scatter_last,
        aten.scatter.value: lambda x, dim, index, value: _scatter_last(
            x, dim, index, x.new_full((1,), value)
        ),
        aten.scatter.reduce: _scatter_by_name,
        aten.scatter.value_reduce: lambda x, dim, index, value, *, reduce: _scatter_by_name(
            x, dim, index, x.new_full(index.shape, value), reduce=reduce
        ),
        aten.scatter_add.default: _scatter_add,
        aten.scatter_reduce.two: _scatter_reduce,
        aten.index_add.default: _index_add,
        aten.index_copy.default: lambda x, dim, index, source: _scatter_rows(
            x, dim, index, source, ""
        ),
        aten.index_fill.int_Scalar: _index_fill,
        aten.index_fill.int_Tensor: _index_fill,
        aten.index_reduce.default: _index_reduce,
    }


def _scatter_last(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _scatter(x, dim, index, source, "")


def _scatter_by_name(x: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """`torch.scatter` has other names for the reductions than `torch.scatter_reduce`."""
    import torch

    return torch.scatter_reduce(x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


def _scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    if _has_kernel(x, "sum"):
        return _scatter(x, dim, index, source, "sum")
    return x.scatter_add(dim + max(x.dim(), 1), index, source) if dim < 0 else NotImplemented


def _scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    import torch

    if dim < 0:
        # torch-mlir's own lowering crashes for a negative dimension.
        dim += max(x.dim(), 1)
        return torch.scatter_reduce(x, dim, index, src, reduce, include_self=include_self)
    if x.dtype == torch.bool and reduce in ("amax", "amin"):
        # Of signed integers of one bit, true is the smaller one.
        numbers = (x.to(torch.int32), dim, index, src.to(torch.int32), reduce)
        return torch.scatter_reduce(*numbers, include_self=include_self).to(torch.bool)
    if include_self and _has_kernel(x, reduce):
        return _scatter(x, dim, index, src, reduce)
    if x.dim() == 0 or not _has_kernel(x, "sum" if reduce == "mean" else reduce):
        return NotImplemented
    counts = _counts(x, dim, index, src)
    if reduce == "mean":
        total = torch.scatter_reduce(x, dim, index, src, "sum", include_self=include_self)
        counts = (counts + int(include_self)).to(x.dtype)
        # The mean of integers is rounded towards negative infinity, as in PyTorch.
        rounding = None if x.dtype.is_floating_point else "floor"
        return torch.div(total, torch.where(counts == 0, 1, counts), rounding_mode=rounding)
    start = torch.full_like(x, _identity(x.dtype, reduce))
    return torch.where(counts > 0, _scatter(start, dim, index, src, reduce), x)


def _counts(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """How many elements of the source each element of `x` gets, with sizes of 1 where these do not
    differ."""
    import torch

    shape = list(x.shape)
    if x.dim() > 1 and _is_of_rows(x, dim, index, src):
        for place in range(x.dim()):
            if place != dim:
                index, shape[place] = index.narrow(place, 0, 1), 1
    zeros = x.new_zeros(shape, dtype=torch.int64)
    return zeros.scatter_add(dim, index, torch.ones_like(index))


def _identity(dtype: Any, reduce: str) -> float | int:
    """The number that a reduction begins with."""
    import torch

    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    info = torch.iinfo(dtype)
    return int(info.min if reduce == "amax" else info.max)


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    return _scatter_rows(x, dim, index, source if alpha == 1 else source * alpha, "sum")


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Unlike PyTorch's other writes along one dimension, it takes negative indices. PyTorch's own
    decomposition does not."""
    import torch

    rows = x if x.dim() else x.reshape(1)
    dim %= rows.dim()
    places = torch.where(index < 0, index + rows.shape[dim], index)
    filled = value if isinstance(value, torch.Tensor) else x.new_full((), value)
    source = filled.expand(_rows_of(rows, dim, index))
    return _scatter_rows(rows, dim, places, source, "").reshape(x.shape)


def _index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    import torch

    dim %= x.dim()
    if include_self and _has_kernel(x, reduce):
        return _scatter_rows(x, dim, index, source, reduce)
    shape = [1] * source.dim()
    shape[dim] = -1
    places = index.long().reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _scatter(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """`source` may have a single element, which is used for all indices."""
    if x.dim() == 0:
        if index.dim() == 0:
            index = index.reshape(1)
        shape = source.reshape(1) if source.dim() == 0 else source
        return _scatter(x.reshape(1), 0, index, shape, reduce).reshape(())
    dim %= x.dim()
    if x.dim() > 1 and _is_of_rows(x, dim, index, source):
        for place in reversed(range(x.dim())):
            if place != dim:
                index = index.select(place, 0)
        return _scatter_rows(x, dim, index, source, reduce)
    return _call(x, dim, index, source, reduce)


def _is_of_rows(x: Tensor, dim: int, index: Tensor, source: Tensor) -> bool:
    """Whether the index is a 1-D index of rows that was expanded to the shape of the source, as in
    graph convolutions."""
    from torch.fx.experimental.symbolic_shapes import (
        statically_known_true,
    )

    others = [place for place in range(x.dim()) if place != dim]
    equal = [index.shape[place] == x.shape[place] for place in others]
    equal += [stride == 0 for place, stride in enumerate(index.stride()) if place != dim]
    if source.dim() != x.dim():
        return False
    equal += [a == b for a, b in zip(source.shape, index.shape, strict=True)]
    return all(map(statically_known_true, equal))


def _scatter_rows(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """Scatters slices of `source`: `index` is 1-D, and has the position along `dim` of each
    slice."""
    if x.dim() == 0:
        return _scatter_rows(x.reshape(1), 0, index, source.reshape(1), reduce).reshape(())
    dim %= x.dim()
    return _call(x, dim, index.reshape(-1), source.reshape(_rows_of(x, dim, index)), reduce)


def _rows_of(x: Tensor, dim: int, index: Tensor) -> list[Any]:
    count = math.prod(index.shape)
    return [count if place == dim else size for place, size in enumerate(x.shape)]


def _has_kernel(x: Tensor, reduce: str) -> bool:
    """Whether aotc's operator supports the reduction for this dtype. In its text unsigned integers
    are signless, so only reductions that do not depend on the sign are supported for them. Booleans
    have sums alone."""
    import torch

    if x.dtype in (torch.uint8, torch.bool):
        return reduce in ("", "sum") or (reduce == "prod" and x.dtype == torch.uint8)
    return reduce in _OPERATIONS


def _call(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    import torch

    if x.dtype == torch.bool and reduce == "sum":
        # It is true if one of them is.
        return _call(x.int(), dim, index, source.int(), reduce) != 0
    operator = _operators().scatter.default
    return operator(source.to(x.dtype), index.to(torch.int64), x, dim, reduce)


@functools.cache
def _operators() -> Any:
    schema = "scatter(Tensor source, Tensor index, Tensor x, int dim, str reduce) -> Tensor"
    return define_operators({schema: lambda source, index, x, dim, reduce: x.new_empty(x.shape)})


def _text(call: OperatorCall) -> str:
    from torch_mlir import ir

    dim, reduce = call.constants
    with ir.Context():
        types = source, index, result = tuple(
            ir.RankedTensorType(ir.Type.parse(one)) for one in call.operands
        )
        is_float = not str(result.element_type).startswith("i")
        operation = _OPERATIONS[reduce][0 if is_float else 1]
        is_one = source.rank == 1 and not source.is_dynamic_dim(0) and source.shape[0] == 1
        along = 0 if index.rank == 1 else dim
        if index.rank == 1:
            loops, number = [("%i", "%extent0")], "%i"
            named, update = [dim], [f"%d{of}" for of in range(result.rank)]
            lines = f"%at0 = tensor.extract %indices[%i] : {index}"
        else:
            loops = [(f"%u{of}", f"%extent{of}") for of in range(index.rank)]
            number, named = f"%u{dim}", list(range(index.rank))
            update = [f"%to{of}" for of in named]
            names = ", ".join(name for name, _ in loops)
            lines = "\n".join(
                f"%at{of} = arith.index_cast %u{of} : index to i64"
                if of != dim
                else f"%at{of} = tensor.extract %indices[{names}] : {index}"
                for of in named
            )
        update[dim] = "%number"
        is_known = not any(index.is_dynamic_dim(of) for of in range(index.rank))
        points = Points(
            loops=loops,
            number=number,
            lines=lines,
            named=named,
            checked=[of for of in named if of == dim or _may_differ(index, result, of)],
            update=["%c0"] if is_one and not reduce and result.rank else update,
            count=math.prod(index.shape) if is_known else None,
            most=None if index.is_dynamic_dim(along) else index.shape[along],
        )
        return Scatter(ir, types, points, operation).text()


def _may_differ(index: Any, result: Any, dimension: int) -> bool:
    return bool(index.is_dynamic_dim(dimension) or result.is_dynamic_dim(dimension))


LOWERINGS = (OperatorLowering("aotc::scatter", to_mlir=_text),)
