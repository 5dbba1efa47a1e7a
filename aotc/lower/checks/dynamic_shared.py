"""How much dynamic shared memory a kernel needs, as far as its code says it."""

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


class Need(Struct, frozen=True):
    """The least number of bytes that a launch must give, and the operation that shows it."""

    bytes: int
    operation: Any


def dynamic_need(kernel: Any) -> Need | None:
    """What a gpu.func, llvm.func or gpu.launch needs; None where it reads and writes no dynamic
    shared memory.

    Where the kernel always takes a view of known place and size, it is that view's end. Otherwise
    it is one byte.
    """
    found: Need | None = None
    for named in _named_memory(kernel):
        for view in [named, *_views_of(named.results[0])]:
            if all(not _is_accessed(result) for result in view.results):
                continue
            end = _end_of(view, named) if runs_in_every_call(view, of=kernel) else None
            if found is None or (end or 1) > found.bytes:
                found = Need(max(end or 1, 1), view)
    return found


def _named_memory(kernel: Any) -> Iterator[Any]:
    """The operations of a kernel, and of the functions that it calls, that name the memory."""
    functions = [kernel]
    symbols: dict[str, Any] = {}
    if kernel.name != "gpu.launch":
        symbols = symbols_of(kernel.parent)
        functions = [one for one in reach(kernel, symbols).values() if len(one.regions) > 0]
    for function in functions:
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


def _is_accessed(value: Any) -> bool:
    """Whether an operation reads or writes the memory of `value`, or may."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "memref.dim":
            continue
        if user.name not in _VIEWS or any(_is_accessed(result) for result in user.results):
            return True
    return False


def _end_of(view: Any, named: Any) -> int | None:
    """Number of bytes up to the end of a view of the memory's start, where it is known."""
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
