"""Constants in the layouts that kernels for the CPU device read. The runtime makes each copy once:
see `aotc_constant_get_packed` and `aotc_constant_get_winograd`."""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.builder import Builder
from aotc.builder.numbers import Value
from aotc.kernels.matmul.problem import ELEMENT_BYTES
from aotc.mlir import ir
from aotc.module_names import CPU_COPIES
from aotc.ops import symbol_of
from aotc.rewrites.constant_copies import declare_copy

# Operations through which a use may see a constant with other dimensions.
_RESHAPES = tuple(
    f"memref.{word}" for word in ("expand_shape", "collapse_shape", "cast", "reinterpret_cast")
)
# The limit for all copies of a module together, as they take memory in addition to the constants.
_MOST_BYTES = 4 << 30


def copy_of_constant(b: Builder, value: Value, prefix: str, type_: str) -> Value | None:
    """The copy of a constant, of type `type_`, as a value at the insertion point. None if `value`
    is no constant, or the copies would exceed `_MOST_BYTES`. `prefix`: one of `CPU_COPIES`."""
    identity = ir.AffineMap.get_identity(value.type.rank)
    get = ops.defining(value)
    while get is not None and get.name in _RESHAPES:
        get = ops.defining(get.operands[0])
    if get is None or get.name != "memref.get_global" or value.type.affine_map != identity:
        return None
    if math.prod(value.type.shape) != math.prod(get.results[0].type.shape):
        return None
    module = next(one for one in ops.ancestors(get) if one.name == "builtin.module")
    variables = ops.globals_of(module)
    constant = variables[ops.global_of(get)]
    if not all(one in constant.attributes for one in ("constant", "initial_value")):
        return None
    copy = variables.get(f"{prefix}{symbol_of(constant)}")
    if copy is None:
        others = [op for name, op in variables.items() if name.startswith(tuple(CPU_COPIES))]
        types = [ir.TypeAttr(op.attributes["type"]).value for op in others]
        if sum(map(_bytes_of, [*types, b.type(type_)])) > _MOST_BYTES:
            return None
        copy = declare_copy(constant, prefix, b.type(type_))
    elif ir.TypeAttr(copy.attributes["type"]).value != b.type(type_):
        return None
    attributes = {"name": ir.FlatSymbolRefAttr.get(symbol_of(copy))}
    return ops.create("memref.get_global", [], [b.type(type_)], attributes).result


def _bytes_of(type_: Any) -> int:
    memref = ir.MemRefType(type_)
    return int(math.prod(memref.shape)) * ELEMENT_BYTES[str(memref.element_type)]
