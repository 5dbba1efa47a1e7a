"""module → its state: the fields that entries take as `aotc.state` arguments, and their initial
values. docs/state.md describes the attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc import ops
from aotc.attributes import INITIAL_ATTRIBUTE, INTO_ATTRIBUTE, STATE_ATTRIBUTE
from aotc.dense import content_of, element_of, is_splat
from aotc.input.blobs import resource_name
from aotc.input.entries import DTYPES, ENTRY_ATTRIBUTE, describe_value, functions_of, label_of
from aotc.input.source import Problem, Source, input_error
from aotc.manifest import Entry, Field, Memory, Value
from aotc.mlir import ir
from aotc.sizes import dense_bytes


class Initial(Struct, frozen=True):
    """A field of the state, with its initial value.

    `value` has its type as a memref. `element` are the bytes of the element, if all elements are
    equal; otherwise None. `attribute` is the initial value; None means zeros."""

    value: Value
    element: bytes | None
    attribute: Any = None

    def content(self) -> bytes | memoryview:
        """The bytes of all elements. `attribute` must not be None."""
        if _is_bits(self.attribute):
            return bytes(ir.DenseIntElementsAttr(self.attribute))
        return content_of(self.attribute, dense_bytes(ir.ShapedType(self.attribute.type)) or 0)


def find_state(source: Source) -> tuple[Initial, ...]:
    """The fields of the entries' state, in the order of the entries' arguments. Raises InputError
    for invalid attributes."""
    problems: list[Problem] = []
    fields: dict[str, Initial] = {}
    with source.module.context:
        for function in functions_of(source.module):
            if function.name != "func.func" or ENTRY_ATTRIBUTE not in function.attributes:
                continue
            problems += [(function.location, text) for text in _wrong_targets(function)]
            seen: set[str] = set()
            for argument, attributes in _arguments(function):
                text = _take(argument, attributes, fields, seen)
                problems += [(argument.location, text)] if text else []
    if problems:
        raise input_error(source, problems)
    return tuple(fields.values())


def targets_of(function: Any) -> dict[int, int]:
    """Result number → argument number, for each result of an entry that is an argument's new value.
    The argument number is -1 if the attribute is not an integer."""
    if ENTRY_ATTRIBUTE not in function.attributes or "res_attrs" not in function.attributes:
        return {}
    dictionaries = [ir.DictAttr(one) for one in ir.ArrayAttr(function.attributes["res_attrs"])]
    return {
        i: _number(dictionary[INTO_ATTRIBUTE])
        for i, dictionary in enumerate(dictionaries)
        if INTO_ATTRIBUTE in dictionary
    }


def _number(attribute: Any) -> int:
    is_number = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) != "i1"
    return int(attribute.value) if is_number else -1


def describe_state(initials: Sequence[Initial], entries: Sequence[Entry]) -> tuple[Field, ...]:
    """The fields for the manifest. A field is in GPU memory if all entries want it there."""
    wanted: dict[str, set[Memory]] = {}
    for value in (value for entry in entries for value in entry.arguments if value.state):
        assert value.state is not None
        wanted.setdefault(value.state, set()).add(value.memory)
    return tuple(
        Field(
            name=initial.value.name,
            type=initial.value.type,
            dtype=initial.value.dtype,
            shape=tuple(size or 0 for size in initial.value.shape or ()),
            memory=(
                Memory.DEVICE
                if wanted.get(initial.value.name) == {Memory.DEVICE}
                else Memory.MANAGED
            ),
            initial=None if initial.element is None else initial.element.hex(),
        )
        for initial in initials
    )


def _arguments(function: Any) -> Iterator[tuple[Any, Any]]:
    if "arg_attrs" in function.attributes:
        arguments = function.regions[0].blocks[0].arguments
        for argument, one in zip(
            arguments, ir.ArrayAttr(function.attributes["arg_attrs"]), strict=True
        ):
            yield argument, ir.DictAttr(one)


def _take(argument: Any, attributes: Any, fields: dict[str, Initial], seen: set[str]) -> str | None:
    """Adds the argument to `fields` if it is state; returns an error message, or None."""
    if STATE_ATTRIBUTE not in attributes:
        if INITIAL_ATTRIBUTE in attributes:
            return f"This argument has an {INITIAL_ATTRIBUTE}, but no {STATE_ATTRIBUTE}."
        return None
    name = label_of(attributes[STATE_ATTRIBUTE])
    if not name:
        return f"The {STATE_ATTRIBUTE} of this argument must be a string, the name of a field."
    if name in seen:
        return f"Two arguments of this function are the field '{name}' of the state."
    seen.add(name)
    wrong: list[str] = []
    value = describe_value(f"field '{name}'", name, argument.type, wrong)
    if wrong:
        return wrong[0]
    is_plain = value.strides is None and value.offset == 0
    if value.shape is None or None in value.shape or not is_plain:
        return (
            f"The field '{name}' of the state has the type {value.type}; it must be a tensor, or a "
            "memref without a layout, of known shape."
        )
    known = fields.get(name)
    if known is not None and known.value.type != value.type:
        return (
            f"The field '{name}' of the state has the type {value.type} here, and "
            f"{known.value.type} in another entry."
        )
    if INITIAL_ATTRIBUTE not in attributes:
        fields.setdefault(name, Initial(value, bytes(value.dtype.bytes)))
        return None
    initial = _initial(value, argument.type, attributes)
    if isinstance(initial, str):
        return initial
    given = None if known is None else known.attribute
    if given is not None and given != initial.attribute:
        return f"The field '{name}' has another {INITIAL_ATTRIBUTE} in another entry."
    fields[name] = initial
    return None


def _initial(value: Value, type_: Any, attributes: Any) -> Initial | str:
    """The field with its initial value, or an error message."""
    problem = (
        f"The {INITIAL_ATTRIBUTE} of the field '{value.name}' must be a dense constant of its "
        f"shape and element type, {value.type}."
    )
    try:
        attribute = attributes[INITIAL_ATTRIBUTE]
    except TypeError:
        return f"{problem} (Complex numbers begin with 0, and can be written by the program.)"
    if not isinstance(attribute, ir.DenseElementsAttr) and resource_name(attribute) is None:
        return problem
    of = ir.ShapedType(attribute.type)
    element, own = str(of.element_type), str(ir.ShapedType(type_).element_type)
    bits = f"ui{8 * value.dtype.bytes}"
    if list(of.shape) != list(ir.ShapedType(type_).shape) or element not in (own, f"s{own}", bits):
        return problem
    if own == f"i{8 * value.dtype.bytes}":
        # Unlike the argument's type, the attribute's type may be signed or unsigned.
        value = replace(value, dtype=DTYPES[element])
    initial = Initial(value, _element(attribute), attribute)
    is_read = initial.element is not None or resource_name(attribute) is not None
    if not is_read and not _is_bits(attribute) and not _has_buffer(attribute):
        return f"{problem} Of {element}, give the bits: {bits}."
    if resource_name(attribute) is not None and element == "i1":
        return f"{problem} Of {element} in a resource, give bytes: {bits}."
    return initial


def _element(attribute: Any) -> bytes | None:
    """The bytes of the element of a splat; None if the elements differ, or cannot be read."""
    if is_splat(attribute) and _is_bits(attribute):
        return bytes([ir.DenseIntElementsAttr(attribute)[0]])
    return element_of(attribute) if is_splat(attribute) else None


def _has_buffer(attribute: Any) -> bool:
    """Whether the attribute is not a splat, and the bindings give access to its elements."""
    try:
        memoryview(attribute)
    except (BufferError, TypeError):
        return False
    return not is_splat(attribute)


def _is_bits(attribute: Any) -> bool:
    return str(ir.ShapedType(attribute.type).element_type) == "i1"


def _wrong_targets(function: Any) -> Iterator[str]:
    """Error messages for the results that are written to arguments."""
    type_ = ops.function_type(function)
    targets = targets_of(function)
    for result, target in targets.items():
        if not 0 <= target < len(type_.inputs):
            yield f"The {INTO_ATTRIBUTE} of result {result} must be the number of an argument."
        elif list(targets.values()).count(target) > 1:
            yield f"Several results have the {INTO_ATTRIBUTE} {target}."
        elif type_.inputs[target] != type_.results[result] or not isinstance(
            type_.results[result], ir.RankedTensorType
        ):
            yield (
                f"Result {result} has the {INTO_ATTRIBUTE} {target}: both must be tensors of one "
                f"type, and are {type_.results[result]} and {type_.inputs[target]}."
            )
