"""Allocations → allocations with a check of the size before, and of the address after.

MLIR computes a size in bytes modulo 2^64, and uses the address of a failed allocation. Each check
is a `cf.assert` with the attribute `FOR_MEMORY`. On the host, its failure is AOTC_OUT_OF_MEMORY; in
a kernel, it is a failed assertion.
"""

from __future__ import annotations

import math
from typing import Any

from aotc import ops
from aotc.attributes import FOR_MEMORY
from aotc.mlir import ir
from aotc.sizes import LARGEST_MEMORY, element_bytes

# The stack has 8 MiB by default on Linux, some of which is in use.
_LARGEST_ON_STACK = 1 << 22
_MESSAGE = "there is no memory for a {type_}"
_EQ, _NE, _ULE = 0, 1, 7  # arith.cmpi's numbers


def check_allocations(operation: Any) -> None:
    """Adds the checks to all allocations under `operation`, in place."""
    for allocation in ops.find(operation, "memref.alloc", "memref.alloca", "gpu.alloc"):
        is_on_stack = allocation.name == "memref.alloca"
        limit = _LARGEST_ON_STACK if is_on_stack else LARGEST_MEMORY
        with allocation.location:
            with ir.InsertionPoint(allocation):
                _check_size(allocation, limit)
            if allocation.name == "memref.alloc" or "hostShared" in allocation.attributes:
                with ir.InsertionPoint.after(allocation):
                    _check_address(allocation)


def _check_size(allocation: Any, limit: int) -> None:
    """Adds no check if all sizes are static: these were checked with the type."""
    type_ = allocation.results[0].type
    sizes = _dynamic_sizes(allocation)
    if not sizes:
        return
    known = [size for i, size in enumerate(type_.shape) if not type_.is_dynamic_dim(i)]
    most = limit // max(1, math.prod(known) * _most_bytes(type_.element_type))
    limit_value, zero = ops.constant_index(most), ops.constant_index(0)
    # In an unsigned comparison, negative sizes are larger than any limit.
    count, fits = sizes[0], ops.compare(_ULE, sizes[0], limit_value)
    for size in sizes[1:]:
        index = ir.IndexType.get()
        product = ops.create("arith.mului_extended", [count, size], [index, index])
        count, excess = product.results
        for is_good in (
            ops.compare(_ULE, size, limit_value),
            ops.compare(_EQ, excess, zero),
            ops.compare(_ULE, count, limit_value),
        ):
            fits = ops.binary("arith.andi", fits, is_good)
    _assert(fits, type_)


def _check_address(allocation: Any) -> None:
    memref = allocation.results[0]
    address = ops.unary("memref.extract_aligned_pointer_as_index", memref, ir.IndexType.get())
    _assert(ops.compare(_NE, address, ops.constant_index(0)), memref.type)


def _assert(condition: Any, type_: Any) -> None:
    marks = {
        "msg": ir.StringAttr.get(_MESSAGE.format(type_=type_)),
        FOR_MEMORY: ir.UnitAttr.get(),
    }
    ops.create("cf.assert", [condition], attributes=marks)


def _dynamic_sizes(allocation: Any) -> list[Any]:
    """The operands of gpu.alloc are tokens, sizes and symbols; of the others, sizes and symbols."""
    groups = ops.operand_groups(allocation)
    return groups[1] if allocation.name == "gpu.alloc" else groups[0]


def _most_bytes(type_: Any) -> int:
    """An upper bound of the bytes of an element."""
    if isinstance(type_, ir.VectorType):
        return 2 * int(math.prod(type_.shape)) * _most_bytes(type_.element_type)
    if isinstance(type_, ir.MemRefType):
        return 24 + 16 * len(type_.shape)
    known = element_bytes(type_)
    if known is not None:
        return known
    # The size of an integer of any width is rounded up to less than twice its bits.
    return max(16, int(getattr(type_, "width", 0)) // 4)
