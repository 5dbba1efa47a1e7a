"""Decompositions of PyTorch's quantization operators (`quantized_decomposed`, which PT2E exports).

Most are traced by PyTorch's own Python definitions. Those whose definitions read a number from a
tensor are defined here, so that scales stay on the device.
"""

from __future__ import annotations

from typing import Any

Tensor = Any


def quantized_decompositions() -> dict[Any, Any]:
    """The decompositions by operator. The call also registers the operators with PyTorch, which
    then can load files that have them."""
    import torch
    from torch.ao.quantization.fx import (
        _decomposed as defined,
    )

    quantized = torch.ops.quantized_decomposed
    return {
        torch.ops.aten._int_mm.default: _int_mm,
        torch.ops.aten.fake_quantize_per_channel_affine.default: _fake_quantize,
        torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams: _fake_quantize_tensor,
        quantized.quantize_per_tensor.default: defined.quantize_per_tensor,
        quantized.quantize_per_tensor.tensor: _quantize,
        quantized.quantize_per_tensor.tensor2: _quantize,
        quantized.dequantize_per_tensor.default: defined.dequantize_per_tensor,
        quantized.dequantize_per_tensor.tensor: _dequantize,
        quantized.dequantize_per_tensor.tensor2: _dequantize,
        quantized.choose_qparams.tensor: _choose,
        quantized.choose_qparams_symmetric.tensor: _choose_symmetric,
        quantized.quantize_per_channel.default: defined.quantize_per_channel,
        quantized.dequantize_per_channel.default: defined.dequantize_per_channel,
        quantized.quantize_per_token.default: defined.quantize_per_token,
        quantized.dequantize_per_token.default: defined.dequantize_per_token,
        quantized.choose_qparams_per_token.default: defined.choose_qparams_per_token,
        quantized.choose_qparams_per_token_asymmetric.default: (
            defined._choose_qparams_per_token_asymmetric_impl
        ),
        quantized.quantize_per_channel_group.default: defined.quantize_per_channel_group,
        quantized.dequantize_per_channel_group.default: defined.dequantize_per_channel_group,
    }


def _int_mm(left: Tensor, right: Tensor) -> Tensor:
    import torch

    return torch.mm(left.to(torch.int32), right.to(torch.int32))


def _fake_quantize(
    input_: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """torch-mlir has no lowering for zero points that are not constants. PyTorch multiplies by the
    reciprocal of the scale, and so does this function."""
    import torch

    along = [-1 if i == axis % input_.dim() else 1 for i in range(input_.dim())]
    scale, zero = scale.reshape(along), zero_point.reshape(along)
    scaled = input_ * (1.0 / scale)
    if zero.dtype.is_floating_point:
        moved = torch.round(scaled + zero)
    else:
        zero = zero.to(torch.float32)
        moved = torch.round(scaled) + zero
    return (torch.clamp(moved, quant_min, quant_max) - zero) * scale


def _fake_quantize_tensor(
    input_: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """One scale for all elements."""
    channel = input_.reshape(1, -1)
    of_one = scale.reshape(1), zero_point.reshape(1)
    return _fake_quantize(channel, *of_one, 0, quant_min, quant_max).reshape(input_.shape)


def _quantize(
    input_: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Any, quant_max: Any, dtype: Any
) -> Tensor:
    import torch

    # PyTorch converts the scale to a Python float, of 64 bits, and multiplies by a factor of the
    # input's type.
    factor = (1.0 / scale.reshape(()).double()).to(torch.float32)
    return torch.clamp(
        torch.round(input_.float() * factor) + zero_point.reshape(()), quant_min, quant_max
    ).to(dtype)


def _dequantize(
    input_: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: Any,
    quant_max: Any,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Tensor:
    import torch

    type_ = out_dtype or torch.float32
    return (input_.to(type_) - zero_point.reshape(()).to(type_)) * scale.reshape(()).to(type_)


def _choose(
    input_: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    import torch

    zero = torch.zeros((), dtype=input_.dtype, device=input_.device)
    least, greatest = input_.amin().minimum(zero), input_.amax().maximum(zero)
    scale = torch.clamp_min((greatest - least) / float(quant_max - quant_min), eps)
    zero_point = quant_min - torch.round(least / scale).to(torch.int64)
    return scale.double().reshape(1), zero_point.clamp(quant_min, quant_max).reshape(1)


def _choose_symmetric(
    input_: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    import torch

    zero = torch.zeros((), dtype=input_.dtype, device=input_.device)
    least, greatest = input_.amin().minimum(zero), input_.amax().maximum(zero)
    largest = (-least).maximum(greatest)
    scale = torch.clamp_min(largest / (float(quant_max - quant_min) / 2), eps)
    # PyTorch's zero point for an unsigned type.
    middle = 128 if dtype == torch.uint8 else 0
    return scale.double().reshape(1), torch.full((1,), middle, dtype=torch.int64)
