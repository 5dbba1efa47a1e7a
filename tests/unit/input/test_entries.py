"""Entries: which functions are exported, and the names and types of their arguments."""

from __future__ import annotations

from typing import Any

import pytest

from aotc import mlir
from aotc.errors import InputError
from aotc.input.entries import describe_entries, mark_entries
from aotc.input.source import parse_source
from aotc.manifest import Dtype, Entry, Value


def entries_of(text: str, *wanted: str, name: str = "test.mlir") -> tuple[Entry, ...]:
    source = parse_source(name, text.encode(), mlir.make_context())
    mark_entries(source, wanted)
    return describe_entries(source)


def arguments_of(types: str, *, locations: bool = False) -> list[Value]:
    text = f"func.func @f({types}) attributes {{llvm.emit_c_interface}} {{\n  return\n}}\n"
    source = parse_source("a b.mlir", text.encode(), mlir.make_context(), locations=locations)
    mark_entries(source, ())
    (entry,) = describe_entries(source)
    return list(entry.arguments)


# --- Names -----------------------------------------------------------------------------


@pytest.mark.parametrize("locations", [False, True])
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("%A: f32, %b_1: f32, %x.y: f32, %c$: f32", ["A", "b_1", "x.y", "c$"]),
        ("%0: f32, %1: f32", ["arg0", "arg1"]),
        ('%A: f32 {aotc.name = "alpha"}, %B: f32', ["alpha", "B"]),
        # A number gives no name, and the name that it gets instead must be free.
        ("%arg1: f32, %0: f32", ["arg1", "arg1_"]),
        ("%0: f32, %arg0: f32", ["arg0_", "arg0"]),
        ('%A: f32 {aotc.name = "B"}, %B: f32', ["B", "B_"]),
        # MLIR's columns count bytes.
        ('%a: f32 {llvm.name = "größe €"}, %b: f32, %c: f32', ["a", "b", "c"]),
        ("%a: f32,\n    %b: f32,\n\t%c: f32", ["a", "b", "c"]),
    ],
)
def test_argument_names(arguments: str, names: list[str], locations: bool) -> None:
    """The attribute, else the SSA name in the text, else argN; each once."""
    assert [v.name for v in arguments_of(arguments, locations=locations)] == names


def test_the_same_name_given_twice() -> None:
    with pytest.raises(InputError, match=r"Several arguments of 'f' have the aotc.name 'x'"):
        arguments_of('%a: f32 {aotc.name = "x"}, %b: f32 {aotc.name = "x"}')


# --- Types -----------------------------------------------------------------------------

SCALARS = {
    "i1": Dtype.BOOL,
    "i8": Dtype.I8,
    "i16": Dtype.I16,
    "i32": Dtype.I32,
    "i64": Dtype.I64,
    "si32": Dtype.I32,
    "ui8": Dtype.U8,
    "ui16": Dtype.U16,
    "ui32": Dtype.U32,
    "ui64": Dtype.U64,
    "index": Dtype.I64,
    "f16": Dtype.F16,
    "bf16": Dtype.BF16,
    "f32": Dtype.F32,
    "f64": Dtype.F64,
    "complex<f32>": Dtype.C64,
    "complex<f64>": Dtype.C128,
}


@pytest.mark.parametrize("type_", SCALARS)
def test_scalars_and_elements(type_: str) -> None:
    scalar, memref = arguments_of(f"%s: {type_}, %m: memref<4x{type_}>")
    assert scalar == Value("s", type_, SCALARS[type_])
    assert memref == Value("m", f"memref<4x{type_}>", SCALARS[type_], shape=(4,))


@pytest.mark.parametrize(
    ("type_", "shape", "strides", "offset"),
    [
        ("memref<f32>", (), None, 0),
        ("memref<2x?x4xf32>", (2, None, 4), None, 0),
        ("memref<0x3xf32>", (0, 3), None, 0),
        ("memref<4x4xf32, strided<[8, 1]>>", (4, 4), (8, 1), 0),
        ("memref<?x?xf32, strided<[?, 1], offset: ?>>", (None, None), (None, 1), None),
        ("memref<4xf32, strided<[1], offset: 3>>", (4,), (1,), 3),
        ("memref<4xf32, strided<[-1], offset: 3>>", (4,), (-1,), 3),
        ("memref<2x3xf32, affine_map<(i, j) -> (i, j)>>", (2, 3), None, 0),
    ],
)
def test_shapes_and_layouts(
    type_: str, shape: tuple[Any, ...], strides: tuple[Any, ...] | None, offset: int | None
) -> None:
    (value,) = arguments_of(f"%m: {type_}")
    assert (value.shape, value.strides, value.offset) == (shape, strides, offset)


@pytest.mark.parametrize(
    "type_",
    [
        *("i2", "i24", "i128", "f8E3M4", "f128", "vector<4xf32>", "tensor<*xf32>", "none"),
        *("memref<*xf32>", "memref<4xi4>", "memref<4xvector<4xf32>>", "memref<4xmemref<4xf32>>"),
        *("!llvm.ptr", "!gpu.async.token", "complex<f16>", "tuple<i32>", "memref<4xcomplex<i32>>"),
    ],
)
def test_types_without_a_c_form(type_: str) -> None:
    with pytest.raises(InputError, match=r"The argument 'x' of 'f' has the type .* no C form"):
        arguments_of(f"%x: {type_}")


# --- Selection -------------------------------------------------------------------------

TWO = """
func.func @one() attributes {llvm.emit_c_interface} { return }
func.func private @two() { return }
func.func @main() { return }
func.func private @declared()
"""


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [((), ["one"]), (("two",), ["two"]), (("main", "one"), ["one", "main"])],
)
def test_selection(wanted: tuple[str, ...], chosen: list[str]) -> None:
    assert [entry.name for entry in entries_of(TWO, *wanted)] == chosen


def test_a_declaration_is_no_entry() -> None:
    with pytest.raises(InputError, match=r"No entry 'declared'. This module has: one, two, main."):
        entries_of(TWO, "declared")


def test_a_program_needs_no_entry() -> None:
    assert entries_of("func.func @main() { return }") == ()


def test_symbols() -> None:
    (entry,) = entries_of('func.func @"a-b" () attributes {llvm.emit_c_interface} { return }')
    assert entry.symbol == "_mlir_ciface_a-b"
