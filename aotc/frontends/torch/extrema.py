"""Decompositions of PyTorch's cumulative extrema, log-sum-exp, modes, medians, k-th values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from aotc.errors import InputError
from aotc.frontends.torch.places import place_of_tracing

Tensor = Any


def extremum_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.cummax.default: lambda x, dim: _running(x, dim, "cummax"),
        aten.cummin.default: lambda x, dim: _running(x, dim, "cummin"),
        aten.logcumsumexp.default: _logcumsumexp,
        aten.mode.default: _of_rows(_mode),
        aten.nanmedian.dim: _of_rows(_nanmedian),
        aten.median.default: _median_of_all,
        aten.median.dim: _median_of_rows,
        aten.nanmedian.default: _nanmedian_of_all,
    }


def _running(x: Tensor, dim: int, name: str) -> tuple[Tensor, Tensor]:
    """Cumulative extrema and their indices. The index is that of the last of equal extrema, or of
    the last NaN.

    This is a Hillis-Steele scan: each round combines each element with that `distance` places
    before it, and doubles the distance. Before the start it uses the first element, which is
    already part of each extremum.
    """
    import torch

    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim %= x.dim()
    n = _known_length(x, dim, name)
    shape = [n if one == dim else 1 for one in range(x.dim())]
    places = torch.arange(n).reshape(shape).expand(x.shape)
    values, distance = x, 1
    is_float = x.dtype.is_floating_point
    while distance < n:
        before = (torch.arange(n) - distance).clamp(min=0)
        earlier, where = values.index_select(dim, before), places.index_select(dim, before)
        is_kept = values >= earlier if name == "cummax" else values <= earlier
        if is_float:
            is_kept = (is_kept & (earlier == earlier)) | (values != values)
        values = torch.where(is_kept, values, earlier)
        places = torch.where(is_kept, places, where)
        distance *= 2
    return values.clone(), places.clone()


def _logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """The same scan for log-sum-exp. Before the start, it uses -inf, whose exponential is 0."""
    import torch

    if x.dim() == 0:
        return x.clone()
    dim %= x.dim()
    n = _known_length(x, dim, "logcumsumexp")
    sums = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    shape = [n if one == dim else 1 for one in range(x.dim())]
    distance = 1
    while distance < n:
        before = torch.arange(n) - distance
        earlier = sums.index_select(dim, before.clamp(min=0))
        earlier = torch.where(before.reshape(shape) < 0, -math.inf, earlier)
        most, least = torch.maximum(sums, earlier), torch.minimum(sums, earlier)
        # The difference of equal infinities is NaN.
        added = most + torch.where(most == least, 0, least - most).exp().log1p()
        sums = torch.where(most.abs() == math.inf, most, added)
        distance *= 2
    return sums.to(x.dtype) if distance > 1 else x.clone()


def _known_length(x: Tensor, dim: int, name: str) -> int:
    n = x.shape[dim]
    if not isinstance(n, int):
        raise InputError(
            f"{place_of_tracing()}aten.{name} along a dimension of any size has no lowering.",
            hint="export the program with a size for that dimension; the others may have any.",
        )
    return n


def _of_rows(function: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """Extends a function that reduces the last dimension to one that reduces any dimension."""

    def of_dimension(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        import torch

        if x.dim() == 0:
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        values, places = function(x.movedim(dim, -1))
        if keepdim:
            return values.unsqueeze(dim), places.unsqueeze(dim)
        return values, places

    return of_dimension


def _mode(x: Tensor) -> tuple[Tensor, Tensor]:
    """The least of the most frequent values, and the index of its last occurrence."""
    import torch

    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    is_mode = counts == counts.amax(-1, keepdim=True)
    value = torch.where(is_mode, x, _largest(x)).amin(-1)
    numbers = torch.arange(x.shape[-1])
    place = torch.where(x == value.unsqueeze(-1), numbers, 0).amax(-1)
    return value, place


def _largest(x: Tensor) -> Any:
    import torch

    if x.dtype == torch.bool:
        return True
    return float("inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).max


def _nanmedian(x: Tensor) -> tuple[Tensor, Tensor]:
    """The lower of two medians of the elements that are not NaN. NaNs are sorted last."""
    values, places = x.sort(-1)
    middle = ((values == values).sum(-1, keepdim=True) - 1).clamp(min=0) // 2
    return values.gather(-1, middle).squeeze(-1), places.gather(-1, middle).squeeze(-1)


def _median_of_all(x: Tensor) -> Tensor:
    return _median_of_rows(x.reshape(-1), 0)[0]


def _median_of_rows(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of two medians; NaN if the row has a NaN. NaNs are sorted last."""
    import torch

    if x.dim() == 0:
        x, dim, keepdim = x.reshape(1), 0, False
    values, places = x.sort(dim)
    middle = (x.shape[dim] - 1) // 2
    chosen = [one.narrow(dim, middle, 1) for one in (values, places)]
    if x.dtype.is_floating_point:
        last = [one.narrow(dim, x.shape[dim] - 1, 1) for one in (values, places)]
        has_nan = last[0] != last[0]
        chosen = [torch.where(has_nan, *pair) for pair in zip(last, chosen, strict=True)]
    first, second = chosen if keepdim else [one.squeeze(dim) for one in chosen]
    return first, second


def _nanmedian_of_all(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return _median_of_all(x)
    values = x.reshape(-1).sort(0).values
    count = (values == values).sum()
    middle = ((count - 1) // 2).clamp(min=0)
    return values.index_select(0, middle.reshape(1)).reshape(())
