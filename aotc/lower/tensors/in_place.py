"""Writes results that are new values of arguments (`aotc.into`) into these arguments.

`{aotc.into = N}` on a result says that the caller finds the result in argument N after the call.
Bufferization may write into such an argument, and usually computes the result there, so nothing is
left to do. Otherwise the result is copied at the end of the function.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.attributes import INTO_ATTRIBUTE
from aotc.errors import InputError
from aotc.input.entries import functions_of
from aotc.input.state import targets_of
from aotc.mlir import ir
from aotc.ops import symbol_of

# Views of a whole buffer with its elements in the same order.
_SAME = ("memref.cast", "memref.collapse_shape", "memref.expand_shape")
_NEW = ("memref.alloc", "memref.get_global")


def write_into_arguments(module: Any) -> None:
    """Drops such results of functions on memrefs. Raises InputError if such a function is
    called."""
    with module.context:
        _forward_buffers(module)
        called = {ops.callee_of(call) for call in ops.find(module.operation, "func.call")}
        for function in functions_of(module):
            targets = targets_of(function)
            if not targets:
                continue
            if symbol_of(function) in called:
                raise InputError(
                    f"'{symbol_of(function)}' writes into its arguments ({INTO_ATTRIBUTE}), and is "
                    "called by itself or by another function that it could not be inlined into."
                )
            for returned in ops.find(function, "func.return"):
                _write(returned, targets, function.regions[0].blocks[0].arguments)
            _drop_results(function, targets)


def _forward_buffers(module: Any) -> None:
    """Uses a buffer itself instead of the result of a branch that yields it in both cases."""
    for branch in ops.find(module.operation, "scf.if"):
        blocks = [region.blocks[0] for region in branch.regions if len(region.blocks)]
        yields = [list(ops.operations_in(block)[-1].operands) for block in blocks]
        for result, *values in zip(branch.results, *yields, strict=True):
            is_buffer = isinstance(result.type, ir.MemRefType)
            if is_buffer and len(values) == 2 and values[0] == values[1]:
                result.replace_all_uses_with(values[0])


def _write(returned: Any, targets: dict[int, int], arguments: Any) -> None:
    values = list(returned.operands)
    written = [arguments[target] for target in targets.values()]
    late = {}
    for i, value in enumerate(values):
        target = arguments[targets[i]] if i in targets else None
        root = _root(value)
        if target is not None and root == target:
            continue
        # A value that is, or may be, in a written argument is copied first, as that argument is
        # overwritten below.
        owner = ops.defining(root)
        is_apart = root in arguments if owner is None else owner.name in _NEW
        if isinstance(value.type, ir.MemRefType) and (root in written or not is_apart):
            values[i] = _copy(returned, value)
        if target is not None:
            late[i] = target
    with returned.location, ir.InsertionPoint(returned):
        for i, target in late.items():
            ops.create("memref.copy", [values[i], target])
        ops.create("func.return", [value for i, value in enumerate(values) if i not in targets])
    ops.erase(returned)


def _root(value: Any) -> Any:
    """The buffer of which a value is a view of all elements: an allocation, an argument, or another
    value."""
    while (view := ops.defining(value)) is not None and view.name in _SAME:
        value = view.operands[0]
    return value


def _copy(returned: Any, value: Any) -> Any:
    """A new buffer with the value's elements, created before `returned`."""
    with returned.location, ir.InsertionPoint(returned):
        copy = ops.alloc(value.type, ops.dynamic_sizes(value))
        ops.create("memref.copy", [value, copy])
    return copy


def _drop_results(function: Any, targets: dict[int, int]) -> None:
    type_ = ops.function_type(function)
    kept = [i for i in range(len(type_.results)) if i not in targets]
    ops.set_function_type(function, type_.inputs, [type_.results[i] for i in kept])
    attributes = list(ir.ArrayAttr(function.attributes["res_attrs"]))
    function.attributes["res_attrs"] = ir.ArrayAttr.get([attributes[i] for i in kept])
