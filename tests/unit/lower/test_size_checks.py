"""What imported operations expect of sizes: proven, or a check that names the argument."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import aotc
from aotc import ops
from aotc.input.source import parse_source
from aotc.lower.tensors.size_checks import check_sizes
from aotc.mlir import ir, make_context

BODY = "{^bb0(%a: f32, %b: f32): linalg.yield %a : f32} -> tensor<?xf32>"
LOOP = """{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
iterator_types = ["parallel"]}"""


def checks(arguments: str, body: str) -> list[str]:
    """The messages of the assertions that are left of a function with these lines."""
    text = f"func.func @f({arguments}) attributes {{aotc.imported}} {{\n{body}\nreturn\n}}"
    source = parse_source("test.mlir", text.encode(), make_context())
    check_sizes(source)
    assert source.module.operation.verify()
    assertions = ops.find(source.module.operation, "cf.assert")
    return [ir.StringAttr(one.attributes["msg"]).value for one in assertions]


X = '%x: tensor<?x?xf32> {aotc.name = "x"}'
X1 = '%x: tensor<?xf32> {aotc.name = "x"}'
SIZES = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%m = tensor.dim %x, %c0 : tensor<?x?xf32>
%n = tensor.dim %x, %c1 : tensor<?x?xf32>
"""
SIZE = SIZES.split("%n =")[0].replace("?x?", "?")
BROADCAST = f"""{SIZE}%e = tensor.empty() : tensor<4xf32>
%r = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}}
    outs(%e : tensor<4xf32>) {{
^bb0(%o: f32):
  %i = linalg.index 0 : index
  %is_one = arith.cmpi eq, %m, %c1 : index
  %j = arith.select %is_one, %c0, %i : index
  %v = tensor.extract %x[%j] : tensor<?xf32>
  linalg.yield %v : f32
}} -> tensor<4xf32>"""
CASES = {
    "a cast": (
        X,
        "%y = tensor.cast %x : tensor<?x?xf32> to tensor<?x1xf32>",
        ["'x' has another size in dimension 1 than 1"],
    ),
    "a cast that is proven": (
        "%x: tensor<?x4xf32>",
        "%y = tensor.cast %x : tensor<?x4xf32> to tensor<?x?xf32>\n"
        "%z = tensor.cast %y : tensor<?x?xf32> to tensor<?x4xf32>",
        [],
    ),
    "equal parts": (
        X1,
        f"{SIZE}%h = arith.divsi %m, %c2 : index\n%y = tensor.expand_shape %x [[0, 1]] "
        "output_shape [%h, 2] : tensor<?xf32> into tensor<?x2xf32>",
        ["the sizes of 'x' do not fit: expected x.shape[0] == 2*div(x.shape[0], 2)"],
    ),
    "dimensions that are merged and split": (
        X,
        f"{SIZES}%y = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n"
        "%z = tensor.expand_shape %y [[0, 1]] output_shape [%m, %n] : tensor<?xf32> into "
        "tensor<?x?xf32>",
        [],
    ),
    "split otherwise": (
        X,
        f"{SIZES}%y = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n"
        "%z = tensor.expand_shape %y [[0, 1]] output_shape [%m, %m] : tensor<?xf32> into "
        "tensor<?x?xf32>",
        ["the sizes of 'x' do not fit: expected x.shape[0]*x.shape[1] == x.shape[0]*x.shape[0]"],
    ),
    "operands of one shape": (
        f'{X1}, %y: tensor<?xf32> {{aotc.name = "y"}}',
        f"%r = linalg.generic {LOOP} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {BODY}",
        ["'y' has another size in dimension 0 than 'x' in dimension 0"],
    ),
    "asserted before": (
        f'{X1}, %y: tensor<?xf32> {{aotc.name = "y"}}',
        f"{SIZE}%k = tensor.dim %y, %c0 : tensor<?xf32>\n%e = arith.cmpi eq, %m, %k : index\n"
        'cf.assert %e, "mismatched"\n'
        f"%r = linalg.generic {LOOP} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {BODY}",
        ["'y' has another size in dimension 0 than 'x' in dimension 0"],
    ),
    "a slice": (
        X1,
        "%y = tensor.extract_slice %x[2] [5] [1] : tensor<?xf32> to tensor<5xf32>",
        ["the sizes of 'x' do not fit: expected 7 <= x.shape[0]"],
    ),
    "a slice of all but the first": (
        X1,
        f"{SIZE}%s = arith.minsi %c1, %m : index\n%k = arith.subi %m, %s : index\n"
        "%y = tensor.extract_slice %x[%s] [%k] [1] : tensor<?xf32> to tensor<?xf32>",
        [],
    ),
    "windows": (
        '%x: tensor<1x1x?x9xf32> {aotc.name = "x"}, %k: tensor<1x1x3x3xf32>, %y: '
        "tensor<1x1x4x4xf32>",
        "%r = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %k : "
        "tensor<1x1x?x9xf32>, tensor<1x1x3x3xf32>) outs(%y : tensor<1x1x4x4xf32>) -> "
        "tensor<1x1x4x4xf32>",
        ["the sizes of 'x' do not fit: expected 9 <= x.shape[2]"],
    ),
    "no negative size": (
        X1,
        f"{SIZE}%k = arith.subi %m, %c2 : index\n%y = tensor.empty(%k) : tensor<?xf32>",
        ["the sizes of 'x' do not fit: expected 0 <= x.shape[0] + -2"],
    ),
    "joined": (
        f'{X}, %y: tensor<2x5xf32> {{aotc.name = "y"}}',
        "%r = tensor.concat dim(0) %x, %y : (tensor<?x?xf32>, tensor<2x5xf32>) -> tensor<?x?xf32>",
        ["'x' has another size in dimension 1 than 5"],
    ),
    "read past a broadcast": (
        X1,
        "%e = tensor.empty() : tensor<4xf32>\n"
        "%r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = "
        '["parallel"]} outs(%e : tensor<4xf32>) {\n^bb0(%o: f32):\n%i = linalg.index 0 : index\n'
        "%v = tensor.extract %x[%i] : tensor<?xf32>\nlinalg.yield %v : f32\n} -> tensor<4xf32>",
        ["the sizes of 'x' do not fit: expected 4 <= x.shape[0]"],
    ),
    "a broadcast": (X1, BROADCAST, ["'x' has another size in dimension 0 than 4, and not 1"]),
}


