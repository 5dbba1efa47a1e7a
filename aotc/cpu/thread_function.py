"""A gpu.func → a func.func that runs one thread, told by its arguments which one.

The arguments of the gpu.func come first, then twelve ids of type index: thread_id, block_id,
grid_dim, block_dim, each as x, y, z. Functions that a kernel calls get them too if they, or
what they call, ask for an id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aotc.cpu.support import ID_OPERATIONS
from aotc.cpu.symbols import has_body
from aotc.mlir import ir
from aotc.ops import binary, constant, create, index, symbol_of, walk

ID_COUNT = 12

Size = tuple[int, int, int]


@dataclass(frozen=True)
class ThreadFunction:
    """A kernel's thread function: its symbol, and the sizes that the kernel promises."""

    symbol: str
    block_size: Size | None
    grid_size: Size | None


@dataclass(frozen=True)
class _Ids:
    """The id values of one function, each in x, y, z."""

    thread_id: list[Any]
    block_id: list[Any]
    grid_dim: list[Any]
    block_dim: list[Any]


def kernel_to_function(kernel: Any) -> ThreadFunction:
    """Replaces a gpu.func by the func.func that runs one of its threads."""
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
            operation.erase()
    found = ThreadFunction(
        symbol_of(kernel),
        _known_size(kernel, "known_block_size"),
        _known_size(kernel, "known_grid_size"),
    )
    kernel.erase()
    return found


def _known_size(kernel: Any, name: str) -> Size | None:
    if name not in kernel.attributes:
        return None
    x, y, z = ir.DenseI32ArrayAttr(kernel.attributes[name])
    return int(x), int(y), int(z)


def _allocate_private(entry: Any, input_count: int, attributes: list[Any]) -> None:
    """Private attributions are arguments of the gpu.func's body: each becomes an alloca."""
    while len(entry.arguments) > input_count:
        # From the last on, each at the start: so they stand in order.
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


def pass_ids(functions: list[Any], kernels: set[str]) -> None:
    """Gives ids to the functions named in `kernels` and to what needs them; replaces the id ops."""
    bodies = [f for f in functions if f.name == "func.func" and has_body(f)]
    receivers = _receivers(bodies, kernels)
    ids = {symbol_of(f): _add_arguments(f) for f in bodies if symbol_of(f) in receivers}
    for function in bodies:
        if symbol_of(function) not in receivers:
            continue
        own = ids[symbol_of(function)]
        for operation in walk(function):
            with ir.InsertionPoint(operation), operation.location:
                if operation.name in _REPLACEMENTS:
                    value = _REPLACEMENTS[operation.name](operation, own)
                    operation.results[0].replace_all_uses_with(value)
                    operation.erase()
                elif operation.name == "func.call" and _callee(operation) in receivers:
                    _pass_on(operation, own)


def _receivers(functions: list[Any], kernels: set[str]) -> set[str]:
    """The kernels, and every function that asks for an id or calls one that does."""
    receivers = set(kernels)
    calls: dict[str, set[str]] = {}
    for function in functions:
        name = symbol_of(function)
        operations = list(walk(function))
        calls[name] = {_callee(op) for op in operations if op.name == "func.call"}
        if any(op.name in ID_OPERATIONS for op in operations):
            receivers.add(name)
    while True:
        more = {name for name, callees in calls.items() if callees & receivers} - receivers
        if not more:
            return receivers
        receivers |= more


def _callee(call: Any) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def _add_arguments(function: Any) -> _Ids:
    entry = function.regions[0].blocks[0]
    added = [entry.add_argument(index(), function.location) for _ in range(ID_COUNT)]
    type_ = function.attributes["function_type"].value
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([*type_.inputs, *[index()] * ID_COUNT], list(type_.results))
    )
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]
    return _Ids(added[0:3], added[3:6], added[6:9], added[9:12])


def _pass_on(call: Any, ids: _Ids) -> None:
    operands = [*call.operands, *ids.thread_id, *ids.block_id, *ids.grid_dim, *ids.block_dim]
    with_ids = create(
        "func.call",
        operands,
        [result.type for result in call.results],
        {"callee": call.attributes["callee"]},
    )
    for old, new in zip(call.results, with_ids.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def _dimension(operation: Any) -> int:
    # #gpu<dim x>
    return "xyz".index(str(operation.attributes["dimension"])[-2])


def _global_id(operation: Any, ids: _Ids) -> Any:
    # In 64 bits: 2^31 - 1 blocks of 1024 threads do not fit into 32.
    place = _dimension(operation)
    first = binary("arith.muli", ids.block_id[place], ids.block_dim[place])
    return binary("arith.addi", first, ids.thread_id[place])


_REPLACEMENTS: dict[str, Callable[[Any, _Ids], Any]] = {
    "gpu.thread_id": lambda op, ids: ids.thread_id[_dimension(op)],
    "gpu.block_id": lambda op, ids: ids.block_id[_dimension(op)],
    "gpu.grid_dim": lambda op, ids: ids.grid_dim[_dimension(op)],
    "gpu.block_dim": lambda op, ids: ids.block_dim[_dimension(op)],
    "gpu.global_id": _global_id,
    # Every block is a cluster of its own: `support` lets no other cluster through.
    "gpu.cluster_id": lambda op, ids: ids.block_id[_dimension(op)],
    "gpu.cluster_dim": lambda op, ids: ids.grid_dim[_dimension(op)],
    "gpu.cluster_dim_blocks": lambda op, ids: constant(index(), 1),
    "gpu.cluster_block_id": lambda op, ids: constant(index(), 0),
}
