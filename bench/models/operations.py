"""Single operations, each a model of its own: `op.NAME` for `python -m bench.models --device cuda`.

The sizes are those of a batch of 8, which is the only one there is. An argument `w` of two
dimensions or more is a weight, others are inputs. Indices are computed of normal numbers.
Transforms and factorizations are of f32 alone (`--dtype f32`), as in PyTorch.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from bench.models import models

_Sizes = tuple[int, ...]
BATCH = 8


def _torch() -> Any:
    return importlib.import_module("torch")


def _functional() -> Any:
    return importlib.import_module("torch.nn.functional")


def case(name: str) -> Any:
    """The operation as a module, whose inputs have the names of the function's arguments."""
    torch = _torch()
    function, shapes = OPERATIONS[name]
    sizes = dict(zip(inspect.signature(function).parameters, shapes, strict=True))
    weight = sizes.pop("w") if len(sizes.get("w", ())) > 1 else None

    class Operation(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            if weight is not None:
                self.w = torch.nn.Parameter(torch.randn(weight))

        def forward(self, **inputs: Any) -> Any:
            return function(**inputs) if weight is None else function(**inputs, w=self.w)

    return models.Case(
        Operation(), lambda *_: {name: models.normal(*size) for name, size in sizes.items()}
    )


OPERATIONS: dict[str, tuple[Callable[..., Any], tuple[_Sizes, ...]]] = {
    # reductions
    "sum_last": (lambda x: x.sum(-1), ((BATCH, 1024, 4096),)),
    "sum_first": (lambda x: x.sum((0, 1)), ((BATCH, 1024, 4096),)),
    "sum_mid": (lambda x: x.sum(1), ((BATCH, 1024, 4096),)),
    "mean_hw": (lambda x: x.mean((2, 3)), ((BATCH, 512, 28, 28),)),
    "amax_all": (lambda x: x.amax(), ((BATCH, 1024, 4096),)),
    "var_last": (lambda x: x.var(-1), ((BATCH, 1024, 4096),)),
    "logsumexp": (lambda x: x.logsumexp(-1), ((BATCH, 128, 32000),)),
    "norm_all": (lambda x: x.float().norm(), ((BATCH, 1024, 4096),)),
    "cumsum_last": (lambda x: x.cumsum(-1), ((BATCH, 128, 4096),)),
    "cumsum_mid": (lambda x: x.cumsum(1), ((BATCH, 4096, 128),)),
    "cumsum_long": (lambda x: x.cumsum(-1), ((BATCH, 262144),)),
    "cumprod_last": (lambda x: (1 + x / 4096).cumprod(-1), ((BATCH, 128, 4096),)),
    "cummax_last": (lambda x: x.cummax(-1).values, ((BATCH, 128, 4096),)),
    "softmax_c": (lambda x: x.softmax(1), ((BATCH, 21, 256, 256),)),
    "softmax_vocab": (lambda x: x.softmax(-1), ((BATCH, 128, 32000),)),
    "log_softmax_vocab": (lambda x: x.log_softmax(-1), ((BATCH, 128, 32000),)),
    "softmax_long": (lambda x: x.softmax(-1), ((BATCH, 1048576),)),
    # norms
    "layer_norm": (
        lambda x, w, b: _functional().layer_norm(x, (4096,), w, b),
        ((BATCH, 512, 4096), (4096,), (4096,)),
    ),
    "rms_norm": (lambda x, w: _functional().rms_norm(x, (4096,), w), ((BATCH, 512, 4096), (4096,))),
    "group_norm": (
        lambda x, w, b: _functional().group_norm(x, 32, w, b),
        ((BATCH, 256, 64, 64), (256,), (256,)),
    ),
    "instance_norm": (lambda x: _functional().instance_norm(x), ((BATCH, 64, 128, 128),)),
    "batch_norm_train": (
        lambda x: _functional().batch_norm(x, None, None, training=True),
        ((BATCH, 64, 56, 56),),
    ),
    "lrn": (lambda x: _functional().local_response_norm(x, 5), ((BATCH, 96, 27, 27),)),
    "normalize": (lambda x: _functional().normalize(x, dim=1), ((BATCH, 256, 64, 64),)),
    # sorts
    "sort_rows": (lambda x: x.sort(-1).values, ((BATCH, 65536),)),
    "sort_dim0": (lambda x: x.sort(0).values, ((BATCH, 65536),)),
    "topk50": (lambda x: x.topk(50).values, ((BATCH, 128256),)),
    "topk1000": (lambda x: x.topk(1000).values, ((BATCH, 128256),)),
    "topk1_exp": (lambda x: x.topk(2, -1).values.softmax(-1), ((BATCH * 4096, 64),)),
    "median": (lambda x: x.median(-1).values, ((BATCH, 65536),)),
    "kthvalue": (lambda x: x.kthvalue(100, -1).values, ((BATCH, 65536),)),
    "top_p": (
        lambda x: (
            lambda s: _torch().where(
                s.values.softmax(-1).cumsum(-1) < 0.9, s.values, _torch().zeros_like(s.values)
            )
        )(x.sort(-1, descending=True)),
        ((BATCH, 32000),),
    ),
    # gathers
    "embedding": (
        lambda w, t: _functional().embedding((t.abs() * 10000).long().clamp(0, 49999), w),
        ((50000, 768), (BATCH, 512)),
    ),
    "gather_rows": (
        lambda x, t: x.gather(1, (t.abs() * 1000).long().clamp(0, 4095)),
        ((BATCH, 4096, 64), (BATCH, 1024, 64)),
    ),
    "index_select": (
        lambda x, t: x.index_select(1, (t.abs() * 1000).long().clamp(0, 4095)),
        ((BATCH, 4096, 256), (1024,)),
    ),
    "scatter_add": (
        lambda x, t: (
            _torch()
            .zeros(4096, 256, dtype=x.dtype, device=x.device)
            .index_add(0, (t.abs() * 1000).long().clamp(0, 4095), x)
        ),
        ((65536, 256), (65536,)),
    ),
    "masked_fill": (lambda x: x.masked_fill(x > 0.3, -1.0), ((BATCH, 1024, 4096),)),
    "tril": (lambda x: x.tril(), ((BATCH, 16, 1024, 1024),)),
    "roll": (lambda x: x.roll((3, 3), (1, 2)), ((BATCH, 56, 56, 96),)),
    "flip": (lambda x: x.flip(-1), ((BATCH, 256, 64, 64),)),
    "transpose": (lambda x: x.transpose(1, 2).contiguous(), ((BATCH, 4096, 1024),)),
    "nchw_nhwc": (lambda x: x.permute(0, 2, 3, 1).contiguous(), ((BATCH, 256, 56, 56),)),
    "nhwc_nchw": (lambda x: x.permute(0, 3, 1, 2).contiguous(), ((BATCH, 56, 56, 256),)),
    "perm5": (lambda x: x.permute(0, 1, 3, 2, 4, 5).contiguous(), ((BATCH, 8, 7, 8, 7, 96),)),
    "heads": (
        lambda x: x.view(BATCH, 1024, 16, 64).transpose(1, 2).contiguous(),
        ((BATCH, 1024, 1024),),
    ),
    "cat_last": (lambda x, y: _torch().cat((x, y), -1), ((BATCH, 1024, 512), (BATCH, 1024, 768))),
    "cat_c": (lambda x, y: _torch().cat((x, y), 1), ((BATCH, 64, 56, 56), (BATCH, 128, 56, 56))),
    "stack_last": (
        lambda x, y: _torch().stack((x, y), -1),
        ((BATCH, 1024, 512), (BATCH, 1024, 512)),
    ),
    "repeat": (lambda x: x.repeat_interleave(4, 1), ((BATCH, 8, 1024, 128),)),
    "pad_reflect": (
        lambda x: _functional().pad(x, (3, 3, 3, 3), mode="reflect"),
        ((BATCH, 64, 128, 128),),
    ),
    "unfold": (lambda x: _functional().unfold(x, 3, padding=1), ((BATCH, 64, 56, 56),)),
    "fold": (lambda x: _functional().fold(x, (56, 56), 3, padding=1), ((BATCH, 576, 3136),)),
    "pixel_shuffle": (lambda x: _functional().pixel_shuffle(x, 2), ((BATCH, 256, 64, 64),)),
    "one_hot_like": (
        lambda x: (x.unsqueeze(-1) > _torch().arange(64, device=x.device)).to(x.dtype),
        ((BATCH, 16384),),
    ),
    # elementwise
    "gelu": (lambda x: _functional().gelu(x), ((BATCH, 1024, 4096),)),
    "swiglu": (lambda x, y: _functional().silu(x) * y, ((BATCH, 1024, 4096), (BATCH, 1024, 4096))),
    "bias4": (
        lambda x, a, b, c: x * a + b + c,
        ((BATCH, 256, 56, 56), (256, 1, 1), (BATCH, 256, 1, 1), (56, 56)),
    ),
    "rope": (
        lambda x, c, s: x * c + _torch().cat((-x[..., 64:], x[..., :64]), -1) * s,
        ((BATCH, 32, 1024, 128), (1024, 128), (1024, 128)),
    ),
    "cdist": (lambda x, y: _torch().cdist(x, y), ((BATCH, 1024, 3), (BATCH, 1024, 3))),
    "cdist64": (lambda x, y: _torch().cdist(x, y), ((BATCH, 1024, 64), (BATCH, 1024, 64))),
    "outer_dist": (
        lambda x, y: (x[:, :, None] - y[:, None]).abs().sum(-1),
        ((BATCH, 512, 64), (BATCH, 512, 64)),
    ),
    "tanh_chain": (
        lambda x: _torch().tanh(_torch().sin(x) * _torch().exp(-x * x) + _torch().erf(x)),
        ((BATCH, 1024, 4096),),
    ),
    "pow": (lambda x: x.abs().pow(2.3), ((BATCH, 1024, 4096),)),
    "lgamma": (lambda x: _torch().lgamma(x.abs() + 1), ((BATCH, 1024, 1024),)),
    # products
    "bmm": (lambda x, y: x @ y, ((BATCH * 16, 512, 64), (BATCH * 16, 64, 512))),
    "bmm2": (lambda x, y: x @ y, ((BATCH * 16, 512, 512), (BATCH * 16, 512, 64))),
    "at_b": (lambda x, y: x.t() @ y, ((8192, 1024), (8192, 1024))),
    "a_bt": (lambda x, y: x @ y.t(), ((4096, 1024), (4096, 1024))),
    "tall": (lambda x, y: x @ y, ((200000, 64), (64, 64))),
    "small_k": (lambda x, y: x @ y, ((8192, 16), (16, 8192))),
    "big_k": (lambda x, y: x @ y, ((64, 65536), (65536, 64))),
    "lm_head": (lambda x, y: x @ y.t(), ((BATCH, 4096), (32000, 4096))),
    "matvec": (lambda x, y: x @ y, ((8192, 8192), (8192,))),
    "vecmat": (lambda x, y: y @ x, ((8192, 8192), (8192,))),
    "batch_matvec": (
        lambda x, y: _torch().einsum("bij,bj->bi", x, y),
        ((BATCH * 64, 512, 512), (BATCH * 64, 512)),
    ),
    "triangle": (
        lambda x, y: _torch().einsum("bikc,bjkc->bijc", x, y),
        ((1, 128, 128, 128), (1, 128, 128, 128)),
    ),
    "einsum_bhwc": (
        lambda x, y: _torch().einsum("bhqc,hkc->bhqk", x, y),
        ((BATCH, 16, 256, 64), (16, 256, 64)),
    ),
    "odd_matmul": (lambda x, y: x @ y, ((1000, 999), (999, 1001))),
    "odd_small": (lambda x, y: x @ y, ((BATCH * 64, 49, 49), (BATCH * 64, 49, 32))),
    "kron": (lambda x, y: _torch().kron(x, y), ((64, 64), (64, 64))),
    "trilinear": (
        lambda x, y, w: _functional().bilinear(x, y, w),
        ((BATCH * 64, 64), (BATCH * 64, 64), (64, 64, 64)),
    ),
    "outer_sum": (lambda x, y: _torch().einsum("bi,bj->ij", x, y), ((4096, 128), (4096, 128))),
    # convolutions
    "conv3d": (
        lambda x, w: _functional().conv3d(x, w, padding=1),
        ((BATCH, 32, 8, 56, 56), (64, 32, 3, 3, 3)),
    ),
    "conv1d_k7": (
        lambda x, w: _functional().conv1d(x, w, padding=3),
        ((BATCH, 256, 4096), (256, 256, 7)),
    ),
    "conv1d_first": (
        lambda x, w: _functional().conv1d(x, w, stride=5),
        ((BATCH, 1, 16000), (512, 1, 10)),
    ),
    "conv_t_k4s2": (
        lambda x, w: _functional().conv_transpose2d(x, w, stride=2, padding=1),
        ((BATCH, 128, 64, 64), (128, 64, 4, 4)),
    ),
    "conv_t_k2s2": (
        lambda x, w: _functional().conv_transpose2d(x, w, stride=2),
        ((BATCH, 128, 64, 64), (128, 64, 2, 2)),
    ),
    "conv_t_k3s2": (
        lambda x, w: _functional().conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        ((BATCH, 128, 64, 64), (128, 64, 3, 3)),
    ),
    "conv_t1d": (
        lambda x, w: _functional().conv_transpose1d(x, w, stride=8, padding=4),
        ((BATCH, 256, 256), (256, 128, 16)),
    ),
    "conv_t3d": (
        lambda x, w: _functional().conv_transpose3d(x, w, stride=2),
        ((BATCH, 64, 8, 28, 28), (64, 32, 2, 2, 2)),
    ),
    "dw7": (
        lambda x, w: _functional().conv2d(x, w, padding=3, groups=96),
        ((BATCH, 96, 56, 56), (96, 1, 7, 7)),
    ),
    "dw5s2": (
        lambda x, w: _functional().conv2d(x, w, padding=2, stride=2, groups=96),
        ((BATCH, 96, 56, 56), (96, 1, 5, 5)),
    ),
    "dw3": (
        lambda x, w: _functional().conv2d(x, w, padding=1, groups=384),
        ((BATCH, 384, 28, 28), (384, 1, 3, 3)),
    ),
    "dw1d": (
        lambda x, w: _functional().conv1d(x, w, padding=3, groups=1024)[..., :2048],
        ((BATCH, 1024, 2048), (1024, 1, 4)),
    ),
    "dw3d": (
        lambda x, w: _functional().conv3d(x, w, padding=1, groups=64),
        ((BATCH, 64, 8, 28, 28), (64, 1, 3, 3, 3)),
    ),
    "group32": (
        lambda x, w: _functional().conv2d(x, w, padding=1, groups=32),
        ((BATCH, 256, 28, 28), (256, 8, 3, 3)),
    ),
    "group4": (
        lambda x, w: _functional().conv2d(x, w, padding=1, groups=4),
        ((BATCH, 256, 28, 28), (256, 64, 3, 3)),
    ),
    "dilated": (
        lambda x, w: _functional().conv2d(x, w, padding=4, dilation=4),
        ((BATCH, 256, 28, 28), (256, 256, 3, 3)),
    ),
    "conv7s2": (
        lambda x, w: _functional().conv2d(x, w, padding=3, stride=2),
        ((BATCH, 3, 224, 224), (64, 3, 7, 7)),
    ),
    "conv5": (
        lambda x, w: _functional().conv2d(x, w, padding=2),
        ((BATCH, 64, 56, 56), (64, 64, 5, 5)),
    ),
    "conv1x7": (
        lambda x, w: _functional().conv2d(x, w, padding=(0, 3)),
        ((BATCH, 192, 17, 17), (192, 192, 1, 7)),
    ),
    "conv_last": (
        lambda x, w: _functional().conv2d(x, w, padding=1),
        ((BATCH, 64, 224, 224), (3, 64, 3, 3)),
    ),
    "patch16": (
        lambda x, w: _functional().conv2d(x, w, stride=16),
        ((BATCH, 3, 224, 224), (768, 3, 16, 16)),
    ),
    "dyn_conv": (
        lambda x, w: _functional().conv2d(
            x.reshape(1, BATCH * 64, 32, 32),
            w.reshape(BATCH * 64, 64, 3, 3),
            padding=1,
            groups=BATCH,
        ),
        ((BATCH, 64, 32, 32), (BATCH, 64, 64, 3, 3)),
    ),
    # pools
    "max_pool": (lambda x: _functional().max_pool2d(x, 3, 2, 1), ((BATCH, 64, 112, 112),)),
    "avg_pool": (lambda x: _functional().avg_pool2d(x, 3, 1, 1), ((BATCH, 256, 35, 35),)),
    "adaptive6": (lambda x: _functional().adaptive_avg_pool2d(x, 6), ((BATCH, 512, 14, 14),)),
    "max_pool3d": (lambda x: _functional().max_pool3d(x, 2), ((BATCH, 64, 16, 56, 56),)),
    "bilinear": (
        lambda x: _functional().interpolate(x, scale_factor=2, mode="bilinear"),
        ((BATCH, 64, 56, 56),),
    ),
    "bilinear_bev": (
        lambda x: _functional().interpolate(
            x, size=(512, 512), mode="bilinear", align_corners=True
        ),
        ((BATCH, 21, 65, 65),),
    ),
    "bicubic": (
        lambda x: _functional().interpolate(x, scale_factor=2, mode="bicubic"),
        ((BATCH, 64, 56, 56),),
    ),
    "nearest": (lambda x: _functional().interpolate(x, scale_factor=2), ((BATCH, 256, 32, 32),)),
    "trilinear_up": (
        lambda x: _functional().interpolate(x, scale_factor=2, mode="trilinear"),
        ((BATCH, 32, 8, 28, 28),),
    ),
    "grid_sample": (
        lambda x, g: _functional().grid_sample(x, g.clamp(-1, 1), align_corners=False),
        ((BATCH, 64, 56, 56), (BATCH, 56, 56, 2)),
    ),
    # attention
    "sdpa": (
        lambda q, k, v: _functional().scaled_dot_product_attention(q, k, v),
        ((BATCH, 16, 1024, 64), (BATCH, 16, 1024, 64), (BATCH, 16, 1024, 64)),
    ),
    "sdpa_causal": (
        lambda q, k, v: _functional().scaled_dot_product_attention(q, k, v, is_causal=True),
        ((1, 16, 4096, 128), (1, 16, 4096, 128), (1, 16, 4096, 128)),
    ),
    "sdpa_cross": (
        lambda q, k, v: _functional().scaled_dot_product_attention(q, k, v),
        ((BATCH, 8, 4096, 40), (BATCH, 8, 77, 40), (BATCH, 8, 77, 40)),
    ),
    "sdpa_bias": (
        lambda q, k, v, b: _functional().scaled_dot_product_attention(q, k, v, b),
        ((BATCH, 12, 512, 64), (BATCH, 12, 512, 64), (BATCH, 12, 512, 64), (12, 512, 512)),
    ),
    "sdpa_256": (
        lambda q, k, v: _functional().scaled_dot_product_attention(q, k, v),
        ((BATCH, 4, 1024, 256), (BATCH, 4, 1024, 256), (BATCH, 4, 1024, 256)),
    ),
    "sdpa_gqa": (
        lambda q, k, v: _functional().scaled_dot_product_attention(
            q, k, v, enable_gqa=True, is_causal=True
        ),
        ((1, 32, 2048, 128), (1, 8, 2048, 128), (1, 8, 2048, 128)),
    ),
    "sdpa_window": (
        lambda q, k, v, b: _functional().scaled_dot_product_attention(q, k, v, b),
        ((BATCH * 64, 3, 49, 32), (BATCH * 64, 3, 49, 32), (BATCH * 64, 3, 49, 32), (3, 49, 49)),
    ),
    "linear_attn": (
        lambda q, k, v: (
            (_functional().elu(q) + 1) @ ((_functional().elu(k) + 1).transpose(-1, -2) @ v)
        ),
        ((BATCH, 16, 1024, 64), (BATCH, 16, 1024, 64), (BATCH, 16, 1024, 64)),
    ),
    "softcap": (
        lambda q, k, v: (_torch().tanh(q @ k.transpose(-1, -2) / 400) * 50).softmax(-1) @ v,
        ((BATCH, 8, 1024, 128), (BATCH, 8, 1024, 128), (BATCH, 8, 1024, 128)),
    ),
    "axial": (
        lambda q, k, v: _functional().scaled_dot_product_attention(q, k, v),
        ((BATCH, 64, 8, 64, 32), (BATCH, 64, 8, 64, 32), (BATCH, 64, 8, 64, 32)),
    ),
    # others
    "cross_entropy": (
        lambda x, t: _functional().cross_entropy(x, (t.abs() * 1000).long().clamp(0, 31999)),
        ((1024, 32000), (1024,)),
    ),
    "rfft": (
        lambda x: _torch().view_as_real(_torch().fft.rfft(x.float())).contiguous(),
        ((BATCH, 64, 4096),),
    ),
    "fft2": (
        lambda x: _torch().view_as_real(_torch().fft.rfft2(x.float())).contiguous(),
        ((BATCH, 32, 256, 256),),
    ),
    "cholesky": (
        lambda x: _torch().linalg.cholesky(
            x @ x.transpose(-1, -2) + 64 * _torch().eye(64, device=x.device, dtype=x.dtype)
        ),
        ((BATCH * 16, 64, 64),),
    ),
    "inv": (
        lambda x: _torch().linalg.inv(x + 16 * _torch().eye(64, device=x.device, dtype=x.dtype)),
        ((BATCH * 16, 64, 64),),
    ),
    "solve": (
        lambda x, y: _torch().linalg.solve(
            x + 16 * _torch().eye(64, device=x.device, dtype=x.dtype), y
        ),
        ((BATCH * 16, 64, 64), (BATCH * 16, 64, 8)),
    ),
    "bucketize": (
        lambda x, e: _torch().bucketize(x.float(), e.float().sort().values).to(x.dtype),
        ((BATCH, 16384), (256,)),
    ),
    "histogram": (
        lambda x: (
            _torch()
            .zeros(256, device=x.device, dtype=x.dtype)
            .scatter_add(
                0, (x.flatten().abs() * 100).long().clamp(0, 255), _torch().ones_like(x.flatten())
            )
        ),
        ((BATCH, 65536),),
    ),
}
