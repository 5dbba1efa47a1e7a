"""The dynamic shared memory that a kernel needs, as far as its code determines it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.shared_memory import element_bytes, is_dynamic_global
from aotc.analysis.values import evaluate
from aotc.lower.checks.reach import runs_in_every_call
from aotc.mlir import ir
from aotc.symbols import reach, symbols_of

# Operations whose result is their first operand's memory, or an address in it.
_VIEWS = frozenset(
    {
        *("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast"),
        *("memref.memory_space_cast", "memref.subview", "memref.view"),
        *("memref.extract_aligned_pointer_as_index", "memref.extract_strided_metadata"),
        *("builtin.unrealized_conversion_cast", "llvm.addrspacecast", "llvm.getelementptr"),
        *("arith.index_cast", "llvm.inttoptr", "llvm.ptrtoint"),
    }
)


# Dialects and operations that may forward the memory to operations that do not access it.
_FORWARDING = ("arith.", "cf.", "func.", "index.", "llvm.br", "llvm.call", "llvm.cond_br", "scf.")


class Need(Struct, frozen=True):
    """The minimum number of bytes that a launch must provide, and the operation that shows it.

    If `is_certain`, each launch with threads needs them. Otherwise, a condition or a loop that may
    be empty keeps some launches from using the memory.
    """

    bytes: int
    operation: Any
    is_certain: bool


def dynamic_need(kernel: Any) -> Need | None:
    """The need of a gpu.func, llvm.func or gpu.launch; None if it does not access dynamic shared
    memory.

    If the kernel always takes a view of static offset and size, the need is the end of that view.
    Otherwise it is one byte.
    """
    found: Need | None = None
    for function, is_always_called in _functions_of(kernel):
        for named in _named_memory(function, kernel):
            for view in [named, *_views_of(named.results[0])]:
                need = _need_of(view, named, function, is_always_called=is_always_called)
                if found is None or (
                    need is not None
                    and (need.is_certain, need.bytes) > (found.is_certain, found.bytes)
                ):
                    found = need
    return found


def _need_of(view: Any, named: Any, function: Any, *, is_always_called: bool) -> Need | None:
    """The need of a view of the memory; None if nothing accesses the view."""
    accesses = [user for result in view.results for user in _accesses(result)]
    if not accesses:
        return None

    def always_runs(operation: Any) -> bool:
        return is_always_called and runs_in_every_call(operation, of=function)

    # The position of the view itself proves little: it may be before the branch that uses it.
    sure = (one for one in accesses if not one.name.startswith(_FORWARDING))
    end = _end_of(view, named) if always_runs(view) else None
    return Need(max(end or 1, 1), view, any(map(always_runs, sure)))


def _functions_of(kernel: Any) -> list[tuple[Any, bool]]:
    """The kernel and the functions that it calls, each with whether every launch executes it."""
    if kernel.name == "gpu.launch":
        return [(kernel, True)]
    symbols = symbols_of(kernel.parent)
    functions = [one for one in reach(kernel, symbols).values() if len(one.regions) > 0]
    always = [kernel]
    for caller in always:  # the list grows in the loop
        for call in ops.find(caller, "func.call", "llvm.call"):
            callee = symbols.get(ops.callee_of(call)) if "callee" in call.attributes else None
            if callee is not None and callee not in always and runs_in_every_call(call, of=caller):
                always.append(callee)
    return [(one, one in always) for one in functions]


def _named_memory(function: Any, kernel: Any) -> Iterator[Any]:
    """Yields the operations of a function that refer to the dynamic shared memory."""
    symbols = {} if kernel.name == "gpu.launch" else symbols_of(kernel.parent)
    for operation in ops.walk(function):
        name = ops.used_global(operation)
        if operation.name == "gpu.dynamic_shared_memory" or (
            name in symbols and is_dynamic_global(symbols[name])
        ):
            yield operation


def _views_of(value: Any) -> Iterator[Any]:
    for use in value.uses:
        user = use.owner.operation
        if user.name in ("memref.view", "memref.reinterpret_cast"):
            yield user


def _accesses(value: Any) -> Iterator[Any]:
    """Yields the operations that access the memory of `value`, or may do so."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in _VIEWS:
            for result in user.results:
                yield from _accesses(result)
        elif user.name != "memref.dim":
            yield user


def _end_of(view: Any, named: Any) -> int | None:
    """The end of a view in bytes from the start of the memory; None if it is not static."""
    type_ = view.results[0].type
    if view == named or not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return None
    shift = evaluate(view.operands[1]) if view.name == "memref.view" else 0
    strides, offset = type_.get_strides_and_offset()
    if shift is None or ir.ShapedType.get_dynamic_stride_or_offset() in (offset, *strides):
        return None
    if 0 in list(type_.shape):
        return 0
    last = sum((size - 1) * stride for size, stride in zip(type_.shape, strides, strict=True))
    return int(shift + (offset + last + 1) * element_bytes(type_.element_type))
