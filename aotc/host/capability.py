"""Questions for what launches go to → calls through weak references.

Upstream's runtime has no answer: it runs on GPUs alone, and gets the kernels that are for all.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import append_with_declarations, operations
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, CPU_THREADS, LEAST_CAPABILITY
from aotc.ops import symbol_of

# The functions that are asked, and what is taken for their answer where there are none.
_GUESSES = {CAPABILITY: LEAST_CAPABILITY, CPU_THREADS: 1}


def ask_through_weak_references(host: Any) -> None:
    """Changes `host`, a module in the LLVM dialect, in place."""
    declared = {
        symbol_of(op): op
        for op in operations(host)
        if op.name == "llvm.func" and symbol_of(op) in _GUESSES
    }
    for name, declaration in declared.items():
        for call in ops.find(host, "llvm.call"):
            if "callee" in call.attributes and ops.callee_of(call) == name:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_asking(name))
        weak = f"llvm.func extern_weak @{name}() -> i32"
        append_with_declarations(host, _text(name, _GUESSES[name]), {name: weak})
        declaration.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<extern_weak>")


def _asking(name: str) -> str:
    return name.replace("aotc_", "aotc_ask_", 1)


def _text(name: str, guess: int) -> str:
    return f"""
llvm.func internal @{_asking(name)}() -> i32 {{
  %function = llvm.mlir.addressof @{name} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %function, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ask, ^guess
^ask:
  %answer = llvm.call @{name}() : () -> i32
  llvm.return %answer : i32
^guess:
  %guess = llvm.mlir.constant({guess} : i32) : i32
  llvm.return %guess : i32
}}
"""
