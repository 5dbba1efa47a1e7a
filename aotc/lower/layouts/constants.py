"""Constant buffers with reordered dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from aotc import ops
from aotc.dense import content_of, is_splat
from aotc.lower.layouts.permute import Dimensions, order_of
from aotc.lower.tensors.constants import dense_of
from aotc.lower.tensors.known_tensors import dtype_of, packed
from aotc.mlir import ir
from aotc.ops import symbol_of
from aotc.sizes import dense_bytes


def add_reordered(variable: Any, last: Dimensions, names: set[str]) -> str:
    """Adds a reordered copy of a constant `memref.global`, with the dimensions `last` last, before
    it.

    Returns its name, which is unique among `names`, and adds it to them.
    """
    with variable.location, ir.InsertionPoint(variable):
        type_ = ir.MemRefType(ir.TypeAttr(variable.attributes["type"]).value)
        order = order_of(type_.rank, last)
        shape = [type_.shape[i] for i in order]
        value = variable.attributes["initial_value"]
        tensor = ir.RankedTensorType.get(shape, type_.element_type)
        if is_splat(value):
            made = ir.DenseElementsAttr.get_splat(tensor, value.get_splat_value())
        else:
            size, dtype = dense_bytes(value.type), dtype_of(type_.element_type)
            assert size is not None
            assert dtype is not None
            array = np.frombuffer(content_of(value, size), dtype).reshape(type_.shape)
            made = dense_of(packed(array.transpose(order)), type_.element_type)
        name = stem = f"{symbol_of(variable)}_ordered"
        number = 0
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names.add(name)
        attributes = ops.attributes_of(variable)
        attributes |= {
            "sym_name": ir.StringAttr.get(name),
            "type": ir.TypeAttr.get(ir.MemRefType.get(shape, type_.element_type)),
            "initial_value": made,
        }
        ops.create("memref.global", attributes=attributes)
    return name
