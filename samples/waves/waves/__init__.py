"""Two operators for PyTorch, `waves::square` and `waves::triangle`, and what aotc lowers them to.

Each is defined for PyTorch by `torch.library`: what it computes, and for `torch.export` the type
and size of what it gives. The first is lowered to operators of PyTorch, the second to MLIR.
"""

from __future__ import annotations

import torch

from aotc.torch import OperatorCall, OperatorLowering


@torch.library.custom_op("waves::square", mutates_args=())
def square(x: torch.Tensor, period: float) -> torch.Tensor:
    """1 in the first half of each period, -1 in the second."""
    return torch.where(x.remainder(period) < period / 2, 1.0, -1.0).to(x.dtype)


@square.register_fake
def _(x: torch.Tensor, period: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@torch.library.custom_op("waves::triangle", mutates_args=())
def triangle(x: torch.Tensor, height: float) -> torch.Tensor:
    """From 0 at each even number to `height` at each odd one and back."""
    return (x - 2 * torch.floor(x / 2 + 0.5)).abs() * height


@triangle.register_fake
def _(x: torch.Tensor, height: float) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def square_by_floor(x: torch.Tensor, period: float) -> torch.Tensor:
    """What PyTorch's own operators make of it: traced once, and lowered as they are."""
    part = x - torch.floor(x / period) * period
    return torch.where(part < period / 2, torch.ones_like(x), -torch.ones_like(x))


def triangle_text(call: OperatorCall) -> str:
    """A function on tensors, for each type and rank that a program has."""
    (type_,) = call.operands
    (height,) = call.constants
    *sizes, element = type_.removeprefix("tensor<").removesuffix(">").split("x")
    if not element.startswith(("f", "bf")):
        raise TypeError(f"waves::triangle is of floats, not of {element}")
    unknown = [place for place, size in enumerate(sizes) if size == "?"]
    dims = "\n".join(
        f"  %i{place} = arith.constant {place} : index\n"
        f"  %n{place} = tensor.dim %x, %i{place} : {type_}"
        for place in unknown
    )
    indices = ", ".join(f"d{place}" for place in range(len(sizes)))
    loops = ", ".join('"parallel"' for _ in sizes)
    return f"""\
#same = affine_map<({indices}) -> ({indices})>
func.func @triangle(%x: {type_}) -> {type_} {{
  %half = arith.constant 5.0e-01 : {element}
  %two = arith.constant 2.0 : {element}
  %height = arith.constant {float(height):.17e} : {element}
{dims}
  %new = tensor.empty({", ".join(f"%n{place}" for place in unknown)}) : {type_}
  %made = linalg.generic {{indexing_maps = [#same, #same], iterator_types = [{loops}]}}
      ins(%x : {type_}) outs(%new : {type_}) {{
  ^bb0(%one: {element}, %old: {element}):
    %halved = arith.mulf %one, %half : {element}
    %shifted = arith.addf %halved, %half : {element}
    %whole = math.floor %shifted : {element}
    %even = arith.mulf %whole, %two : {element}
    %distance = arith.subf %one, %even : {element}
    %size = math.absf %distance : {element}
    %scaled = arith.mulf %size, %height : {element}
    linalg.yield %scaled : {element}
  }} -> {type_}
  return %made : {type_}
}}
"""


SQUARE = OperatorLowering("waves::square", to_torch=square_by_floor)
TRIANGLE = OperatorLowering("waves::triangle", to_mlir=triangle_text)
