"""How buffers are used: where a value flows to, and what an entry does with its arguments.

Everything here is conservative: an operation that is not known both reads and writes, and an
unknown use may be on the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.functions import CALLS, Functions
from aotc.analysis.gpu_modules import gpu_modules, launched_kernel
from aotc.analysis.types import is_tensor_map
from aotc.attributes import ONE_STREAM, OWNED, READS_BY_ADDRESS, RESULT_ATTRIBUTE
from aotc.manifest import Entry, Memory, Value
from aotc.mlir import ir
from aotc.module_names import QUIET_CALLS
from aotc.ops import symbol_of

# Operations that read a buffer's shape only, not its elements.
SHAPE_ONLY = {"memref.dim", "memref.rank", "memref.assume_alignment"}
READS = {
    "memref.load",
    "affine.load",
    "vector.load",
    "vector.maskedload",
    "vector.gather",
    "vector.expandload",
    "vector.transfer_read",
    "affine.vector_load",
    "gpu.subgroup_mma_load_matrix",
    "nvgpu.ldmatrix",
}
# Operation → the index of the operand that it writes.
WRITES = {
    "memref.store": 1,
    "affine.store": 1,
    "affine.vector_store": 1,
    "vector.store": 1,
    "vector.maskedstore": 0,
    "vector.scatter": 0,
    "vector.compressstore": 0,
    "vector.transfer_write": 1,
    "gpu.subgroup_mma_store_matrix": 1,
    "nvgpu.device_async_copy": 0,
    "nvgpu.warpgroup.mma.store": 1,
}
# Operations that make another value for the same buffer, or take one without accessing elements.
DESCRIBES = "nvgpu.tma.create.descriptor"
_DESCRIBED_ONLY = {"nvgpu.tma.prefetch.descriptor", "nvgpu.warpgroup.generate.descriptor"}
_TENSOR_COPIES = {"nvgpu.tma.async.load", "nvgpu.tma.async.store"}
# The cast from a descriptor to a pointer to it, and the load through such a pointer.
_CAST = "builtin.unrealized_conversion_cast"
_POINTED_LOAD = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
_ADDRESS = "memref.extract_aligned_pointer_as_index"
_METADATA = "memref.extract_strided_metadata"
_TOUCHES_NONE = {
    *("memref.alloc", "memref.dim", "memref.get_global", "memref.cast", "memref.subview"),
    *("memref.reinterpret_cast", "memref.extract_strided_metadata", "memref.transpose"),
    *("memref.expand_shape", "memref.collapse_shape", "memref.view", "cf.assert"),
}
COPIES = {"memref.copy": (0, 1), "gpu.memcpy": (-1, -2)}  # (source, destination) operands
DEALLOCATIONS = ("memref.dealloc", "gpu.dealloc")
_TERMINATORS = ("llvm.return", "gpu.return")


def is_memref(value: Any) -> bool:
    """Whether a value is a memref, or a TMA descriptor of one."""
    is_buffer = isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType)
    return is_buffer or is_tensor_map(value.type)


class Flow(Struct):
    """The uses of one buffer, followed through views, casts, branches, loops and calls."""

    functions: Functions
    aliases: list[Any] = field(default_factory=list)
    reads: bool = False
    writes: bool = False
    host_touches: bool = False
    reaches_launch: bool = False
    is_registered: bool = False
    deallocations: set[Any] = field(default_factory=set)
    # (launch, index among its kernel operands)
    launches: list[tuple[Any, int]] = field(default_factory=list)
    # (function, index of its result)
    returns: set[tuple[str, int]] = field(default_factory=set)

    @staticmethod
    def of(value: Any, functions: Functions) -> Flow:
        """Follows `value` through the module."""
        flow = Flow(functions)
        pending = [value]
        while pending:
            current = pending.pop()
            if any(current == seen for seen in flow.aliases):
                continue
            flow.aliases.append(current)
            for use in current.uses:
                pending.extend(flow._take(use.owner.operation, use.operand_number))
        return flow

    def _take(self, user: Any, operand: int) -> list[Any]:
        """Records one use, and returns the values that may be the same buffer because of it."""
        if reads_shape_only(user) or self._ends_at(user, operand):
            return []
        name = user.name
        if name == DESCRIBES or (name == _CAST and is_tensor_map(user.operands[operand].type)):
            return list(user.results)
        if name == "func.return":
            function = symbol_of(user.parent.operation)
            self.returns.add((function, operand))
            return self.functions.returned(function, operand)
        if name == "async.return":
            return self.functions.returned(*task_result(user, operand))
        if name in CALLS:
            argument = self.functions.argument(user, operand)
            if argument is not None:
                return [argument]
        if name in _TERMINATORS:
            return []
        followed = _successor_values(user, operand)
        if followed is not None:
            return followed
        # It is not known which task uses the buffer from here on.
        self.reaches_launch |= name.startswith("async.")
        self.reads = self.writes = self.host_touches = True
        return [r for r in user.results if is_memref(r)]

    def _ends_at(self, user: Any, operand: int) -> bool:
        """Whether the buffer flows into no other value by this use, which is then recorded."""
        name = user.name
        if name == "gpu.launch_func":
            self.reaches_launch = True
            self.launches.append((user, operand - first_kernel_operand(user)))
        elif name in _DESCRIBED_ONLY:
            return is_tensor_map(user.operands[operand].type)
        elif name in _TENSOR_COPIES:
            is_tensor = is_tensor_map(user.operands[operand].type)
            is_target = is_tensor is (name == "nvgpu.tma.async.store")
            self.writes |= is_target
            self.reads |= not is_target
        elif name == _POINTED_LOAD or (name == _ADDRESS and READS_BY_ADDRESS in user.attributes):
            self.reads = True
        elif name in DEALLOCATIONS:
            self.deallocations.add(user)
        elif name in ("gpu.host_register", "gpu.host_unregister"):
            self.is_registered = True
        elif name in READS:
            self.reads = self.host_touches = True
        elif name in WRITES:
            is_target = operand == WRITES[name]
            self.writes |= is_target
            self.reads |= not is_target
            self.host_touches = True
        elif name in COPIES:
            source, target = (i % len(user.operands) for i in COPIES[name])
            self.reads |= operand == source
            self.writes |= operand == target
            self.host_touches |= name == "memref.copy"
        else:
            return False
        return True


def reads_shape_only(user: Any) -> bool:
    """Whether an operation reads a buffer's shape only, or its address only to compare it."""
    if user.name == _ADDRESS:
        return is_only_compared(user.results[0])
    if user.name == _METADATA:
        return not any(True for _ in user.results[0].uses)
    return user.name in SHAPE_ONLY and not any(is_memref(result) for result in user.results)


