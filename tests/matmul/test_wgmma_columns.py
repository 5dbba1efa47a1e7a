"""A vector along C's columns on Hopper: where each thread reads it, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from matmul.test_wgmma import Aotc, problem
from matmul.traced import traced
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.kernels.matmul.problem import Axis, EpilogueOperand
from aotc.kernels.matmul.wgmma.column_operands import ColumnOperands

BIAS = EpilogueOperand("memref<104xf16>", "f16", (Axis("column"),), 4)


@pytest.mark.parametrize("lane", [0, 1, 6, 31])
@pytest.mark.parametrize("first", [0, 64])
def test_a_thread_reads_what_its_accumulators_are_of(lane: int, first: int) -> None:
    """Of each 8 columns of a subtile the lane's two, or C's last two; the same in both halves."""
    p = replace(problem(n=104), epilogue_operands=(BIAS,))
    with traced(bias=BIAS.type, first="i32", lane="i32") as trace:
        operands = ColumnOperands(trace.b, p, [trace["bias"]], has_pairs=True)
        found = operands.load(trace["first"], 64, trace["lane"])[0]
        values = trace.evaluate(first=first, lane=lane)
        places = [values[load.operands[1]] for load in trace.operations("vector.load")]
    columns = [first + 8 * group + 2 * (lane % 4) for group in range(8)]
    assert places == [min(column, 102) for column in columns]
    assert all(found[group, 0] == found[group, 1] for group in range(8))


@pytest.mark.parametrize(
    "extra",
    [
        replace(BIAS, axes=(Axis("row"),)),
        replace(BIAS, axes=(Axis("row"), Axis("column"))),
        replace(BIAS, alignment=2),
    ],
)
def test_others_are_read_where_they_are_used(extra: EpilogueOperand) -> None:
    found = ColumnOperands(
        Builder(), replace(problem(), epilogue_operands=(extra,)), [None], has_pairs=True
    )
    assert found.operands == {}


def test_a_bias_is_read_while_products_are_made(
    aotc: Aotc, mlir_file: Callable[..., Path], tmp_path: Path
) -> None:
    c, maps = "200x104", "affine_map<(i, j) -> (i, j)>"
    path = mlir_file(f"""
func.func @layer(%A: memref<200x512xf16>, %B: memref<512x104xf16>, %bias: memref<104xf16>,
                 %C: memref<{c}xf16>) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<{c}xf32>
  linalg.fill ins(%zero : f32) outs(%sums : memref<{c}xf32>)
  linalg.matmul ins(%A, %B : memref<200x512xf16>, memref<512x104xf16>)
      outs(%sums : memref<{c}xf32>)
  linalg.generic {{indexing_maps = [{maps}, affine_map<(i, j) -> (j)>, {maps}],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%sums, %bias : memref<{c}xf32>, memref<104xf16>) outs(%C : memref<{c}xf16>) {{
  ^bb0(%sum: f32, %b: f16, %_: f16):
    %wide = arith.extf %b : f16 to f32
    %x = arith.addf %sum, %wide : f32
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  }}
  memref.dealloc %sums : memref<{c}xf32>
  return
}}
""")
    out = tmp_path / "out"
    aotc("build", path, "--chip", "sm_90a", "--emit", "ptx", "-o", f"{out}/").succeeded()
    [ptx] = [text for one in out.glob("*.ptx") if "wgmma" in (text := one.read_text())]
    assert ptx.index("ld.global") < ptx.index("wgmma.mma_async")
