"""Uses and frees of buffers after they were freed, and frees of memory that was not allocated.

Only errors on all paths to an operation are reported: the buffer is the same SSA value, possibly
through views, and the free dominates the use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc import ops
from aotc.analysis.access import Flow
from aotc.analysis.functions import Functions
from aotc.analysis.views import VIEWS, root_of
from aotc.input.source import Source
from aotc.lower.checks.operations import Operations
from aotc.lower.checks.reach import reachable_blocks
from aotc.mlir import ir
from aotc.warnings import BuildWarning

_FREES = ("memref.dealloc", "gpu.dealloc", "memref.realloc")
# The first result of memref.extract_strided_metadata is the buffer as well.
_VIEWS = (*VIEWS, "memref.extract_strided_metadata")
# Operations that read the descriptor or forward the value: no access by themselves.
_NO_ACCESS = {
    *_VIEWS,
    "arith.select",
    "bufferization.clone",
    "builtin.unrealized_conversion_cast",
    "memref.dim",
    "memref.extract_aligned_pointer_as_index",
    "memref.rank",
}
_ENTRY = "llvm.emit_c_interface"
_FORWARDING = ("scf.", "cf.", "affine.yield", "affine.for", "async.", "bufferization.")


def check_deallocations(source: Source, operations: Operations) -> list[BuildWarning]:
    """Warnings for uses of freed buffers (accesses, launches, calls, returns), double frees, and
    frees of memory that was not allocated."""
    frees = operations.named(*_FREES)
    if not frees:
        return []
    functions = Functions(source.module)
    found = [w for free in frees if (w := _invalid(source, free)) is not None]
    reported = set()
    for free in frees:
        for user in _users_of(_freed_by(free)):
            if user == free or user in reported or user not in operations:
                continue
            if not _accesses(user, free, functions):
                continue
            if not _comes_after(user, free, operations):
                continue
            reported.add(user)
            found.append(_describe(source, user, free))
    return found


def _describe(source: Source, user: Any, free: Any) -> BuildWarning:
    place = source.place(free.location)
    where = f" at {place.line}:{place.column}" if place else ""
    if user.name in _FREES:
        name, message = "double-dealloc", f"{user.name} of a buffer that {free.name}{where} freed"
    else:
        name = "use-after-dealloc"
        message = f"{user.name} uses a buffer that {free.name}{where} freed"
    return BuildWarning.at(source, name, user.location, message)


# memref.dealloc and memref.realloc call `free`.
_NEVER_FREED = {"memref.alloca": "of the stack", "memref.get_global": "of a global"}


def _invalid(source: Source, free: Any) -> BuildWarning | None:
    """A warning for a free of memory that no allocation made.

    A caller may have allocated an argument by `malloc`, and expect the entry to free it, but the
    harness and most callers do not.
    """
    if free.name == "gpu.dealloc":
        return None
    freed = _freed_by(free)
    owner = ops.defining(freed)
    if owner is not None:
        if owner.name not in _NEVER_FREED:
            return None
        message = f"{free.name} frees memory {_NEVER_FREED[owner.name]}"
        return BuildWarning.at(source, "invalid-dealloc", free.location, message)
    function = freed.owner.owner.operation
    if function.name != "func.func" or _ENTRY not in function.attributes:
        return None
    message = f"{free.name} frees an argument of entry '{ops.symbol_of(function)}'"
    return BuildWarning.at(source, "invalid-dealloc", free.location, message, is_sure=False)


def _freed_by(free: Any) -> Any:
    """The value whose buffer is freed. Tokens come before that operand."""
    operand = next(operand for operand in free.operands if _is_memref(operand.type))
    return root_of(operand, _VIEWS)


def _is_memref(type_: Any) -> bool:
    return isinstance(type_, ir.MemRefType | ir.UnrankedMemRefType)


def _users_of(root: Any) -> Iterator[Any]:
    """Yields the operations with the buffer or a view of it as an operand, each once."""
    pending, seen = [root], set()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user in seen:
                continue
            seen.add(user)
            yield user
            is_view = user.name in _VIEWS and use.operand_number == 0
            pending += [user.results[0]] if is_view else []


def _accesses(user: Any, free: Any, functions: Functions) -> bool:
    """Whether `user` certainly accesses the buffer's memory."""
    if user.name in _NO_ACCESS or user.name.startswith(_FORWARDING):
        return False
    if user.name == "func.call":
        return _callee_accesses(user, free, functions)
    return True


def _callee_accesses(call: Any, free: Any, functions: Functions) -> bool:
    freed = _freed_by(free)
    for i, operand in enumerate(call.operands):
        if _is_memref(operand.type) and root_of(operand, _VIEWS) == freed:
            argument = functions.argument(call, i)
            if argument is None:
                return True  # a function without a body is assumed to access it
            flow = Flow.of(argument, functions)
            if flow.reads or flow.writes or flow.reaches_launch or flow.deallocations:
                return True
    return False


# --- Order -------------------------------------------------------------------------------


def _comes_after(user: Any, free: Any, operations: Operations) -> bool:
    """Whether `free` is complete in each execution of `user`."""
    if not _is_asynchronous(free):
        return _is_dominated(user, free, operations)
    # An asynchronous free is complete after a wait for its token.
    waiting = _waiting_for(free)
    return user in waiting or any(
        wait.name == "gpu.wait" and len(wait.results) == 0 and _is_dominated(user, wait, operations)
        for wait in waiting
    )


def _is_asynchronous(free: Any) -> bool:
    return free.name == "gpu.dealloc" and len(free.results) > 0


def _waiting_for(free: Any) -> list[Any]:
    """The operations that depend on the token of `free`, directly or through other tokens."""
    found: list[Any] = []
    pending = list(free.results)
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user in found or not user.name.startswith("gpu."):
                continue
            found.append(user)
            pending += [r for r in user.results if str(r.type) == "!gpu.async.token"]
    return found


def _is_dominated(user: Any, first: Any, operations: Operations) -> bool:
    """Whether `first` dominates `user`."""
    region = first.block.region
    while user is not None and user.block.region != region:
        user = user.parent
        user = user.operation if user is not None else None
        if user is None or user.name in ("builtin.module", "func.func", "gpu.module"):
            return False
    if user is None or user == first:
        return False
    if user.block == first.block:
        return operations.is_before(first, user)
    return user.block not in reachable_blocks(region, without=first.block)
