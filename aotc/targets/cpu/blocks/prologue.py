"""The prologue of a function that the runtime calls: loads of a kernel's arguments and of the
values in `CONTEXT`.

Values that depend on the thread are computed from its linear id, or from its ids, if they are
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc.chips import WARP
from aotc.mlir import ir
from aotc.ops import create
from aotc.targets.cpu import build
from aotc.targets.cpu.blocks.flow import Flow, Value
from aotc.targets.cpu.synchronize import WARP_SLOTS
from aotc.targets.cpu.thread_function import CONTEXT, Size, ThreadFunction

# aotc_cpu_block of runtime_c/include/aotc_runtime.h, in i64s and pointers.
_BLOCK_ID, _GRID_DIM, _BLOCK_DIM = 0, 3, 6
_DYNAMIC_SHARED, _DYNAMIC_SHARED_BYTES, _SHARED, _THREADS = 9, 10, 11, 12
FAIL_FIELD, LEVEL_FIELD, ARRIVE_FIELD, TILES_FIELD = 13, 14, 15, 16
WORD = 8


class Parameters(Struct, frozen=True):
    """The values of a flow's arguments that do not depend on the thread, and the scratch memory.

    The argument `block_slots` is the start of the threads' memory. `memory` is the part of it
    after the slots of all warps. `padded` is the number of threads, rounded up to whole warps.
    """

    arguments: dict[Value, Any]
    block_id: list[Any]
    grid_dim: list[Any]
    block_dim: list[Any]
    thread_count: Any
    padded: Any
    memory: Any


def context_values(flow: Flow) -> dict[str, Value]:
    """The arguments of a thread function, by their names in `CONTEXT`."""
    return dict(zip(CONTEXT, flow.arguments[-len(CONTEXT) :], strict=True))


def uses_slots(flow: Flow) -> bool:
    """Whether threads exchange values through their warps' slots."""
    context = context_values(flow)
    slots = {context["slots"], context["block_slots"]}
    return any(value in slots for block in flow.blocks for value in block.uses())


def load_parameters(flow: Flow, thread: ThreadFunction, parameters: Any, block: Any) -> Parameters:
    """Builds the loads of a kernel's arguments, and of the values that are the same for the block's
    threads."""
    own = flow.arguments[: -len(CONTEXT)]
    arguments: dict[Value, Any] = {}
    for number, argument in enumerate(own):
        place = build.load(build.at(parameters, number * WORD), build.pointer_type())
        # A caller of the runtime may have a vector at any address.
        is_vector = str(argument.type).startswith("vector<")
        arguments[argument] = build.load(place, argument.type, alignment=1 if is_vector else None)

    def word(number: int, type_: Any) -> Any:
        return build.load(build.at(block, number * WORD), type_)

    def three(first: int, known: Size | None) -> list[Any]:
        if known is not None:
            return [build.number(size) for size in known]
        return [word(first + d, build.i64()) for d in range(3)]

    block_id = three(_BLOCK_ID, None)
    grid_dim = three(_GRID_DIM, thread.grid_size)
    block_dim = three(_BLOCK_DIM, thread.block_size)
    count = build.multiply(build.multiply(block_dim[0], block_dim[1]), block_dim[2])
    warps = build.divide(build.add(count, build.number(WARP - 1)), build.number(WARP))
    threads = word(_THREADS, build.pointer_type())
    slots_bytes = build.multiply(warps, build.number(WARP_SLOTS))
    memory = build.at(threads, slots_bytes) if uses_slots(flow) else threads
    context = context_values(flow)
    for name, values in (("block_id", block_id), ("grid_dim", grid_dim), ("block_dim", block_dim)):
        for dimension, value in zip("xyz", values, strict=True):
            arguments[context[f"{name}.{dimension}"]] = value
    arguments[context["dynamic_shared"]] = word(_DYNAMIC_SHARED, build.pointer_type())
    arguments[context["dynamic_shared_bytes"]] = word(_DYNAMIC_SHARED_BYTES, build.i64())
    arguments[context["shared"]] = word(_SHARED, build.pointer_type())
    arguments[context["block_slots"]] = threads
    arguments[context["block"]] = block
    return Parameters(
        arguments,
        block_id,
        grid_dim,
        block_dim,
        count,
        build.multiply(warps, build.number(WARP)),
        memory,
    )


class ThreadIds(Struct, frozen=True):
    """The ids of a thread as values, and its linear id in the block if it is known."""

    x: Any
    y: Any
    z: Any
    linear: Any = None


def ids_of(linear: Any, parameters: Parameters) -> ThreadIds:
    """The ids of the thread with a linear id."""
    width, height, _ = parameters.block_dim
    rest = build.divide(linear, width)
    return ThreadIds(
        build.remainder(linear, width),
        build.remainder(rest, height),
        build.divide(rest, height),
        linear,
    )


def linear_of(ids: ThreadIds, parameters: Parameters) -> Any:
    """The linear id of a thread in its block, with x innermost."""
    if ids.linear is not None:
        return ids.linear
    width, height, _ = parameters.block_dim
    rows = build.add(ids.y, build.multiply(height, ids.z))
    return build.add(ids.x, build.multiply(width, rows))


def thread_value(name: str, ids: ThreadIds, parameters: Parameters, block_slots: Any) -> Any:
    """The value of an argument in `CONTEXT` that depends on the thread."""
    if name.startswith("thread_id."):
        return getattr(ids, name[-1])
    linear = linear_of(ids, parameters)
    if name == "linear":
        return linear
    if name == "lane":
        return build.remainder(linear, build.number(WARP))
    warp = build.divide(linear, build.number(WARP))
    if name == "warp":
        return warp
    return build.at(block_slots, build.multiply(warp, build.number(WARP_SLOTS)))


THREAD_VALUES = (*(f"thread_id.{d}" for d in "xyz"), "linear", "lane", "warp", "slots")


def call_field(field: int, operands: Sequence[Any], results: Sequence[Any] = ()) -> Any:
    """Calls a function pointer that the runtime puts into aotc_cpu_block, the first operand."""
    address = build.load(build.at(operands[0], field * WORD), build.pointer_type())
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1 + len(operands), 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    return create("llvm.call", [address, *operands], results, attributes)
