"""The levels of MLIR that a module is written in, which determine its lowering."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.sparse import is_sparse
from aotc.input.place import Place
from aotc.input.source import Source
from aotc.lower.passes.raise_contractions import adds_product
from aotc.mlir import ir

_TENSOR_TYPES = (ir.RankedTensorType, ir.UnrankedTensorType)


class Level(Enum):
    """A level of input, from the highest to the lowest. The value is the text for messages."""

    SCHEDULE = "a transform schedule"
    TOSA = "tosa"
    SPARSE = "sparse tensors"
    TENSORS = "tensors"
    LINALG = "linalg"
    CONTRACTION = "loops that add products"
    AFFINE = "affine loops"
    SCF = "scf loops"
    BRANCHES = "branches between blocks"
    VECTOR = "vectors"
    ASYNC = "async"
    PROCESSES = "processes"
    LAUNCH = "gpu.launch"
    KERNELS = "gpu.module"
    HARDWARE = "nvgpu and nvvm"
    BINARY = "gpu.binary"
    LLVM = "the LLVM dialect"


class Found(Struct, frozen=True):
    """A level that a module has, and the first operation of that level."""

    level: Level
    operation: str
    place: Place | None

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.level.value} ({self.operation}{where})"


def _dialect(*names: str) -> Callable[[Any], bool]:
    return lambda op: op.name.split(".")[0] in names


def _named(*names: str) -> Callable[[Any], bool]:
    return lambda op: op.name in names


_TESTS: dict[Level, Callable[[Any], bool]] = {
    Level.SCHEDULE: _named("transform.named_sequence"),
    Level.TOSA: _dialect("tosa"),
    Level.SPARSE: lambda op: _is_sparse(op),
    Level.TENSORS: lambda op: is_on_tensors(op),
    Level.LINALG: _dialect("linalg"),
    Level.CONTRACTION: lambda op: adds_product(op),
    Level.AFFINE: _named("affine.for", "affine.parallel"),
    Level.SCF: _named("scf.for", "scf.parallel", "scf.forall", "scf.while"),
    Level.BRANCHES: _named("cf.br", "cf.cond_br", "cf.switch"),
    Level.VECTOR: _dialect("vector"),
    Level.ASYNC: _dialect("async"),
    Level.PROCESSES: _dialect("mpi"),
    Level.LAUNCH: _named("gpu.launch"),
    Level.KERNELS: _named("gpu.module"),
    Level.BINARY: _named("gpu.binary"),
    Level.HARDWARE: _dialect("nvgpu", "nvvm"),
    Level.LLVM: _named("llvm.func"),
}

_OF_KERNELS = (Level.KERNELS, Level.HARDWARE)


def recognise(source: Source) -> tuple[Found, ...]:
    """The levels of the module, highest first, each with its first operation.

    Operations in gpu.modules are device code, and only belong to the kernel levels. Operations in
    transform sequences only belong to the schedule level.
    """
    found: dict[Level, Found] = {}
    for top in ops.body_of_module(source.module).operations:
        candidates = _OF_KERNELS if top.operation.name == "gpu.module" else Level
        levels = [level for level in candidates if level not in found]
        for operation in ops.walk(top.operation) if levels else ():
            if top.operation.name == "transform.named_sequence" and operation != top.operation:
                break
            for level in [level for level in levels if _TESTS[level](operation)]:
                levels.remove(level)
                found[level] = Found(level, operation.name, source.place(operation.location))
    return tuple(found[level] for level in Level if level in found)


def _is_sparse(operation: Any) -> bool:
    """Whether the operation is of the sparse_tensor dialect or has a sparse tensor among its
    values."""
    if operation.name.startswith("sparse_tensor."):
        return True
    return any(is_sparse(type_) for type_ in _types_of(operation))


def is_on_tensors(operation: Any) -> bool:
    """Whether a tensor is among the values of the operation, or in the signature of the
    function."""
    # Shapes of buffers may be tensors as well.
    return not operation.name.startswith("shape.") and any(
        isinstance(type_, _TENSOR_TYPES) for type_ in _types_of(operation)
    )


def _types_of(operation: Any) -> list[Any]:
    """The types of the operation's values, or of the function's signature."""
    if operation.name == "func.func":
        type_ = ops.function_type(operation)
        return [*type_.inputs, *type_.results]
    return [value.type for value in (*operation.results, *operation.operands)]
