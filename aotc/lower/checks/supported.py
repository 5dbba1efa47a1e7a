"""Refuses operations that aotc does not lower, or that would be lowered incorrectly."""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.access import COPIES, WRITES
from aotc.analysis.gpu_modules import gpu_modules
from aotc.analysis.sparse import is_sparse, level_size, levels_of
from aotc.analysis.types import is_packed
from aotc.analysis.views import root_of
from aotc.errors import InputError
from aotc.input.source import Source, input_error
from aotc.mlir import ir

# Operations of host code → why kernels have none, or what they have instead. None: only some of
# them are of host code.
_HOST_ONLY = {
    "gpu.launch_func": "host code launches kernels, one after the other",
    "vector.print": "they print by gpu.printf, which aotc-decompose-aggregated-ops makes of it",
    "memref.copy": None,
}
_OF_THE_HOST = ("f80", "f128")
# Operation → the operand number that it writes, in addition to `WRITES` and `COPIES`.
_OTHER_WRITES = {
    "memref.atomic_rmw": 1,
    "memref.generic_atomic_rmw": 0,
    "llvm.store": 1,
    "llvm.atomicrmw": 0,
    "llvm.cmpxchg": 0,
}
_WRITES = {
    **WRITES,
    **{name: target for name, (_, target) in COPIES.items()},
    **_OTHER_WRITES,
}
_LOOPS = ("scf.for", "scf.while")
_PASSES_ON = ("scf.yield", "scf.condition")
_CONSTANT_MEMORY = 4
_HIGHER_LEVELS = ("stablehlo",)
# Operation → the operand number that names a file.
_FILES = {"sparse_tensor.new": 0, "sparse_tensor.out": 1}
# MLIR uses the value for a dynamic size as a loop bound, and decomposes these operations into empty
# loops.
WINOGRAD = tuple(f"linalg.winograd_{what}_transform" for what in ("filter", "input", "output"))


def check_supported(source: Source, *, has_pipeline: bool) -> None:
    """Raises InputError for operations that would be lowered incorrectly, and, without a user's
    pipeline, for dialects that are not lowered."""
    check_vector_casts(source)
    for operation in ops.walk(source.module.operation):
        reason = None
        dialect = operation.name.split(".")[0]
        if dialect in _HIGHER_LEVELS and not has_pipeline:
            reason = f"the {dialect} dialect is not lowered yet; --pipeline can lower it first"
        if operation.name in _FILES and not has_pipeline:
            name = operation.operands[_FILES[operation.name]]
            if str(name.type) != "!llvm.ptr":
                reason = f"a file is named by an !llvm.ptr to its text, not by a {name.type}"
        if operation.name in WINOGRAD and not all(
            value.type.has_static_shape for value in operation.operands
        ):
            reason = "its sizes must be known"
        if dialect == "linalg" and not has_pipeline:
            reason = reason or _blocks_problem(operation)
        if reason is not None:
            raise _refused(source, operation, f"{operation.name} is not supported here: {reason}.")


def _blocks_problem(operation: Any) -> str | None:
    """A problem with a blocked operand whose size is known. Upstream's sparsifier crashes if it is
    not a number of blocks, or a single one, whose level is folded to the constant 0."""
    for type_ in (value.type for value in operation.operands if is_sparse(value.type)):
        for level in levels_of(type_):
            size = level_size(level, type_.shape)
            if not isinstance(size, tuple) or size[1] == 1 or size[0] < 0:
                continue
            if size[0] % size[1]:
                return f"the size of {level.expression} in {type_} is no multiple of {size[1]}"
            if size[0] <= size[1]:
                return f"{level.expression} in {type_} has one block; declare its size as ?"
    return None


def check_vector_casts(source: Source) -> None:
    """Raises InputError for casts of memrefs to vectors whose elements have another layout.

    LLVM packs vectors of i1, i4 or i24; in a memref, each element starts at a byte (i24: at each
    fourth byte). Transform schedules create such casts as well. (Reads and writes are by vectors of
    whole bytes: `rewrites.packed_vectors`.)
    """
    for operation in ops.find(source.module.operation, "vector.type_cast"):
        element = operation.operands[0].type.element_type
        if is_packed(element):
            raise _refused(
                source,
                operation,
                f"{operation.name} is not supported here: LLVM packs the bits of vectors of "
                f"{element}, and a memref of {element} does not: use elements of 8, 16, 32 or 64 "
                "bits, or read the vector with vector.transfer_read.",
            )


