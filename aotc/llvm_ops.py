"""Makers of single operations of the LLVM dialect, as `aotc.ops` has them of others.

Each builds at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc.mlir import ir
from aotc.ops import create


def call_llvm(
    name: str, arguments: Sequence[Any], results: Sequence[Any] = (), **attributes: Any
) -> Any:
    """An `llvm.call` of a function."""
    own = {
        "callee": ir.FlatSymbolRefAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(arguments), 0]),
    }
    return create("llvm.call", arguments, results, own | attributes)


def llvm_address(symbol: str) -> Any:
    """The address of a global variable, or of a function, of the LLVM dialect."""
    attributes = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
    return create("llvm.mlir.addressof", (), [ir.Type.parse("!llvm.ptr")], attributes).result


def extract_value(struct: Any, type_: Any, *position: int) -> Any:
    """`llvm.extractvalue` of a field of a structure, or of an element of an array in it."""
    attributes = {"position": ir.DenseI64ArrayAttr.get(position)}
    return create("llvm.extractvalue", [struct], [type_], attributes).result


def assembly(text: str, constraints: str, operands: Sequence[Any], result: Any) -> Any:
    """The value of inline assembly without side effects."""
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(constraints),
    }
    return create("llvm.inline_asm", operands, [result], attributes).result
