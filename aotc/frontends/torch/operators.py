"""Lowerings of custom operators, which are defined by `torch.library`.

A lowering is registered by name with `register`, or as an entry point of a package in the group
`aotc.torch_operators`. The entry point is imported before a `.pt2` file is read, because it also
defines the operator.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.errors import InputError, ToolError
from aotc.frontends.helpers import declare_capability, inline_helpers
from aotc.frontends.torch_mlir.dialect import builtin_type
from aotc.input.source import find_place
from aotc.module_names import CAPABILITY

GROUP = "aotc.torch_operators"
_NAME = re.compile(r"(\w+)::(\w+)(?:\.(\w+))?")
# Namespaces of operators that torch-mlir or aotc lowers.
_OWN = ("aten", "prims", "prim", "quantized_decomposed", "higher_order")
_registered: dict[str, OperatorLowering] = {}
_libraries: list[Any] = []


class OperatorCall(Struct, frozen=True):
    """A call of an operator in a program.

    `operands` are the MLIR types of its tensor arguments, in order (`tensor<?x4xf32>`), and
    `results` those of its results. `constants` are its other arguments, in order: numbers,
    booleans, strings, None, and lists of these.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    constants: tuple[Any, ...]


class OperatorLowering(Struct, frozen=True):
    """The lowering of an operator, given as exactly one of `to_torch` and `to_mlir`.

    `name` is "library::operator", or with an overload "library::operator.overload". `to_torch` is a
    function with the operator's parameters that computes it by other operators; it is traced on
    fake tensors. `to_mlir` takes an `OperatorCall` and returns the text of a `func.func` on
    tensors, from the call's operands to its results. Unsigned integers are signless there.
    """

    name: str
    to_torch: Callable[..., Any] | None = None
    to_mlir: Callable[[OperatorCall], str] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError if the name is not valid, or if not exactly one lowering is given."""
        found = _NAME.fullmatch(self.name)
        if found is None or found[1] in _OWN:
            raise ValueError(f"expected 'library::operator' of a library of yours: {self.name!r}")
        if (self.to_torch is None) == (self.to_mlir is None):
            raise ValueError(f"{self.name}: give one of to_torch and to_mlir")

    @property
    def symbol(self) -> str:
        """The name of the operator in torch-mlir's `torch.operator`."""
        library, operator, overload = self._parts()
        return ".".join(
            ("torch", library, operator, *([] if overload == "default" else [overload]))
        )

    def operator(self) -> Any:
        """PyTorch's operator, or None if it is not defined."""
        import torch

        library, operator, overload = self._parts()
        try:
            return getattr(getattr(getattr(torch.ops, library), operator), overload)
        except (AttributeError, RuntimeError):
            return None

    def _parts(self) -> tuple[str, str, str]:
        library, operator, overload = _NAME.fullmatch(self.name).groups()  # type: ignore[union-attr]
        return str(library), str(operator), str(overload or "default")


def define_operators(fakes: dict[str, Callable[..., Any]]) -> Any:
    """Defines operators of aotc's own for PyTorch's graphs, and returns their namespace. `fakes`
    maps each schema to its implementation on fake tensors. Each operator may be defined only
    once."""
    import torch

    module: Any = torch.library
    library = module.Library("aotc", "FRAGMENT")
    # The operators exist as long as the library object.
    _libraries.append(library)
    for schema, fake in fakes.items():
        library.define(schema)
        module.register_fake(f"aotc::{schema.partition('(')[0]}", fake, lib=library)
    return torch.ops.aotc


def register(lowering: OperatorLowering) -> OperatorLowering:
    """Registers a lowering for programs that this process builds. It replaces another lowering of
    the same name."""
    _registered[lowering.symbol] = lowering
    return lowering


def lowerings() -> dict[str, OperatorLowering]:
    """All registered lowerings, by their symbols. Raises ToolError for an entry point that cannot
    be loaded, or is not an OperatorLowering."""
    found: dict[str, OperatorLowering] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            lowering = point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ToolError(
                f"The lowering '{point.name}' of '{GROUP}' cannot be used: {reason}."
            ) from error
        if not isinstance(lowering, OperatorLowering):
            raise ToolError(f"{point.value} of '{GROUP}' is no aotc OperatorLowering.")
        if lowering.symbol in found:
            raise ToolError(f"Several packages lower the operator {lowering.name}.")
        found[lowering.symbol] = lowering
    return {**found, **_registered}


def has_packages() -> bool:
    """Whether installed packages provide lowerings. The build cache does not see changes of
    these."""
    return bool(importlib.metadata.entry_points(group=GROUP))


def decompositions_of(known: dict[str, OperatorLowering]) -> dict[Any, Any]:
    """The decompositions for `run_decompositions`, by PyTorch's operator."""
    return {
        operator: one.to_torch
        for one in known.values()
        if one.to_torch is not None and (operator := one.operator()) is not None
    }


class Definition(Struct, frozen=True):
    """The definition of a function that replaces calls of an operator. Its text later replaces the
    function's declaration."""

    symbol: str
    name: str
    text: str
    types: tuple[tuple[str, ...], tuple[str, ...]]


