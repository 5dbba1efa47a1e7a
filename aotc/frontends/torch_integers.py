"""Integer operations in torch-mlir's torch dialect that its lowering computes with floats.

A negation goes through f32 and a floor division through f64, which round large integers. Both are
written here in terms of operations that stay integers.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops

# Element types, and PyTorch's numbers of them.
_NUMBERS = {"ui8": 0, "si8": 1, "si16": 2, "si32": 3, "si64": 4}
_ELEMENT = re.compile(r"!torch\.vtensor<.*,(\w+)>")
_FLOOR_DIVISIONS = (
    *("torch.aten.floor_divide", "torch.aten.floor_divide.Scalar"),
    *("torch.aten.div.Tensor_mode", "torch.aten.div.Scalar_mode"),
)


def keep_integers(module: Any) -> None:
    """Changes `module`, of the torch dialect, in place."""
    from torch_mlir import ir

    with module.context:
        for operation in ops.find(module.operation, "torch.aten.neg", *_FLOOR_DIVISIONS):
            number = _NUMBERS.get(_element(operation.results[0]))
            if number is None:
                continue
            with operation.location, ir.InsertionPoint(operation):
                if operation.name == "torch.aten.neg":
                    made = _negated(operation)
                elif _is_floor(operation):
                    made = _floor_divided(operation, number)
                else:
                    continue
            operation.results[0].replace_all_uses_with(made)
            ops.erase(operation)


def _negated(operation: Any) -> Any:
    (value,) = operation.operands
    return _create("rsub.Scalar", [value, integer(0), integer(1)], operation.results[0].type)


def _floor_divided(operation: Any, number: int) -> Any:
    """The quotient that is cut off, less 1 where remainders of both kinds of division differ."""
    from torch_mlir import ir

    left, right, *_ = operation.operands
    type_ = operation.results[0].type
    form = "Tensor" if "vtensor" in str(right.type) else "Scalar"
    mode = ops.create(
        "torch.constant.str",
        (),
        [ir.Type.parse("!torch.str")],
        {"value": ir.StringAttr.get("trunc")},
    ).result
    quotient = _create(f"div.{form}_mode", [left, right, mode], type_)
    remainders = [_create(f"{name}.{form}", [left, right], type_) for name in ("remainder", "fmod")]
    element = _element(operation.results[0])
    truth = ir.Type.parse(str(type_).replace(f",{element}>", ",i1>"))
    is_less = converted(_create("ne.Tensor", remainders, truth), number, type_)
    return _create("sub.Tensor", [quotient, is_less, integer(1)], type_)


def _is_floor(division: Any) -> bool:
    if division.name.startswith("torch.aten.floor_divide"):
        return True
    mode = ops.defining(division.operands[2])
    return mode is not None and "floor" in str(mode.attributes.get("value", ""))


def _element(value: Any) -> str:
    found = _ELEMENT.fullmatch(str(value.type))
    return found[1] if found else ""


def _create(name: str, operands: list[Any], type_: Any) -> Any:
    return ops.create(f"torch.aten.{name}", operands, [type_]).result


def converted(value: Any, number: int, type_: Any) -> Any:
    """A tensor as another type of elements, of PyTorch's number."""
    from torch_mlir import ir

    none = ops.create("torch.constant.none", (), [ir.Type.parse("!torch.none")]).result
    false = ops.create(
        "torch.constant.bool",
        (),
        [ir.Type.parse("!torch.bool")],
        {"value": ir.BoolAttr.get(False)},
    ).result
    return _create("to.dtype", [value, integer(number), false, false, none], type_)


def integer(number: int) -> Any:
    """A constant of Python's type int."""
    from torch_mlir import ir

    value = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    type_ = ir.Type.parse("!torch.int")
    return ops.create("torch.constant.int", (), [type_], {"value": value}).result
