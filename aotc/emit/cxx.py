"""Manifest → the C++ part of the header: the entries as functions in a namespace.

The functions are inline wrappers of the C functions, and take aotc::buffer.
templates/library/support.hpp has what they share.
"""

from __future__ import annotations

from aotc.emit.c_text import c_identifier, c_name, c_string
from aotc.emit.c_types import element_type, memref_type, result_type, scalar_type
from aotc.emit.signatures import (
    STATE,
    STREAM,
    dynamic_dimensions,
    parameter_name,
    shape_name,
)
from aotc.manifest import RESULT_SHAPES, Entry, Manifest, Value
from aotc.toolchain.data import data_dir

# Names in namespace aotc that all libraries share, so that a library's namespace cannot have them.
_SHARED = ("buffer", "status", "v1")


_OF_WEIGHTS_FILE = """
inline ::aotc::v1::status set_weights_budget(uint64_t bytes) noexcept {
  return made(::{set_weights_budget}(bytes));
}
"""


_OF_WEIGHTS = """
template <std::size_t Rank>
::aotc::v1::status set_weight(const char *name, const char *dtype,
                              const std::array<int64_t, Rank> &shape, const void *data) noexcept {
  return made(::{set_weight}(name, dtype, static_cast<int32_t>(Rank), shape.data(), data));
}

inline ::aotc::v1::status restore_weight(const char *name) noexcept {
  return made(::{restore_weight}(name));
}
"""


def generate_cxx(manifest: Manifest) -> str:
    support = (data_dir("templates") / "library" / "support.hpp").read_text()
    functions = manifest.functions
    own = f"""\
inline ::aotc::v1::status made(int32_t code) noexcept {{
  return ::aotc::v1::status(code, code == 0 ? "" : ::{functions["last_error"]}());
}}

inline ::aotc::v1::status set_device(int32_t ordinal) noexcept {{
  return made(::{functions["set_device"]}(ordinal));
}}

inline ::aotc::v1::status free(void *allocated) noexcept {{
  return made(::{functions["free"]}(allocated));
}}

inline ::aotc::v1::status unload() noexcept {{
  return made(::{functions["unload"]}());
}}
"""
    if manifest.weights is not None:
        own += _OF_WEIGHTS_FILE.replace("{set_weights_budget}", functions["set_weights_budget"])
    if manifest.replaceable:
        own += _OF_WEIGHTS.replace("{set_weight}", functions["set_weight"]).replace(
            "{restore_weight}", functions["restore_weight"]
        )
    entries = "\n".join(
        text
        for entry in manifest.entries
        for text in (
            _call(entry),
            _enqueue(entry) if "async" in entry.functions else "",
            _result_shapes(entry) if RESULT_SHAPES in entry.functions else "",
        )
        if text
    )
    name = c_name(manifest.library)
    if name in _SHARED:
        name += "_"
    return (
        f"{support}\n#if defined(__cplusplus) && __cplusplus >= 201703L\n"
        f"namespace aotc {{\nnamespace {name} {{\n\n{own}\n{entries}\n"
        f"}} // namespace {name}\n}} // namespace aotc\n#endif\n"
    )


def _parameters(entry: Entry) -> list[str]:
    results = [f"{result_type(value)} &{parameter_name(value)}" for value in entry.results]
    state = [] if entry.state is None else [f"::{entry.state} *{STATE}"]
    return [*state, *_given(entry), *results]


def _given(entry: Entry) -> list[str]:
    parameters = []
    for value in entry.given:
        if value.is_scalar:
            parameters.append(f"{scalar_type(value.dtype)} {parameter_name(value)}")
            continue
        assert value.shape is not None
        const = "" if value.is_written else "const "
        element = f"{const}{element_type(value.dtype)}"
        parameters.append(
            f"::aotc::v1::buffer<{element}, {len(value.shape)}> {parameter_name(value)}"
        )
    return parameters


def _state(entry: Entry) -> list[str]:
    return [] if entry.state is None else [STATE]


