"""Manifest → tables in C: of the entries (aotc_entry.h), and of the harness (harness.h)."""

from __future__ import annotations

from collections.abc import Sequence

from aotc.emit.c_text import c_bool, c_identifier, c_string, in_comment
from aotc.manifest import (
    RESULT_SHAPES,
    Dtype,
    Entry,
    Field,
    Manifest,
    Memory,
    NamedWeight,
    Value,
    built_for_text,
)

_DTYPES = {dtype: f"AOTC_DTYPE_{dtype.name}" for dtype in Dtype}
_MEMORIES = {
    Memory.HOST: "AOTC_MEMORY_HOST",
    Memory.DEVICE: "AOTC_MEMORY_DEVICE",
    Memory.MANAGED: "AOTC_MEMORY_MANAGED",
    # The function that frees it asks the driver which kind it is.
    Memory.CALLER: "AOTC_MEMORY_MANAGED",
}


def packed_symbol(entry: Entry) -> str:
    """The symbol of the function through which the harness calls an entry."""
    return f"aotc_call_{c_identifier(entry.name)}"


def size_symbol(entry: Entry) -> str:
    """The symbol of the function that computes the sizes of an entry's results."""
    return f"aotc_size_{c_identifier(entry.name)}"


def workspace_symbol(entry: Entry) -> str:
    """The symbol of the function that computes the bytes of an entry's temporaries, if they depend
    on sizes."""
    return f"aotc_workspace_{c_identifier(entry.name)}"


def entry_tables(manifest: Manifest, *, in_c: bool = False) -> str:
    """The table `entries`: an aotc_entry for each entry, and the data that it refers to.

    The entries have their names in the module, or (`in_c`) those of the library's functions.
    """
    parts = [f"void {packed_symbol(entry)}(void **values);\n" for entry in manifest.entries]
    parts += [
        f"void {symbol}(const void *const *given, int64_t *out_sizes);\n"
        for entry in manifest.entries
        for symbol in (_size_functions(entry).values() if in_c else ())
    ]
    for i, entry in enumerate(manifest.entries):
        parts.append(_values(f"arguments_{i}", entry.arguments))
        parts.append(_values(f"results_{i}", entry.results))
    rows = [
        f"    {{.name = {c_string(entry.functions['call'] if in_c else entry.name)},\n"
        f"     .argument_count = {len(entry.arguments)},\n"
        f"     .result_count = {len(entry.results)},\n"
        f"     .arguments = {_reference(f'arguments_{i}', entry.arguments)},\n"
        f"     .results = {_reference(f'results_{i}', entry.results)},\n"
        f"     .call = {packed_symbol(entry)},\n"
        f"     .touches_memory_on_host = {c_bool(entry.touches_memory_on_host)},\n"
        f"     .why_not_async = {_optional(entry.why_not_async)}"
        + f",\n     .workspace_bytes = {entry.workspace_bytes or 0}"
        + "".join(
            f",\n     .{member} = {symbol}"
            for member, symbol in (_size_functions(entry).items() if in_c else ())
        )
        + "},\n"
        for i, entry in enumerate(manifest.entries)
    ]
    parts.append(_array("aotc_entry", "entries", rows))
    parts.append(_state_type(manifest.state))
    if in_c:
        parts.append(_weight_table(manifest.replaceable))
    return "\n".join(part for part in parts if part)


def _size_functions(entry: Entry) -> dict[str, str]:
    """Member of aotc_entry → its function."""
    return {
        **({"size_results": size_symbol(entry)} if RESULT_SHAPES in entry.functions else {}),
        **({"size_workspace": workspace_symbol(entry)} if entry.workspace_bytes is None else {}),
    }


def initial_symbol(field: int) -> str:
    """The symbol of the initial value of a field whose elements differ."""
    return f"aotc_initial_{field}"


def weight_symbol(number: int) -> str:
    """The symbol of a replaceable weight."""
    return f"aotc_named_weight_{number}"


def _weight_table(weights: Sequence[NamedWeight]) -> str:
    """`weight_table`, and the data that it refers to; an empty text if no weight is replaceable."""
    if not weights:
        return ""
    values = [Value(one.name, one.type, one.dtype, one.shape) for one in weights]
    parts = [f"extern aotc_weight {weight_symbol(i)};\n" for i in range(len(values))]
    parts += [_sizes(f"weight_{i}_shape", value.shape) for i, value in enumerate(values)]
    rows = [
        f"    {{.value =\n{_value(f'weight_{i}', value)}     .weight = &{weight_symbol(i)}}},\n"
        for i, value in enumerate(values)
    ]
    parts.append(_array("aotc_named_weight", "named_weights", rows))
    parts.append(
        f"static const aotc_weight_table weight_table = {{{len(values)}, named_weights}};\n"
    )
    return "".join(parts)


