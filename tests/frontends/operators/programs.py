"""Programs of one operator each: the table that the survey goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from msgspec import Struct

functional = torch.nn.functional
fft = torch.fft
linalg = torch.linalg


class Program(Struct, frozen=True):
    """A function of tensors, and what it is tried with."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def _first_of_count(x: Any) -> Any:
    count = (x > 0).sum().item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count]


def programs() -> list[Program]:
    """All of them; the same at each call."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator)

    def whole(limit: int, *shape: int) -> Any:
        return torch.randint(0, limit, shape, generator=generator)

    x, y, row, square = normal(4, 6, 10), normal(4, 6, 10), normal(33), normal(5, 5)
    places, image, numbers = whole(6, 4, 3, 10), normal(2, 3, 8, 8), torch.tensor([0, 2, 5, 2])
    positive, unit = x.abs() + 0.1, normal(4, 6, 10).sigmoid() * 1.8 - 0.9
    points, others = normal(5, 3), normal(4, 3)
    spectrum = torch.fft.rfft(normal(3, 16)).contiguous()
    pair = torch.view_as_real(spectrum)
    words, table = whole(9, 3, 4), normal(9, 5)
    weights = normal(3, 4)
    offsets = torch.tensor([0, 4, 4, 8])

    unary = {
        **dict.fromkeys(("abs", "acos", "asin", "atan", "asinh", "atanh", "ceil"), unit),
        **dict.fromkeys(("cos", "cosh", "erf", "erfc", "erfinv", "exp", "exp2", "expm1"), unit),
        **dict.fromkeys(("floor", "frac", "isfinite", "isinf", "isnan", "isneginf"), x),
        **dict.fromkeys(("isposinf", "neg", "positive", "reciprocal", "round", "sgn"), x),
        **dict.fromkeys(("sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "square"), x),
        **dict.fromkeys(("tan", "tanh", "trunc", "deg2rad", "rad2deg", "nan_to_num"), x),
        **dict.fromkeys(("acosh",), positive + 1),
        **dict.fromkeys(("digamma", "lgamma", "log", "log10", "log1p", "log2"), positive),
        **dict.fromkeys(("rsqrt", "sqrt"), positive),
        **dict.fromkeys(("i0", "logit"), unit.abs()),
    }
    special = {
        **dict.fromkeys(("i0e", "i1", "i1e", "ndtr", "log_ndtr", "erfcx", "entr"), positive),
        **dict.fromkeys(("bessel_j0", "bessel_j1", "ndtri"), unit.abs()),
    }
    binary: dict[str, tuple[Any, Any]] = {
        **dict.fromkeys(("atan2", "copysign", "fmax", "fmin", "fmod", "heaviside"), (x, y)),
        **dict.fromkeys(("hypot", "logaddexp", "logaddexp2", "nextafter", "remainder"), (x, y)),
        **dict.fromkeys(("maximum", "minimum", "floor_divide", "true_divide"), (x, y)),
        **dict.fromkeys(("pow", "xlogy"), (positive, y)),
        **dict.fromkeys(("gcd", "lcm"), (whole(50, 4, 6), whole(50, 4, 6))),
        **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (places, places.flip(0))),
        **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (places, places.flip(0))),
        **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (places, places.flip(0))),
        "ldexp": (x, numbers[:1]),
    }
    activations: dict[str, Callable[[Any], Any]] = {
        name: getattr(functional, name)
        for name in (
            *("celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"),
            *("leaky_relu", "logsigmoid", "mish", "relu6", "rrelu", "selu", "silu", "softplus"),
            *("softshrink", "softsign", "tanhshrink", "glu", "normalize"),
        )
    }
    rows: dict[str, tuple[Callable[..., Any], Any]] = {
        "any": (lambda x: (x > 1).any(1), x),
        "all": (lambda x: (x > -1).all(1), x),
        "amax": (lambda x: x.amax((0, 2)), x),
        "aminmax": (lambda x: x.aminmax(dim=1), x),
        "argmax": (lambda x: x.argmax(1), x),
        "argmin of all": (lambda x: x.argmin(), x),
        "argsort": (lambda x: x.argsort(dim=1, stable=True), x),
        "count_nonzero": (lambda x: (x > 0).count_nonzero(1), x),
        "cummax": (lambda x: x.cummax(1), x),
        "cummin": (lambda x: x.cummin(1), x),
        "cumprod": (lambda x: x.cumprod(1), x),
        "cumsum": (lambda x: x.cumsum(1), x),
        "cumulative_trapezoid": (lambda x: torch.cumulative_trapezoid(x, dim=1), x),
        "diff": (lambda x: x.diff(dim=1), x),
        "diff twice": (lambda x: x.diff(2, dim=1), x),
        "gradient": (lambda x: torch.gradient(x, dim=1)[0], x),
        "histc": (lambda x: x.histc(8, -2, 2), row),
        "histogram": (lambda x: torch.histogram(x, 8, range=(-2.0, 2.0)), row),
        "kthvalue": (lambda x: x.kthvalue(3, 1), x),
        "logcumsumexp": (lambda x: x.logcumsumexp(1), x),
        "logsumexp": (lambda x: x.logsumexp(1), x),
        "max": (lambda x: x.max(1), x),
        "mean": (lambda x: x.mean((0, 2)), x),
        "median": (lambda x: x.median(1), x),
        "median of all": (lambda x: x.median(), row),
        "mode": (lambda x: x.mode(1), x.round()),
        "nanmean": (lambda x: x.nanmean(1), x.masked_fill(x > 1, float("nan"))),
        "nanmedian": (lambda x: x.nanmedian(), row),
        "nanmedian of rows": (lambda x: x.nanmedian(1), x.masked_fill(x > 1, float("nan"))),
        "nanquantile": (lambda x: x.nanquantile(0.4, 1), x.masked_fill(x > 1, float("nan"))),
        "nansum": (lambda x: x.nansum(1), x.masked_fill(x > 1, float("nan"))),
        "norm": (lambda x: x.norm(dim=1), x),
        "norm, largest": (lambda x: x.norm(float("inf"), 1), x),
        "prod": (lambda x: x.prod(1), x),
        "quantile": (lambda x: x.quantile(0.3), row),
        "quantiles": (lambda x: x.quantile(torch.tensor([0.1, 0.9]), dim=1), x),
        "renorm": (lambda x: x.renorm(2, 0, 1.0), x),
        "softmin": (lambda x: functional.softmin(x, 1), x),
        "sort": (lambda x: x.sort(1), x),
        "std_mean": (lambda x: torch.std_mean(x, 1), x),
        "topk": (lambda x: x.topk(4, 1), x),
        "trapezoid": (lambda x: torch.trapezoid(x, dim=1), x),
        "var": (lambda x: x.var(1, correction=0), x),
        "vander": (lambda x: torch.vander(x, 4), row),
        "allclose": (lambda x: torch.isclose(x, x + 1e-9), x),
        "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), row),
        "isin": (lambda x: torch.isin(x, torch.tensor([0.0, 1.0])), x.round()),
        "cov": (lambda x: torch.cov(x), square),
        "corrcoef": (lambda x: torch.corrcoef(x), square),
    }
    moves: dict[str, tuple[Callable[..., Any], Any]] = {
        "as_strided": (lambda x: x.as_strided((3, 4), (7, 2), 1), row),
        "block_diag": (lambda x: torch.block_diag(x, x[:2]), square),
        "cartesian_prod": (lambda x: torch.cartesian_prod(x, x), row),
        "channel_shuffle": (lambda x: functional.channel_shuffle(x, 3), image),
        "combinations": (lambda x: torch.combinations(x), row[:5]),
        "diag": (lambda x: x.diag(), square),
        "diag_embed": (lambda x: torch.diag_embed(x), row),
        "diagonal": (lambda x: x.diagonal(1, 1, 2), x),
        "diagonal_scatter": (lambda x: x.diagonal_scatter(x[0]), square),
        "flip": (lambda x: x.flip(0, 2), x),
        "fold": (lambda x: functional.fold(x, (4, 4), (2, 2)), normal(1, 8, 9)),
        "meshgrid": (lambda x: torch.meshgrid(x, x, indexing="ij"), row),
        "movedim": (lambda x: x.movedim(0, 2), x),
        "narrow": (lambda x: x.narrow(1, 2, 3), x),
        "one_hot": (lambda x: functional.one_hot(x, 8), numbers),
        "pad, circular": (lambda x: functional.pad(x, (1, 2, 2, 1), mode="circular"), image),
        "pad, reflected": (lambda x: functional.pad(x, (1, 2, 2, 1), mode="reflect"), image),
        "pad, replicated": (lambda x: functional.pad(x, (1, 2, 2, 1), mode="replicate"), image),
        "pixel_shuffle": (lambda x: functional.pixel_shuffle(x, 2), normal(1, 8, 3, 3)),
        "pixel_unshuffle": (lambda x: functional.pixel_unshuffle(x, 2), image),
        "repeat": (lambda x: x.repeat(2, 1, 1), x),
        "repeat_interleave": (lambda x: x.repeat_interleave(3, 1), x),
        "repeat_interleave by counts": (
            lambda x: x.repeat_interleave(torch.tensor([1, 0, 2, 3]), 0, output_size=6),
            x,
        ),
        "roll": (lambda x: x.roll((1, 2), (0, 1)), x),
        "rot90": (lambda x: x.rot90(), square),
        "select_scatter": (lambda x: x.select_scatter(x[0], 0, 2), square),
        "slice_scatter": (lambda x: x.slice_scatter(x[:2], 0, 1, 5, 2), square),
        "stack": (lambda x: torch.stack([x, x], -1), x),
        "take": (lambda x: x.take(torch.tensor([0, 7, 30])), row),
        "tensor_split": (lambda x: x.tensor_split(4, 2), x),
        "tril": (lambda x: x.tril(), square),
        "tril_indices": (lambda x: x[0, 0] + torch.tril_indices(4, 5), square),
        "triu": (lambda x: x.triu(1), square),
        "triu_indices": (lambda x: x[0, 0] + torch.triu_indices(4, 5), square),
        "unflatten": (lambda x: x.unflatten(2, (2, 5)), x),
        "unfold": (lambda x: functional.unfold(x, (2, 2)), image),
        "unfold of a tensor": (lambda x: x.unfold(2, 4, 2), x),
        "unravel_index": (lambda x: torch.unravel_index(x, (3, 5)), numbers),
    }
    indexed: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "bincount": (lambda i: i.bincount(minlength=8), (numbers,)),
        "bincount with weights": (
            lambda i: i.bincount(torch.tensor([1.0, 2, 3, 4]), minlength=8),
            (numbers,),
        ),
        "bincount of any size": (lambda i: i.bincount(), (numbers,)),
        "embedding": (lambda i, w: functional.embedding(i, w), (words, table)),
        "embedding_bag": (lambda i, w: functional.embedding_bag(i, w), (words, table)),
        "embedding_bag, largest": (
            lambda i, w: functional.embedding_bag(i, w, mode="max"),
            (words, table),
        ),
        "embedding_bag, sums": (
            lambda i, w: functional.embedding_bag(i, w, mode="sum"),
            (words, table),
        ),
        "embedding_bag, weighted": (
            lambda i, w, s: functional.embedding_bag(i, w, per_sample_weights=s, mode="sum"),
            (words, table, weights),
        ),
        "embedding_bag by offsets": (
            lambda i, o, w: functional.embedding_bag(i, w, o),
            (words.reshape(-1), offsets, table),
        ),
        "embedding_bag by offsets, largest": (
            lambda i, o, w: functional.embedding_bag(i, w, o, mode="max"),
            (words.reshape(-1), offsets, table),
        ),
        "gather": (lambda x, i: x.gather(1, i), (x, places)),
        "index": (lambda x, i: x[i, :, i], (x, numbers.clamp(max=3))),
        "index_add": (lambda x, i, y: x.index_add(1, i, y), (x, numbers, normal(4, 4, 10))),
        "index_copy": (
            lambda x, i, y: x.index_copy(1, i, y),
            (x, torch.tensor([0, 2, 5]), normal(4, 3, 10)),
        ),
        "index_fill": (lambda x, i: x.index_fill(1, i, 2.0), (x, numbers)),
        "index_put": (lambda x, i, y: x.index_put((i,), y), (row, numbers[:3], normal(3))),
        "index_put, sums": (
            lambda x, i, y: x.index_put((i,), y, accumulate=True),
            (row, numbers, normal(4)),
        ),
        "index_reduce": (
            lambda x, i, y: x.index_reduce(1, i, y, "amax"),
            (x, numbers, normal(4, 4, 10)),
        ),
        "index_select": (lambda x, i: x.index_select(1, i), (x, numbers)),
        "masked_fill": (lambda x: x.masked_fill(x > 0, 0.5), (x,)),
        "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), (row, normal(33))),
        "put": (lambda x, i, y: x.put(i, y), (row, numbers[:3], normal(3))),
        "scatter": (lambda x, i: x.scatter(1, i, 1.0), (x, places)),
        "scatter_add": (lambda x, i, y: x.scatter_add(1, i, y), (x, places, normal(4, 3, 10))),
        "scatter_reduce": (
            lambda x, i, y: x.scatter_reduce(1, i, y, "amax"),
            (x, places, normal(4, 3, 10)),
        ),
        "searchsorted": (lambda s, x: torch.searchsorted(s, x), (row.sort().values, normal(7))),
        "take_along_dim": (lambda x, i: x.take_along_dim(i, 1), (x, places)),
        "where of one condition": (lambda x: torch.where(x > 0), (row,)),
        "repeat_interleave of any size": (lambda x, i: x.repeat_interleave(i, 0), (x, numbers)),
        "unique_dim": (
            lambda x: x.round().unique(dim=0, return_inverse=True),
            (x[0, :, :2].contiguous(),),
        ),
        "slice of a count": (_first_of_count, (row,)),
        "nonzero": (lambda x: (x > 0).nonzero(), (x,)),
        "nonzero_static": (lambda x: (x > 0).nonzero_static(size=40), (row,)),
        "argwhere": (lambda x: (x > 0).argwhere(), (x,)),
        "masked_select": (lambda x: x.masked_select(x > 0), (row,)),
        "boolean mask": (lambda x: x[x > 0], (row,)),
        "boolean mask of rows": (lambda x: x[x[:, 0] > 0], (square,)),
        "assignment by a mask": (lambda x: x.index_put((x > 0,), torch.tensor(1.0)), (row,)),
        "unique": (lambda i: i.unique(), (numbers,)),
        "unique, all": (lambda i: i.unique(return_inverse=True, return_counts=True), (numbers,)),
        "unique_consecutive": (lambda i: i.unique_consecutive(), (numbers,)),
        "integer powers": (lambda i, j: i**j, (numbers, numbers.clamp(max=3))),
        "integer power": (lambda i: i**3, (numbers,)),
        "power of a number": (lambda x: 2.5**x, (x,)),
        "equal": (lambda x, y: x.sum() + torch.equal(x, y), (row, row)),
        "cross": (lambda a, b: torch.cross(a, b, dim=1), (points, points.flip(0))),
        "cdist": (lambda a, b: torch.cdist(a, b), (points, others)),
        "pdist": (lambda a: functional.pdist(a), (points,)),
        "lerp": (lambda x, y: x.lerp(y, 0.3), (x, y)),
        "addcdiv": (lambda x, y: torch.addcdiv(x, y, y.abs() + 1), (x, y)),
    }
    transforms: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "fft": (lambda x: torch.view_as_real(fft.fft(x)), (row,)),
        "fft of 16": (lambda x: torch.view_as_real(fft.fft(x)), (row[:16],)),
        "fft of 101": (lambda x: torch.view_as_real(fft.fft(x)), (normal(101),)),
        "ifft": (lambda x: torch.view_as_real(fft.ifft(torch.view_as_complex(x))), (pair,)),
        "rfft": (lambda x: torch.view_as_real(fft.rfft(x)), (x,)),
        "irfft": (lambda x: fft.irfft(torch.view_as_complex(x)), (pair,)),
        "irfft of an odd length": (lambda x: fft.irfft(fft.rfft(x), n=33), (row,)),
        "hfft": (lambda x: fft.hfft(torch.view_as_complex(x)), (pair,)),
        "fft2": (lambda x: fft.fft2(x).abs(), (image,)),
        "ifft2": (lambda x: fft.ifft2(fft.fft2(x)).real, (image,)),
        "rfft2": (lambda x: torch.view_as_real(fft.rfft2(x)), (image,)),
        "irfft2": (lambda x: fft.irfft2(fft.rfft2(x)), (image,)),
        "fftn": (lambda x: fft.fftn(x).imag, (x,)),
        "fftshift": (lambda x: fft.fftshift(x), (x,)),
        "fftfreq": (lambda x: x[0] * fft.fftfreq(9), (row,)),
        "dct by fft": (lambda x: fft.rfft(torch.cat([x, x.flip(0)])).real, (row,)),
        "convolution by fft": (lambda x: fft.irfft(fft.rfft(x) * fft.rfft(x).conj()), (x,)),
        "stft": (
            lambda x: torch.stft(x, 16, window=torch.hann_window(16), return_complex=True).abs(),
            (normal(64),),
        ),
        "istft": (
            lambda x: torch.istft(
                torch.stft(x, 16, window=torch.hann_window(16), return_complex=True),
                16,
                window=torch.hann_window(16),
            ),
            (normal(64),),
        ),
        "angle": (lambda x: fft.fft(x).angle(), (normal(16),)),
        "polar": (lambda x: torch.view_as_real(torch.polar(x.abs(), x)), (row,)),
        "complex": (lambda x: torch.view_as_real(torch.complex(x, -x)), (row,)),
        "complex exponential": (lambda x: (fft.fft(x) / 9).exp().real, (normal(16),)),
        "complex matmul": (lambda x: (fft.fft(x) @ fft.fft(x).mT).imag, (square,)),
        "rotary, complex": (
            lambda x, p: torch.view_as_real(
                torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones(5), p)
            ).flatten(-2),
            (x, normal(5)),
        ),
    }
    layers: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "adaptive_avg_pool": (lambda x: functional.adaptive_avg_pool2d(x, 3), (image,)),
        "adaptive_avg_pool, large windows": (
            lambda x: functional.adaptive_avg_pool2d(x, (7, 5)),
            (normal(1, 1, 160, 121),),
        ),
        "adaptive_avg_pool3d": (
            lambda x: functional.adaptive_avg_pool3d(x, (2, 1, 3)),
            (normal(1, 2, 3, 3, 5),),
        ),
        "adaptive_max_pool": (lambda x: functional.adaptive_max_pool2d(x, 2), (image,)),
        "affine_grid": (
            lambda t: functional.affine_grid(t, (1, 2, 4, 4), align_corners=False),
            (normal(1, 2, 3),),
        ),
        "baddbmm": (lambda a: torch.baddbmm(a, a, a), (normal(2, 3, 3),)),
        "bilinear": (lambda a, w: functional.bilinear(a, a, w), (others, normal(2, 3, 3))),
        "chain_matmul": (lambda a: linalg.multi_dot([a, a, a]), (square,)),
        "conv2d, taps in padding alone": (
            lambda x, w: (
                functional.conv2d(x, w, padding=12, dilation=12)
                + functional.conv2d(x, w, padding=(1, 9), dilation=(1, 9))
            ),
            (image, normal(2, 3, 3, 3)),
        ),
        "conv2d, taps in padding, strides": (
            lambda x, w: functional.conv2d(x[:, :, :1, :5], w, stride=(1, 3), padding=(2, 3)),
            (image, normal(2, 3, 5, 4)),
        ),
        "einsum": (lambda x: torch.einsum("abc,adc->bd", x, x), (x,)),
        "grid_sample": (
            lambda x, g: functional.grid_sample(x, g, align_corners=False),
            (image, normal(2, 3, 3, 2).tanh()),
        ),
        "group_norm": (lambda x: functional.group_norm(x, 3), (image,)),
        "interpolate, area": (
            lambda x: functional.interpolate(x, size=(2, 2), mode="area"),
            (image,),
        ),
        "interpolate, bicubic": (
            lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
            (image,),
        ),
        "interpolate, bicubic, of a size": (
            lambda x: functional.interpolate(x, (5, 11), mode="bicubic", align_corners=True),
            (image,),
        ),
        "interpolate, bilinear, larger": (
            lambda x: functional.interpolate(x, scale_factor=2.5, mode="bilinear"),
            (image,),
        ),
        "interpolate, bilinear, smaller": (
            lambda x: functional.interpolate(x, (3, 1), mode="bilinear", align_corners=True),
            (image,),
        ),
        "interpolate, bilinear, wider": (
            lambda x: functional.interpolate(x, (5, 40), mode="bilinear"),
            (image,),
        ),
        "interpolate, antialias": (
            lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear", antialias=True),
            (image,),
        ),
        "interpolate, trilinear": (
            lambda x: functional.interpolate(x, scale_factor=2, mode="trilinear"),
            (normal(1, 2, 3, 3, 3),),
        ),
        "kron": (lambda a: torch.kron(a, a), (square,)),
        "local_response_norm": (lambda x: functional.local_response_norm(x, 2), (image,)),
        "lp_pool": (lambda x: functional.lp_pool2d(x, 2, 2), (image,)),
        "max_pool2d, no stride": (lambda x: functional.max_pool2d(x, 2), (image,)),
        "max_pool2d, large windows": (
            lambda x: functional.max_pool2d(x, (11, 20), (1, 3), 5, ceil_mode=True),
            (normal(1, 2, 20, 21),),
        ),
        "max_pool2d, larger": (
            lambda x: functional.max_pool2d(x, 9, 1, 4, dilation=(2, 1)),
            (normal(1, 2, 20, 20),),
        ),
        "pools without a batch": (
            lambda x: (
                *functional.max_pool2d(x[0], 2, return_indices=True),
                functional.max_pool3d(x, 2),
                functional.max_pool1d(x[0, 0], 2),
                functional.avg_pool1d(x[0, 0], 2),
                functional.avg_pool2d(x[0], 2),
                functional.avg_pool3d(x, 2),
            ),
            (normal(2, 3, 4, 6),),
        ),
        "max_pool3d": (lambda x: functional.max_pool3d(x, 2), (normal(1, 2, 4, 4, 4),)),
        "max_unpool": (
            lambda x: functional.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), 2),
            (image,),
        ),
        "outer": (lambda x: torch.outer(x, x), (row,)),
        "rms_norm": (lambda x: functional.rms_norm(x, (10,)), (x,)),
        "attention": (
            lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
            (normal(1, 2, 5, 8),),
        ),
        "tensordot": (lambda x: torch.tensordot(x, x, dims=([0, 2], [0, 2])), (x,)),
        "trace": (lambda x: x.trace(), (square,)),
        "matrix_power": (lambda x: linalg.matrix_power(x, 3), (square,)),
        "matrix_exp": (lambda x: torch.matrix_exp(x), (square,)),
        "vecdot": (lambda x: linalg.vecdot(x, x), (x,)),
        "cholesky": (
            lambda x: linalg.cholesky(x @ x.T + torch.eye(5)),
            (square,),
        ),
        "determinant": (lambda x: x.det(), (square,)),
        "eigh": (lambda x: linalg.eigvalsh(x @ x.T), (square,)),
        "inverse": (lambda x: linalg.inv(x), (square + 3 * torch.eye(5),)),
        "lstsq": (lambda x: linalg.lstsq(x, x[:, :1]).solution, (square,)),
        "pinv": (lambda x: linalg.pinv(x), (square,)),
        "qr": (lambda x: linalg.qr(x), (square,)),
        "slogdet": (lambda x: linalg.slogdet(x), (square,)),
        "solve": (lambda x: linalg.solve(x + 3 * torch.eye(5), x), (square,)),
        "solve_triangular": (
            lambda x: linalg.solve_triangular(x.triu() + 3 * torch.eye(5), x, upper=True),
            (square,),
        ),
        "singular values": (lambda x: linalg.svdvals(x), (square,)),
        "cosine_similarity": (lambda x, y: functional.cosine_similarity(x, y), (x, y)),
        "cross_entropy": (
            lambda x: functional.cross_entropy(x, torch.tensor([1, 2, 0, 3])),
            (normal(4, 6),),
        ),
        "huber_loss": (lambda x, y: functional.huber_loss(x, y), (x, y)),
        "kl_div": (lambda x, y: functional.kl_div(x, y, reduction="sum"), (x, positive)),
        "nll_loss": (
            lambda x: functional.nll_loss(x.log_softmax(1), torch.tensor([1, 2, 0, 3])),
            (normal(4, 6),),
        ),
        "triplet_margin_loss": (
            lambda a: functional.triplet_margin_loss(a, a.flip(0), a.roll(1, 0)),
            (points,),
        ),
        # Of random numbers, there is nothing to compare.
        "bernoulli": (lambda x: torch.bernoulli(x.sigmoid()) * 0, (x,)),
        "multinomial": (lambda x: x.abs().multinomial(2) * 0, (square,)),
        "normal numbers": (lambda x: (x + torch.randn(33)) * 0, (row,)),
        "uniform numbers": (lambda x: (x + torch.rand_like(x)) * 0, (row,)),
        "permutation": (lambda x: x[torch.randperm(33)] * 0, (row,)),
        "dropout of training": (lambda x: functional.dropout(x, 0.5, True) * 0, (row,)),
    }
    return [
        *(Program(name, getattr(torch, name), (given,)) for name, given in unary.items()),
        *(
            Program(f"special.{name}", getattr(torch.special, name), (given,))
            for name, given in special.items()
        ),
        *(Program(name, getattr(torch, name), given) for name, given in binary.items()),
        *(Program(name, function, (x,)) for name, function in activations.items()),
        *(Program(name, function, (given,)) for name, (function, given) in rows.items()),
        *(Program(name, function, (given,)) for name, (function, given) in moves.items()),
        *(Program(name, function, given) for name, (function, given) in indexed.items()),
        *(Program(name, function, given) for name, (function, given) in transforms.items()),
        *(Program(name, function, given) for name, (function, given) in layers.items()),
    ]
