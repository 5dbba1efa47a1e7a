"""PyTorch's elementwise operators that need loops or bit operations (integer powers, greatest
common divisors, the next float: the kernel runs the loop for each element), and those that are
choices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from aotc.frontends.torch.operators import OperatorCall, OperatorLowering, define_operators

Tensor = Any


def elementwise_decompositions(aten: Any) -> dict[Any, Any]:
    return {
        aten.pow.Tensor_Tensor: _power,
        aten.pow.Scalar: _power,
        aten.gcd.default: _gcd,
        aten.lcm.default: _lcm,
        aten.nextafter.default: _nextafter,
        aten.fmin.default: _fmin,
        aten.fmax.default: _fmax,
        aten.angle.default: _angle,
        aten.gelu.default: _gelu,
        **{
            operator: functools.partial(_clamp, operator)
            for packet in (aten.clamp, aten.clamp_min, aten.clamp_max)
            for operator in (packet.default, packet.Tensor)
        },
        aten.clamp_max.Tensor: lambda x, most: aten.clamp.Tensor(x, None, most),
    }


def _power(x: Any, exponent: Tensor) -> Tensor:
    """Handles integer powers. torch-mlir lowers those of floats."""
    import torch

    type_ = torch.result_type(x, exponent)
    if type_.is_floating_point or type_.is_complex:
        return NotImplemented
    base = x if isinstance(x, torch.Tensor) else torch.full((), x)
    return _of_integers("integer_power", base, exponent, type_)


def _gcd(x: Tensor, y: Tensor) -> Tensor:
    import torch

    return _of_integers("gcd", x, y, torch.result_type(x, y))


def _lcm(x: Tensor, y: Tensor) -> Tensor:
    import torch

    divisor = torch.gcd(x, y)
    quotient = torch.div(x, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc")
    return (quotient * y).abs()


def _nextafter(x: Tensor, y: Tensor) -> Tensor:
    import torch

    type_ = torch.result_type(x, y)
    return _applied("nextafter", x.to(type_), y.to(type_))


def _fmin(x: Tensor, y: Tensor) -> Tensor:
    """torch-mlir does not broadcast the operands. A NaN is chosen only where both are NaN."""
    import torch

    return torch.where((x <= y) | (y != y), x, y)


def _fmax(x: Tensor, y: Tensor) -> Tensor:
    import torch

    return torch.where((x >= y) | (y != y), x, y)


def _angle(x: Tensor) -> Tensor:
    """The angle of a real number: pi if it is negative."""
    import torch

    type_ = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    # Two numbers would make a tensor of f32.
    angle = torch.where(x < 0, x.new_full((), math.pi, dtype=type_), 0.0)
    return torch.where(x != x, x, angle) if x.dtype.is_floating_point else angle


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """The approximation by tanh, as a sigmoid: 1 + tanh(u) = 2 sigmoid(2u), whose left side cancels
    where u is negative."""
    import torch

    if approximate != "tanh":
        return NotImplemented
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    doubled = math.sqrt(8 / math.pi) * (wide + 0.044715 * (wide * wide * wide))
    return (wide * torch.sigmoid(doubled)).to(x.dtype)


def _clamp(operator: Any, *given: Any, **named: Any) -> Tensor:
    """Converts the operands to the type of the result, as torch-mlir compares them as they are.
    Booleans are compared as bytes, as true is -1 where signed integers of one bit are compared."""
    import torch

    x, *bounds = (one for one in (*given, *named.values()) if one is not None)
    type_ = functools.reduce(torch.promote_types, [torch.result_type(x, one) for one in bounds])

    computed_in = torch.uint8 if type_ == torch.bool else type_

    def converted(one: Any) -> Any:
        return one.to(computed_in) if isinstance(one, torch.Tensor) else one

    if all(converted(one) is one for one in (x, *bounds)):
        return NotImplemented
    made = operator(*map(converted, given), **{key: converted(named[key]) for key in named})
    return made.to(type_)


def _of_integers(name: str, x: Tensor, y: Tensor, type_: Any) -> Tensor:
    """Computes in 64 bits, or in 32 if the type has at most 16. The low bits of the result are the
    same, and values of unsigned types are not negative there."""
    import torch

    wide = torch.int64 if type_.itemsize > 2 else torch.int32
    return _applied(name, *(one.to(type_).to(wide) for one in (x, y))).to(type_)


def _applied(name: str, x: Tensor, y: Tensor) -> Tensor:
    import torch

    broadcast: Any = torch.broadcast_tensors
    return getattr(_operators(), name).default(*broadcast(x, y))


# --- aotc's operators -----------------------------------------------------------------------------


@functools.cache
def _operators() -> Any:
    return define_operators(
        {f"{name}(Tensor x, Tensor y) -> Tensor": _of_same_size for name in _BODIES}
    )


def _of_same_size(x: Tensor, y: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _text(body: Callable[[str], str], call: OperatorCall) -> str:
    """The text of the function of two tensors of one shape that applies the body to each
    element."""
    x, y = call.operands
    (result,) = call.results
    *shape, element = x.removeprefix("tensor<").removesuffix(">").split("x")
    dimensions = ", ".join(f"d{i}" for i in range(len(shape)))
    own = f"affine_map<({dimensions}) -> ({dimensions})>"
    unknown = [i for i, size in enumerate(shape) if size == "?"]
    sizes = "\n".join(
        f"  %d{i} = arith.constant {i} : index\n  %size{i} = tensor.dim %all_x, %d{i} : {x}"
        for i in unknown
    )
    return f"""
