"""Alias classes of the memrefs in all host functions of a module, and their uses.

An alias class is a set of memref values that are connected by views, casts, selects, branches,
loops, calls and returns: a buffer in one value may be in any other. Placement decisions are made
for alias classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct, field

from aotc import ops
from aotc.analysis.access import (
    COPIES,
    DEALLOCATIONS,
    DESCRIBES,
    READS,
    WRITES,
    first_kernel_operand,
    is_memref,
    reads_shape_only,
    task_result,
    task_values,
)
from aotc.analysis.functions import Functions
from aotc.analysis.views import VIEWS
from aotc.mlir import ir
from aotc.module_names import PRINTS
from aotc.ops import symbol_of

ALLOCATIONS = ("memref.alloc", "memref.alloca")
# Functions that access their buffers until they return. (isend and irecv continue afterwards.)
_EXCHANGES = tuple(
    f"aotc_mpi_{name}_" for name in ("send", "recv", "allgather", "allreduce", "reduce_scatter")
)
_ATOMICS = ("memref.atomic_rmw", "memref.generic_atomic_rmw")


class UseKind(Enum):
    """The ways in which an operation may use a buffer. The values are the texts of `--explain`."""

    SHAPE = "shape"
    HOST_READ = "read by the host"
    HOST_WRITE = "written by the host"
    LAUNCH = "used by a kernel"
    COPY_FROM = "copied from"
    COPY_TO = "copied to"
    GPU = "managed by the module's own gpu operations"
    FREE = "freed"
    REGISTER = "registered by the module"
    DESCRIBE = "described for TMA"
    TASK = "passed to or from an asynchronous task"
    RETURN = "returned by a function that is called from outside"
    CALL = "passed to or from another function"
    ESCAPE = "used in a way that is not known"


# The uses of an operation's operands, for operations that use each operand in the same way.
_KINDS = {
    **dict.fromkeys(DEALLOCATIONS, (UseKind.FREE,)),
    **dict.fromkeys(("gpu.host_register", "gpu.host_unregister"), (UseKind.REGISTER,)),
    **dict.fromkeys(("gpu.memcpy", "gpu.memset"), (UseKind.GPU,)),
    **dict.fromkeys(READS, (UseKind.HOST_READ,)),
    **dict.fromkeys(_ATOMICS, (UseKind.HOST_READ, UseKind.HOST_WRITE)),
}


class Merge(Enum):
    """The operation at which one value may be one of several buffers."""

    SELECT = "arith.select"
    FOR = "scf.for"
    IF = "scf.if"
    SWITCH = "scf.index_switch"
    OTHER = "another"


_MERGES = {m.value: m for m in Merge}


class Use(Struct, frozen=True):
    """A use of a buffer: operand number `operand` of `operation`."""

    kind: UseKind
    operation: Any
    operand: int

    @property
    def value(self) -> Any:
        return self.operation.operands[self.operand]


class AliasClass(Struct, eq=False):
    """One alias class. `roots` are the values that are not derived from other values of the
    class."""

    values: list[Any] = field(default_factory=list)
    roots: list[Any] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    # (kind, operation whose result may be one of several buffers)
    merges: list[tuple[Merge, Any]] = field(default_factory=list)

    def of_kind(self, *kinds: UseKind) -> list[Use]:
        return [use for use in self.uses if use.kind in kinds]

    @property
    def reaches_launch(self) -> bool:
        """Whether a launch may use the buffer. A task counts, as it may contain a launch."""
        return len(self.of_kind(UseKind.LAUNCH, UseKind.TASK)) > 0

    @property
    def allocations(self) -> list[Any]:
        """The host allocations among the roots."""
        return [
            owner
            for owner in (ops.defining(root) for root in self.roots)
            if owner is not None and owner.name in ALLOCATIONS
        ]

    @property
    def has_only_allocations(self) -> bool:
        """Whether each root is a host allocation."""
        return len(self.allocations) == len(self.roots)


FUNCTIONS = ("func.func", "async.func")


def host_functions(module: Any) -> list[Any]:
    """The functions with a body at the module's top level."""
    return [
        op.operation
        for op in ops.body_of_module(module).operations
        if op.operation.name in FUNCTIONS and op.operation.regions[0].blocks
    ]


def _is_buffer(value: Any) -> bool:
    """Whether the value is a memref, or an async value of one."""
    return is_memref(value) or str(value.type).startswith("!async.value<memref<")


