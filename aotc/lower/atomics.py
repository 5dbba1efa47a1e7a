"""Atomic updates that do not look at the old value → atomic exchanges.

Upstream lowers `memref.generic_atomic_rmw` only if what its region yields is made inside of it.
Folding can move that outside: `old and 0` is 0.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import PassManager, ir

_ASSIGN = 2  # arith::AtomicRMWKind::assign


def replace_constant_updates(module: Any) -> None:
    """Changes `module`, a builtin.module, in place."""
    if not ops.find(module, "memref.generic_atomic_rmw"):
        return
    PassManager.parse("builtin.module(canonicalize)").run(module)
    for update in ops.find(module, "memref.generic_atomic_rmw"):
        body = update.regions[0].blocks[0]
        value = list(body.operations)[-1].operation.operands[0]
        home = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
        if home == body:
            continue
        with ir.InsertionPoint(update), update.location:
            kind = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _ASSIGN)
            exchange = ops.create(
                "memref.atomic_rmw",
                [value, *update.operands],
                [update.results[0].type],
                {"kind": kind},
            )
        update.results[0].replace_all_uses_with(exchange.result)
        update.erase()
