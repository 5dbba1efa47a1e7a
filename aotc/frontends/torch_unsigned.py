"""Unsigned integers in torch-mlir's torch dialect are computed with as signed ones that are wider.

torch-mlir's lowering to linalg takes many unsigned elements for signed ones (division, comparison,
maximum, conversion from and to floats). Here an operation that interprets such elements gets them
as signed integers of twice the width or more, and its result is cut off to the unsigned type. What
only moves elements stays as it is.
"""

from __future__ import annotations

import re
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.input.source import find_place

# By element type: the signed one that has all its values, PyTorch's numbers of both, and a mask.
# (torch-mlir has no conversion to ui16, and there is nothing wider than ui64.)
_WIDER = {
    "ui8": ("si32", 0, 3, 0xFF),
    "ui16": ("si32", None, 3, 0xFFFF),
    "ui32": ("si64", 28, 4, 0xFFFFFFFF),
}
# Operations that torch-mlir has right for these two, too.
_RIGHT = frozenset(
    "torch.aten." + name
    for name in (
        *("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum", "amax", "argmax"),
        *("lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor", "eq.Tensor", "ne.Tensor"),
        *("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "bitwise_not"),
        *("where.self", "cat"),
    )
)
_ELEMENT = re.compile(r"!torch\.vtensor<.*,(ui\d+)>")
# What gives elements as they are, makes them of an attribute, or asks for no element; and what has
# unsigned elements of its own kind: quantized ones, and bits that are taken for another type.
_MOVES = frozenset(
    "torch.aten." + name
    for name in (
        *("alias", "as_strided", "broadcast_to", "clone", "contiguous", "detach", "dim"),
        *("empty.memory_format", "empty_like", "empty_strided", "expand", "flatten.using_ints"),
        *("flip", "full", "full_like", "gather", "index_select", "narrow", "new_empty"),
        *("new_empty_strided", "new_full", "new_ones", "new_zeros", "numel", "ones", "ones_like"),
        *("permute", "repeat", "reshape", "roll", "select.int", "select_scatter", "size"),
        *("size.int", "slice.Tensor", "slice_scatter", "split.Tensor", "squeeze", "squeeze.dim"),
        *("squeeze.dims", "t", "tile", "transpose.int", "unflatten.int", "unsqueeze", "view"),
        *("view.dtype", "zeros", "zeros_like", "_reshape_alias", "_unsafe_view"),
        *("_assert_tensor_metadata", "_make_per_channel_quantized_tensor"),
        *("_make_per_tensor_quantized_tensor", "int_repr", "quantize_per_tensor"),
    )
)
# Which operand is the element type of the result, by PyTorch's number.
_DTYPES = {
    "torch.prims.convert_element_type": 1,
    "torch.aten.to.dtype": 1,
    "torch.aten._to_copy": 1,
    "torch.aten.to.dtype_layout": 1,
    "torch.aten.sum": 1,
    "torch.aten.sum.dim_IntList": 3,
    "torch.aten.prod": 1,
    "torch.aten.prod.dim_int": 3,
    "torch.aten.arange": 1,
    "torch.aten.arange.start": 2,
    "torch.aten.arange.start_step": 3,
}


def widen_unsigned(module: Any) -> None:
    """Changes `module`, of the torch dialect, in place.

    Raises InputError for operations on unsigned integers that no signed type here is wider than.
    """
    with module.context:
        cut: dict[Any, Any] = {}  # unsigned values that were cut off, to what they were
        for operation in ops.walk(module.operation):
            if operation.name.startswith(("torch.aten.", "torch.prims.")):
                _widen(operation, cut)


def _widen(operation: Any, cut: dict[Any, Any]) -> None:
    elements = [_unsigned(value) for value in (*_tensors(operation), *operation.results)]
    unsigned = [one for one in elements if one is not None]
    if not unsigned or operation.name in _MOVES:
        return
    if operation.name == "torch.aten.cat" and len(set(elements)) == 1:
        return
    missing = _missing(operation)
    if missing is not None and operation.name in _RIGHT:
        return
    if missing is not None:
        place = find_place(str(operation.location), "")
        where = f"{place}: error: " if place else ""
        raise InputError(
            f"{where}{operation.name.removeprefix('torch.')} of {missing} has no lowering: "
            "use another integer type"
        )
    from torch_mlir import ir

    with operation.location, ir.InsertionPoint(operation):
        operands = [_wide_operand(value, cut) for value in operation.operands]
        at = _DTYPES.get(operation.name)
        for result in operation.results:
            if at is not None and (element := _unsigned(result)) is not None:
                operands[at] = _dtype(operation.operands[at], element)
        made = ops.create(
            operation.name,
            operands,
            [_wide_type(result) for result in operation.results],
            {name: operation.attributes[name] for name in operation.attributes},
        )
        for old, new in zip(operation.results, made.results, strict=True):
            if _unsigned(old) is not None:
                new = _cut_off(new, old, cut)
            old.replace_all_uses_with(new)
    ops.erase(operation)


def _missing(operation: Any) -> str | None:
    """The element type that an operation could not be given a wider one for, if there is one."""
    for value in (*_tensors(operation), *operation.results):
        element = _unsigned(value)
        if element is not None and element not in _WIDER:
            return element
    found = (_unsigned(result) for result in operation.results)
    return next((one for one in found if one is not None and _WIDER[one][1] is None), None)


def _tensors(operation: Any) -> list[Any]:
    """The operands, and those of lists."""
    found = []
    for value in operation.operands:
        owner = ops.defining(value)
        if owner is not None and owner.name == "torch.prim.ListConstruct":
            found += list(owner.operands)
        else:
            found.append(value)
    return [value for value in found if "vtensor" in str(value.type)]


def _unsigned(value: Any) -> str | None:
    """The element type of a tensor, if it is unsigned."""
    found = _ELEMENT.fullmatch(str(value.type))
    return found[1] if found else None


def _wide_type(value: Any) -> Any:
    from torch_mlir import ir

    element = _unsigned(value)
    if element is None:
        return value.type
    return ir.Type.parse(str(value.type).replace(f",{element}>", f",{_WIDER[element][0]}>"))


def _wide_operand(value: Any, cut: dict[Any, Any]) -> Any:
    owner = ops.defining(value)
    if owner is not None and owner.name == "torch.prim.ListConstruct":
        if all(_unsigned(one) is None for one in owner.operands):
            return value
        return ops.create(
            owner.name, [_wide(one, cut) for one in owner.operands], [value.type]
        ).result
    return _wide(value, cut)


def _wide(value: Any, cut: dict[Any, Any]) -> Any:
    """The same numbers, of the wider type."""
    element = _unsigned(value)
    if element is None:
        return value
    _, _, number, mask = _WIDER[element]
    # However the conversion extends them: the mask leaves their own bits.
    wide = cut[value] if value in cut else _converted(value, number, _wide_type(value))
    return ops.create("torch.aten.bitwise_and.Scalar", [wide, _int(mask)], [wide.type]).result


def _cut_off(wide: Any, old: Any, cut: dict[Any, Any]) -> Any:
    """The unsigned elements that have the lowest bits."""
    element = _unsigned(old)
    assert element is not None
    number = _WIDER[element][1]
    assert number is not None
    made = _converted(wide, number, old.type)
    cut[made] = wide
    return made


def _dtype(given: Any, element: str) -> Any:
    """PyTorch's number of the wider type, in place of the unsigned one's; None stays."""
    return _int(_WIDER[element][2]) if str(given.type) == "!torch.int" else given


def _converted(value: Any, number: int, type_: Any) -> Any:
    from torch_mlir import ir

    none = ops.create("torch.constant.none", (), [ir.Type.parse("!torch.none")]).result
    false = ops.create(
        "torch.constant.bool",
        (),
        [ir.Type.parse("!torch.bool")],
        {"value": ir.BoolAttr.get(False)},
    ).result
    operands = [value, _int(number), false, false, none]
    return ops.create("torch.aten.to.dtype", operands, [type_]).result


def _int(number: int) -> Any:
    from torch_mlir import ir

    value = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
    type_ = ir.Type.parse("!torch.int")
    return ops.create("torch.constant.int", (), [type_], {"value": value}).result