def is_called_from_outside(function: Any) -> bool:
    """Whether the function may be called from outside of the module."""
    visibility = function.attributes
    is_private = (
        function.name == "func.func"
        and "sym_visibility" in visibility
        and ir.StringAttr(visibility["sym_visibility"]).value == "private"
    )
    return not is_private or "llvm.emit_c_interface" in function.attributes


class AliasClasses:
    """The alias classes of a module's host functions."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.functions = Functions(module)
        self._parent: dict[Any, Any] = {}
        self._uses: list[Use] = []
        self._merges: list[tuple[Merge, Any, Any]] = []
        self._made: set[Any] = set()  # values that are not roots
        for function in host_functions(module):
            self._add_function(function)
        self._alias_classes = self._collect()

    def get(self, value: Any) -> AliasClass:
        return self._alias_classes[self._find(value)]

    def __contains__(self, value: Any) -> bool:
        return value in self._parent

    def __iter__(self) -> Iterator[AliasClass]:
        return iter(self._alias_classes.values())

    def _find(self, value: Any) -> Any:
        root = value
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[value] != root:
            self._parent[value], value = root, self._parent[value]
        return root

    def _note(self, value: Any) -> None:
        self._parent.setdefault(value, value)

    def _connect(self, made: Any, source: Any) -> None:
        """Records that `made` may be `source`'s buffer."""
        self._join(made, source)
        self._made.add(made)

    def _join(self, value: Any, other: Any) -> None:
        self._note(value)
        self._note(other)
        self._parent[self._find(value)] = self._find(other)

    def _collect(self) -> dict[Any, AliasClass]:
        alias_classes: dict[Any, AliasClass] = {}
        for value in self._parent:
            alias_class = alias_classes.setdefault(self._find(value), AliasClass())
            alias_class.values.append(value)
            if value not in self._made:
                alias_class.roots.append(value)
        for use in self._uses:
            alias_classes[self._find(use.value)].uses.append(use)
        for merge, operation, value in self._merges:
            alias_classes[self._find(value)].merges.append((merge, operation))
        return alias_classes

    def _add_function(self, function: Any) -> None:
        # A function whose address is taken may be called from anywhere.
        is_addressed = symbol_of(function) in self.functions.addressed
        outside = is_called_from_outside(function) or is_addressed
        self._add_arguments(function, outside)
        for operation in ops.walk(function)[1:]:
            for result in operation.results:
                if _is_buffer(result):
                    self._note(result)
            for region in operation.regions:
                for block in region.blocks:
                    for argument in filter(_is_buffer, block.arguments):
                        self._note(argument)
            self._connect_results(operation)
            for i, operand in enumerate(operation.operands):
                if _is_buffer(operand):
                    self._note(operand)
                    for kind in self._kinds(operation, i, outside):
                        self._uses.append(Use(kind, operation, i))

    def _add_arguments(self, function: Any, outside: bool) -> None:
        for i, argument in enumerate(list(function.regions[0].blocks[0].arguments)):
            if _is_buffer(argument):
                self._note(argument)
                for value in self.functions.passed(symbol_of(function), i):
                    self._connect(argument, value)
                if outside:
                    self._made.discard(argument)

    def _connect_results(self, operation: Any) -> None:
        name = operation.name
        if name in (*VIEWS, DESCRIBES):
            self._connect(operation.results[0], operation.operands[0])
        elif name == "func.return":
            function = symbol_of(operation.parent.operation)
            for i, operand in enumerate(operation.operands):
                for result in self.functions.returned(function, i) if is_memref(operand) else ():
                    self._connect(result, operand)
        elif name == "async.return":
            for i, operand in enumerate(operation.operands):
                for result in self.functions.returned(*task_result(operation, i)):
                    if _is_buffer(operand):
                        self._connect(result, operand)
        else:
            self._connect_unknown(operation)
            for target, source in _flows(operation):
                self._connect(target, source)
                self._merges.append(
                    (_MERGES.get(_merging(operation).name, Merge.OTHER), operation, target)
                )

    def _connect_unknown(self, operation: Any) -> None:
        """Connects the results of an unknown operation with all of its buffer operands.

        A memref of memrefs is connected with the buffers that are stored in it.
        """
        if not _forwards_unmodelled(operation):
            return
        buffers = [value for value in operation.operands if _is_buffer(value)]
        for buffer in buffers[1:]:
            self._join(buffer, buffers[0])
        for result in operation.results:
            if buffers and _is_buffer(result):
                self._connect(result, buffers[0])

    def _kinds(self, operation: Any, operand: int, outside: bool) -> Sequence[UseKind]:
        name = operation.name
        if reads_shape_only(operation):
            return [UseKind.SHAPE]
        if name in VIEWS:
            return [] if operand == 0 else [UseKind.HOST_READ]
        if name == DESCRIBES:
            return [UseKind.DESCRIBE]
        if name.startswith("async."):
            return [UseKind.TASK]
        if name == "gpu.launch_func":
            is_passed = operand >= first_kernel_operand(operation)
            return [UseKind.LAUNCH if is_passed else UseKind.ESCAPE]
        if name in _KINDS:
            return _KINDS[name]
        if name in WRITES:
            return [UseKind.HOST_WRITE if operand == WRITES[name] else UseKind.ESCAPE]
        if name == "memref.copy":
            is_source = operand == COPIES[name][0]
            return [UseKind.COPY_FROM if is_source else UseKind.COPY_TO]
        if name == "func.return":
            return [UseKind.RETURN] if outside else [UseKind.CALL]
        if name == "func.call":
            return self._kinds_of_call(operation)
        if any(operation.operands[operand] == source for _, source in _flows(operation)):
            return []
        return [UseKind.ESCAPE]

    def _kinds_of_call(self, call: Any) -> list[UseKind]:
        callee = ops.callee_of(call)
        if self.functions.get(callee) is not None:
            return [UseKind.CALL]
        if callee.startswith(_EXCHANGES):
            return [UseKind.HOST_READ, UseKind.HOST_WRITE]
        return [UseKind.HOST_READ if callee.startswith(PRINTS) else UseKind.ESCAPE]


