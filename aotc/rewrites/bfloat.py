"""Functions that round to bf16, which x86 code calls, for modules that use bf16.

LLVM's x86 back end calls `__truncsfbf2` and `__truncdfbf2` wherever a bf16 is made, even for
an addition. Older libgcc and zig's compiler-rt lack them. They are weak and hidden, so that a
library may define its own, and no other library sees these.
"""

from __future__ import annotations

from typing import Any

from aotc.mlir import ir
from aotc.ops import body_of_module, symbol_of, walk

# The float in %x rounds to the nearest bf16, ties to even; a NaN becomes quiet and keeps its
# sign and upper bits.
_ROUND = """
  %one = llvm.mlir.constant(1 : i32) : i32
  %sixteen = llvm.mlir.constant(16 : i32) : i32
  %half = llvm.mlir.constant(32767 : i32) : i32
  %quiet = llvm.mlir.constant(64 : i32) : i32
  %upper = llvm.lshr %bits, %sixteen : i32
  %last = llvm.and %upper, %one : i32
  %biased = llvm.add %bits, %half : i32
  %carried = llvm.add %biased, %last : i32
  %rounded = llvm.lshr %carried, %sixteen : i32
  %quieted = llvm.or %upper, %quiet : i32
  %is_nan = llvm.fcmp "uno" %x, %x : f32
  %chosen = llvm.select %is_nan, %quieted, %rounded : i1, i32
  %short = llvm.trunc %chosen : i32 to i16
  %result = llvm.bitcast %short : i16 to bf16
  llvm.return %result : bf16
"""

# An f64 is first rounded to odd as an f32, so that the second rounding is correct (no double
# rounding).
_FUNCTIONS = f"""
llvm.func weak_odr hidden @__truncsfbf2(%x: f32) -> bf16 {{
  %bits = llvm.bitcast %x : f32 to i32
  {_ROUND}
}}
llvm.func weak_odr hidden @__truncdfbf2(%value: f64) -> bf16 {{
  %x = llvm.fptrunc %value : f64 to f32
  %nearest = llvm.bitcast %x : f32 to i32
  %back = llvm.fpext %x : f32 to f64
  %size = llvm.intr.fabs(%value) : (f64) -> f64
  %back_size = llvm.intr.fabs(%back) : (f64) -> f64
  %is_larger = llvm.fcmp "ogt" %back_size, %size : f64
  %excess = llvm.zext %is_larger : i1 to i32
  %toward_zero = llvm.sub %nearest, %excess : i32
  %lowest = llvm.mlir.constant(1 : i32) : i32
  %odd = llvm.or %toward_zero, %lowest : i32
  %is_exact = llvm.fcmp "ueq" %back, %value : f64
  %bits = llvm.select %is_exact, %nearest, %odd : i1, i32
  {_ROUND}
}}
"""


def add_bfloat_functions(module: Any) -> None:
    """Adds the functions to a module in the LLVM dialect, if it uses bf16 and lacks them."""
    if not _has_bfloat(module):
        return
    present = ir.SymbolTable(module.operation)
    with module.context, ir.Location.unknown():
        # Keeps the module alive until its functions have moved: they are part of it.
        parsed = ir.Module.parse(_FUNCTIONS)
        for function in list(body_of_module(parsed).operations):
            if symbol_of(function.operation) not in present:
                body_of_module(module).append(function)


def _has_bfloat(module: Any) -> bool:
    types = {value.type for operation in walk(module.operation) for value in operation.results}
    return any("bf16" in str(type_) for type_ in types)
