"""Single operations that are measured as models are: products of matrices, and convolutions.

A product's matrices are both inputs, so that no engine can pack one before it is called; that of a
`linear` is a constant. They are of f32, or of the type in the name: i8 with sums of i32, which a
`linear` scales to f32. Convolutions are layers of ResNet-50 and MobileNetV3 (small), with a bias
and ReLU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

# As models are: the path to the zoo is there.
from bench.models.models import Case, normal

# rows, columns and the sum's length of a product: squares, and a transformer's of width 768.
_SQUARES = (128, 256, 512, 1024, 2048, 4096)
_PRODUCTS = {
    **{f"product_{size}": (size, size, size) for size in _SQUARES},
    "product_row": (1, 4096, 4096),
    "product_8_rows": (8, 4096, 4096),
    "product_column": (4096, 1, 4096),
}
_LINEARS = {
    "linear_qkv": (128, 2304, 768),
    "linear_out": (128, 768, 768),
    "linear_up": (128, 3072, 768),
    "linear_down": (128, 768, 3072),
    "linear_row": (1, 3072, 768),
}
_TYPES = ("f16", "bf16", "i8")
# Channels of the image and of the result, the image's side, the filter's side, the stride; groups.
_CONVOLUTIONS = {
    "conv_7x7_stride_2": (3, 64, 224, 7, 2, 1),
    "conv_1x1_64": (64, 64, 56, 1, 1, 1),
    "conv_3x3_64": (64, 64, 56, 3, 1, 1),
    "conv_1x1_64_256": (64, 256, 56, 1, 1, 1),
    "conv_3x3_128_stride_2": (128, 128, 56, 3, 2, 1),
    "conv_3x3_128": (128, 128, 28, 3, 1, 1),
    "conv_1x1_512_128": (512, 128, 28, 1, 1, 1),
    "conv_3x3_256_stride_2": (256, 256, 28, 3, 2, 1),
    "conv_3x3_256": (256, 256, 14, 3, 1, 1),
    "conv_1x1_1024_256": (1024, 256, 14, 1, 1, 1),
    "conv_1x1_1024_2048_stride_2": (1024, 2048, 14, 1, 2, 1),
    "conv_3x3_512": (512, 512, 7, 3, 1, 1),
    "conv_1x1_2048_512": (2048, 512, 7, 1, 1, 1),
    "conv_3x3_3_16_stride_2": (3, 16, 224, 3, 2, 1),
    "depthwise_3x3_16_stride_2": (16, 16, 112, 3, 2, 16),
    "conv_1x1_16_72": (16, 72, 56, 1, 1, 1),
    "depthwise_3x3_88": (88, 88, 28, 3, 1, 88),
    "depthwise_5x5_96_stride_2": (96, 96, 28, 5, 2, 96),
    "depthwise_5x5_240": (240, 240, 14, 5, 1, 240),
    "conv_1x1_240_40": (240, 40, 14, 1, 1, 1),
    "depthwise_5x5_576": (576, 576, 7, 5, 1, 576),
    "conv_1x1_96_576": (96, 576, 7, 1, 1, 1),
}


def _random(type_: str, *shape: int) -> Any:
    import torch

    if type_ == "i8":
        return torch.randint(-128, 128, shape, dtype=torch.int8)
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    return normal(*shape).to(types[type_])


def _multiply(a: Any, b: Any) -> Any:
    import torch

    return a @ b if a.is_floating_point() else torch._int_mm(a, b)


def _product(rows: int, columns: int, length: int, type_: str = "f32") -> Any:
    from torch import nn

    class Product(nn.Module):  # type: ignore[misc, unused-ignore]
        def forward(self, a: Any, b: Any) -> Any:
            return _multiply(a, b)

    def inputs(batch: int, _: int) -> dict[str, Any]:
        return {"a": _random(type_, batch * rows, length), "b": _random(type_, length, columns)}

    return Case(Product(), inputs)


def _linear(rows: int, columns: int, length: int, type_: str = "f32") -> Any:
    from torch import nn

    class Quantized(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", _random(type_, columns, length))

        def forward(self, input: Any) -> Any:
            return _multiply(input, self.get_buffer("weight").t()) * 1e-3

    module: Any = nn.Linear(length, columns) if type_ != "i8" else Quantized()
    if type_ not in ("f32", "i8"):
        module = module.to(_random(type_, 1).dtype)
    return Case(module, lambda batch, _: {"input": _random(type_, batch * rows, length)})


def _convolution(image: int, result: int, side: int, window: int, stride: int, groups: int) -> Any:
    from torch import nn

    layer = nn.Conv2d(image, result, window, stride, window // 2, groups=groups)
    module = nn.Sequential(layer, nn.ReLU())
    return Case(module, lambda batch, _: {"input": normal(batch, image, side, side)})


LAYERS: dict[str, Callable[[], Any]] = {
    **{name: partial(_product, *sizes) for name, sizes in _PRODUCTS.items()},
    **{
        f"product_1024_{type_}": partial(_product, *_PRODUCTS["product_1024"], type_)
        for type_ in _TYPES
    },
    **{name: partial(_linear, *sizes) for name, sizes in _LINEARS.items()},
    **{
        f"{name}_{type_}": partial(_linear, *_LINEARS[name], type_)
        for name in ("linear_up", "linear_down")
        for type_ in _TYPES
    },
    **{name: partial(_convolution, *sizes) for name, sizes in _CONVOLUTIONS.items()},
}
