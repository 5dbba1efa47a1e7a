"""The table of what changed in MLIR's text: old text gets its hint, and the new text parses."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Outcome

from aotc import mlir
from aotc.errors import InputError
from aotc.input.changes import Change, explain, table
from aotc.input.source import parse_source
from aotc.input.upgrade import upgrade

Aotc = Callable[..., Outcome]
MlirFile = Callable[..., Path]

# What the examples of the table stand in; {} is the example.
WITHIN = {
    "module": "{}\n",
    "function": """module attributes {{gpu.container_module}} {{
gpu.module @k {{
  gpu.func @kern(%m: memref<8xf32>) kernel {{
    gpu.return
  }}
}}
func.func private @g(f32) -> f32
func.func @f(%a: f32, %b: f32, %i: index, %j: index, %n: i32, %p: i1, %m: memref<8xf32>,
    %mm: memref<8x8xf32>, %v: vector<4xf32>, %v2: vector<4x4xf32>, %t: tensor<8xf32>,
    %tt: tensor<8x8xf32>, %t4: tensor<1x8x8x4xf32>, %w4: tensor<4x3x3x4xf32>,
    %ti: tensor<8xi32>, %v8: vector<8xf32>) {{
{}
  return
}}
}}
""",
    "kernel": """gpu.module @k {{
gpu.func @kern(%a: f32, %n: i32, %i: index, %p: i1, %m: memref<8xf32>, %g: memref<64x64xf16>,
    %sh: memref<64x64xf16, 3>, %ptr: !llvm.ptr, %ptr1: !llvm.ptr<1>, %ptr3: !llvm.ptr<3>) kernel {{
{}
  gpu.return
}}
}}
""",
    "llvm": """llvm.func @f(%a: f32, %n: i32, %ptr: !llvm.ptr) {{
{}
  llvm.return
}}
""",
    "schedule": """module attributes {{transform.with_named_sequence}} {{
transform.named_sequence @__transform_main(%arg: !transform.any_op) {{
{}
  transform.yield
}}
}}
""",
}
CHANGES = table().changes


# One for all: making one costs more than any of these texts.
CONTEXT = mlir.make_context()


def parse(change: Change, text: str) -> None:
    text = WITHIN[change.within].format(text)
    parse_source("input.mlir", text.encode(), CONTEXT)


@pytest.mark.parametrize("change", CHANGES, ids=[change.says[:50] for change in CHANGES])
def test_changes(change: Change) -> None:
    """The old text is refused, with this row's hint and no other's; the new text parses."""
    with pytest.raises(InputError) as raised:
        parse(change, change.old)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(f"{change.says}:\n")
    parse(change, change.new)


FIXABLE = [change for change in CHANGES if change.fix]


@pytest.mark.parametrize("change", FIXABLE, ids=[change.says[:50] for change in FIXABLE])
def test_fixes(change: Change) -> None:
    """Text rewritten by a fix parses, and the row is named in the output."""
    old = WITHIN[change.within].format(change.old)
    made = upgrade("input.mlir", old.encode())
    assert made.problem is None
    assert change.says in made.says


def test_renamed_operations() -> None:
    """MLIR has the new name, and not the old one: as a hint, with std. and without."""
    renamed = table().renamed
    with CONTEXT:
        for old, new in renamed.items():
            assert CONTEXT.is_registered_operation(new), new
            assert not CONTEXT.is_registered_operation(old), old
    for old, new in renamed.items():
        if "." in old:
            continue
        for name in (old, f"std.{old}"):
            text = f"func.func @f(%a: f32) {{\n  %r = {name} %a : f32\n  return\n}}\n"
            with pytest.raises(InputError) as raised:
                parse_source("input.mlir", text.encode(), CONTEXT)
            assert raised.value.hint == (
                f"{name} is {new} now.\n'aotc upgrade FILE' writes the new text."
            ), text
            assert upgrade("input.mlir", text.encode()).says == (f"{name} is {new}",)


def test_more_lines_that_show_it() -> None:
    """Old files have many of a kind: how many are left is said."""
    lines = ["llvm.func @free(!llvm.ptr<i8>)", "llvm.func @malloc(i64) -> !llvm.ptr<i8>", ""] * 2
    with pytest.raises(InputError) as raised:
        parse_source("input.mlir", "\n".join(lines).encode(), CONTEXT)
    assert str(raised.value.hint).startswith(
        "Pointers have no element type: !llvm.ptr, with an address space !llvm.ptr<3> "
        "(3 more lines below):\n"
    )


def test_in_a_line_of_megabytes() -> None:
    """Only the text near the error is searched: the time is the line's length, and not that of a
    search for each old form."""
    filler = "%x = memref.load <" * 100_000
    text = f"{filler} %r = std.addf %a : f32"
    column = len(filler) + 7
    begin = time.process_time()
    hint = explain("custom op 'std.addf' is unknown (tried 'x.std.addf')", [text], 1, column)
    assert hint == "std.addf is arith.addf now."
    old = f"{filler} llvm.func @free(!llvm.ptr<i8>)"
    hint = explain("expected '>'", [old, *[text] * 20], 1, len(old) - 5)
    assert str(hint).startswith("Pointers have no element type")
    assert explain("expected '>'", [f"{old} {filler}"], 1, len(old) + len(filler)) is None
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("kind", "comment"),
    [
        ("maxui", ""),
        # These two parse, and are wrong by their types.
        ("maxu", ""),
        ("maxu", "// once affine.apply (d0) -> (d0)(%i)"),
    ],
)
def test_what_has_not_changed(kind: str, comment: str) -> None:
    """Text that was wrong in each MLIR gets no hint."""
    line = (
        f'%r = affine.parallel (%k) = (0) to (8) reduce ("{kind}") -> (i32) '
        f"{{ affine.yield %n : i32 }} {comment}"
    )
    with pytest.raises(InputError) as raised:
        parse_source("input.mlir", WITHIN["function"].format(line).encode(), CONTEXT)
    assert raised.value.hint is None


def test_on_the_command_line(aotc: Aotc, mlir_file: MlirFile) -> None:
    path = mlir_file(
        "func.func @f(%m: memref<8xf32>) {\n"
        "  %r = memref.tensor_load %m : memref<8xf32>\n"
        "  return\n}\n"
    )
    done = aotc("build", path)
    assert done.code == 2
    lines = done.stderr.splitlines()
    assert lines[0] == f"{path}:2:8: error: custom op 'memref.tensor_load' is unknown"
    assert lines[3].startswith("aotc reads the MLIR of LLVM ")
    assert lines[4:] == [
        "aotc: hint: memref.tensor_load is bufferization.to_tensor, with both types:",
        "  %r = bufferization.to_tensor %m : memref<8xf32> to tensor<8xf32>",
        "'aotc upgrade FILE' writes the new text.",
    ]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('%r = "onnx.Add"() : () -> f32', "the dialect 'onnx' is ONNX-MLIR's: "),
        (
            "%r = stablehlo.constant 1",
            "the dialect 'stablehlo' is StableHLO's: aotc reads it from files called NAME",
        ),
        ("%r = spv.Constant 1 : i32", "the dialect 'spv' is called spirv now."),
        ("%r = arith.constant 1 : !torch.int", "the dialect 'torch' is Torch-MLIR's: "),
        ("toy.print %x", "the dialect 'toy' is the Toy tutorial's: "),
        (
            "mine.op",
            "the dialect 'mine' is not MLIR's own: lower it first, with what made it.",
        ),
        ("%r = memref.allok() : memref<8xf32>", "did you mean memref.alloc or memref.alloca"),
        ('"memref.alocc"() : () -> ()', "did you mean memref.alloc"),
    ],
)
def test_operations_that_mlir_never_had(line: str, hint: str) -> None:
    """Another dialect: whose it is. A typing error: near names."""
    text = f"func.func @f() {{\n  {line}\n  return\n}}\n"
    with pytest.raises(InputError) as raised:
        parse_source("input.mlir", text.encode(), mlir.make_context())
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(hint)


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%a: f32) {\n  %r = arith.addf %a, : f32\n  return\n}\n",
        "func.func @f(%a: f32) -> i32 {\n  return %a : f32\n}\n",
        "nonsense\n",
        "func.func @f() {\n",
    ],
)
def test_no_hint_where_nothing_changed(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_source("input.mlir", text.encode(), mlir.make_context())
    assert raised.value.hint is None