def accesses_no_element(operation: Any) -> bool:
    """Whether an operation is arithmetic, or one that neither reads nor writes an element of an
    existing buffer."""
    return operation.name in _TOUCHES_NONE or operation.name.startswith("arith.")


def is_only_compared(address: Any) -> bool:
    """Whether an address is only compared, for example to check an alignment: only i1 values are
    computed from it, and these do not give access to the buffer."""
    pending = [address]
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if not user.name.startswith("arith."):
                return False
            pending += [r for r in user.results if r.type != ir.IntegerType.get_signless(1)]
    return True


def first_kernel_operand(launch: Any) -> int:
    # Groups: async dependencies, grid, block, cluster, dynamic shared memory, kernel operands.
    sizes = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    return sum(sizes[:-2])


def _successor_values(user: Any, operand: int) -> list[Any] | None:
    """The values that an operand becomes; None for a use that is not understood."""
    memrefs = [result for result in user.results if is_memref(result)]
    if len(user.successors) > 0:
        return [a for block in user.successors for a in block.arguments if is_memref(a)]
    if user.name == "scf.condition":
        return _carried(user.parent.operation, 1, operand - 1)
    if user.name in ("scf.yield", "affine.yield"):
        return _carried(user.parent.operation, 0, operand)
    if user.name.startswith("async."):
        return task_values(user, operand)
    if user.name in ("scf.for", "scf.while", "affine.for"):
        return _carried(user, 0, operand - len(user.operands) + _initial_count(user))
    if user.name.startswith(("memref.", "arith.select", "builtin.unrealized")) and memrefs:
        return memrefs  # views, casts, selections
    return None


def task_result(returning: Any, operand: int) -> tuple[str, int]:
    """(function, result index) of an operand of async.return. Result 0 may be a token."""
    function = returning.parent.operation
    type_ = ops.function_type(function)
    return symbol_of(function), operand + (str(type_.results[0]) == "!async.token")