def _call(entry: Entry) -> str:
    arguments = _state(entry) + [
        parameter_name(value) if value.is_scalar else f"&m{i}"
        for i, value in enumerate(entry.given)
    ]
    arguments += [f"&{parameter_name(value)}" for value in entry.results]
    return (
        f"inline ::aotc::v1::status {c_name(entry.name)}"
        f"({', '.join(_parameters(entry))}) noexcept {{\n"
        f"{_descriptors(entry)}"
        f"  return made(::{entry.functions['memref']}({', '.join(arguments)}));\n}}\n"
    )


def _enqueue(entry: Entry) -> str:
    """The asynchronous function. It wraps the plain C one, so that elements must be in row-major
    order."""
    arguments = _state(entry)
    checks = ""
    for i, value in enumerate(entry.given):
        name = parameter_name(value)
        arguments.append(name if value.is_scalar else f"m{i}.aligned")
        arguments += [f"m{i}.sizes[{d}]" for d in dynamic_dimensions(value)]
        if not value.is_scalar:
            message = (
                f"{entry.name}: argument '{value.name}' ({value.type}): to be enqueued, it must "
                "have the type's sizes, and lie as a pointer alone would say"
            )
            layout = ", ".join(_layout(value, i))
            checks += _refuse(f"!{name}.is_plain(m{i}, {layout})", message)
    arguments += [f"&{parameter_name(value)}" for value in entry.results]
    # No argument has this name: arguments' names end in `_`.
    arguments.append(STREAM)
    parameters = ", ".join([*_parameters(entry), f"void *{STREAM}"])
    return (
        f"inline ::aotc::v1::status {c_identifier(entry.name)}_async({parameters}) noexcept {{\n"
        f"{_descriptors(entry)}{checks}"
        f"  return made(::{entry.functions['async']}({', '.join(arguments)}));\n}}\n"
    )


def _result_shapes(entry: Entry) -> str:
    """The function for the shapes of results. It reads only the sizes of buffers: their pointers
    may be null."""
    returned = [value for value in entry.results if value.shape is not None]
    parameters = _given(entry) + [
        f"std::array<int64_t, {len(value.shape or ())}> &{shape_name(value)}" for value in returned
    ]
    arguments = []
    for i, value in enumerate(entry.given):
        if value.is_scalar:
            arguments.append(parameter_name(value))
        arguments += [f"m{i}.sizes[{dimension}]" for dimension in dynamic_dimensions(value)]
    arguments += [f"{shape_name(value)}.data()" for value in returned]
    return (
        f"inline ::aotc::v1::status {c_identifier(entry.name)}_result_shapes"
        f"({', '.join(parameters)}) noexcept {{\n"
        f"{_descriptors(entry)}"
        f"  return made(::{entry.functions[RESULT_SHAPES]}({', '.join(arguments)}));\n}}\n"
    )


def _descriptors(entry: Entry) -> str:
    """The memref descriptors of the buffers, as variables m0, m1, ..."""
    text = ""
    for i, value in enumerate(entry.given):
        if value.is_scalar:
            continue
        message = (
            f"{entry.name}: argument '{value.name}' ({value.type}): its sizes must be said, "
            "and it must have as many elements as they say"
        )
        text += _numbers(f"shape{i}", value.shape) + _numbers(f"strides{i}", value.strides)
        text += f"  {memref_type(value)} m{i};\n"
        layout = ", ".join([*_layout(value, i), str(value.offset or 0)])
        text += _refuse(f"!{parameter_name(value)}.describe(m{i}, {layout})", message)
    return text


def _layout(value: Value, i: int) -> tuple[str, str]:
    """The names of the arrays with the type's sizes and strides, or nullptr."""
    return (
        f"shape{i}" if value.shape else "nullptr",
        f"strides{i}" if value.strides else "nullptr",
    )


def _refuse(condition: str, message: str) -> str:
    return f"  if ({condition}) {{\n    return ::aotc::v1::status(1, {c_string(message)});\n  }}\n"


def _numbers(name: str, numbers: tuple[int | None, ...] | None) -> str:
    if not numbers:
        return ""
    text = ", ".join("INT64_MIN" if number is None else str(number) for number in numbers)
    return f"  static constexpr int64_t {name}[] = {{{text}}};\n"