def check_kernels(source: Source) -> None:
    """Raises InputError for operations and types in kernels of the outlined module that only the
    host supports, or that would be lowered incorrectly."""
    for gpu_module in gpu_modules(source.module):
        _check_types(source, gpu_module)
        for operation in ops.find(gpu_module, *_WRITES):
            target = operation.operands[_WRITES[operation.name]]
            if _is_constant_memory(target.type) or _is_constant_memory(root_of(target).type):
                said = f"{operation.name} writes to constant memory, which kernels can only read."
                raise _refused(source, operation, said)
        for allocation in ops.find(gpu_module, "memref.alloca"):
            if _outlasts_iteration(allocation):
                said = (
                    "memref.alloca in a loop: in kernels, all iterations have the same memory, and "
                    "this one is passed on. Allocate it before the loop, or by memref.alloc."
                )
                raise _refused(source, allocation, said)
        for operation in ops.find(gpu_module, *_HOST_ONLY):
            reason = _HOST_ONLY[operation.name]
            if reason is not None or _is_unranked_copy(operation):
                reason = reason or "ranks must be known in kernels"
                said = f"{operation.name} is not supported in kernels: {reason}."
                raise _refused(source, operation, said)
    for launch in ops.find(source.module.operation, "gpu.launch_func"):
        _check_arguments(source, launch)


def _outlasts_iteration(allocation: Any) -> bool:
    """Whether a loop around the allocation passes its memory, or a view of it, on to its next
    iteration or out of the loop."""
    around = list(ops.ancestors(allocation))
    # The module itself is in no block.
    blocks = [op.block for op in (allocation, *around) if op.parent is not None]
    seen: set[Any] = set()
    waiting = [allocation.results[0]]
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType):
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner.operation
            if user.name in _PASSES_ON:
                user = user.parent.operation
                if user.name in _LOOPS and user in around:
                    return True
            if user.successors:
                if any(map(_is_repeated, blocks)):
                    return True
                for block in user.successors:
                    waiting += block.arguments
            waiting += user.results
            for region in user.regions:
                for block in region.blocks:
                    waiting += block.arguments
    return False


def _is_repeated(block: Any) -> bool:
    """Whether branches lead from the block back to it."""
    seen: set[Any] = set()
    # A block without a terminator, as a module has, has no list of successors.
    waiting = list(block.successors) if len(block.region.blocks) > 1 else []
    while waiting:
        reached = waiting.pop()
        if reached == block:
            return True
        if reached not in seen:
            seen.add(reached)
            waiting += reached.successors
    return False


def _check_arguments(source: Source, launch: Any) -> None:
    """Refuses vectors of packed elements such as i1, which device code declares as bits and reads
    as bytes, and constant memory, which a caller cannot pass."""
    for operand in launch.operands:
        if isinstance(operand.type, ir.VectorType) and is_packed(operand.type.element_type):
            said = (
                f"a kernel is given a {operand.type}, which is not supported: use a vector of i8, "
                "or make it in the kernel."
            )
            raise _refused(source, launch, said)
        if _is_constant_memory(operand.type):
            said = (
                f"a kernel is given a {operand.type}: constant memory is a part of the kernel's "
                "module, a global there. Without a memory space, aotc puts a constant where "
                "kernels can read it."
            )
            raise _refused(source, launch, said)


def _is_constant_memory(type_: Any) -> bool:
    if isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType):
        return str(type_.memory_space).split(" ")[0] == str(_CONSTANT_MEMORY)
    return str(type_) == f"!llvm.ptr<{_CONSTANT_MEMORY}>"


def _check_types(source: Source, gpu_module: Any) -> None:
    """Refuses types in kernels that no GPU supports."""
    seen: set[Any] = set()
    for operation in ops.walk(gpu_module):
        for result in operation.results:
            type_ = result.type
            if type_ in seen:
                continue
            seen.add(type_)
            is_scalable = isinstance(type_, ir.VectorType) and type_.scalable
            if is_scalable or str(ops.element_type(type_)) in _OF_THE_HOST:
                what = "scalable vectors are" if is_scalable else f"{type_} is"
                said = f"{what} not supported in kernels: {operation.name} makes a {type_}."
                raise _refused(source, operation, said)


def _is_unranked_copy(operation: Any) -> bool:
    return all(isinstance(value.type, ir.UnrankedMemRefType) for value in operation.operands)


def _refused(source: Source, operation: Any, said: str) -> InputError:
    return input_error(source, [(operation.location, said)])
