"""Lowers functions of scalars in torch-mlir's torch dialect that it has no lowering for: powers,
roots, extrema. Sizes, and values that are computed from sizes, are such scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotc import ops
from aotc.frontends.torch_mlir.dialect import create, load_casts


def _modulo(value: Any, divisor: Any) -> Any:
    """Python's remainder, which has the divisor's sign."""
    rest = ops.binary("arith.remsi", value, divisor)
    return ops.binary("arith.remsi", ops.binary("arith.addi", rest, divisor), divisor)


# Maps the operator to the type that it is computed in, and the operation or function that computes
# it. torch-mlir imports Python's `%` as fmod.
_FUNCTIONS: dict[str, tuple[str, str | Callable[..., Any]]] = {
    "torch.aten.fmod.int": ("i64", _modulo),
    "torch.aten.pow.int_to_int": ("i64", "math.ipowi"),
    "torch.aten.pow.float": ("f64", "math.powf"),
    "torch.prim.max.float": ("f64", "arith.maximumf"),
    "torch.prim.min.float": ("f64", "arith.minimumf"),
    "torch.aten.sqrt.float": ("f64", "math.sqrt"),
    "torch.aten.floor.float": ("f64", "math.floor"),
}


def lower_numbers(module: Any) -> None:
    """Changes a module of the torch dialect, in place."""
    from torch_mlir import ir

    load_casts(module.context)
    with module.context:
        for operation in ops.find(module.operation, "torch.operator"):
            name = ir.StringAttr(operation.attributes["name"]).value
            if name not in _FUNCTIONS:
                continue
            type_, function = _FUNCTIONS[name]
            with operation.location, ir.InsertionPoint(operation):
                values = [_builtin(value, type_) for value in operation.operands]
                if callable(function):
                    made = function(*values)
                else:
                    made = ops.create(function, values, [values[0].type]).result
                number = ir.Type.parse("!torch.int" if type_ == "i64" else "!torch.float")
                made = ops.create(f"torch_c.from_{type_}", [made], [number]).result
                (old,) = operation.results
                if old.type != number:
                    made = create("aten.Int.Scalar", old.type, made)
                old.replace_all_uses_with(made)
            ops.erase(operation)


def _builtin(value: Any, type_: str) -> Any:
    from torch_mlir import ir

    if type_ == "f64" and str(value.type) != "!torch.float":
        value = create("aten.Float.Scalar", "float", value)
    return ops.create(f"torch_c.to_{type_}", [value], [ir.Type.parse(type_)]).result
