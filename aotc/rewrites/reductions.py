"""`gpu.all_reduce` and `gpu.subgroup_reduce`: the values that are combined, and the combiner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir
from aotc.ops import binary, create, element_type, enumerator

Combine = Callable[[Any, Any], Any]

# Kind of #gpu<all_reduce_op> → the operation on two values.
INTEGER_KINDS = {
    "add": "arith.addi",
    "mul": "arith.muli",
    "minui": "arith.minui",
    "minsi": "arith.minsi",
    "maxui": "arith.maxui",
    "maxsi": "arith.maxsi",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
}
FLOAT_KINDS = {
    "add": "arith.addf",
    "mul": "arith.mulf",
    "minnumf": "arith.minnumf",
    "maxnumf": "arith.maxnumf",
    "minimumf": "arith.minimumf",
    "maximumf": "arith.maximumf",
}


class Clusters(Struct, frozen=True):
    """The lanes of a warp that a reduction combines: `size` lanes, `stride` apart.

    The members of a cluster differ in the bits of the lane id from `stride` on, so that clusters of
    a larger stride are interleaved: for (size 2, stride 2) the first are lanes 0 and 2, then 1 and
    3.
    """

    size: int
    stride: int

    @property
    def span(self) -> int:
        """The number of consecutive lanes that a set of interleaved clusters covers."""
        return self.size * self.stride

    @property
    def member_bits(self) -> int:
        """The bits of the lane id in which the members of a cluster differ. They are 0 in its first
        lane."""
        return self.span - self.stride


def clusters_of(operation: Any, warp_size: int) -> Clusters:
    """The clusters of a gpu.subgroup_reduce."""
    attributes = operation.attributes
    if "cluster_size" not in attributes:
        return Clusters(warp_size, 1)
    return Clusters(
        ir.IntegerAttr(attributes["cluster_size"]).value,
        ir.IntegerAttr(attributes["cluster_stride"]).value,
    )


def check_clusters(reduction: Any, warp_size: int) -> str | None:
    """Why a gpu.subgroup_reduce has no lowering, or None."""
    clusters = clusters_of(reduction, warp_size)
    if clusters.span <= warp_size:
        return None
    return (
        f"clusters of {clusters.size} lanes with a stride of {clusters.stride} "
        f"do not fit into a warp of {warp_size}"
    )


def is_named(reduction: Any) -> bool:
    """Whether a reduction has a kind instead of a region. Then it works on vectors, elementwise."""
    return "op" in reduction.attributes


def kind_of(reduction: Any) -> str:
    """The name of a reduction's kind, such as `add` for #gpu<all_reduce_op add>."""
    return enumerator(reduction.attributes["op"])


def combiner(reduction: Any) -> Combine:
    """A function that builds the combination of two values at the insertion point."""
    if is_named(reduction):
        return named_combiner(kind_of(reduction), reduction.results[0].type)
    return lambda left, right: _combine_by_region(reduction, left, right)


def named_combiner(kind: str, type_: Any) -> Combine:
    """The combiner of a kind, for values of `type_` or vectors of its elements."""
    is_integer = isinstance(element_type(type_), ir.IntegerType)
    name = (INTEGER_KINDS if is_integer else FLOAT_KINDS)[kind]
    return lambda left, right: binary(name, left, right)


def neutral_bits(kind: str, width: int) -> int:
    """The bits of the neutral element of a kind, as an unsigned integer of `width` bits."""
    ones = (1 << width) - 1
    return {
        "mul": 1,
        "and": ones,
        "minui": ones,
        "minsi": ones >> 1,
        "maxsi": (ones >> 1) + 1,
    }.get(kind, 0)


def _combine_by_region(reduction: Any, left: Any, right: Any) -> Any:
    """The value that a copy of the reduction's region yields for the two."""
    copy = reduction.clone().operation
    execution = create("scf.execute_region", results=[left.type], regions=1)
    region = execution.regions[0]
    for block in list(copy.regions[0].blocks):
        block.append_to(region)
    ops.erase(copy)
    for value in (left, right):
        region.blocks[0].arguments[0].replace_all_uses_with(value)
        region.blocks[0].erase_argument(0)
    for block in region.blocks:
        last = ops.terminator(block)
        if last.name == "gpu.yield":
            with ir.InsertionPoint(last), last.location:
                create("scf.yield", list(last.operands))
            ops.erase(last)
    return execution.result
