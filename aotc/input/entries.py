"""module → its entries: the functions that are exported, and the names of their arguments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from msgspec.structs import replace

from aotc import ops
from aotc.artifact_kind import ArtifactKind
from aotc.artifacts import EXE
from aotc.attributes import (
    CALL_ATTRIBUTE,
    INTO_ATTRIBUTE,
    NAME_ATTRIBUTE,
    SPARSE_ATTRIBUTE,
    STATE_ATTRIBUTE,
    UNSIGNED_ATTRIBUTE,
    UNSIGNED_RESULTS,
    WORKSPACE_BYTES,
)
from aotc.errors import InputError, near_names
from aotc.input.source import Problem, Source, input_error
from aotc.manifest import (
    Call,
    Dtype,
    Entry,
    SparseTensor,
    Value,
    parse_call,
    parse_sparse,
)
from aotc.mlir import ir
from aotc.module_names import RESULT_SIZES, WORKSPACE_SIZE
from aotc.ops import body_of_module, find, is_declaration, symbol_of

ENTRY_ATTRIBUTE = "llvm.emit_c_interface"
PROGRAM_MAIN = "main"
# The limit of names and of printed types, in characters: C compilers take string literals of up to
# 4095.
LONGEST_NAME = 1000
# The prefixes of the runtime's functions.
RUNTIME_PREFIXES = ("aotc_", "mgpu")
# The types that a program's main may return.
EXIT_CODES = ("i1", "i8", "i16", "i32", "i64", "index")

_UNSIGNED = {
    **{dtype: dtype for dtype in Dtype},
    **{Dtype(f"i{bits}"): Dtype(f"u{bits}") for bits in (8, 16, 32, 64)},
}
_DYNAMIC = -(2**63)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BLOCK_SPACES = ("workgroup", "private", "shared")
DTYPES = {
    "i1": Dtype.BOOL,
    "f16": Dtype.F16,
    "bf16": Dtype.BF16,
    "f32": Dtype.F32,
    "f64": Dtype.F64,
    "index": Dtype.I64,
    "complex<f32>": Dtype.C64,
    "complex<f64>": Dtype.C128,
    "f8E4M3FN": Dtype.F8E4M3FN,
    "f8E5M2": Dtype.F8E5M2,
    **{f"i{bits}": Dtype(f"i{bits}") for bits in (8, 16, 32, 64)},
    **{f"si{bits}": Dtype(f"i{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": Dtype(f"u{bits}") for bits in (8, 16, 32, 64)},
}


class KernelsAloneError(InputError):
    """A module has device code and no host function, and the artifact needs host functions."""


def functions_of(module: Any) -> list[Any]:
    """The functions at the module's top level that have a body."""
    return [
        op.operation
        for op in body_of_module(module).operations
        if op.operation.name in ("func.func", "llvm.func") and not is_declaration(op.operation)
    ]


def has_kernels_alone(module: Any) -> bool:
    """Whether the module has device code and no host function."""
    return not functions_of(module) and bool(find(module.operation, "gpu.module"))


def has_program_main(module: Any) -> bool:
    """Whether the module has its own `main`, which is not exported."""
    return _program_main(module) is not None


def _program_main(module: Any) -> Any | None:
    return next(
        (
            function
            for function in functions_of(module)
            if symbol_of(function) == PROGRAM_MAIN
            and ENTRY_ATTRIBUTE not in function.attributes
            and not _is_private(function)
        ),
        None,
    )


def _is_private(function: Any) -> bool:
    name = "sym_visibility"
    return (
        name in function.attributes and ir.StringAttr(function.attributes[name]).value == "private"
    )


def check_program_main(source: Source) -> None:
    """Raises InputError if a program cannot start with the module's own `main`."""
    function = _program_main(source.module)
    if function is None or function.name != "func.func":
        return  # the types of an llvm.func are checked where it is called
    type_ = ops.function_type(function)
    inputs, results = [str(t) for t in type_.inputs], [str(t) for t in type_.results]
    if inputs in ([], ["i32", "!llvm.ptr"]) and results in ([], *([t] for t in EXIT_CODES)):
        return
    place = source.place(function.location)
    raise InputError((f"{place}: " if place else "") + refuse_main(inputs, results))


def refuse_main(inputs: Sequence[str], results: Sequence[str]) -> str:
    """The message that refuses a `main` of this type."""
    return (
        f"The module's main has the type ({', '.join(inputs)}) -> ({', '.join(results)}), which no "
        "C program can start. It may take nothing or (i32, !llvm.ptr), and return nothing or one "
        f"of {', '.join(EXIT_CODES)}; or carry '{ENTRY_ATTRIBUTE}' to be an entry."
    )