def task_values(user: Any, operand: int) -> list[Any] | None:
    """The values that an operand of an async operation becomes. Buffers pass between tasks as
    values of the async dialect."""
    if user.name == "async.yield" and user.parent.operation.name == "async.execute":
        return [user.parent.operation.results[1 + operand]]  # after the token
    if user.name == "async.await":
        return list(user.results)
    if user.name == "async.execute":
        tokens = next(iter(ir.DenseI32ArrayAttr(user.attributes["operandSegmentSizes"])))
        return [] if operand < tokens else [user.regions[0].blocks[0].arguments[operand - tokens]]
    return None


def _initial_count(loop: Any) -> int:
    """How many of its operands, the last ones, are what it begins with."""
    return len(loop.operands if loop.name == "scf.while" else loop.results)


def _carried(operation: Any, region: int, number: int) -> list[Any]:
    """The block argument and the result that the value of this number becomes when a loop begins or
    ends an iteration, or a branch ends. `region` is the one that is run next: scf.while has two."""
    is_while = operation.name == "scf.while"
    values = [] if is_while and region == 0 else [operation.results[number]]
    arguments = list(operation.regions[region].blocks[0].arguments)
    if is_while:
        values.append(arguments[number])
    elif arguments:
        values.append(arguments[1 + number])  # behind the index
    return values


class ModuleAccess:
    """What the kernels of one module do with their arguments, computed once for each kernel."""

    def __init__(self, module: Any) -> None:
        self._kernels = {
            (symbol_of(gpu_module), symbol_of(op)): op
            for gpu_module in gpu_modules(module)
            for op in ops.find(gpu_module, "gpu.func")
        }
        self.functions = Functions(module)
        self._found: dict[tuple[tuple[str, str], int], Flow] = {}

    def kernel_flow(self, launch: Any, argument: int) -> Flow:
        """The uses of an argument of the launched kernel. An unknown kernel reads and writes it."""
        key = launched_kernel(launch)
        if key not in self._kernels:
            return Flow(self.functions, reads=True, writes=True)
        if (key, argument) not in self._found:
            body = self._kernels[key].regions[0].blocks[0]
            self._found[key, argument] = Flow.of(body.arguments[argument], self.functions)
        return self._found[key, argument]