func.func @elementwise(%all_x: {x}, %all_y: {y}) -> {result} {{
{sizes}
  %empty = tensor.empty({", ".join(f"%size{i}" for i in unknown)}) : {result}
  %made = linalg.generic {{
      indexing_maps = [{own}, {own}, {own}],
      iterator_types = [{", ".join(['"parallel"'] * len(shape))}]}}
      ins(%all_x, %all_y : {x}, {y}) outs(%empty : {result}) {{
  ^bb0(%x: {element}, %y: {element}, %none: {element}):
    {body(element)}
    linalg.yield %result : {element}
  }} -> {result}
  return %made : {result}
}}
"""


def _power_body(e: str) -> str:
    """A negative power is 1 / x rounded to 0. It is 0 except for 1 and -1, whose odd powers equal
    the first power and whose even powers are 1."""
    return f"""
    %zero = arith.constant 0 : {e}
    %one = arith.constant 1 : {e}
    %minus_one = arith.constant -1 : {e}
    %is_negative = arith.cmpi slt, %y, %zero : {e}
    %odd = arith.andi %y, %one : {e}
    %exponent = arith.select %is_negative, %odd, %y : {e}
    %power = math.ipowi %x, %exponent : {e}
    %is_one = arith.cmpi eq, %x, %one : {e}
    %is_minus_one = arith.cmpi eq, %x, %minus_one : {e}
    %is_unit = arith.ori %is_one, %is_minus_one : i1
    %fraction = arith.select %is_unit, %power, %zero : {e}
    %result = arith.select %is_negative, %fraction, %power : {e}"""


def _gcd_body(e: str) -> str:
    """Euclid's algorithm on unsigned integers, because the absolute value of the least signed
    integer is not representable as a signed one."""
    return f"""
    %zero = arith.constant 0 : {e}
    %positive_x = math.absi %x : {e}
    %positive_y = math.absi %y : {e}
    %result, %rest = scf.while (%a = %positive_x, %b = %positive_y) : ({e}, {e}) -> ({e}, {e}) {{
      %goes_on = arith.cmpi ne, %b, %zero : {e}
      scf.condition(%goes_on) %a, %b : {e}, {e}
    }} do {{
    ^bb0(%a: {e}, %b: {e}):
      %remainder = arith.remui %a, %b : {e}
      scf.yield %b, %remainder : {e}, {e}
    }}"""


def _nextafter_body(e: str) -> str:
    """Floats of one sign are ordered as their bits. The neighbours of 0 are the smallest subnormals
    of both signs."""
    bits = f"i{e.lstrip('bf')}"
    return f"""
    %zero = arith.constant 0.0 : {e}
    %one = arith.constant 1 : {bits}
    %minus_one = arith.constant -1 : {bits}
    %least = arith.bitcast %one : {bits} to {e}
    %start = arith.bitcast %x : {e} to {bits}
    %is_less = arith.cmpf olt, %x, %y : {e}
    %is_positive = arith.cmpf ogt, %x, %zero : {e}
    %is_away = arith.cmpi eq, %is_less, %is_positive : i1
    %step = arith.select %is_away, %one, %minus_one : {bits}
    %end = arith.addi %start, %step : {bits}
    %next = arith.bitcast %end : {bits} to {e}
    %least_there = math.copysign %least, %y : {e}
    %is_zero = arith.cmpf oeq, %x, %zero : {e}
    %moved = arith.select %is_zero, %least_there, %next : {e}
    %is_there = arith.cmpf oeq, %x, %y : {e}
    %number = arith.select %is_there, %y, %moved : {e}
    %sum = arith.addf %x, %y : {e}
    %is_nan = arith.cmpf uno, %x, %y : {e}
    %result = arith.select %is_nan, %sum, %number : {e}"""


_BODIES: dict[str, Callable[[str], str]] = {
    "integer_power": _power_body,
    "gcd": _gcd_body,
    "nextafter": _nextafter_body,
}
LOWERINGS = tuple(
    OperatorLowering(f"aotc::{name}", to_mlir=functools.partial(_text, body))
    for name, body in _BODIES.items()
)
