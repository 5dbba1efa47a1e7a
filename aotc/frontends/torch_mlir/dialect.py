"""Makers of operations of torch-mlir's torch dialect, at the current insertion point."""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError

_SHAPE = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],([\w<>]+)>")
_TENSOR = re.compile(r"!torch\.vtensor<.*,(\w+)>")


def load_casts(context: Any) -> None:
    """Loads torch-mlir's dialect of casts between its tensors and MLIR's, as a pass does that makes
    some: the bindings cannot register it."""
    from torch_mlir import ir
    from torch_mlir.passmanager import PassManager

    with context, ir.Location.unknown():
        pipeline = "builtin.module(torch-func-backend-type-conversion)"
        PassManager.parse(pipeline).run(ir.Module.create().operation)


def element_of(value: Any) -> str | None:
    """The element type of a tensor, as its type spells it: `ui8`, `si64`, `f16`."""
    found = _TENSOR.fullmatch(str(value.type))
    return found[1] if found else None


def builtin_type(type_: Any) -> str:
    """The type of a tensor as MLIR's own dialects have it, where integers have no sign."""
    found = _SHAPE.fullmatch(str(type_))
    if found is None:
        raise InputError(f"A tensor of unknown rank or elements has no type in MLIR: {type_}")
    sizes = [size for size in found[1].split(",") if size]
    element = re.sub(r"^[su]i", "i", found[2])
    return f"tensor<{'x'.join([*sizes, element])}>"


def reinterpreted(value: Any, type_: Any) -> Any:
    """The same bits as elements of a type that MLIR's own dialects do not distinguish. The casts
    have to be loaded (`load_casts`)."""
    from torch_mlir import ir

    builtin = ir.Type.parse(builtin_type(value.type))
    bits = ops.unary("torch_c.to_builtin_tensor", value, builtin)
    return ops.unary("torch_c.from_builtin_tensor", bits, type_)


def known_tensor(value: Any) -> tuple[tuple[int, ...], str] | None:
    """The shape and the element type of a tensor; None if a size is not known."""
    found = _SHAPE.fullmatch(str(value.type))
    if found is None or "?" in found[1]:
        return None
    return tuple(int(size) for size in found[1].split(",") if size), found[2]


def with_element(type_: Any, element: str) -> Any:
    """The type of a tensor, of other elements."""
    from torch_mlir import ir

    return ir.Type.parse(f"{str(type_).rpartition(',')[0]},{element}>")


def create(name: str, type_: Any, *operands: Any, attributes: dict[str, Any] | None = None) -> Any:
    """The result of `torch.NAME`. `type_`: a type, or the name of one of the dialect's."""
    from torch_mlir import ir

    result = ir.Type.parse(f"!torch.{type_}") if isinstance(type_, str) else type_
    return ops.create(f"torch.{name}", list(operands), [result], attributes).result


def integer(number: int) -> Any:
    """A constant of Python's type int."""
    from torch_mlir import ir

    value = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    return create("constant.int", "int", attributes={"value": value})


def converted(value: Any, number: int, type_: Any) -> Any:
    """A tensor as another type of elements, of PyTorch's number."""
    from torch_mlir import ir

    false = create("constant.bool", "bool", attributes={"value": ir.BoolAttr.get(False)})
    none = create("constant.none", "none")
    return create("aten.to.dtype", type_, value, integer(number), false, false, none)
