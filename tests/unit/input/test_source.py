"""Reading MLIR: text, bytecode, places in it, and what its errors look like."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from aotc import mlir
from aotc.errors import InputError
from aotc.input.place import Place
from aotc.input.source import find_place, parse_source, read_source

TEXT = "func.func @f(%a: f32) -> f32 {\n  return %a : f32\n}\n"


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ('loc("-":3:7)', Place("given.mlir", 3, 7)),
        ('loc("other.py":12:1)', Place("other.py", 12, 1)),
        ('loc("name"("-":3:7))', Place("given.mlir", 3, 7)),
        ('loc(callsite("callee"("a.mlir":1:2) at "b.mlir":3:4))', Place("a.mlir", 1, 2)),
        ('loc(fused<"x">["a.mlir":1:2, "b.mlir":3:4])', Place("a.mlir", 1, 2)),
        ("loc(unknown)", None),
        ('loc("only a name")', None),
    ],
)
def test_places(location: str, place: Place | None) -> None:
    assert find_place(location, "given.mlir") == place


def test_a_place_as_text() -> None:
    assert str(Place("a.mlir", 3, 7)) == "a.mlir:3:7"


@pytest.mark.parametrize("locations", [False, True])
def test_an_operation_s_place(locations: bool) -> None:
    source = parse_source("my file.mlir", TEXT.encode(), mlir.make_context(), locations=locations)
    function = source.module.body.operations[0]
    assert source.place(function.operation.location) == Place("my file.mlir", 1, 1)
    argument = function.operation.regions[0].blocks[0].arguments[0]
    assert source.place(argument.location) == Place("my file.mlir", 1, 14)
    assert source.line(2) == "  return %a : f32"
    assert (source.line(0), source.line(99)) == (None, None)


@pytest.mark.parametrize("name", ['quo"te.mlir', "back\\slash.mlir", "größe.mlir", "-", "a\\1b"])
def test_named_locations_take_any_name(name: str) -> None:
    source = parse_source(name, TEXT.encode(), mlir.make_context(), locations=True)
    printed = source.module.operation.get_asm(enable_debug_info=True)
    assert f"{TEXT.splitlines()[1].strip()} loc(" in printed.replace("arg0", "a")
    source.module.operation.verify()


def test_bytecode_is_the_same_module() -> None:
    with mlir.make_context():
        buffer = io.BytesIO()
        mlir.ir.Module.parse(TEXT).operation.write_bytecode(buffer)
    text = parse_source("a", TEXT.encode(), mlir.make_context())
    code = parse_source("b", buffer.getvalue(), mlir.make_context())
    assert str(code.module) == str(text.module)
    assert code.line(1) is None


def test_every_diagnostic_has_line_and_caret() -> None:
    """Errors and their notes; tabs and wide characters keep the caret in its place."""
    text = 'func.func @f(%a: f32) {\n\treturn {x = "é"} %a : f32\n}\n'
    with pytest.raises(InputError) as raised:
        parse_source("t.mlir", text.encode(), mlir.make_context())
    lines = raised.value.message.splitlines()
    assert lines[0].startswith("t.mlir:2:")
    assert lines[1] == '  \treturn {x = "é"} %a : f32'
    column = lines[2].index("^")
    assert lines[2][:column].strip("\t ") == ""


def test_a_text_that_looks_like_crashing_ones_again_and_again() -> None:
    """What the parser is kept from is looked for in time that grows with the text."""
    text = "// linalg.generic {\n" * 20_000 + "module {"
    begin = time.process_time()
    with pytest.raises(InputError, match="expected operation name"):
        parse_source("input.mlir", text.encode(), mlir.make_context())
    assert time.process_time() - begin < 10  # it took minutes


def test_long_lines_are_cut_short() -> None:
    """Where a line holds a large constant, the message has the part that it is about."""
    long = '"' + "x" * 100_000 + '"'
    text = f"func.func @f(%a: f32) {{\n  return {{x = {long}}} %a : f32\n}}\n"
    with pytest.raises(InputError) as raised:
        parse_source("t.mlir", text.encode(), mlir.make_context())
    lines = raised.value.message.splitlines()
    assert len(lines[1]) < 1100
    assert lines[1][lines[2].index("^")] == "r"


def test_windows_line_ends() -> None:
    text = TEXT.replace("\n", "\r\n")
    source = parse_source("t.mlir", text.encode(), mlir.make_context())
    function = source.module.body.operations[0]
    operation = function.operation.regions[0].blocks[0].operations[0]
    place = source.place(operation.operation.location)
    assert place is not None
    assert place.line == 2


def test_reading_files(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_bytes(b"\x00\xff")
    assert read_source(tmp_path / "a.mlir") == b"\x00\xff"
    with pytest.raises(InputError, match=r"Cannot read '.*': No such file or directory\."):
        read_source(tmp_path / "b.mlir")
    with pytest.raises(InputError, match=r"it is a directory, not an \.mlir file"):
        read_source(tmp_path)
