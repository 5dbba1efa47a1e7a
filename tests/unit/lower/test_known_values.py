"""Integers that are known before the program runs: what the checks of sizes and bounds rest on."""

from __future__ import annotations

import pytest

from aotc import mlir, ops
from aotc.analysis.values import evaluate

CONTEXT = mlir.make_context()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("%r = arith.constant 7 : index", 7),
        ("%r = arith.constant -7 : i32", -7),
        ("%r = index.constant 7", 7),
        ("%r = arith.addi %c7, %m3 : index", 4),
        ("%r = arith.subi %m3, %c7 : index", -10),
        ("%r = arith.muli %c7, %m3 : index", -21),
        ("%r = arith.ceildivsi %c7, %c3 : index", 3),
        ("%r = arith.divui %c7, %c3 : index", 2),
        ("%r = arith.remsi %c7, %c3 : index", 1),
        ("%r = arith.minsi %c7, %m3 : index", -3),
        ("%r = index.maxs %c7, %m3", 7),
        ("%r = index.ceildivu %c7, %c3", 3),
        # Rounding and signs differ among the divisions: natural numbers alone.
        ("%r = arith.divsi %m3, %c7 : index", None),
        ("%r = arith.divui %c7, %m3 : index", None),
        ("%r = arith.remui %c7, %c0 : index", None),
        # It may wrap around.
        ("%r = arith.muli %c1M, %c1M : index", None),
        ("%r = arith.addi %b, %b : i8", None),
        ("%r = arith.index_cast %c7 : index to i32", 7),
        ("%r = arith.index_castui %c7 : index to i32", 7),
        ("%r = arith.index_castui %m3 : index to i32", None),
        ("%r = arith.extui %b : i8 to i32", 100),
        ("%r = arith.addi %c7, %n : index", None),
        ("%r = memref.dim %m, %c1 : memref<?x5xf32>", 5),
        ("%r = memref.dim %m, %c0 : memref<?x5xf32>", None),
        ("%r = memref.dim %m, %c7 : memref<?x5xf32>", None),
        # A condition that holds is -1, as an i1 is.
        ("%r = arith.constant true", -1),
        ("%r = arith.cmpi slt, %m3, %c7 : index", -1),
        ("%r = arith.cmpi sge, %m3, %c7 : index", 0),
        ("%r = arith.cmpi ne, %c3, %c7 : index", -1),
        ("%r = arith.cmpi ule, %c7, %c7 : index", -1),
        ("%r = arith.cmpi ugt, %c3, %c7 : index", 0),
        ("%r = arith.cmpi ult, %c7, %m3 : index", None),
        ("%r = arith.cmpi eq, %c7, %n : index", None),
        ("%r = affine.apply affine_map<(d)[s] -> (d * 2 - s floordiv 2)>(%c7)[%c3]", 13),
        ("%r = affine.apply affine_map<(d) -> (-d mod 4 + d ceildiv 2)>(%c7)", 5),
        ("%r = affine.apply affine_map<(d) -> (d + 1)>(%n)", None),
    ],
)
def test_evaluate(text: str, value: int | None) -> None:
    with CONTEXT:
        module = mlir.ir.Module.parse(
            f"""func.func @f(%n: index, %m: memref<?x5xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %m3 = arith.constant -3 : index
  %c1M = arith.constant 1048576 : index
  %b = arith.constant 100 : i8
  {text}
  return
}}"""
        )
        last = ops.walk(module.operation)[-2]
        assert evaluate(last.results[0]) == value
        assert evaluate(last.results[0], [(last.results[0], 42)]) == 42
