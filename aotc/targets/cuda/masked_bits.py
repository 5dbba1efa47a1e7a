"""(x & mask) ^ bits, with two constants, as one GPU instruction.

LOP3 computes any function of three operands, one of which may be an immediate. From an `and` and an
`xor` with a constant each, ptxas makes two instructions, each with an immediate. From `lop3` in PTX
it makes one, and keeps the other constant in a register.
"""

from __future__ import annotations

from typing import Any

from aotc import llvm_ops, ops
from aotc.mlir import ir

# The truth table of (a & b) ^ c, where those of a, b and c are 0xF0, 0xCC and 0xAA (PTX manual,
# lop3).
_TABLE = (0xF0 & 0xCC) ^ 0xAA


def merge_masks(device: Any) -> None:
    """Changes the module in place, within its context."""
    for xor in ops.find(device, "arith.xori"):
        masked, bits = xor.operands
        mask = ops.defining(masked)
        if mask is None or mask.name != "arith.andi" or xor.results[0].type != ops.integer(32):
            continue
        if not ops.is_constant(bits) or not ops.is_constant(mask.operands[1]):
            continue
        text = f"lop3.b32 $0, $1, $2, $3, {_TABLE:#x};"
        with xor.location, ir.InsertionPoint(xor):
            operands = [*mask.operands, bits]
            merged = llvm_ops.assembly(text, "=r,r,r,r", operands, xor.results[0].type)
        ops.replace(xor, [merged])
