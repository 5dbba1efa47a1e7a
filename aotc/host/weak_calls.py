"""Calls of runtime functions that the lowering made → calls through weak references.

Upstream's runtime does not have these functions. It runs only on GPUs, and gets the kernels that
are for all of them; results are managed memory there.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.host.llvm_dialect import append_with_declarations
from aotc.mlir import ir
from aotc.module_names import CAPABILITY, LEAST_CAPABILITY, PREPARE_RESULT
from aotc.ops import symbol_of

# Function → its result with a runtime that does not have it, as operations that define %guess; None
# if it returns nothing.
_GUESSES: dict[str, str | None] = {
    CAPABILITY: f"%guess = llvm.mlir.constant({LEAST_CAPABILITY} : i32) : i32",
    PREPARE_RESULT: None,
}


def _asking(name: str) -> str:
    """The name of the function that calls `name` if the runtime has it."""
    return f"aotc_ask_{name.removeprefix('aotc_')}"


def _text(name: str, guess: str | None) -> str:
    result = "" if guess is None else " -> i32"
    answer, value, call = ("", "", "()") if guess is None else ("%answer = ", " %{} : i32", "i32")
    return f"""
llvm.func internal @{_asking(name)}(){result} {{
  %function = llvm.mlir.addressof @{name} : !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %is_there = llvm.icmp "ne" %function, %null : !llvm.ptr
  llvm.cond_br %is_there, ^ask, ^guess
^ask:
  {answer}llvm.call @{name}() : () -> {call}
  llvm.return{value.format("answer")}
^guess:
  {guess or ""}
  llvm.return{value.format("guess")}
}}
"""


def call_through_weak_references(host: Any) -> None:
    """Changes `host`, a module in the LLVM dialect, in place."""
    declared = {symbol_of(op): op for op in ops.content(host) if op.name == "llvm.func"}
    for name, guess in _GUESSES.items():
        if name not in declared:
            continue
        for call in ops.find(host, "llvm.call"):
            if "callee" in call.attributes and ops.callee_of(call) == name:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(_asking(name))
        result = "" if guess is None else " -> i32"
        weak = f"llvm.func extern_weak @{name}(){result}"
        append_with_declarations(host, _text(name, guess), {name: weak})
        declared[name].attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<extern_weak>")
