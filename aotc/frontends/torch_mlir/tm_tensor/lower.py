"""Replaces the operations of the dialect by the MLIR text that the other modules generate."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.frontends.helpers import declare_capability, inline_helpers
from aotc.frontends.torch_mlir.tm_tensor.scans import scan_text
from aotc.frontends.torch_mlir.tm_tensor.scatters import scatter_text
from aotc.frontends.torch_mlir.tm_tensor.sorts import sort_text, topk_text
from aotc.module_names import CAPABILITY


def lower_tm_tensor(module: Any) -> None:
    """Replaces sorts, inclusive scans, and scatters of elements and slices in a module of
    torch-mlir's. Other operations of the dialect are not changed."""
    from torch_mlir import ir

    texts = {
        "tm_tensor.sort": sort_text,
        "tm_tensor.topk": topk_text,
        "tm_tensor.scan": scan_text,
        "tm_tensor.scatter": scatter_text,
    }
    with module.context:
        for operation in ops.find(module.operation, *texts):
            with operation.location, ir.InsertionPoint(operation):
                text = texts[operation.name](ir, operation)
                if text is not None:
                    _replace(ir, operation, text)
        declare_capability(ir, module)


def _replace(ir: Any, operation: Any, text: str) -> None:
    """Replaces `operation` by the body of the text's last function. Calls of `@region` are replaced
    by the body of the operation's region, and calls of other functions of the text are inlined."""
    parsed = ir.Module.parse(text)
    function = inline_helpers(parsed, kept=("region", CAPABILITY))
    for call in ops.find(function, "func.call"):
        if ops.callee_of(call) == CAPABILITY:
            continue
        with ir.InsertionPoint(call):
            result = _clone(operation.regions[0].blocks[0], list(call.operands))
        ops.replace(call, [result])
    ops.replace_by_body(operation, function.regions[0].blocks[0], operation.operands)
    ops.erase(operation)


def _clone(block: Any, arguments: list[Any]) -> Any:
    """Clones the operations of the block for these arguments at the insertion point, and returns
    the value that it yields."""
    values = dict(zip(block.arguments, arguments, strict=True))
    *body, returned = block.operations
    for one in body:
        clone = one.operation.clone()
        for place, value in enumerate(one.operation.operands):
            clone.operands[place] = values.get(value, value)
        values.update(zip(one.operation.results, clone.results, strict=True))
    (yielded,) = returned.operands
    return values.get(yielded, yielded)
