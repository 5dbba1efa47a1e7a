"""Which reshapes to sizes that a tensor says become dimensions that are put together and parted."""

from __future__ import annotations

import re

import pytest
from helpers.passes import run_passes_on

NUMBERS = "\n".join(
    f"  %c{n} = arith.constant {n} : index\n  %n{n} = arith.constant {n} : i64"
    for n in (0, 1, 2, 3, 4, 8, 64)
)
SIZE = """
  %{name} = tensor.dim %x, %c{number} : {source}
  %n{name} = arith.index_cast %{name} : index to i64"""


def reshaped(source: str, result: str, sizes: str, body: str = "") -> list[str]:
    """What stands in place of the reshape of %x, of sizes %na, %nb and %nc (i64), to `sizes`."""
    rank = source.count("x")
    asked = [SIZE.format(name=name, number=i, source=source) for i, name in enumerate("abc"[:rank])]
    type_ = f"tensor<{len(sizes.split())}xi64>"
    text = f"""
func.func @f(%x: {source}, %any: i64) -> {result} {{
{NUMBERS}{"".join(asked)}
{body}
  %shape = tensor.from_elements {sizes} : {type_}
  %y = tensor.reshape %x(%shape) : ({source}, {type_}) -> {result}
  return %y : {result}
}}"""
    found = str(run_passes_on(text, "aotc-expand-reshapes").module)
    return re.findall(r"tensor\.((?:\w+_shape .*?\]\])|cast|reshape)", re.sub(r"%\w+ ", "", found))


@pytest.mark.parametrize(
    ("why", "source", "result", "sizes", "body", "expected"),
    [
        (
            "heads of a row",
            *("tensor<?x?x256xf16>", "tensor<?x?x4x64xf16>", "%na, %nb, %n4, %n64", ""),
            ["expand_shape [[0], [1], [2, 3]]"],
        ),
        (
            "batch and heads as one",
            *("tensor<?x4x?xf32>", "tensor<?x?xf32>", "%ab, %nc"),
            "  %ab = arith.muli %na, %n4 : i64",
            ["collapse_shape [[0, 1], [2]]"],
        ),
        (
            "what a division gives back, and a size that the result's type does not say",
            *("tensor<?x8x?xf32>", "tensor<?x?x?xf32>", "%na, %q, %nc"),
            "  %p = arith.muli %na, %n8 : i64\n  %q = arith.divsi %p, %na : i64",
            ["cast"],
        ),
        (
            "two dimensions become two others",
            *("tensor<?x4x6xf32>", "tensor<?x8x3xf32>", "%na, %n8, %n3", ""),
            ["collapse_shape [[0], [1, 2]]", "expand_shape [[0], [1, 2]]"],
        ),
        (
            "a dimension of one element behind the others",
            *("tensor<?x4xf32>", "tensor<?x4x1xf32>", "%na, %n4, %n1", ""),
            ["expand_shape [[0], [1, 2]]"],
        ),
        (
            "what is chosen for negative sizes is not",
            *("tensor<?x4xf32>", "tensor<?xf32>", "%chosen"),
            """  %ab = arith.muli %na, %n4 : i64
  %is_less = arith.cmpi slt, %ab, %n0 : i64
  %chosen = arith.select %is_less, %n1, %ab : i64""",
            ["collapse_shape [[0, 1]]"],
        ),
    ],
)
def test_what_is_known(
    why: str, source: str, result: str, sizes: str, body: str, expected: list[str]
) -> None:
    assert reshaped(source, result, sizes, body) == expected, why


@pytest.mark.parametrize(
    ("why", "source", "result", "sizes", "body"),
    [
        ("any size", "tensor<?x?xf32>", "tensor<?x?xf32>", "%nb, %na", ""),
        ("a size from elsewhere", "tensor<?x4xf32>", "tensor<?x?xf32>", "%any, %na", ""),
        (
            "a division with a remainder",
            *("tensor<?x4xf32>", "tensor<?x?xf32>", "%q, %n8"),
            "  %q = arith.divsi %na, %n2 : i64",
        ),
        ("no elements", "tensor<?x0xf32>", "tensor<?x?xf32>", "%n0, %na", ""),
    ],
)
def test_what_is_not_known_stays(why: str, source: str, result: str, sizes: str, body: str) -> None:
    assert reshaped(source, result, sizes, body) == ["reshape"], why


def test_packed_tensor_has_the_sizes_of_its_destination() -> None:
    """The last operand of `linalg.pack` may be a padding value, which has no sizes."""
    text = """
func.func @f(%x: tensor<?xf32>, %y: tensor<?x8xf32>) -> tensor<?x2x4xf32> {
  %c0 = arith.constant 0 : index
  %n2 = arith.constant 2 : i64
  %n4 = arith.constant 4 : i64
  %zero = arith.constant 0.0 : f32
  %a = tensor.dim %y, %c0 : tensor<?x8xf32>
  %na = arith.index_cast %a : index to i64
  %packed = linalg.pack %x padding_value(%zero : f32) inner_dims_pos = [0] inner_tiles = [8]
    into %y : tensor<?xf32> -> tensor<?x8xf32>
  %shape = tensor.from_elements %na, %n2, %n4 : tensor<3xi64>
  %z = tensor.reshape %packed(%shape) : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x2x4xf32>
  return %z : tensor<?x2x4xf32>
}"""
    found = str(run_passes_on(text, "aotc-expand-reshapes").module)
    assert "tensor.expand_shape %pack [[0], [1, 2]]" in found
