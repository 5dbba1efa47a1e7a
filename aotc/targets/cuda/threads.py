"""The position of a thread in its block: linear id, warp, and their counts, as i32 values."""

from __future__ import annotations

import math
from typing import Any

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import binary, constant, create, enclosing, index, integer, unary
from aotc.targets.cuda.lanes import i32

_WARP_BITS = 5


def linear_id() -> Any:
    """The thread's linear id in its block, with x innermost. A warp has 32 consecutive ids."""
    x, y, z = (_along("gpu.thread_id", dimension) for dimension in "xyz")
    width, height = (_along("gpu.block_dim", dimension) for dimension in "xy")
    row = binary("arith.addi", binary("arith.muli", z, height), y)
    return binary("arith.addi", binary("arith.muli", row, width), x)


def thread_count() -> Any:
    """The number of threads of the block."""
    x, y, z = (_along("gpu.block_dim", dimension) for dimension in "xyz")
    return binary("arith.muli", binary("arith.muli", x, y), z)


def known_threads(operation: Any) -> int | None:
    """The number of threads of every block that runs `operation`, if the kernel's attributes have
    it."""
    kernel = enclosing(operation, "gpu.func")
    if kernel is None or "known_block_size" not in kernel.attributes:
        return None
    return math.prod(int(n) for n in ir.DenseI32ArrayAttr(kernel.attributes["known_block_size"]))


def warp_of(thread: Any) -> Any:
    """The warp of a thread with a linear id."""
    return binary("arith.shrui", thread, i32(_WARP_BITS))


def warp_count(threads: Any) -> Any:
    """The number of warps of a block of so many threads. The last warp may be partial."""
    return warp_of(binary("arith.addi", threads, i32(WARP - 1)))


def as_index(number: Any) -> Any:
    return unary("arith.index_castui", number, index())


def expand_subgroup_id(_: Any) -> list[Any]:
    # This is not PTX's %warpid, which is a hardware slot and may change.
    return [as_index(warp_of(linear_id()))]


def expand_subgroup_count(_: Any) -> list[Any]:
    return [as_index(warp_count(thread_count()))]


def expand_subgroup_size(_: Any) -> list[Any]:
    return [constant(index(), WARP)]


def _along(name: str, dimension: str) -> Any:
    attributes = {"dimension": ir.Attribute.parse(f"#gpu<dim {dimension}>")}
    return unary(
        "arith.index_cast",
        create(name, results=[index()], attributes=attributes).result,
        integer(32),
    )
