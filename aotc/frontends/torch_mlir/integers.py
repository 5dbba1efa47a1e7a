"""Rewrites integer operations in torch-mlir's torch dialect that its lowering computes in floats.

Its lowering negates through f32 and divides with rounding down through f64, which rounds large
integers. Here both are rewritten by operations that stay in integers.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.torch_mlir.dialect import converted, create, element_of, integer, with_element

# PyTorch's numbers of element types.
_NUMBERS = {"ui8": 0, "si8": 1, "si16": 2, "si32": 3, "si64": 4}
_FLOOR_DIVISIONS = (
    *("torch.aten.floor_divide", "torch.aten.floor_divide.Scalar"),
    *("torch.aten.div.Tensor_mode", "torch.aten.div.Scalar_mode"),
)


def keep_integers(module: Any) -> None:
    """Changes a module of the torch dialect, in place."""
    from torch_mlir import ir

    with module.context:
        for operation in ops.find(module.operation, "torch.aten.neg", *_FLOOR_DIVISIONS):
            number = _NUMBERS.get(element_of(operation.results[0]) or "")
            if number is None:
                continue
            with operation.location, ir.InsertionPoint(operation):
                if operation.name == "torch.aten.neg":
                    made = _negated(operation)
                elif _is_floor(operation):
                    made = _floor_divided(operation, number)
                else:
                    continue
            ops.replace(operation, [made])


def _negated(operation: Any) -> Any:
    (value,) = operation.operands
    return create("aten.rsub.Scalar", operation.results[0].type, value, integer(0), integer(1))


def _floor_divided(operation: Any, number: int) -> Any:
    """The truncated quotient, minus 1 where the remainders of floor division and of truncated
    division differ."""
    from torch_mlir import ir

    left, right, *_ = operation.operands
    type_ = operation.results[0].type
    form = "Tensor" if "vtensor" in str(right.type) else "Scalar"
    if form == "Scalar" and not _is_constant(right):
        # torch-mlir lowers remainders by a scalar only if it is a constant.
        form, right = "Tensor", create("prim.NumToTensor.Scalar", "vtensor<[],si64>", right)
    mode = create("constant.str", "str", attributes={"value": ir.StringAttr.get("trunc")})
    quotient = create(f"aten.div.{form}_mode", type_, left, right, mode)
    remainder = create(f"aten.remainder.{form}", type_, left, right)
    cut_off = create(f"aten.fmod.{form}", type_, left, right)
    is_less = create("aten.ne.Tensor", with_element(type_, "i1"), remainder, cut_off)
    return create("aten.sub.Tensor", type_, quotient, converted(is_less, number, type_), integer(1))


def _is_constant(value: Any) -> bool:
    maker = ops.defining(value)
    return maker is not None and str(maker.name).startswith("torch.constant.")


def _is_floor(division: Any) -> bool:
    if division.name.startswith("torch.aten.floor_divide"):
        return True
    mode = ops.defining(division.operands[2])
    return mode is not None and "floor" in str(mode.attributes.get("value", ""))
