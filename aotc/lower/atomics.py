"""Atomic updates that do not look at the old value → atomic exchanges.

Upstream lowers `memref.generic_atomic_rmw` only if what its region yields is made inside of it.
Folding can move that outside: `old and 0` is 0.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import PassManager, ir

# For the number of the kind, which is not the same in all versions of MLIR.
_EXCHANGE = """
func.func @f(%v: i32, %m: memref<i32>) {
  %old = memref.atomic_rmw assign %v, %m[] : (i32, memref<i32>) -> i32
  return
}
"""


def replace_constant_updates(module: Any) -> None:
    """Changes `module`, a builtin.module, in place."""
    if not ops.find(module, "memref.generic_atomic_rmw"):
        return
    PassManager.parse("builtin.module(canonicalize)").run(module)
    pattern = ir.Module.parse(_EXCHANGE)
    kind = ops.find(pattern.operation, "memref.atomic_rmw")[0].attributes["kind"]
    for update in ops.find(module, "memref.generic_atomic_rmw"):
        body = update.regions[0].blocks[0]
        value = list(body.operations)[-1].operation.operands[0]
        home = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
        if home == body:
            continue
        with ir.InsertionPoint(update), update.location:
            exchange = ops.create(
                "memref.atomic_rmw",
                [value, *update.operands],
                [update.results[0].type],
                {"kind": kind},
            )
        update.results[0].replace_all_uses_with(exchange.result)
        update.erase()
