"""Builders of operations of torch-mlir's torch dialect, at the current insertion point."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError

_SHAPE = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],([\w<>]+)>")
_TENSOR = re.compile(r"!torch\.vtensor<.*,(\w+)>")


def load_casts(context: Any) -> None:
    """Loads torch-mlir's dialect of casts between its tensors and MLIR's. The bindings cannot
    register it, so a pass that depends on it is run on an empty module."""
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    with context, ir.Location.unknown():
        pipeline = "builtin.module(torch-func-backend-type-conversion)"
        PassManager.parse(pipeline).run(ir.Module.create().operation)


def element_of(value: Any) -> str | None:
    """The element type of a tensor, as it is written in its type: `ui8`, `si64`, `f16`. None if the
    value is not such a tensor."""
    found = _TENSOR.fullmatch(str(value.type))
    return found[1] if found else None


def builtin_type(type_: Any) -> str:
    """The type of a tensor in MLIR's builtin dialect, in which integers are signless."""
    found = _SHAPE.fullmatch(str(type_))
    if found is None:
        raise InputError(f"A tensor of unknown rank or elements has no type in MLIR: {type_}")
    sizes = [size for size in found[1].split(",") if size]
    element = re.sub(r"^[su]i", "i", found[2])
    return f"tensor<{'x'.join([*sizes, element])}>"


def reinterpreted(value: Any, type_: Any) -> Any:
    """Reinterprets a tensor as another type that has the same builtin type. The casts must be
    loaded (`load_casts`)."""
    from torch_mlir import ir

    builtin = ir.Type.parse(builtin_type(value.type))
    bits = ops.unary("torch_c.to_builtin_tensor", value, builtin)
    return ops.unary("torch_c.from_builtin_tensor", bits, type_)


def known_tensor(value: Any) -> tuple[tuple[int, ...], str] | None:
    """The shape and the element type of a tensor, or None if a size is not known."""
    found = _SHAPE.fullmatch(str(value.type))
    if found is None or "?" in found[1]:
        return None
    return tuple(int(size) for size in found[1].split(",") if size), found[2]


def with_element(type_: Any, element: str) -> Any:
    """The type of a tensor with another element type."""
    from torch_mlir import ir

    return ir.Type.parse(f"{str(type_).rpartition(',')[0]},{element}>")


def create(name: str, type_: Any, *operands: Any, attributes: dict[str, Any] | None = None) -> Any:
    """Creates `torch.NAME`, and returns its result. `type_` is a type, or the name of a type of the
    dialect."""
    from torch_mlir import ir

    result = ir.Type.parse(f"!torch.{type_}") if isinstance(type_, str) else type_
    return ops.create(f"torch.{name}", list(operands), [result], attributes).result


def integer(number: int) -> Any:
    """A constant of type `!torch.int`."""
    from torch_mlir import ir

    value = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return create("constant.int", "int", attributes={"value": value})


def converted(value: Any, number: int, type_: Any) -> Any:
    """A tensor converted to another element type. `number` is PyTorch's number of that type."""
    from torch_mlir import ir

    false = create("constant.bool", "bool", attributes={"value": ir.BoolAttr.get(False)})
    none = create("constant.none", "none")
    return create("aten.to.dtype", type_, value, integer(number), false, false, none)
