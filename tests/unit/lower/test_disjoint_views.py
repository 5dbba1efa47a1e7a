"""Parts of one buffer that have no element in common."""

from __future__ import annotations

import pytest

from aotc import mlir
from aotc.analysis.views import are_disjoint
from aotc.mlir import ir

# Two views of a buffer of 8 x 12.
WHOLE = "memref<8x12xf32>"
CASES = {
    "columns": ("[0, 0] [8, 4] [1, 1]", "[0, 4] [8, 8] [1, 1]", True),
    "one column in common": ("[0, 0] [8, 5] [1, 1]", "[0, 4] [8, 8] [1, 1]", False),
    "rows": ("[0, 0] [3, 12] [2, 1]", "[5, 0] [3, 12] [1, 1]", True),
    "rows between rows": ("[0, 0] [4, 12] [2, 1]", "[1, 0] [4, 12] [2, 1]", False),
    "a place that is not known": ("[0, 0] [8, 4] [1, 1]", "[0, %i] [8, 4] [1, 1]", False),
    "beside it in another dimension": ("[0, %i] [4, 1] [1, 1]", "[4, %i] [4, 1] [1, 1]", True),
}


def type_of(part: str) -> str:
    offsets, sizes, strides = (
        [word.strip() for word in group.split(",")]
        for group in part.strip("[]").replace("] [", "|").split("|")
    )
    rows = int(strides[0]) * 12
    is_known = "%i" not in offsets
    offset = str(12 * int(offsets[0]) + int(offsets[1])) if is_known else "?"
    return f"memref<{'x'.join(sizes)}xf32, strided<[{rows}, 1], offset: {offset}>>"


@pytest.mark.parametrize("name", CASES)
def test_parts(name: str) -> None:
    one, other, expected = CASES[name]
    text = f"""
func.func @f(%x: {WHOLE}, %i: index) {{
  %a = memref.subview %x{one} : {WHOLE} to {type_of(one)}
  %b = memref.subview %x{other} : {WHOLE} to {type_of(other)}
  return
}}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        views = [op.operation.results[0] for op in list(block.operations)[:2]]
        assert are_disjoint(*views) == expected
        assert not are_disjoint(views[0], views[0])


def test_what_reaches_beyond_a_part() -> None:
    text = """
func.func @f(%x: memref<12xf32>) {
  %a = memref.subview %x[0] [4] [1] : memref<12xf32> to memref<4xf32, strided<[1]>>
  %b = memref.subview %x[4] [4] [1] : memref<12xf32> to memref<4xf32, strided<[1], offset: 4>>
  %c = memref.reinterpret_cast %a to offset: [0], sizes: [12], strides: [1]
      : memref<4xf32, strided<[1]>> to memref<12xf32>
  return
}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        first, second, wide = (op.operation.results[0] for op in list(block.operations)[:3])
        assert are_disjoint(first, second)
        assert not are_disjoint(wide, second)


def test_views_of_bytes_with_a_range() -> None:
    text = """
func.func @f(%x: memref<?xi8>, %i: index) {
  %a = memref.view %x[%i][%i] {aotc.range = array<i64: 0, 4>} : memref<?xi8> to memref<4x?xf32>
  %b = memref.view %x[%i][%i] {aotc.range = array<i64: 4, 6>} : memref<?xi8> to memref<2x?xf32>
  %c = memref.view %x[%i][%i] {aotc.range = array<i64: 3, 6>} : memref<?xi8> to memref<3x?xf32>
  %d = memref.view %x[%i][%i] : memref<?xi8> to memref<2x?xf32>
  return
}
"""
    with mlir.make_context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        first, second, more, whole = (op.operation.results[0] for op in list(block.operations)[:4])
        assert are_disjoint(first, second)
        assert not are_disjoint(first, more)
        assert not are_disjoint(second, whole)
