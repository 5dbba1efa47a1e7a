"""Replaceable weights: named constants that a program may replace at run time.

`hold_weights` makes them variables, whose values no pass looks at. So all code reads the variable,
and no constant is folded from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import WEIGHT_ATTRIBUTE
from aotc.dense import content_of, element_of, is_splat
from aotc.errors import InputError, near_names
from aotc.input.blobs import name_of_weight, resource_name
from aotc.input.entries import describe_value
from aotc.input.source import Source
from aotc.manifest import Dtype, Value
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.sizes import dense_bytes

# The number of names that an error shows.
_MOST_SHOWN = 8


class HeldWeight(Struct, frozen=True):
    """A weight and its variable. `symbol` is the variable; `value` has the weight's name, its type
    as a memref, its element type and its sizes."""

    symbol: str
    value: Value


def hold_weights(source: Source, patterns: Sequence[str]) -> tuple[HeldWeight, ...]:
    """Makes variables of the constants whose names match one of the patterns, in the order of the
    module. Raises InputError for a pattern without a match."""
    module = source.module
    with module.context, ir.Location.unknown():
        by_name: dict[str, list[Any]] = {}
        for name, operation in _named_constants(module):
            by_name.setdefault(name, []).append(operation)
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in by_name):
                raise _no_weight(source, pattern, list(by_name))
        names = [name for name in by_name if any(fnmatchcase(name, one) for one in patterns)]
        symbols = {
            symbol_of(op.operation)
            for op in ops.body_of_module(module).operations
            if "sym_name" in op.operation.attributes
        }
        return tuple(_hold(module, name, by_name[name], symbols) for name in names)


def _named_constants(module: Any) -> Iterator[tuple[str, Any]]:
    """The named constants in code, and the memref.globals with a constant value."""
    for operation in ops.walk(module.operation):
        if operation.name == "memref.global":
            type_ = ir.TypeAttr(operation.attributes["type"]).value
            if "constant" in operation.attributes and _can_be_held(operation, type_):
                yield symbol_of(operation), operation
        elif operation.name == "arith.constant":
            type_ = operation.results[0].type
            name = _name_of(operation) if isinstance(type_, ir.RankedTensorType) else None
            if name is not None and _can_be_held(operation, type_):
                yield name, operation


def _name_of(constant: Any) -> str | None:
    try:
        resource = resource_name(constant.attributes["value"])
    except TypeError:
        return None  # complex numbers: the bindings have no class for their attribute
    return None if resource is None else name_of_weight(resource)


def _can_be_held(constant: Any, type_: Any) -> bool:
    """Whether the constant's elements are known, and of a type that C has. (i1 is excluded, as it
    is a byte in memory, but a bit in attributes.)"""
    problems: list[str] = []
    value = describe_value("weight", "", type_, problems)
    if problems or value.strides is not None or value.offset != 0 or value.dtype is Dtype.BOOL:
        return False
    return _value_of(constant) is not None


def _value_of(constant: Any) -> Any | None:
    """The elements as a `dense_resource`, which no pass folds."""
    key = "initial_value" if constant.name == "memref.global" else "value"
    if key not in constant.attributes:
        return None
    try:
        value = constant.attributes[key]
    except TypeError:
        return None  # complex numbers: the bindings have no class for their attribute
    if resource_name(value) is not None:
        return value
    size = None if not isinstance(value, ir.DenseElementsAttr) else dense_bytes(value.type)
    if size is None or str(ir.ShapedType(value.type).element_type) == "index":
        return None
    content: bytes | memoryview | None
    if is_splat(value):
        element = element_of(value)
        content = None if element is None else element * (size // len(element))
    else:
        content = content_of(value, size)
    if content is None:
        return None
    return ir.DenseResourceElementsAttr.get_from_buffer(content, "weight", value.type)


def _hold(module: Any, name: str, constants: Sequence[Any], symbols: set[str]) -> HeldWeight:
    first = constants[0]
    if first.name == "memref.global":
        first.attributes[WEIGHT_ATTRIBUTE] = ir.StringAttr.get(name)
        first.attributes["sym_visibility"] = ir.StringAttr.get("private")
        first.attributes["initial_value"] = _value_of(first)
        type_ = ir.TypeAttr(first.attributes["type"]).value
        return HeldWeight(symbol_of(first), describe_value("weight", name, type_, []))
    symbol = stem = "weight_" + re.sub(r"\W", "_", name, flags=re.ASCII)
    number = 0
    while symbol in symbols:
        number += 1
        symbol = f"{stem}_{number}"
    symbols.add(symbol)
    tensor = first.results[0].type
    memref = ir.MemRefType.get(tensor.shape, tensor.element_type)
    with first.location, ir.InsertionPoint.at_block_begin(ops.body_of_module(module)):
        ops.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(memref),
                "initial_value": first.attributes["value"],
                "constant": ir.UnitAttr.get(),
                WEIGHT_ATTRIBUTE: ir.StringAttr.get(name),
            },
        )
    for constant in constants:
        with constant.location, ir.InsertionPoint(constant):
            get = ops.create(
                "memref.get_global",
                results=[memref],
                attributes={"name": ir.FlatSymbolRefAttr.get(symbol)},
            )
            read = ops.create(
                "bufferization.to_tensor",
                results=[tensor],
                operands=[get.result],
                attributes={"restrict": ir.UnitAttr.get()},
            )
        ops.replace(constant, [read.result])
    return HeldWeight(symbol, describe_value("weight", name, memref, []))


def _no_weight(source: Source, pattern: str, names: Sequence[str]) -> InputError:
    if not names:
        return InputError(
            f"--replaceable {pattern}: no constant of {source.name} has a name: parameters of "
            "PyTorch and initializers of ONNX have, memref.globals, and dense_resources."
        )
    shown = near_names(pattern, names, most=_MOST_SHOWN, cutoff=0.5) or names[:_MOST_SHOWN]
    more = "" if len(names) == len(shown) else f" and {len(names) - len(shown)} more"
    return InputError(
        f"--replaceable {pattern}: no weight of {source.name} is called so. There are: "
        f"{', '.join(shown)}{more}."
    )
