"""Atomic updates that upstream does not lower → updates that it does.

A `memref.atomic_rmw` that multiplies becomes a `memref.generic_atomic_rmw`, as no machine has an
atomic multiplication. The body of that operation must yield a value that is computed in the body.
Folding may move the value outside (`old and 0` is 0); then the update becomes an exchange.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import PassManager, ir

# Parsed for the values of the `kind` attributes, which differ between versions of MLIR.
_KINDS = """
func.func @f(%v: i32, %w: f32, %m: memref<i32>, %n: memref<f32>) {
  %a = memref.atomic_rmw assign %v, %m[] : (i32, memref<i32>) -> i32
  %b = memref.atomic_rmw muli %v, %m[] : (i32, memref<i32>) -> i32
  %c = memref.atomic_rmw mulf %w, %n[] : (f32, memref<f32>) -> f32
  return
}
"""


def _kinds() -> tuple[Any, Any, Any]:
    """The kind attributes of an exchange, of an integer product, and of a float product."""
    pattern = ir.Module.parse(_KINDS)
    assign, muli, mulf = ops.find(pattern.operation, "memref.atomic_rmw")
    return assign.attributes["kind"], muli.attributes["kind"], mulf.attributes["kind"]


def expand_atomic_products(module: Any) -> None:
    """Changes `module`, a builtin.module, in place."""
    if not ops.find(module, "memref.atomic_rmw"):
        return
    _, muli, mulf = _kinds()
    names = {muli: "arith.muli", mulf: "arith.mulf"}
    for product in ops.find(module, "memref.atomic_rmw"):
        name = names.get(product.attributes["kind"])
        if name is None:
            continue
        type_ = product.results[0].type
        with ir.InsertionPoint(product), product.location:
            update = ops.create(
                "memref.generic_atomic_rmw", list(product.operands)[1:], [type_], regions=1
            )
            body = update.regions[0].blocks.append(type_)
            with ir.InsertionPoint(body):
                new = ops.binary(name, body.arguments[0], product.operands[0])
                ops.create("memref.atomic_yield", [new])
        ops.replace(product, [update.result])


def exchange_folded_updates(module: Any) -> None:
    """Changes `module`, a builtin.module, in place. It must run after the lowering to branches, as
    a value may fold only then, for example if a loop runs once."""
    if not ops.find(module, "memref.generic_atomic_rmw"):
        return
    PassManager.parse("builtin.module(canonicalize)").run(module)
    kind, _, _ = _kinds()
    for update in ops.find(module, "memref.generic_atomic_rmw"):
        body = update.regions[0].blocks[0]
        value = ops.terminator(body).operands[0]
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
        ops.replace(update, [exchange.result])
