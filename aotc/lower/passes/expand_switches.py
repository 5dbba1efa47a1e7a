"""`aotc-expand-switches`: `scf.index_switch` with tensor results becomes a chain of `scf.if`, and
`cf.switch` in a function a chain of `cf.cond_br`.

One-shot bufferization does not model that the results of a switch may alias the tensors that its
regions yield (LLVM 22 to 24). Two switches then share one buffer, and an insertion into a result
writes into a tensor that other operations read. Neither one-shot bufferization nor the
deallocation of buffers takes a `cf.switch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir
from aotc.rewrites.switches import expand_switch

_EQ = 0  # arith.cmpi's number


class ExpandSwitches(OwnPass, frozen=True):
    """Runs before bufferization."""

    name = "aotc-expand-switches"
    reason: str = "switches become scf.if and cf.cond_br, which bufferize correctly"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for switch in ops.find(lowering.module.operation, "scf.index_switch"):
                if any(isinstance(result.type, ir.RankedTensorType) for result in switch.results):
                    _expand(switch)
            for switch in ops.find(lowering.module.operation, "cf.switch"):
                if ops.enclosing(switch, "func.func") is not None:
                    expand_switch(switch)


def _expand(switch: Any) -> None:
    default, *cases = switch.regions
    values = list(ir.DenseI64ArrayAttr(switch.attributes["cases"]))
    with switch.location, ir.InsertionPoint(switch):
        if values:
            results = _chain(switch, list(zip(values, cases, strict=True)), default)
        else:
            region = ops.create("scf.execute_region", (), _types(switch), regions=1)
            default.blocks[0].append_to(region.regions[0])
            results = list(region.results)
    ops.replace(switch, results)


def _chain(switch: Any, cases: Sequence[tuple[int, Any]], default: Any) -> list[Any]:
    """The results of the chain of branches for `cases`, created at the current insertion point."""
    (value, region), *others = cases
    selector = switch.operands[0]
    is_it = ops.compare(_EQ, selector, ops.constant_index(value))
    branch = ops.create("scf.if", [is_it], _types(switch), regions=2)
    region.blocks[0].append_to(branch.regions[0])
    if not others:
        default.blocks[0].append_to(branch.regions[1])
        return list(branch.results)
    with ir.InsertionPoint(branch.regions[1].blocks.append()):
        ops.create("scf.yield", _chain(switch, others, default))
    return list(branch.results)


def _types(switch: Any) -> list[Any]:
    return [result.type for result in switch.results]