def call_functions(module: Any, known: dict[str, OperatorLowering]) -> list[Definition]:
    """Replaces operators that have a lowering to MLIR by calls of functions that are only declared,
    and returns the definitions. Raises InputError for operators of other libraries that have no
    lowering."""
    from torch_mlir import ir

    made: list[Definition] = []
    for operation in ops.find(module.operation, "torch.operator"):
        symbol = ir.StringAttr(operation.attributes["name"]).value
        lowering = known.get(symbol)
        if lowering is None or lowering.to_mlir is None:
            _refuse_unknown(operation, symbol)
            continue
        tensors = [value for value in operation.operands if "vtensor" in str(value.type)]
        others = [value for value in operation.operands if "vtensor" not in str(value.type)]
        call = OperatorCall(
            operands=tuple(builtin_type(value.type) for value in tensors),
            results=tuple(builtin_type(value.type) for value in operation.results),
            constants=tuple(_constant(lowering, value) for value in others),
        )
        text = _text(lowering, call)
        name = f"{symbol.replace('.', '_')}_{len(made)}"
        made.append(Definition(lowering.name, name, text, (call.operands, call.results)))
        _call(module, operation, name, tensors)
    return made


def define_functions(module: Any, definitions: Sequence[Definition]) -> None:
    """Replaces declarations by their definitions.

    The last function of a text is the definition; it may call each of the functions before it once.
    Raises InputError if a text is not a function of the expected types.
    """
    from torch_mlir import ir

    for definition in definitions:
        start = f"The lowering of {definition.symbol} gives"
        try:
            parsed = ir.Module.parse(definition.text, module.context)
        except ir.MLIRError as error:
            raise InputError(f"{start} what MLIR cannot read: {error}") from None
        found = [one.operation for one in parsed.body.operations]
        defined = [one for one in found if ops.symbol_of(one) != CAPABILITY]
        if not defined or any(
            one.name != "func.func" or not one.regions[0].blocks for one in defined
        ):
            raise InputError(f"{start} another text than that of one func.func.")
        function = inline_helpers(parsed, kept=(CAPABILITY,))
        type_ = ops.function_type(function)
        types = tuple(tuple(map(str, side)) for side in (type_.inputs, type_.results))
        if types != definition.types:
            wanted, given = (" -> ".join(map(", ".join, one)) for one in (definition.types, types))
            raise InputError(f"{start} a function of {given}, and it must be of {wanted}.")
        for one in module.body.operations:
            if ir.StringAttr(one.operation.attributes["sym_name"]).value == definition.name:
                with module.context, ir.InsertionPoint(one.operation):
                    copy = function.clone()
                for inner in ops.walk(copy):
                    # Locations in the text mean nothing in the program.
                    inner.location = one.operation.location
                copy.attributes["sym_name"] = one.operation.attributes["sym_name"]
                copy.attributes["sym_visibility"] = one.operation.attributes["sym_visibility"]
                ops.erase(one.operation)
                break
    with module.context:
        declare_capability(ir, module)


def _refuse_unknown(operation: Any, symbol: str) -> None:
    _, library, *rest = symbol.split(".")
    if library in _OWN or not rest:
        return
    place = find_place(str(operation.location), "")
    raise InputError(
        f"{f'{place}: error: ' if place else ''}"
        f"The operator {library}::{'.'.join(rest)} has no lowering.",
        hint="aotc.torch.register takes one, from a package too: docs/torch_operators.md.",
    )


def _text(lowering: OperatorLowering, call: OperatorCall) -> str:
    assert lowering.to_mlir is not None
    try:
        text = lowering.to_mlir(call)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"The lowering of {lowering.name} failed: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(text, str):
        raise InputError(f"The lowering of {lowering.name} gives no text: {type(text).__name__}.")
    return text


def _call(module: Any, operation: Any, name: str, tensors: Sequence[Any]) -> None:
    results = [value.type for value in operation.results]
    made = call_declared(module, operation, name, tensors, results)
    ops.replace(operation, made)


def call_declared(
    module: Any, before: Any, name: str, operands: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """Declares a function, inserts a call of it, and returns the results of the call."""
    from torch_mlir import ir

    with module.context, before.location:
        with ir.InsertionPoint.at_block_begin(module.body):
            ops.create_function(name, [value.type for value in operands], results)
        with ir.InsertionPoint(before):
            return list(ops.call(name, operands, results).results)


def _constant(lowering: OperatorLowering, value: Any) -> Any:
    """The Python value of an argument that is not a tensor."""
    from torch_mlir import ir

    maker: Any = ops.defining(value)
    kind = "" if maker is None else str(maker.name)
    if kind == "torch.prim.ListConstruct":
        return [_constant(lowering, item) for item in maker.operands]
    if kind == "torch.constant.none":
        return None
    attribute = maker.attributes["value"] if kind.startswith("torch.constant.") else None
    if kind == "torch.constant.bool":
        return ir.BoolAttr(attribute).value
    if kind == "torch.constant.int":
        return ir.IntegerAttr(attribute).value
    if kind == "torch.constant.float":
        return ir.FloatAttr(attribute).value
    if kind == "torch.constant.str":
        return ir.StringAttr(attribute).value
    raise InputError(
        f"An argument of {lowering.name} is neither a tensor nor a constant: {value.type}."
    )
