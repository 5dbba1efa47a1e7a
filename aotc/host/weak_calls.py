"""Questions for the GPU's compute capability → calls through a weak reference.

Upstream's runtime has no answer: it runs on GPUs alone, and gets the kernels that are for all.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import append_with_declarations, operations
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY
from aotc.ops import symbol_of

_ASK = "aotc_ask_compute_capability"
_TEXT = f"""
llvm.func internal @{_ASK}() -> i32 {{
  %function = llvm.mlir.addressof @{CAPABILITY} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %function, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ask, ^guess
^ask:
  %answer = llvm.call @{CAPABILITY}() : () -> i32
  llvm.return %answer : i32
^guess:
  %least = llvm.mlir.constant({LEAST_CAPABILITY} : i32) : i32
  llvm.return %least : i32
}}
"""


def ask_through_weak_references(host: Any) -> None:
    """Changes `host`, a module in the LLVM dialect, in place."""
    declared = [
        op for op in operations(host) if op.name == "llvm.func" and symbol_of(op) == CAPABILITY
    ]
    if not declared:
        return
    for call in ops.find(host, "llvm.call"):
        if "callee" in call.attributes and ops.callee_of(call) == CAPABILITY:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_ASK)
    weak = f"llvm.func extern_weak @{CAPABILITY}() -> i32"
    append_with_declarations(host, _TEXT, {CAPABILITY: weak})
    declared[0].attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<extern_weak>")
