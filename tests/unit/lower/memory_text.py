"""MLIR text of functions with buffers that kernels use.

The functions take %a; their own buffer is %t, both of 32 f32 where nothing else is said.
"""

from __future__ import annotations

_FILL = """
  scf.parallel (%{iv}) = (%c0) to (%c32) step (%c1) {{
    memref.store %one, {buffer}[%{iv}] : {type}
  }}
"""


def fill(buffer: str, iv: str = "i", type_: str = "memref<32xf32>") -> str:
    """A kernel that writes 1 to each element of a buffer."""
    return _FILL.format(buffer=buffer, iv=iv, type=type_)


def entry(body: str, *, before: str = "", arguments: str = "%a: memref<32xf32>") -> str:
    return f"""
{before}
func.func @f({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  {body}
}}
"""


ALLOC = "%t = memref.alloc() : memref<32xf32>"
COPY_OUT = "memref.copy %t, %a : memref<32xf32> to memref<32xf32>"
DEALLOC = "memref.dealloc %t : memref<32xf32>"
END = f"{COPY_OUT}\n  {DEALLOC}\n  return"
