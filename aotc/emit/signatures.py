"""The parameters of an entry's C functions.

The state comes first, if the entry has one, in place of the arguments that are its fields. A memref
is a pointer, followed by a size for each `?` of its type, in order. Results are pointers to where
they are stored, and follow the arguments. Names end in `_`, because headers are included where any
name may be a macro, especially `N` and `I`.
"""

from __future__ import annotations

from aotc.emit.c_text import c_identifier
from aotc.emit.c_types import element_type, memref_type, result_type, scalar_type
from aotc.manifest import RESULT_SHAPES, WORKSPACE, Entry, Value

# Names of the stream, the pointer for a size, and the state. No argument's name ends without `_`.
STREAM = "aotc_stream"
BYTES = "aotc_out_bytes"
STATE = "aotc_given_state"


def parameter_name(value: Value) -> str:
    return f"{c_identifier(value.name)}_"


def dynamic_dimensions(value: Value) -> list[int]:
    return [i for i, size in enumerate(value.shape or ()) if size is None]


def size_name(value: Value, dimension: int) -> str:
    return f"size{dimension}_of_{c_identifier(value.name)}_"


def shape_name(value: Value) -> str:
    return f"shape_of_{c_identifier(value.name)}_"


def signature(entry: Entry) -> str:
    """The entry's signature in the module: `scale(x: memref<?xf32>, a: f32) -> f32`."""
    given = [f"{value.name}: {value.type}" for value in entry.given]
    types = ", ".join(["state", *given] if entry.state is not None else given)
    text = f"{entry.name}({types})"
    if entry.results:
        text += " -> " + ", ".join(value.type for value in entry.results)
    return text


def prototypes(entry: Entry) -> dict[str, str]:
    """Kind → C declaration, for the C functions of an entry except MLIR's own."""
    plain = plain_parameters(entry)
    parameters = {
        "call": plain,
        "async": [*plain, f"void *{STREAM}"],
        "memref": memref_parameters(entry),
        RESULT_SHAPES: shape_parameters(entry),
        WORKSPACE: [*_size_parameters(entry), f"uint64_t *{BYTES}"],
    }
    return {
        kind: f"int32_t {entry.functions[kind]}({parameter_list(of_kind)});"
        for kind, of_kind in parameters.items()
        if kind in entry.functions
    }


def plain_parameters(entry: Entry) -> list[str]:
    """The parameters of `call`, and those of `async` before its stream."""
    parameters = _state(entry)
    for value in entry.given:
        name = parameter_name(value)
        if value.is_scalar:
            parameters.append(f"{scalar_type(value.dtype)} {name}")
            continue
        const = "" if value.is_written else "const "
        parameters.append(f"{const}{element_type(value.dtype)} *{name}")
        parameters += [f"int64_t {size_name(value, i)}" for i in dynamic_dimensions(value)]
    return [*parameters, *_results(entry)]


def memref_parameters(entry: Entry) -> list[str]:
    """The parameters of `memref`."""
    arguments = [
        f"{scalar_type(value.dtype)} {parameter_name(value)}"
        if value.is_scalar
        else f"const {memref_type(value)} *{parameter_name(value)}"
        for value in entry.given
    ]
    return [*_state(entry), *arguments, *_results(entry)]


def shape_parameters(entry: Entry) -> list[str]:
    """The parameters of `result_shapes`: the dynamic sizes of memrefs, the scalars, and a pointer
    for the sizes of each memref result. The state has static sizes, and is left out."""
    return _size_parameters(entry) + [
        f"int64_t {shape_name(value)}[{len(value.shape) or 1}]"
        for value in entry.results
        if value.shape is not None
    ]


def _size_parameters(entry: Entry) -> list[str]:
    parameters = []
    for value in entry.given:
        if value.is_scalar:
            parameters.append(f"{scalar_type(value.dtype)} {parameter_name(value)}")
        parameters += [f"int64_t {size_name(value, i)}" for i in dynamic_dimensions(value)]
    return parameters


def _state(entry: Entry) -> list[str]:
    return [] if entry.state is None else [f"{entry.state} *{STATE}"]


def _results(entry: Entry) -> list[str]:
    return [f"{result_type(value)} *{parameter_name(value)}" for value in entry.results]


def parameter_list(parameters: list[str]) -> str:
    return ", ".join(parameters) or "void"