def _state_type(fields: Sequence[Field]) -> str:
    """`state_type`, and the data that it refers to; an empty text if there is no state."""
    if not fields:
        return ""
    values = [
        Value(field.name, field.type, field.dtype, field.shape, memory=field.memory)
        for field in fields
    ]
    parts, rows = [], []
    for i, (field, value) in enumerate(zip(fields, values, strict=True)):
        symbol, size = initial_symbol(i), field.bytes
        if field.initial is None:
            parts.append(f"extern const unsigned char {symbol}[];\n")
        else:
            element = bytes.fromhex(field.initial)
            size, symbol = len(element), f"element_{i}"
            parts.append(_array("unsigned char", symbol, [f"    {', '.join(map(str, element))}\n"]))
        parts.append(_sizes(f"field_{i}_shape", field.shape))
        rows.append(
            f"    {{.value =\n{_value(f'field_{i}', value)}"
            f"     .initial = {symbol},\n"
            f"     .initial_bytes = {size}}},\n"
        )
    parts.append(_array("aotc_state_field", "state_fields", rows))
    parts.append(f"static const aotc_state_type state_type = {{{len(fields)}, state_fields}};\n")
    return "".join(parts)


def generate_table(manifest: Manifest) -> tuple[str, str]:
    """(file name, C text) of the harness's table, which is data only."""
    name = c_identifier(manifest.name)
    parts = [
        f"// Generated by aotc {manifest.aotc} from {in_comment(manifest.name)}. Do not edit.\n"
        '#include <stddef.h>\n\n#include "harness.h"\n',
        entry_tables(manifest),
    ]
    kernels = [
        f"    {{.name = {c_string(kernel.name)},\n"
        f"     .built_for = {c_string(built_for_text(kernel.built_for))},\n"
        f"     .has_cpu_form = {c_bool(kernel.why_no_cpu_form is None)},\n"
        f"     .why_no_cpu_form = {_optional(kernel.why_no_cpu_form)}}},\n"
        for kernel in manifest.kernels
    ]
    parts.append(_array("harness_kernel", "kernels", kernels))
    parts.append(
        "const harness_program aotc_harness_program = {\n"
        f"    .name = {c_string(manifest.name)},\n"
        f"    .version = {c_string(manifest.aotc)},\n"
        f"    .entry_count = {len(manifest.entries)},\n"
        f"    .entries = {_reference('entries', manifest.entries)},\n"
        f"    .kernel_count = {len(kernels)},\n"
        f"    .kernels = {_reference('kernels', kernels)},\n"
        f"    .state = {'&state_type' if manifest.state else 'NULL'},\n"
        "};\n"
    )
    return f"{name}_table.c", "\n".join(part for part in parts if part)


def _optional(text: str | None) -> str:
    return "NULL" if text is None else c_string(text)


def _reference(name: str, items: Sequence[object]) -> str:
    # C has no empty arrays.
    return name if items else "NULL"


def _array(type_: str, name: str, rows: Sequence[str]) -> str:
    return f"static const {type_} {name}[] = {{\n{''.join(rows)}}};\n" if rows else ""


def _sizes(name: str, sizes: Sequence[int | None] | None) -> str:
    if not sizes:
        return ""
    numbers = ", ".join("AOTC_DYNAMIC" if size is None else _int64(size) for size in sizes)
    return f"static const int64_t {name}[] = {{{numbers}}};\n"


def _int64(value: int) -> str:
    return str(value) if abs(value) < 2**31 else f"INT64_C({value})"


def _values(name: str, values: Sequence[Value]) -> str:
    sizes = "".join(
        _sizes(f"{name}_{i}_{kind}", getattr(value, kind))
        for i, value in enumerate(values)
        for kind in ("shape", "strides")
    )
    rows = [_value(f"{name}_{i}", value) for i, value in enumerate(values)]
    return sizes + _array("aotc_value", name, rows)


def _bytes(value: Value) -> int:
    """The bytes of a contiguous memref of static shape; 0 for any other value."""
    if value.shape is None or value.strides is not None or value.offset != 0:
        return 0
    count = 1
    for size in value.shape:
        count *= size or 0
    return count * value.dtype.bytes


def _value(prefix: str, value: Value) -> str:
    rank = -1 if value.shape is None else len(value.shape)
    offset = "AOTC_DYNAMIC" if value.offset is None else _int64(value.offset)
    return (
        f"    {{.name = {c_string(value.name)},\n"
        f"     .type = {c_string(value.type)},\n"
        f"     .dtype = {_DTYPES[value.dtype]},\n"
        f"     .rank = {rank},\n"
        f"     .shape = {f'{prefix}_shape' if value.shape else 'NULL'},\n"
        f"     .strides = {f'{prefix}_strides' if value.strides else 'NULL'},\n"
        f"     .offset = {offset},\n"
        f"     .bytes = {_bytes(value)},\n"
        f"     .is_read = {c_bool(value.is_read)},\n"
        f"     .is_written = {c_bool(value.is_written)},\n"
        f"     .memory = {_MEMORIES[value.memory]},\n"
        f"     .is_owned = {c_bool(value.is_owned)},\n"
        f"     .aliases = {-1 if value.aliases is None else value.aliases},\n"
        f"     .state = {_optional(value.state)}}},\n"
    )
