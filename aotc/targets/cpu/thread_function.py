"""A gpu.func → a func.func that runs one thread, which its arguments identify.

The arguments of the gpu.func come first, then those of `CONTEXT`: ids, and pointers to the memory
of the block. Functions that a kernel calls also get them, if they or their callees need one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.mlir import ir
from aotc.ops import binary, constant, create, index, symbol_of, walk
from aotc.symbols import has_body
from aotc.targets.cpu.expand.exchange import EXCHANGES
from aotc.targets.cpu.expand.failures import FAILURES
from aotc.targets.cpu.expand.matrix import MATRICES
from aotc.targets.cpu.expand.nvvm import expand_gpu_barrier, number_barriers
from aotc.targets.cpu.shared_memory import replace_marked, uses_workgroup

# The arguments that follow a kernel's own, in order.
_THREE_EACH = ("thread_id", "block_id", "grid_dim", "block_dim")
_INDEX_ARGUMENTS = (
    *(f"{name}.{dimension}" for name in _THREE_EACH for dimension in "xyz"),
    "linear",
    "lane",
    "warp",
    "dynamic_shared_bytes",
)
_POINTER_ARGUMENTS = ("shared", "dynamic_shared", "slots", "block_slots", "block")
CONTEXT = _INDEX_ARGUMENTS + _POINTER_ARGUMENTS

Size = tuple[int, int, int]


class ThreadFunction(Struct, frozen=True):
    """A kernel's thread function: its symbol, and the launch sizes that the kernel's attributes
    give. `launched_block_size` is that of launches, and `block_size` that of the loops over the
    threads."""

    symbol: str
    block_size: Size | None
    grid_size: Size | None
    launched_block_size: Size | None

    @property
    def widening(self) -> int:
        """How many threads there are for each one that the runtime knows of."""
        sizes = self.block_size, self.launched_block_size
        own, launched = (1 if size is None else math.prod(size) for size in sizes)
        return own // launched


class Ids(Struct, frozen=True):
    """The context of a thread in one function: values of type index, and pointers.

    The first four are lists of x, y, z. `linear` is the linear id of the thread in its block, with
    x innermost. `lane` and `warp` are its remainder and its quotient by 32. `slots` points to
    WARP_SLOTS bytes of the thread's warp, through which its lanes exchange values; `block_slots` to
    those of the first warp, which the other warps' follow. `block` points to the aotc_cpu_block.
    """

    thread_id: list[Any]
    block_id: list[Any]
    grid_dim: list[Any]
    block_dim: list[Any]
    linear: Any
    lane: Any
    warp: Any
    dynamic_shared_bytes: Any
    shared: Any
    dynamic_shared: Any
    slots: Any
    block_slots: Any
    block: Any

    def all(self) -> list[Any]:
        """The values in the order of `CONTEXT`."""
        return [
            *self.thread_id,
            *self.block_id,
            *self.grid_dim,
            *self.block_dim,
            self.linear,
            self.lane,
            self.warp,
            self.dynamic_shared_bytes,
            self.shared,
            self.dynamic_shared,
            self.slots,
            self.block_slots,
            self.block,
        ]


def kernel_to_function(kernel: Any, block_size: Size | None) -> ThreadFunction:
    """Replaces a gpu.func by a func.func that runs one of its threads. `block_size` is the size of
    blocks on the CPU if it is not that of launches."""
    attributes = kernel.attributes
    inputs = list(attributes["function_type"].value.inputs)
    private_attributes = (
        list(attributes["private_attrib_attrs"]) if "private_attrib_attrs" in attributes else []
    )
    function_type = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    with ir.InsertionPoint(kernel), kernel.location:
        function = create(
            "func.func",
            attributes={"sym_name": attributes["sym_name"], "function_type": function_type},
            regions=1,
        )
    for block in list(kernel.regions[0].blocks):
        block.append_to(function.regions[0])
    _allocate_private(function.regions[0].blocks[0], len(inputs), private_attributes)
    for operation in walk(function):
        if operation.name == "gpu.return":
            with ir.InsertionPoint(operation), operation.location:
                create("func.return", list(operation.operands))
            ops.erase(operation)
    launched = _known_size(kernel, "known_block_size")
    found = ThreadFunction(
        symbol_of(kernel),
        block_size or launched,
        _known_size(kernel, "known_grid_size"),
        launched,
    )
    ops.erase(kernel)
    return found


def _known_size(kernel: Any, name: str) -> Size | None:
    if name not in kernel.attributes:
        return None
    x, y, z = ir.DenseI32ArrayAttr(kernel.attributes[name])
    return int(x), int(y), int(z)


def _allocate_private(entry: Any, input_count: int, attributes: list[Any]) -> None:
    """Replaces private attributions, which are arguments of the gpu.func's body, by allocas."""
    while len(entry.arguments) > input_count:
        # Each alloca is inserted at the start, the last one first, so that they are in order.
        number = len(entry.arguments) - 1
        attribution = entry.arguments[number]
        alloca: dict[str, Any] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        place = number - input_count
        if place < len(attributes) and "llvm.align" in attributes[place]:
            alloca["alignment"] = attributes[place]["llvm.align"]
        with ir.InsertionPoint.at_block_begin(entry), attribution.location:
            memory = create("memref.alloca", results=[attribution.type], attributes=alloca)
        attribution.replace_all_uses_with(memory.result)
        entry.erase_argument(number)