def test_a_broadcast_that_a_person_wrote() -> None:
    """It may leave elements out."""
    first, second = person_wrote(BROADCAST)
    assert first.startswith("the sizes of 'argument 0' do not fit: expected 5*")
    assert second == "the sizes of 'argument 0' do not fit: expected 4 <= 4*argument 0.shape[0]"


@pytest.mark.parametrize("name", CASES)
def test_what_is_checked(name: str) -> None:
    arguments, body, expected = CASES[name]
    assert expected == checks(arguments, body)


def test_what_no_size_fulfils() -> None:
    """It is refused, with its place."""
    body = """%y = tensor.cast %x : tensor<3x?xf32> to tensor<?x?xf32>
%z = tensor.cast %y : tensor<?x?xf32> to tensor<4x?xf32>"""
    with pytest.raises(
        aotc.InputError, match=r"test.mlir:3:6: error: tensor.cast would need 3 == 4"
    ):
        checks("%x: tensor<3x?xf32>", body)


def person_wrote(body: str) -> list[str]:
    """The messages of the assertions of a function that no importer made."""
    text = f"func.func @f(%x: tensor<?xf32>, %n: index) {{\n{body}\nreturn\n}}"
    source = parse_source("test.mlir", text.encode(), make_context())
    check_sizes(source)
    assert source.module.operation.verify()
    assertions = ops.find(source.module.operation, "cf.assert")
    return [ir.StringAttr(one.attributes["msg"]).value for one in assertions]


SLICE = "%y = tensor.extract_slice %x[4] [4] [1] : tensor<?xf32> to tensor<4xf32>"
PAD = "%y = tensor.pad %x low[%n] high[0] {^bb0(%a: index): tensor.yield %c : f32} : "
IN_LOOP = """%c = arith.constant 0.0 : f32
scf.forall (%i) in (%n) {{
  {0}
}}"""


def test_what_a_person_wrote_is_checked() -> None:
    assert person_wrote(SLICE) == [
        "the sizes of 'argument 0' do not fit: expected 8 <= argument 0.shape[0]"
    ]


def test_loops_that_a_person_wrote_are_left() -> None:
    """What is in them becomes kernels; a pad that is not positive would write past its result."""
    assert person_wrote(IN_LOOP.format(SLICE)) == []
    assert (
        person_wrote(IN_LOOP.format(PAD + "tensor<?xf32> to tensor<?xf32>"))
        == ["sizes that depend on values do not fit tensor.pad"] * 2
    )


def test_a_check_fails_before_memory_is_written(tmp_path: Path) -> None:
    text = f"""
func.func @f(%x: tensor<?xf32> {{aotc.name = "x"}}, %out: tensor<4xf32>) -> tensor<4xf32>
    attributes {{aotc.imported, llvm.emit_c_interface}} {{
  %y = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  %r = linalg.generic {LOOP} ins(%y : tensor<4xf32>) outs(%out : tensor<4xf32>)
      {BODY.replace("?", "4")}
  return %r : tensor<4xf32>
}}"""
    files = {"emit": "shared", "out": f"{tmp_path}/", "chips": "sm_80"}
    library = aotc.load(aotc.build(text.encode(), name="net", **files))
    given, result = np.arange(4, dtype=np.float32), np.full(4, 7, np.float32)
    out = np.zeros(4, np.float32)
    with pytest.raises(aotc.LibraryError, match="'x' has another size in dimension 0 than 4"):
        library.f(given[:3], out, result)
    assert result.tolist() == [7] * 4
    library.f(given, out, result)
    assert result.tolist() == given.tolist()


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("%c = arith.constant false", ""),
        ("%f = arith.constant false\n%c = arith.andi %is, %f : i1", ""),
        (
            "%three = arith.constant 3 : i64\n%two = arith.constant 2 : i64\n"
            "%c = arith.cmpi eq, %three, %two : i64",
            " (it needs 3 == 2)",
        ),
    ],
)
def test_assertions_that_always_fail(condition: str, why: str) -> None:
    """Of an importer they are refused where each call reaches them; a person's may stay."""
    arguments, text = "%is: i1", f'{condition}\ncf.assert %c, "no lowering"'
    with pytest.raises(aotc.InputError) as raised:
        checks(arguments, text)
    assert f"error: this always fails: no lowering{why}\n" in str(raised.value)
    assert len(checks(arguments, f"scf.if %is {{\n{text}\n}}")) == 1
    assert person_wrote(f"%is = arith.constant true\n{text}") == ["no lowering"]
