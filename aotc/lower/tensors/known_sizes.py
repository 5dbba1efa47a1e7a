"""Known sizes become part of tensors' types.

Upstream's canonicalizer leaves `?` where a constant gives the size of a `tensor.expand_shape`, and
where the result of a `tensor.pad` determines the size of its source. Upstream's patterns that
compose reshapes and move them over other operations take such types for static ones, and make
invalid operations. A size of 0 stays `?`: upstream refuses slices of a dimension of size 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.mlir import ir


def fold_known_sizes(module: Any) -> None:
    for reshape in ops.find(module, "tensor.expand_shape"):
        _fold_expanded(reshape)
    for pad in ops.find(module, "tensor.pad"):
        _fold_padded(pad)


def _fold_expanded(reshape: Any) -> None:
    source, *operands = reshape.operands
    result = reshape.results[0]
    given = iter(operands)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape, rest = [], []
    for static in result.type.shape:
        size = next(given) if static == dynamic else None
        known = static if size is None else ops.known_index(size)
        is_known = size is None or (known is not None and known > 0)
        shape.append(known if is_known else dynamic)
        if not is_known:
            rest.append(size)
    if len(rest) == len(operands):
        return
    groups = [[shape[i] for i in group] for group in ops.groups_of(reshape)]
    collapsed = [dynamic if dynamic in group else math.prod(group) for group in groups]
    with reshape.location, ir.InsertionPoint(reshape):
        attributes = {
            "reassociation": reshape.attributes["reassociation"],
            "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
        }
        type_ = ir.RankedTensorType.get(shape, result.type.element_type)
        narrow = [_cast(source, collapsed), *rest]
        expanded = ops.create(reshape.name, narrow, [type_], attributes).result
        ops.replace(reshape, [_cast(expanded, result.type.shape)])


def _fold_padded(pad: Any) -> None:
    source, result = pad.operands[0], pad.results[0]
    dynamic = ir.ShapedType.get_dynamic_size()
    low, high = (ir.DenseI64ArrayAttr(pad.attributes[f"static_{end}"]) for end in ("low", "high"))
    shape = list(source.type.shape)
    for i, (size, before, after) in enumerate(zip(result.type.shape, low, high, strict=True)):
        left = size - before - after
        if dynamic not in (size, before, after) and shape[i] == dynamic and left > 0:
            shape[i] = left
    with pad.location, ir.InsertionPoint(pad):
        pad.operands[0] = _cast(source, shape)


def _cast(tensor: Any, shape: Sequence[int]) -> Any:
    type_ = ir.RankedTensorType.get(list(shape), tensor.type.element_type)
    return tensor if type_ == tensor.type else ops.unary("tensor.cast", tensor, type_)