def _forwards_unmodelled(operation: Any) -> bool:
    """Whether results of an operation may be its operands' buffers in a way that is not
    modelled."""
    if operation.name == "memref.store":
        return _is_buffer(operation.operands[0])
    is_followed = (
        operation.name.startswith(("func.", "scf.", "async.", "cf.", "gpu."))
        or operation.name == "arith.select"
        or len(operation.regions) > 0
    )
    return not is_followed and any(map(_is_buffer, operation.results))


def _merging(operation: Any) -> Any:
    """The operation to whose results the operands of a terminator flow; for other operations,
    itself."""
    is_terminator = operation.name in ("scf.yield", "scf.condition", "memref.alloca_scope.return")
    return operation.parent.operation if is_terminator else operation


def _flows(operation: Any) -> list[tuple[Any, Any]]:
    """(target, source) for each memref that the operation forwards to another value."""
    name = operation.name
    pairs: list[tuple[Any, Any]] = []
    if name == "arith.select":
        pairs = [(operation.results[0], operand) for operand in list(operation.operands)[1:]]
    elif name == "func.call":
        return []  # handled by the function's arguments and returns
    elif name == "scf.for":
        first = len(operation.operands) - len(operation.results)
        carried = list(operation.regions[0].blocks[0].arguments)[1:]
        for argument, result, start in zip(
            carried, operation.results, list(operation.operands)[first:], strict=True
        ):
            pairs += [(argument, start), (result, start)]
    elif name == "scf.while":
        arguments = operation.regions[0].blocks[0].arguments
        pairs = list(zip(arguments, operation.operands, strict=True))
    elif name == "scf.condition":
        loop = operation.parent.operation
        passed = list(operation.operands)[1:]
        pairs = list(zip(loop.results, passed, strict=True))
        pairs += zip(loop.regions[1].blocks[0].arguments, passed, strict=True)
    elif name in ("scf.yield", "memref.alloca_scope.return"):
        pairs = _yielded(operation)
    elif name.startswith("async."):
        for i, operand in enumerate(operation.operands):
            targets = task_values(operation, i) if _is_buffer(operand) else None
            pairs += [(target, operand) for target in targets or ()]
    elif len(operation.successors) > 0:
        arguments = [a for block in operation.successors for a in block.arguments]
        pairs = [(a, o) for a in arguments for o in operation.operands if a.type == o.type]
    return [(target, source) for target, source in pairs if _is_buffer(source)]


def _yielded(operation: Any) -> list[tuple[Any, Any]]:
    parent = operation.parent.operation
    values = list(operation.operands)
    if parent.name == "scf.while":
        return list(zip(parent.regions[0].blocks[0].arguments, values, strict=True))
    pairs = list(zip(parent.results, values, strict=True))
    if parent.name == "scf.for":
        carried = list(parent.regions[0].blocks[0].arguments)[1:]
        pairs += zip(carried, values, strict=True)
    return pairs
