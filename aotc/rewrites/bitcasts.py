"""`tensor.bitcast` → `arith.bitcast`, an elementwise operation. Bufferization has no other."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.mlir import ir


def expand_bitcasts(module: Any) -> None:
    """Changes `module` in place. Elements with a sign, as ui8, have no operations of arith."""
    with module.context:
        for cast in ops.find(module.operation, "tensor.bitcast"):
            types = (cast.operands[0].type, cast.results[0].type)
            if any(str(one.element_type).startswith(("ui", "si")) for one in types):
                continue
            with cast.location, ir.InsertionPoint(cast):
                made = ops.unary("arith.bitcast", cast.operands[0], types[1])
            ops.replace(cast, [made])