def mark_entries(
    source: Source, wanted: tuple[str, ...], kinds: Sequence[ArtifactKind] = (EXE,)
) -> None:
    """Marks the functions named by `wanted` as entries, and unmarks the others. Without names, the
    functions that have the attribute are the entries. Argument names become attributes.

    Raises InputError if nothing is exported and one of `kinds` needs entries, if a name is unknown,
    or if one of `kinds` describes the argument types of an entry that is lowered already.
    """
    functions = {symbol_of(f): f for f in functions_of(source.module)}
    _check_names(wanted, functions)
    with source.module.context:
        if wanted:
            for name, function in functions.items():
                if name in wanted:
                    function.attributes[ENTRY_ATTRIBUTE] = ir.UnitAttr.get()
                elif ENTRY_ATTRIBUTE in function.attributes:
                    del function.attributes[ENTRY_ATTRIBUTE]
        chosen = [f for f in functions.values() if ENTRY_ATTRIBUTE in f.attributes]
        if not chosen and not has_program_main(source.module):
            is_alone = has_kernels_alone(source.module)
            enough = ("module", "types") if is_alone else ("module",)
            if any(kind.needs not in enough for kind in kinds):
                error = KernelsAloneError if is_alone else InputError
                raise error(_nothing_exported(source, list(functions)))
        problems: list[Problem] = []
        for function in chosen:
            if function.name == "llvm.func":
                _check_kinds(source, function, kinds)
            else:
                _write_names(function, _argument_names(source, function, problems))
    if problems:
        raise input_error(source, problems)


def _check_kinds(source: Source, function: Any, kinds: Sequence[ArtifactKind]) -> None:
    """Raises InputError if one of `kinds` describes the argument types of a lowered function."""
    telling = [kind.name for kind in kinds if kind.needs in ("types", "signature")]
    if not telling:
        return
    place = source.place(function.location)
    raise InputError(
        f"{f'{place}: error: ' if place else ''}Entry '{symbol_of(function)}' is an llvm.func: its "
        f"argument types are already lowered, and --emit {telling[0]} tells them. "
        "Give aotc the module before convert-func-to-llvm; or take it as it is with --emit obj."
    )


def lowered_entries(source: Source) -> tuple[str, ...]:
    """The entries in the LLVM dialect. They are exported under their names, unchanged."""
    return tuple(
        symbol_of(function)
        for function in functions_of(source.module)
        if function.name == "llvm.func" and ENTRY_ATTRIBUTE in function.attributes
    )


def _write_names(function: Any, names: list[str]) -> None:
    """Stores the arguments' names as attributes, which passes keep."""
    given = [ir.DictAttr.get({})] * len(names)
    if "arg_attrs" in function.attributes:
        given = [
            ir.DictAttr(attribute) for attribute in ir.ArrayAttr(function.attributes["arg_attrs"])
        ]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {
                    **{named.name: named.attr for named in dictionary},
                    NAME_ATTRIBUTE: ir.StringAttr.get(name),
                }
            )
            for dictionary, name in zip(given, names, strict=True)
        ]
    )


def describe_entries(source: Source) -> tuple[Entry, ...]:
    """The marked entries, except those in the LLVM dialect. There are none if the module is a
    program with its own main, or has only entries in the LLVM dialect.

    Raises InputError if a type has no C form.
    """
    functions = functions_of(source.module)
    with source.module.context:
        chosen = [f for f in functions if f.name == "func.func" and ENTRY_ATTRIBUTE in f.attributes]
        problems: list[Problem] = []
        entries = [_describe_entry(source, function, problems) for function in chosen]
    if problems:
        raise input_error(source, problems)
    return tuple(entries)


