"""Sums of products of f8 as Hopper's tensor cores make them, to the bit.

Of one instruction: the 32 products and the sum so far are aligned to the largest exponent among
them, and cut off (toward zero) 13 bits behind it; they are added, and the result is cut off 13 bits
behind its own exponent. The exponent of a product is the sum of its factors', that of a factor at
least the least of its type. Kernels add 128 products so, which is 4 instructions, from zero, and
then these sums in f32.

NVIDIA documents none of it. So it was seen on an H200 (driver 580), where the sums of wgmma are
these, all bits of them, for e4m3 by e4m3 and e5m2 by e4m3, of 32 to 1024 products, of one magnitude
and of many; with 12 or 14 bits, or without the second cut, they are not.
"""

from __future__ import annotations

from typing import Any

import torch

_PRODUCTS, _TOGETHER = 32, 128
_BITS = 13
_LEAST_EXPONENT = {torch.float8_e4m3fn: -6, torch.float8_e5m2: -14}
# Below all that a product has.
_NONE = -1000.0


def sums(left: Any, right: Any) -> Any:
    """Of (..., rows, depth) and (..., depth, columns), elements of f8: in f32, added in order."""
    a, b = left.float(), right.float()
    a_exponents, b_exponents = _exponents(left), _exponents(right)
    total = torch.zeros((*a.shape[:-1], b.shape[-1]), device=a.device)
    depth = a.shape[-1]
    for group in range(0, depth, _TOGETHER):
        found = torch.zeros_like(total)
        for first in range(group, min(group + _TOGETHER, depth), _PRODUCTS):
            places = range(first, min(first + _PRODUCTS, depth))
            highest = torch.where(found == 0, _NONE, _exponent(found))
            for k in places:
                both = a_exponents[..., :, k, None] + b_exponents[..., None, k, :]
                highest = torch.maximum(highest, both)
            unit = torch.exp2(highest.clamp(min=-100) - _BITS)
            added = _cut(found, unit)
            for k in places:
                added += _cut(a[..., :, k, None] * b[..., None, k, :], unit)
            found = _cut(added, torch.exp2(_exponent(added) - _BITS))
        total += found
    return total


def _exponents(values: Any) -> Any:
    wide = values.float()
    found = _exponent(wide).clamp(min=_LEAST_EXPONENT[values.dtype])
    return torch.where(wide == 0, _NONE, found)


def _exponent(values: Any) -> Any:
    return (torch.frexp(values)[1] - 1).float()


def _cut(values: Any, unit: Any) -> Any:
    return torch.trunc(values / unit) * unit
