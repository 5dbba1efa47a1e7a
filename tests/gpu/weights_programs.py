"""A program whose constants are in a file beside it: in the bundle, with every device's cases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from samples import F32_RTOL, Case, Values, rng

PROGRAM = "weighted"
MATRIX = rng("weighted matrix").standard_normal((96, 130)).astype(np.float32)
ROWS = np.arange(96, dtype=np.int32)[::-1].copy() * 3
SCALE = np.linspace(0.5, 2, 64).astype(np.float32)

# Kernels read the matrix and the scale (which is too small for the file), host code the rows: it
# decides by them which row of the matrix the kernel multiplies.
TEXT = f"""
memref.global "private" constant @matrix : memref<96x130xf32> = dense<"0x{MATRIX.tobytes().hex()}">
memref.global "private" constant @rows : memref<96xi32> = dense<"0x{ROWS.tobytes().hex()}">
  {{alignment = 256 : i64}}
memref.global "private" constant @scale : memref<64xf32> = dense<"0x{SCALE.tobytes().hex()}">
func.func @scaled_row(%x: memref<?xf32>, %y: memref<?xf32>, %i: index) -> i32
    attributes {{llvm.emit_c_interface}} {{
  %matrix = memref.get_global @matrix : memref<96x130xf32>
  %rows = memref.get_global @rows : memref<96xi32>
  %scale = memref.get_global @scale : memref<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : i32
  %n = memref.dim %x, %c0 : memref<?xf32>
  %triple = memref.load %rows[%i] : memref<96xi32>
  %row_i32 = arith.divui %triple, %c3 : i32
  %row = arith.index_cast %row_i32 : i32 to index
  scf.parallel (%c) = (%c0) to (%n) step (%c1) {{
    %c64 = arith.constant 64 : index
    %at = arith.remui %c, %c64 : index
    %a = memref.load %x[%c] : memref<?xf32>
    %b = memref.load %matrix[%row, %c] : memref<96x130xf32>
    %s = memref.load %scale[%at] : memref<64xf32>
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %s : f32
    memref.store %q, %y[%c] : memref<?xf32>
  }}
  return %triple : i32
}}
"""

# Six weights of 1 MiB, which kernels read one after the other: more than fits into a budget of few
# pages. Each kernel reads what the one before has written elsewhere, so that none are fused.
LARGE_PROGRAM = "large_weights"
LARGE = 1 << 18
_FACTORS = (0.5, 3.0, 0.25, 7.0, 1.5, 0.125)


def large_text() -> str:
    """`large(x, y)`: y = x, permuted, times all factors."""
    pattern = np.tile(np.linspace(1, 2, 64, dtype=np.float32), LARGE // 64)
    weights = "".join(
        f"""memref.global "private" constant @w{i} : memref<{LARGE}xf32> =
  dense<"0x{(pattern * np.float32(factor)).tobytes().hex()}">\n"""
        for i, factor in enumerate(_FACTORS)
    )
    steps = []
    for i in range(len(_FACTORS)):
        source = "x" if i == 0 else f"t{i - 1}"
        target = "y" if i == len(_FACTORS) - 1 else f"t{i}"
        made = f"%{target} = memref.alloc() : memref<{LARGE}xf32>" if target != "y" else ""
        steps.append(f"""  {made}
  %w{i} = memref.get_global @w{i} : memref<{LARGE}xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {{
    %seven = arith.muli %i, %c7 : index
    %at = arith.remui %seven, %n : index
    %a = memref.load %{source}[%at] : memref<{LARGE}xf32>
    %b = memref.load %w{i}[%i] : memref<{LARGE}xf32>
    %p = arith.mulf %a, %b : f32
    memref.store %p, %{target}[%i] : memref<{LARGE}xf32>
  }}
""")
    frees = "".join(
        f"  memref.dealloc %t{i} : memref<{LARGE}xf32>\n" for i in range(len(_FACTORS) - 1)
    )
    return f"""{weights}func.func @large(%x: memref<{LARGE}xf32>, %y: memref<{LARGE}xf32>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %n = arith.constant {LARGE} : index
{"".join(steps)}{frees}  return
}}
"""


def _values(row: int, columns: int) -> Values:
    x = rng(f"weighted {row} {columns}").standard_normal(columns).astype(np.float32)
    y = x.astype(np.float64) * MATRIX[95 - row, :columns] * SCALE[np.arange(columns) % 64]
    return Values(
        {"x": x, "y": (columns,), "i": row},
        {"y": y, "result0": np.int32(ROWS[row])},
        {"y": np.float32},
    )


def _case(row: int, columns: int) -> Case:
    name = f"{PROGRAM}-{row}-{columns}"
    return Case(name, PROGRAM, lambda: _values(row, columns), F32_RTOL)


CASES: Mapping[str, Case] = {
    case.name: case for case in (_case(0, 130), _case(95, 1), _case(17, 129))
}
