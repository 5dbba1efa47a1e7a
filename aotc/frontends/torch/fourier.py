"""Decomposes Fourier transforms into kernels for powers of two, and matmuls with DFT matrices.

Complex numbers are pairs of real ones, in the last dimension. The algorithm depends on the length
n. A short row is one matmul. A power of two is one kernel, up to the longest that fourier_rows.py
has. A length n = N1 * N2 is N2 transforms of N1 points, a multiplication by twiddle factors, and N1
transforms of N2 points (Cooley and Tukey). A length without a small divisor is a convolution whose
length has small divisors (Bluestein).

https://en.wikipedia.org/wiki/Cooley-Tukey_FFT_algorithm,
https://en.wikipedia.org/wiki/Chirp_Z-transform
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aotc.errors import InputError
from aotc.frontends.fourier_numbers import chirp_and_filter, dft_blocks, roots_of_unity
from aotc.frontends.torch.constants import constant
from aotc.frontends.torch.fourier_rows import (
    half_of_real,
    has_kernel,
    pairs_of_half,
    transform_rows,
)
from aotc.frontends.torch.places import place_of_tracing

Tensor = Any

# The longest row that one matmul transforms, and the longest if the length has no small divisor.
_LONGEST, _LONGEST_PRIME = 32, 128


def fourier_decompositions(aten: Any) -> dict[Any, Any]:
    """The decompositions of transforms of real and of complex tensors, by operator."""
    return {
        aten._fft_r2c.default: _from_real,
        aten._fft_c2r.default: _to_real,
        aten._fft_c2c.default: _of_complex,
        aten.stft.default: _stft,
        aten.istft.default: _inverse_stft,
    }


def _from_real(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """Transforms real numbers along the last of the dimensions in `dim`, then the complex results
    along the others."""
    import torch

    *others, last = dim
    rows = _Rows(x, last, 0)
    half = rows.n // 2 + 1
    pairs = _half_of_real(rows.rows)
    if not onesided:
        rest = _conjugate(pairs[:, 1 : rows.n - half + 1]).flip(1)
        pairs = torch.cat([pairs, rest], 1)
    pairs = rows.restored(pairs)
    for one in others:
        pairs = _along(pairs, one % x.dim(), -1)
    return torch.view_as_complex(_normalized(pairs, x, dim, normalization))


def _to_real(z: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    import torch

    *others, last = dim
    pairs, sizes = torch.view_as_real(z), [z.shape[one] for one in others]
    for one in others:
        pairs = _along(pairs, one % z.dim(), 1)
    rows = _Rows(pairs, last % z.dim(), 1)
    real = rows.restored(_real_of_half(rows.rows, _known(last_dim_size)))
    return _scaled(real, [*sizes, last_dim_size], normalization)


def _of_complex(z: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    import torch

    pairs = torch.view_as_real(z)
    for one in dim:
        pairs = _along(pairs, one % z.dim(), -1 if forward else 1)
    return torch.view_as_complex(_normalized(pairs, z, dim, normalization))


def _stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transforms overlapping frames. PyTorch's own decomposition supports only one signal
    length."""
    import torch

    if align_to_window:
        own = torch._C.DispatchKey.CompositeImplicitAutograd
        given = (x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)
        return torch.ops.aten.stft.default._op_dk(own, *given, align_to_window=True)
    width = win_length or n_fft
    frames = x.unfold(-1, n_fft, hop_length or n_fft // 4)
    if window is not None or width != n_fft:
        window = torch.ones(width, dtype=x.dtype) if window is None else window
        before = (n_fft - width) // 2
        frames = frames * torch.nn.functional.pad(window, (before, n_fft - width - before))
    is_complex = frames.is_complex()
    is_half = not is_complex if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    transform = torch.fft.rfft if is_half else torch.fft.fft
    found = transform(frames, n_fft, norm=norm).transpose(-1, -2)
    return found if return_complex else torch.view_as_real(found)


def _inverse_stft(
    z: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Adds overlapping frames and divides by the sum of the squared windows. PyTorch's own
    decomposition raises an error if that sum is 0, which is only known at run time. Here the
    results are NaN at such places."""
    import torch

    bins, frames = z.shape[-2:]
    if return_complex or (window is not None and window.is_complex()):
        return NotImplemented
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    if window is None:
        window = torch.ones(width, dtype=z.real.dtype)
    before = (n_fft - width) // 2
    window = torch.nn.functional.pad(window, (before, n_fft - width - before))
    half = (
        z.transpose(-1, -2)
        if onesided or bins != n_fft
        else z.transpose(-1, -2)[..., : n_fft // 2 + 1]
    )
    rows = torch.fft.irfft(half, n_fft, norm="ortho" if normalized else "backward") * window
    batch = rows.shape[:-2]
    columns = rows.reshape(-1, frames, n_fft).transpose(1, 2)
    size = n_fft + hop * (frames - 1)
    weights = (window * window).reshape(1, n_fft, 1).expand(1, n_fft, frames)
    summed, scale = (
        torch.nn.functional.fold(one, (1, size), (1, n_fft), stride=(1, hop)).reshape(-1, size)
        for one in (columns, weights)
    )
    start = n_fft // 2 if center else 0
    end = size - start if length is None else min(start + length, size)
    scale = scale[:, start:end]
    found = torch.where(scale.abs() > 1e-11, summed[:, start:end] / scale, math.nan)
    missing = 0 if length is None else start + length - end
    return torch.nn.functional.pad(found, (0, missing)).reshape(*batch, -1)


def _normalized(pairs: Tensor, x: Tensor, dim: Sequence[int], normalization: int) -> Tensor:
    return _scaled(pairs, [x.shape[one] for one in dim], normalization)


def _scaled(x: Tensor, sizes: Sequence[Any], normalization: int) -> Tensor:
    """Scales by PyTorch's normalization number: 0 is no scaling, 1 is 1 / sqrt(count), 2 is 1 /
    count."""
    count = math.prod(_known(size) for size in sizes) or 1
    factor = (1.0, 1 / math.sqrt(count), 1 / count)[normalization]
    return x if factor == 1 else x * factor


def _known(size: Any) -> int:
    if not isinstance(size, int):
        raise InputError(
            f"{place_of_tracing()}a Fourier transform of any length has no lowering.",
            hint="export the program with a size for that dimension; the others may have any.",
        )
    return size


class _Rows:
    """A tensor reshaped to rows along a dimension, [rows, n, ...]. The last `inner` dimensions stay
    at the end."""

    def __init__(self, x: Tensor, dim: int, inner: int) -> None:
        rank = x.dim() - inner
        dim %= rank
        self.n = _known(x.shape[dim])
        self._others = [one for one in range(rank) if one != dim]
        self._sizes = [x.shape[one] for one in self._others]
        self._dim = dim
        moved = _permuted(x, [*self._others, dim, *range(rank, x.dim())])
        self.rows = moved.reshape([math.prod(self._sizes), self.n, *x.shape[rank:]])

    def restored(self, rows: Tensor) -> Tensor:
        """Reshapes rows [rows, m, ...] to the order of dimensions of the original tensor."""
        inner = list(rows.shape[1:])
        parted = rows.reshape([*self._sizes, *inner])
        count = len(self._sizes)
        order = list(range(count))
        order.insert(self._dim, count)
        return _permuted(parted, [*order, *range(count + 1, parted.dim())]).contiguous()


def _permuted(x: Tensor, order: list[int]) -> Tensor:
    return x if order == sorted(order) else x.permute(order)


def _along(pairs: Tensor, dim: int, sign: int) -> Tensor:
    rank = pairs.dim() - 1
    length = pairs.shape[dim]
    if dim < rank - 1 and isinstance(length, int) and has_kernel(length, pairs):
        sizes = [math.prod(pairs.shape[:dim]), length, math.prod(pairs.shape[dim + 1 : rank]), 2]
        made = transform_rows(
            pairs.reshape(sizes), length, sign, lies_last=False, is_written_last=False
        )
        return made.reshape(pairs.shape)
    rows = _Rows(pairs, dim, 1)
    return rows.restored(_transform(rows.rows, sign))


# --- Transforms of rows of pairs, [rows, n, 2] ----------------------------------------------------


def _transform(pairs: Tensor, sign: int) -> Tensor:
    """The sums of x[j] exp(sign 2πi jk / n) for all k."""
    rows, n = pairs.shape[0], pairs.shape[1]
    if has_kernel(n, pairs):
        return transform_rows(pairs[None], n, sign)[0]
    first = _divisor(n)
    if has_kernel(first, pairs) and has_kernel(n // first, pairs):
        second = n // first
        columns = transform_rows(
            pairs.reshape(rows, first, second, 2),
            first,
            sign,
            lies_last=False,
            is_written_last=False,
        )
        roots = roots_of_unity(n, sign * np.outer(np.arange(first), np.arange(second)))
        turned = _times(columns, roots)
        parts = transform_rows(turned, second, sign, is_written_last=False)
        return parts.reshape(rows, n, 2)
    if first == n:
        matrix = _constant(_matrix(n, sign), pairs)
        return (pairs.reshape(rows, 2 * n) @ matrix).reshape(rows, n, 2)
    if first == 1:
        return _by_convolution(pairs, sign)
    second = n // first
    columns = pairs.reshape(rows, first, second, 2).permute(0, 2, 1, 3)
    columns = _transform(columns.reshape(rows * second, first, 2), sign)
    columns = columns.reshape(rows, second, first, 2)
    roots = roots_of_unity(n, sign * np.outer(np.arange(second), np.arange(first)))
    turned = _times(columns, roots).permute(0, 2, 1, 3)
    parts = _transform(turned.reshape(rows * first, second, 2), sign)
    return parts.reshape(rows, first, second, 2).permute(0, 2, 1, 3).reshape(rows, n, 2)


def _half_of_real(x: Tensor) -> Tensor:
    """[rows, n] real numbers → [rows, n / 2 + 1, 2], the first half of their transform. The other
    half is its conjugate."""
    import torch

    rows, n = x.shape
    half = n // 2 + 1
    if has_kernel(n, x, is_real=True):
        return transform_rows(x[None], n, -1, kind="r2c")[0]
    if _divisor(n) == n:
        matrix = _constant(_matrix(n, -1)[::2, : 2 * half], x)
        return (x @ matrix).reshape(rows, half, 2)
    if n % 2:
        return _transform(torch.stack([x, torch.zeros_like(x)], -1), -1)[:, :half]
    # Transforms pairs of neighbours as n / 2 complex numbers.
    return half_of_real(_transform(x.reshape(rows, n // 2, 2), -1))


def _real_of_half(pairs: Tensor, n: int) -> Tensor:
    """[rows, n / 2 + 1, 2] → [rows, n] real numbers: the inverse transform, multiplied by n."""
    import torch

    rows, half = pairs.shape[0], n // 2 + 1
    if has_kernel(n, pairs, is_real=True):
        return transform_rows(pairs[:, :half][None], n, 1, kind="c2r")[0]
    # Points 0 and n / 2 are real: their imaginary parts are ignored.
    is_alone = np.isin(np.arange(half), (0, n / 2))
    is_read = np.stack([np.ones(half, bool), ~is_alone], -1)
    pairs = torch.where(_constant(is_read, pairs) != 0, pairs, 0.0)
    if _divisor(n) == n:
        matrix = _matrix(n, 1)[: 2 * half, ::2] * np.where(is_alone, 1, 2).repeat(2)[:, None]
        return pairs.reshape(rows, 2 * half) @ _constant(matrix, pairs)
    if n % 2:
        rest = _conjugate(pairs[:, 1:]).flip(1)
        return _transform(torch.cat([pairs, rest], 1), 1)[..., 0]
    return _transform(pairs_of_half(pairs[:, :half]), 1).reshape(rows, n)


def _by_convolution(pairs: Tensor, sign: int) -> Tensor:
    """Bluestein's algorithm."""
    import torch

    n = pairs.shape[1]
    chirp, filter_ = chirp_and_filter(n, sign)
    padded = torch.nn.functional.pad(_times(pairs, chirp), (0, 0, 0, len(filter_) - n))
    product = _times(_transform(padded, -1), filter_)
    return _times(_transform(product, 1)[:, :n], chirp)


def _conjugate(pairs: Tensor) -> Tensor:
    return pairs * _constant(np.array([1.0, -1.0]), pairs)


def _times(pairs: Tensor, numbers: Any) -> Tensor:
    """The product with complex constants."""
    same = np.stack([numbers.real, numbers.real], -1)
    other = np.stack([-numbers.imag, numbers.imag], -1)
    return pairs * _constant(same, pairs) + pairs.flip(-1) * _constant(other, pairs)


# --- Constants ------------------------------------------------------------------------------------


def _divisor(n: int) -> int:
    """The divisor N1 of `n` to split it by. It is `n` if one matmul transforms a row of `n`, and 1
    if `n` has no small divisor."""
    if n <= _LONGEST:
        return n
    if n & (n - 1) == 0:
        # Both factors have kernels unless one is longer than the longest row of a kernel.
        return 1 << n.bit_length() // 2
    small = [one for one in range(2, _LONGEST + 1) if n % one == 0]
    if not small:
        return n if n <= _LONGEST_PRIME else 1
    # Chooses the divisor for which all matmuls have about the same size.
    passes = math.ceil(math.log(n, _LONGEST) - 1e-9)
    return min(small, key=lambda one: abs(math.log(one) - math.log(n) / passes))


def _matrix(n: int, sign: int) -> Any:
    """The DFT matrix [2n, 2n]: a row of n pairs times it is the transform of the row."""
    return dft_blocks(n, sign).transpose(2, 0, 3, 1).reshape(2 * n, 2 * n)


def _constant(numbers: Any, like: Tensor) -> Tensor:
    return constant(numbers, like.dtype)