def describe_accesses(module: Any, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries, each with what it does to its buffers, as found in the outlined module."""
    with module.context:
        access = ModuleAccess(module)
        described = []
        for entry in entries:
            function = access.functions.get(entry.name)
            described.append(
                _unknown_entry(entry)
                if function is None
                else _describe_entry(entry, function, access, module)
            )
        return tuple(described)


def _unknown_entry(entry: Entry) -> Entry:
    """An entry whose function was lowered already: it may do anything."""
    arguments = tuple(
        a if a.is_scalar else replace(a, is_read=True, is_written=True, memory=Memory.MANAGED)
        for a in entry.arguments
    )
    return replace(
        entry,
        arguments=arguments,
        touches_memory_on_host=True,
        why_not_async="it was lowered by another tool, which may have made it wait",
    )


def _describe_entry(entry: Entry, function: Any, access: ModuleAccess, module: Any) -> Entry:
    parameters = list(function.regions[0].blocks[0].arguments)
    flows = [
        None if value.is_scalar else Flow.of(parameter, access.functions)
        for value, parameter in zip(entry.arguments, parameters, strict=True)
    ]
    arguments = tuple(
        value if flow is None else _describe_argument(value, flow, access)
        for value, flow in zip(entry.arguments, flows, strict=True)
    )
    results = tuple(
        _describe_result(value, (entry.name, i), flows, access.functions, module)
        for i, value in enumerate(entry.results)
    )
    return replace(
        entry,
        arguments=arguments,
        results=results,
        touches_memory_on_host=_touches_memory(function, access.functions),
        why_not_async=_why_not_async(function, access.functions),
    )


def _describe_argument(value: Value, flow: Flow, access: ModuleAccess) -> Value:
    inside = [access.kernel_flow(launch, argument) for launch, argument in flow.launches]
    if flow.is_registered:
        memory = Memory.HOST  # the entry itself makes it reachable
    elif flow.host_touches:
        memory = Memory.MANAGED
    else:
        memory = Memory.DEVICE
    return replace(
        value,
        is_read=flow.reads or any(f.reads for f in inside),
        is_written=flow.writes or any(f.writes for f in inside),
        memory=memory,
    )


def _describe_result(
    value: Value,
    place: tuple[str, int],
    flows: list[Flow | None],
    functions: Functions,
    module: Any,
) -> Value:
    if value.is_scalar:
        return value
    arguments = [i for i, flow in enumerate(flows) if flow is not None and place in flow.returns]
    if arguments:
        value = replace(value, aliases=arguments[0] if len(arguments) == 1 else None)
    owned, memories = [], []
    for allocation in ops.find(module.operation, *_ALLOCATIONS):
        flow = Flow.of(allocation.results[0], functions)
        if place not in flow.returns:
            continue
        is_host = allocation.name == "memref.alloc"
        memory = Memory.HOST if is_host else Memory.DEVICE
        if "hostShared" in allocation.attributes:
            memory = Memory.CALLER if RESULT_ATTRIBUTE in allocation.attributes else Memory.MANAGED
        # The caller must not free what may be freed already, or what an earlier result aliases.
        # Bufferization frees what a loop allocates, but for what it returns.
        is_first = not any(name == place[0] and i < place[1] for name, i in flow.returns)
        is_kept = not flow.deallocations or _was_tensor(functions.get(place[0]), place[1])
        owned.append(is_first and is_kept)
        memories.append(memory)
    return replace(value, is_owned=all(owned), memory=memories[0]) if memories else value


def _was_tensor(function: Any, result: int) -> bool:
    """Whether the result was a tensor, so that bufferization made the caller its only owner."""
    if function is None or "res_attrs" not in function.attributes:
        return False
    return OWNED in ir.DictAttr(ir.ArrayAttr(function.attributes["res_attrs"])[result])


# Host operations that access no memory, or that are handled elsewhere.
_QUIET = {
    "func.func",
    "func.return",
    "gpu.launch_func",
    "memref.alloc",
    "memref.dealloc",
    "memref.get_global",
    *SHAPE_ONLY,
}
_ALLOCATIONS = ("memref.alloc", "gpu.alloc")
_TOUCHING = {*READS, *WRITES, "memref.copy", "memref.alloca"}
_TOUCHING_DIALECTS = ("llvm.", "memref.atomic", "memref.generic", "linalg.", "async.")


def _touches_memory(function: Any, functions: Functions) -> bool:
    """Whether host code of the function, or of a function that it calls, reads or writes memory."""
    return any(
        op.name in _TOUCHING
        or op.name.startswith(_TOUCHING_DIALECTS)
        or (op.name == "func.call" and _is_unknown(ops.callee_of(op), functions))
        for op in _all_operations(function, functions)
        if op.name not in _QUIET
    )


def _is_unknown(callee: str, functions: Functions) -> bool:
    return functions.get(callee) is None and callee not in QUIET_CALLS


def _why_not_async(function: Any, functions: Functions) -> str | None:
    """Why the entry cannot return before its kernels are done, as a clause that follows a colon;
    None if it can."""
    if any(op.name.startswith("async.") for op in _all_operations(function, functions)):
        return "it runs tasks on other threads, which do not know the stream"
    if _touches_memory(function, functions):
        return "its host code reads or writes memory, and so must wait for its kernels"
    # The memory is freed at the end of the entry, before its kernels have begun.
    if any(
        op.name in _ALLOCATIONS and not _is_allocated_in_stream(op)
        for op in _all_operations(function, functions)
    ):
        return "it allocates memory, and frees it when its kernels are done"
    if any(op.name == "gpu.host_register" for op in _all_operations(function, functions)):
        return "it registers host memory"
    return None


def _is_allocated_in_stream(allocation: Any) -> bool:
    """Whether memory is allocated and freed in the order of its function's only stream."""
    function = ops.enclosing(allocation, "func.func")
    is_shared = "hostShared" in allocation.attributes
    return (
        (RESULT_ATTRIBUTE in allocation.attributes if is_shared else len(allocation.results) > 1)
        and function is not None
        and ONE_STREAM in function.attributes
    )


def _all_operations(function: Any, functions: Functions) -> Iterator[Any]:
    """The operations of a function and of the functions that it calls, directly or not."""
    pending, seen = [function], {symbol_of(function)}
    while pending:
        for op in ops.walk(pending.pop()):
            yield op
            callee = functions.get(ops.callee_of(op)) if op.name == "func.call" else None
            if callee is not None and symbol_of(callee) not in seen:
                seen.add(symbol_of(callee))
                pending.append(callee)