def describe_again(source: Source, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries as described by their lowered functions. An entry whose function is in the LLVM
    dialect by now is returned unchanged. Raises InputError if a type has no C form."""
    with source.module.context:
        functions = {
            symbol_of(function): function
            for function in functions_of(source.module)
            if function.name == "func.func"
        }
        problems: list[Problem] = []
        again = tuple(
            _with_results(entry, _describe_entry(source, functions[entry.name], problems))
            if entry.name in functions
            else entry
            for entry in entries
        )
    if problems:
        raise input_error(source, problems)
    return again


def sized_entries(source: Source, entries: tuple[Entry, ...]) -> frozenset[str]:
    """The names of the entries for which the lowering made a function that computes the sizes of
    all their results."""
    functions = {symbol_of(function): function for function in functions_of(source.module)}
    found = set()
    for entry in entries:
        function = functions.get(f"{entry.name}{RESULT_SIZES}")
        ranks = [len(value.shape) for value in entry.results if value.shape is not None]
        if function is None or function.name != "func.func":
            continue
        type_ = ops.function_type(function)
        if len(type_.results) == sum(ranks):
            found.add(entry.name)
    return frozenset(found)


def describe_workspaces(source: Source, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries with the bytes of their temporaries on a GPU, which a lowering has recorded."""
    functions = {symbol_of(function): function for function in functions_of(source.module)}
    described = []
    for entry in entries:
        size: int | None = 0
        function = functions.get(entry.name)
        if function is not None and WORKSPACE_BYTES in function.attributes:
            size = int(ir.IntegerAttr(function.attributes[WORKSPACE_BYTES]).value)
        elif f"{entry.name}{WORKSPACE_SIZE}" in functions:
            size = None
        described.append(replace(entry, workspace_bytes=size))
    return tuple(described)


def _with_results(before: Entry, after: Entry) -> Entry:
    """The entry after a lowering, with the positions of its results, which may be arguments now."""
    own_results = [value for value in before.results if value.result is not None]
    buffers, scalars = ([v for v in own_results if v.is_scalar is one] for one in (False, True))
    own = len(before.arguments)
    moved = after.arguments[own:]
    kept = [value for value in after.results if not value.is_scalar]
    is_as_before = len(after.results) - len(kept) == len(scalars)
    if (moved and kept) or len(moved) + len(kept) != len(buffers) or not is_as_before:
        return after  # the lowering was a pipeline of the user
    made = iter([_placed(*pair) for pair in zip(buffers, [*moved, *kept], strict=True)])
    arguments = [*after.arguments[:own], *(next(made) for _ in moved)]
    numbers = iter(scalars)
    results = [
        _placed(next(numbers), value) if value.is_scalar else next(made) for value in after.results
    ]
    return replace(
        after,
        arguments=tuple(arguments),
        results=tuple(results),
        call=before.call,
        sparse=before.sparse,
    )


def _placed(before: Value, after: Value) -> Value:
    is_unsigned = _UNSIGNED[after.dtype] == before.dtype
    return replace(after, result=before.result, dtype=before.dtype if is_unsigned else after.dtype)


def _check_names(wanted: tuple[str, ...], functions: dict[str, Any]) -> None:
    for name in wanted:
        if name in functions:
            continue
        near = near_names(name, functions, most=3)
        raise InputError(
            f"No entry '{name}'."
            + (f" Did you mean {' or '.join(near)}?" if near else "")
            + f" This module has: {', '.join(functions) or 'no function'}."
        )


def _nothing_exported(source: Source, names: list[str]) -> str:
    if not names:
        return f"Nothing to export: {source.name} has no function."
    return (
        f"Nothing to export: no function of {source.name} carries '{ENTRY_ATTRIBUTE}'.\n"
        f"It has: {', '.join(names)}.\n"
        f"Mark one (func.func @{names[0]}(...) attributes {{{ENTRY_ATTRIBUTE}}}) "
        f"or name one: --entry {names[0]}."
    )


def _describe_entry(source: Source, function: Any, problems: list[Problem]) -> Entry:
    name = symbol_of(function)
    function_type = ops.function_type(function)
    names = _argument_names(source, function, problems)
    unsigned = _unsigned_arguments(function)
    wrong: list[str] = []
    arguments = []
    values = function.regions[0].blocks[0].arguments
    fields = _state_names(function)
    for i, (label, type_) in enumerate(zip(names, function_type.inputs, strict=True)):
        value = describe_value(f"argument '{label}' of '{name}'", label, type_, wrong)
        dtype = _UNSIGNED[value.dtype] if i in unsigned else value.dtype
        arguments.append(replace(value, dtype=dtype, state=fields.get(i)))
        problems += [(values[i].location, problem) for problem in wrong]
        wrong.clear()
    taken = frozenset(names)
    results = [
        describe_value(f"result {i} of '{name}'", _free(f"result{i}", taken), type_, wrong)
        for i, type_ in enumerate(function_type.results)
    ]
    problems += [(function.location, problem) for problem in wrong]
    unsigned = _unsigned_results(function)
    results = [
        replace(value, dtype=_UNSIGNED[value.dtype]) if i in unsigned else value
        for i, value in enumerate(results)
    ]
    places = _result_places(function, len(results))
    results = [replace(value, result=i) for value, i in zip(results, places, strict=True)]
    return Entry(
        name,
        tuple(arguments),
        tuple(results),
        call=_call_of(function),
        sparse=_sparse_of(function),
    )


def _result_places(function: Any, count: int) -> list[int | None]:
    """The number of each result among those that callers get; None for an argument's new value."""
    into: list[bool] = [False] * count
    if "res_attrs" in function.attributes:
        dictionaries = map(ir.DictAttr, ir.ArrayAttr(function.attributes["res_attrs"]))
        into = [INTO_ATTRIBUTE in dictionary for dictionary in dictionaries]
    numbers = iter(range(count))
    return [None if is_into else next(numbers) for is_into in into]


def _unsigned_arguments(function: Any) -> frozenset[int]:
    if "arg_attrs" not in function.attributes:
        return frozenset()
    dictionaries = map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"]))
    return frozenset(i for i, one in enumerate(dictionaries) if UNSIGNED_ATTRIBUTE in one)


def _unsigned_results(function: Any) -> frozenset[int]:
    if UNSIGNED_RESULTS not in function.attributes:
        return frozenset()
    return frozenset(ir.DenseI64ArrayAttr(function.attributes[UNSIGNED_RESULTS]))


def _call_of(function: Any) -> Call | None:
    if CALL_ATTRIBUTE not in function.attributes:
        return None
    return parse_call(ir.StringAttr(function.attributes[CALL_ATTRIBUTE]).value)


def _sparse_of(function: Any) -> tuple[SparseTensor, ...]:
    if SPARSE_ATTRIBUTE not in function.attributes:
        return ()
    return parse_sparse(ir.StringAttr(function.attributes[SPARSE_ATTRIBUTE]).value)


def _state_names(function: Any) -> dict[int, str]:
    """Argument number → the field of the state that the argument is."""
    if "arg_attrs" not in function.attributes:
        return {}
    dictionaries = map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"]))
    found = {
        i: label_of(dictionary[STATE_ATTRIBUTE])
        for i, dictionary in enumerate(dictionaries)
        if STATE_ATTRIBUTE in dictionary
    }
    return {i: name for i, name in found.items() if name is not None}


def label_of(attribute: Any) -> str | None:
    """The text of an attribute that is a name; None if it is not a single short line."""
    if not isinstance(attribute, ir.StringAttr):
        return None
    text = attribute.value_bytes.decode(errors="replace")
    is_good = 0 < len(text) <= LONGEST_NAME and not _CONTROL.search(text)
    return text if is_good else None


def _argument_names(source: Source, function: Any, problems: list[Problem]) -> list[str]:
    """The names of the arguments: the attribute, else the SSA name in the text, else argN. All
    names are distinct."""
    given = _argument_attributes(function, problems)
    counts = Counter(name for name in given if name is not None)
    problems += [
        (
            function.location,
            f"Several arguments of '{symbol_of(function)}' have the {NAME_ATTRIBUTE} '{repeated}'.",
        )
        for repeated, count in counts.items()
        if count > 1
    ]
    arguments = list(function.regions[0].blocks[0].arguments)
    text_of = _LineBytes(source)
    known = [
        name or _ssa_name(source, argument, text_of)
        for name, argument in zip(given, arguments, strict=True)
    ]
    all_known = frozenset(known)
    names: dict[str, None] = {}
    for i, name in enumerate(known):
        candidate = name or f"arg{i}"
        while candidate in names or (name is None and candidate in all_known):
            candidate += "_"
        names[candidate] = None
    return list(names)


def _free(name: str, taken: Collection[str]) -> str:
    """`name`, with `_` appended until no argument has this name."""
    while name in taken:
        name += "_"
    return name


def _argument_attributes(function: Any, problems: list[Problem]) -> list[str | None]:
    arguments = list(function.regions[0].blocks[0].arguments)
    if "arg_attrs" not in function.attributes:
        return [None] * len(arguments)
    found: list[str | None] = []
    dictionaries = ir.ArrayAttr(function.attributes["arg_attrs"])
    for argument, dictionary in zip(arguments, dictionaries, strict=True):
        attributes = ir.DictAttr(dictionary)
        found.append(None)
        if NAME_ATTRIBUTE not in attributes:
            continue
        name = attributes[NAME_ATTRIBUTE]
        if not isinstance(name, ir.StringAttr):
            said = f"The {NAME_ATTRIBUTE} of this argument is {name}; it must be a string."
            problems.append((argument.location, said))
            continue
        found[-1] = text = str(name.value_bytes.decode(errors="replace"))
        if len(text) > LONGEST_NAME or _CONTROL.search(text):
            said = (
                f"The {NAME_ATTRIBUTE} of this argument must be one line of at most {LONGEST_NAME} "
                "characters."
            )
            problems.append((argument.location, said))
    return found


class _LineBytes:
    """The lines of a source as bytes. The last one is cached, as arguments share a line."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._number, self._bytes = 0, b""

    def get(self, number: int) -> bytes:
        if number != self._number:
            self._number, self._bytes = number, (self._source.line(number) or "").encode()
        return self._bytes


_SSA_NAME = re.compile(rb"%([A-Za-z_][\w$.-]*)")


def _ssa_name(source: Source, argument: Any, lines: _LineBytes) -> str | None:
    # The parser drops SSA names, but an argument's location is the place of its `%name`.
    place = source.place(argument.location)
    if place is None:
        return None
    found = _SSA_NAME.match(lines.get(place.line), place.column - 1)
    return found[1].decode() if found and len(found[1]) <= LONGEST_NAME else None


def _no_element(what: str, type_: str, element: str) -> str:
    return (
        f"The {what} has the type {type_}, whose element type {element} has no C form. "
        f"Element types that have one: {', '.join(DTYPES)}."
    )


def describe_value(what: str, name: str, type_: Any, problems: list[str]) -> Value:
    text = str(type_)
    if text in DTYPES:
        return Value(name, text, DTYPES[text])
    if len(text) > LONGEST_NAME:
        problems.append(
            f"The {what} has the type {text[:20]}..., of {len(text)} characters; aotc takes "
            f"{LONGEST_NAME}."
        )
        return Value(name, text, Dtype.I8)
    if isinstance(type_, ir.RankedTensorType) and type_.encoding is None:
        element = str(type_.element_type)
        if element not in DTYPES:
            # A memref may not have this element type either, for example a pointer.
            problems.append(_no_element(what, text, element))
            return Value(name, text, Dtype.I8)
        # aotc's lowering makes it a memref.
        memref_type = f"memref{text.removeprefix('tensor')}"
        return describe_value(what, name, ir.Type.parse(memref_type), problems)
    if not isinstance(type_, ir.MemRefType):
        problems.append(
            f"The {what} has the type {text}, which has no C form. An entry takes and returns "
            "integers of 1, 8, 16, 32 and 64 bits, index, f16, bf16, f32, f64, complex of f32 "
            "and f64, and ranked memrefs and tensors of them."
        )
        return Value(name, text, Dtype.I8)
    memref = ir.MemRefType(type_)
    space = str(memref.memory_space)
    if any(word in space for word in _BLOCK_SPACES) or space.startswith(("3 ", "5 ")):
        problems.append(
            f"The {what} has the type {text}: memory of a block or a thread, which no caller has."
        )
        return Value(name, text, Dtype.I8)
    if space.startswith("4 "):
        problems.append(
            f"The {what} has the type {text}: constant memory, which no caller has. Use the "
            "memory space 1, or none."
        )
        return Value(name, text, Dtype.I8)
    element = str(memref.element_type)
    if element not in DTYPES:
        problems.append(_no_element(what, text, element))
        return Value(name, text, Dtype.I8)
    try:
        strides, offset = memref.get_strides_and_offset()
    except (ValueError, RuntimeError):
        problems.append(
            f"The {what} has the type {text}, whose layout is not strided: it has no C form. "
            "Write a permuted layout as strides: memref<5x7xf32, strided<[1, 5]>>."
        )
        return Value(name, text, Dtype.I8)
    shape = tuple(None if size == _DYNAMIC else int(size) for size in memref.shape)
    is_identity = _is_identity(str(memref.layout), len(shape))
    return Value(
        name,
        text,
        DTYPES[element],
        shape=shape,
        strides=None if is_identity else tuple(None if s == _DYNAMIC else s for s in strides),
        offset=None if offset == _DYNAMIC else int(offset),
    )


def _is_identity(layout: str, rank: int) -> bool:
    dims = ", ".join(f"d{i}" for i in range(rank))
    return layout == f"affine_map<({dims}) -> ({dims})>"
