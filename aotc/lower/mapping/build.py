"""Building blocks of kernels: launches, loops with carried values, and versions of loops.

Each function but the last one creates operations at the current insertion point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.attributes import TEMPORARY
from aotc.lower.mapping.blocks import BlockShape
from aotc.mlir import ir

# arith.cmpi's numbers for signed <, signed <=, unsigned <, unsigned <=
SLT, SLE, ULT, ULE = 2, 3, 6, 7
EQ = 0


class Launch(Struct, frozen=True):
    """A gpu.launch whose body is filled before `end`. The ids and sizes are along x, y and z."""

    operation: Any
    end: Any
    block_ids: list[Any]
    thread_ids: list[Any]
    grid_sizes: list[Any]
    shared: list[Any]

    def number(self, block: BlockShape, first_axis: int = 0) -> Any:
        """The linear number of the thread in its block, x fastest, using only the axes from
        `first_axis` on."""
        sizes = (block.x, block.y, block.z)
        number = self.thread_ids[2]
        for axis in (1, 0)[: 2 - first_axis]:
            if all(size == 1 for size in sizes[axis + 1 :]):
                number = self.thread_ids[axis]
                continue
            scaled = ops.index_op("arith.muli", number, ops.constant_index(sizes[axis]))
            number = ops.index_op("arith.addi", scaled, self.thread_ids[axis])
        return number


def create_launch(
    grid: Sequence[Any], block: BlockShape, shared: Sequence[Any] = (), dynamic_bytes: int = 0
) -> Launch:
    """A launch of `grid` blocks (values along x, y, z) with workgroup buffers of types `shared` and
    `dynamic_bytes` bytes of dynamic shared memory."""
    one = ops.constant_index(1)
    operands = [*grid, *[one] * (3 - len(grid))]
    operands += [ops.constant_index(size) for size in (block.x, block.y, block.z)]
    if dynamic_bytes > 0:
        operands.append(ops.constant(ops.integer(32), dynamic_bytes))
    segments = [0, *[1] * 6, 0, 0, 0, int(dynamic_bytes > 0), 0]
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}
    if shared:
        attributes["workgroup_attributions"] = ir.IntegerAttr.get(ops.integer(64), len(shared))
    launch = ops.create("gpu.launch", operands, attributes=attributes, regions=1)
    body = launch.regions[0].blocks.append(*[ir.IndexType.get()] * 12, *shared)
    with ir.InsertionPoint(body):
        end = ops.create("gpu.terminator")
    # gpu.launch's block arguments: block ids, thread ids, grid sizes, block sizes.
    block_ids, thread_ids, grid_sizes = (list(body.arguments)[i : i + 3] for i in (0, 3, 6))
    return Launch(launch, end, block_ids, thread_ids, grid_sizes, list(body.arguments)[12:])


def shared_type(shape: Sequence[int], element: Any) -> Any:
    """The type of a memref in workgroup memory."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    return ir.MemRefType.get(list(shape), element, memory_space=space)


def create_loop(
    lower: Any,
    upper: Any,
    step: Any,
    inits: Sequence[Any],
    body: Callable[[Any, list[Any]], list[Any]],
) -> list[Any]:
    """Creates an `scf.for` with carried values: `body(variable, values)` returns the next
    values."""
    types = [value.type for value in inits]
    loop = ops.create("scf.for", [lower, upper, step, *inits], types, regions=1)
    block = loop.regions[0].blocks.append(ir.IndexType.get(), *types)
    with ir.InsertionPoint(block):
        ops.create("scf.yield", body(block.arguments[0], list(block.arguments)[1:]))
    return list(loop.results)


def create_parallel(lowers: Sequence[Any], uppers: Sequence[Any], steps: Sequence[Any]) -> Any:
    """Creates an empty scf.parallel without results."""
    rank = len(lowers)
    loop = ops.create(
        "scf.parallel",
        [*lowers, *uppers, *steps],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([rank] * 3 + [0])},
        regions=1,
    )
    with ir.InsertionPoint(loop.regions[0].blocks.append(*[ir.IndexType.get()] * rank)):
        ops.create("scf.reduce")
    return loop


def allocate_temporary(type_: Any, size: Any | int = 1) -> Any:
    """Allocates device memory. Only kernels use it, independent of `--memory`."""
    operands = [] if isinstance(size, int) else [size]
    shape = [ir.ShapedType.get_dynamic_size() if operands else size]
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(operands), 0]),
        TEMPORARY: ir.UnitAttr.get(),
    }
    return ops.create("gpu.alloc", operands, [ir.MemRefType.get(shape, type_)], attributes).result


def copy_in_place_of(loop: Any, condition: Callable[[], Any]) -> Any:
    """A copy of the loop that runs in place of it if the condition, which is created before the
    loop, holds."""
    with loop.location, ir.InsertionPoint(loop):
        again = loop.clone().operation
        ops.create_either(
            condition(),
            lambda: ir.InsertionPoint.current.insert(again.detach_from_parent()),
            lambda: ir.InsertionPoint.current.insert(loop.detach_from_parent()),
        )
    return again
