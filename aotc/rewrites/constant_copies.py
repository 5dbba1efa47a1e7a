"""Declarations of the runtime's copies of constants: `memref.global`s without a value."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import COPY_OF
from aotc.mlir import ir
from aotc.ops import symbol_of


def declare_copy(constant: Any, prefix: str, type_: Any) -> Any:
    """Declares the copy of `constant`, a memref of `type_`, before it."""
    with constant.location, ir.InsertionPoint(constant):
        return ops.create(
            "memref.global",
            attributes={
                "sym_name": ir.StringAttr.get(f"{prefix}{symbol_of(constant)}"),
                "sym_visibility": ir.StringAttr.get("private"),
                "type": ir.TypeAttr.get(type_),
                "constant": ir.UnitAttr.get(),
                # This is a use of the constant, so that it is not removed as dead.
                COPY_OF: ir.FlatSymbolRefAttr.get(symbol_of(constant)),
            },
        )