def pass_ids(functions: list[Any], kernels: set[str], name: str) -> list[Any]:
    """Gives the context to the functions named in `kernels`, and to those that need it.

    Replaces the operations that read it, or that exchange values between threads. Returns the
    globals that were made for this. `name` is the name of the input in locations without a file.
    """
    bodies = [f for f in functions if f.name == "func.func" and has_body(f)]
    receivers = _receivers(bodies, kernels)
    ids = {symbol_of(f): _add_arguments(f) for f in bodies if symbol_of(f) in receivers}
    added: list[Any] = []
    for function in bodies:
        if symbol_of(function) not in receivers:
            continue
        own = ids[symbol_of(function)]
        number_barriers(function)
        # Nested operations first, as they are erased with the outer one.
        for operation in reversed(walk(function)):
            with ir.InsertionPoint(operation), operation.location:
                if operation.name in _IDS:
                    value = _IDS[operation.name](operation, own)
                    operation.results[0].replace_all_uses_with(value)
                elif uses_workgroup(operation):
                    replace_marked(operation, own)
                elif operation.name in _EXPANSIONS:
                    _EXPANSIONS[operation.name](operation, own)
                elif operation.name in FAILURES:
                    symbol = f"{symbol_of(function)}_failure{len(added)}"
                    added.append(FAILURES[operation.name](operation, own, name, symbol))
                elif operation.name == "func.call" and ops.callee_of(operation) in receivers:
                    _pass_on(operation, own)
                else:
                    continue
                ops.erase(operation)
    return added


def _receivers(functions: list[Any], kernels: set[str]) -> set[str]:
    """The kernels, and every function that needs the context or calls one that does."""
    receivers = set(kernels)
    calls: dict[str, set[str]] = {}
    for function in functions:
        name = symbol_of(function)
        operations = list(walk(function))
        calls[name] = {ops.callee_of(op) for op in operations if op.name == "func.call"}
        if any(_needs_context(op) for op in operations):
            receivers.add(name)
    while True:
        more = {name for name, callees in calls.items() if callees & receivers} - receivers
        if not more:
            return receivers
        receivers |= more


def _needs_context(operation: Any) -> bool:
    needs = (_IDS, _EXPANSIONS, FAILURES)
    return any(operation.name in names for names in needs) or uses_workgroup(operation)


def _add_arguments(function: Any) -> Ids:
    entry = function.regions[0].blocks[0]
    pointer = ir.Type.parse("!llvm.ptr")
    types = [*[index()] * len(_INDEX_ARGUMENTS), *[pointer] * len(_POINTER_ARGUMENTS)]
    added = [entry.add_argument(type_, function.location) for type_ in types]
    type_ = function.attributes["function_type"].value
    ops.set_function_type(function, [*type_.inputs, *types], type_.results)
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
    return Ids(added[0:3], added[3:6], added[6:9], added[9:12], *added[12:])


def _pass_on(call: Any, ids: Ids) -> None:
    with_ids = create(
        "func.call",
        [*call.operands, *ids.all()],
        [result.type for result in call.results],
        {"callee": call.attributes["callee"]},
    )
    for old, new in zip(call.results, with_ids.results, strict=True):
        old.replace_all_uses_with(new)


def _dimension(operation: Any) -> int:
    # #gpu<dim x>
    return "xyz".index(str(operation.attributes["dimension"])[-2])


def _global_id(operation: Any, ids: Ids) -> Any:
    # In 64 bits, as 2^31 - 1 blocks of 1024 threads do not fit into 32.
    place = _dimension(operation)
    first = binary("arith.muli", ids.block_id[place], ids.block_dim[place])
    return binary("arith.addi", first, ids.thread_id[place])


_IDS: dict[str, Callable[[Any, Ids], Any]] = {
    "gpu.thread_id": lambda op, ids: ids.thread_id[_dimension(op)],
    "gpu.block_id": lambda op, ids: ids.block_id[_dimension(op)],
    "gpu.grid_dim": lambda op, ids: ids.grid_dim[_dimension(op)],
    "gpu.block_dim": lambda op, ids: ids.block_dim[_dimension(op)],
    "gpu.global_id": _global_id,
    # Every block is its own cluster: `support` refuses other clusters.
    "gpu.cluster_id": lambda op, ids: ids.block_id[_dimension(op)],
    "gpu.cluster_dim": lambda op, ids: ids.grid_dim[_dimension(op)],
    "gpu.cluster_dim_blocks": lambda op, ids: constant(index(), 1),
    "gpu.cluster_block_id": lambda op, ids: constant(index(), 0),
}

# Operations in which threads cooperate. Each function builds the replacement at the operation.
_EXPANSIONS: dict[str, Callable[[Any, Ids], None]] = {
    "gpu.barrier": expand_gpu_barrier,
    **EXCHANGES,
    **MATRICES,
}
