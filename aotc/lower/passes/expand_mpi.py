"""`aotc-expand-mpi`: lowers the mpi dialect to calls of the functions in `aotc_mpi.h`.

The bindings do not have upstream's convert-mpi-to-llvm. That pass also knows the handles of only
one MPI library, and links it. The functions of `aotc_mpi.h` work with any MPI library that has the
standard ABI, and choose it when the program runs.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.input.source import input_error
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

# MPI_COMM_WORLD of the standard ABI.
_COMM_WORLD = 0x101
_EQ = 0  # arith.cmpi's number
# Operation → the number of its leading operands that are buffers.
_BUFFERS = {
    "mpi.send": 1,
    "mpi.recv": 1,
    "mpi.isend": 1,
    "mpi.irecv": 1,
    "mpi.allgather": 2,
    "mpi.allreduce": 2,
    "mpi.reduce_scatter_block": 2,
}
# Operation → the width in bits of the value that its function returns. Such a function does not
# return the status.
_RESULTS = {
    "mpi.comm_rank": 32,
    "mpi.comm_size": 32,
    "mpi.comm_split": 64,
    "mpi.isend": 64,
    "mpi.irecv": 64,
}
_STATUSES = ("mpi.init", "mpi.finalize", "mpi.barrier", "mpi.wait", "mpi.error_class")
_RETVAL = "!mpi.retval"
_TYPES = {
    "f32": "f32",
    "f64": "f64",
    "complex<f32>": "c32",
    "complex<f64>": "c64",
    "index": "index",
    **{f"i{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
}
# Types that MPI can send, but not reduce.
_SENT_TYPES = {"f16": "f16", "bf16": "bf16"}
_REDUCTIONS = ("mpi.allreduce", "mpi.reduce_scatter_block")
# Error classes, indexed by their numbers in the standard ABI, as far as libraries agree on them.
_CLASSES = (
    *("MPI_SUCCESS", "MPI_ERR_BUFFER", "MPI_ERR_COUNT", "MPI_ERR_TYPE", "MPI_ERR_TAG"),
    *("MPI_ERR_COMM", "MPI_ERR_RANK"),
)


class ExpandMpi(OwnPass, frozen=True):
    """Runs first, so that the other passes see calls of functions that read and write their
    buffers."""

    name = "aotc-expand-mpi"
    reason: str = "communication between processes becomes calls of MPI"

    def run(self, lowering: Lowering) -> None:
        module = lowering.module
        found = [op for op in ops.walk(module.operation) if op.name.startswith("mpi.")]
        with module.context, ir.Location.unknown():
            expansion = _Expansion(lowering)
            for operation in found:
                expansion.expand(operation)
            # In reverse order, as users come after their operands.
            for operation in reversed(found):
                ops.erase(operation)


class _Expansion:
    """The expansion of one module: the values that replace those of MPI's types, and the functions
    that it declared."""

    def __init__(self, lowering: Lowering) -> None:
        self._source = lowering.source
        self._declared: set[str] = set()
        self._values: dict[Any, Any] = {}

    def expand(self, operation: Any) -> None:
        name = operation.name
        with operation.location, ir.InsertionPoint(operation):
            if name == "mpi.comm_world":
                self._values[operation.results[0]] = ops.constant(ops.integer(64), _COMM_WORLD)
            elif name == "mpi.retval_check":
                self._check(operation)
            elif name in _BUFFERS or name in _RESULTS or name in _STATUSES:
                self._call(operation)
            else:
                raise self._refused(operation, f"{name} has no function in aotc's runtime")

    def _call(self, operation: Any) -> None:
        name, suffix, count = operation.name, "", _BUFFERS.get(operation.name, 0)
        operands = [self._value(operation, operand) for operand in operation.operands]
        if count:
            suffix = self._element(operation)
            operands[:count] = map(_unranked, operands[:count])
        if "op" in operation.attributes:
            operands.insert(count, ops.constant(ops.integer(32), _reduction(operation)))
        statuses = [value for value in operation.results if str(value.type) == _RETVAL]
        results = [value for value in operation.results if str(value.type) != _RETVAL]
        if name == "mpi.error_class":
            width = 32
        elif name in _RESULTS:
            width = _RESULTS[name]
        else:
            width = 32
            is_used = any(True for value in statuses for _ in value.uses)
            operands.append(ops.constant(ops.integer(1), int(not is_used)))
        called = self._function(
            f"aotc_mpi_{name.removeprefix('mpi.')}{suffix}", operands, ops.integer(width)
        )
        if name in _RESULTS:
            # The runtime keeps a failure as the thread's status, so the program continues with
            # success.
            success = ops.constant(ops.integer(32), 0) if statuses else None
            self._values.update(dict.fromkeys(statuses, success))
        else:
            self._values.update(dict.fromkeys(statuses, called))
        for result in results:
            if str(result.type).startswith("!mpi."):
                self._values[result] = called
            else:
                result.replace_all_uses_with(called)

    def _check(self, operation: Any) -> None:
        """Replaces a comparison of a status with the error class that the attribute names."""
        name = str(operation.attributes["errclass"]).rpartition("<")[2].rstrip(">")
        if name not in _CLASSES:
            raise self._refused(operation, f"{operation.name} of {name} is not supported")
        status = self._value(operation, operation.operands[0])
        class_ = self._function("aotc_mpi_error_class", [status], ops.integer(32))
        is_it = ops.compare(_EQ, class_, ops.constant(ops.integer(32), _CLASSES.index(name)))
        operation.results[0].replace_all_uses_with(is_it)

    def _value(self, operation: Any, value: Any) -> Any:
        if not str(value.type).startswith("!mpi."):
            return value
        if value not in self._values:
            raise self._refused(
                operation,
                f"{operation.name} has a value of {value.type} that no operation of the mpi "
                "dialect makes: an argument of a function or a result of a branch",
            )
        return self._values[value]

    def _element(self, operation: Any) -> str:
        """The function name's suffix for the element type of the buffers."""
        types = [value.type for value in operation.operands][: _BUFFERS[operation.name]]
        for space in filter(None, map(_space, types)):
            raise self._refused(operation, f"{operation.name} has a buffer in the memory {space}")
        elements = {str(ir.ShapedType(type_).element_type) for type_ in types}
        element = elements.pop()
        if elements:
            raise self._refused(operation, f"{operation.name} has buffers of two types of elements")
        known = _TYPES if operation.name in _REDUCTIONS else {**_TYPES, **_SENT_TYPES}
        if element not in known:
            raise self._refused(
                operation,
                f"{operation.name} has elements of {element}; MPI's are {', '.join(known)}",
            )
        return f"_{known[element]}"

    def _function(self, name: str, operands: list[Any], result: Any) -> Any:
        """Calls a runtime function, and declares it on first use."""
        if name not in self._declared:
            self._declared.add(name)
            declare(self._source.module, name, [one.type for one in operands], [result])
        return ops.call(name, operands, [result]).result

    def _refused(self, operation: Any, what: str) -> InputError:
        return input_error(self._source, [(operation.location, f"{what}.")])


def declare(module: Any, name: str, inputs: list[Any], results: list[Any]) -> None:
    """Declares a function of the runtime at the end of the module."""
    by_descriptor = any(isinstance(one, ir.UnrankedMemRefType) for one in inputs)
    attributes = {"llvm.emit_c_interface": ir.UnitAttr.get()} if by_descriptor else {}
    with ir.InsertionPoint(ops.body_of_module(module)):
        ops.create_function(name, inputs, results, **attributes)


def _unranked(buffer: Any) -> Any:
    if isinstance(buffer.type, ir.UnrankedMemRefType):
        return buffer
    element = ir.ShapedType(buffer.type).element_type
    return ops.unary("memref.cast", buffer, ir.UnrankedMemRefType.get(element, None))


def _space(type_: Any) -> Any:
    """The memory space of a memref; None for the default one."""
    of = ir.UnrankedMemRefType if isinstance(type_, ir.UnrankedMemRefType) else ir.MemRefType
    return of(type_).memory_space


def _reduction(operation: Any) -> int:
    return int(ir.IntegerAttr(operation.attributes["op"]).value)
