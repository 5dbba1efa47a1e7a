"""Workgroup (shared) memory → offsets in the memory that the runtime allocates for a block.

Workgroup attributions and globals have fixed offsets in it. A global that several kernels use has
the same offset for all. Dynamic shared memory is a buffer of its own. `mark_workgroup` runs while
types still have memory spaces; `replace_marked` runs when functions have arguments for the
pointers.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.shared_memory import is_dynamic_global
from aotc.analysis.types import is_workgroup
from aotc.mlir import ir
from aotc.ops import constant, create, integer, unary, walk
from aotc.symbols import is_kernel, symbols_of
from aotc.targets.cpu.build import at
from aotc.targets.cpu.sizes import memref_bytes, round_up, size_of

# An attribute of operations that refer to workgroup memory: the offset in bytes, or `_DYNAMIC`.
_MARK = "aotc_workgroup"
_DYNAMIC = -1
# A cache line, and the widest vector. (TMA, which needs 128, is not supported on the CPU.)
_ALIGNMENT = 64


def is_workgroup_global(operation: Any) -> bool:
    if operation.name == "memref.global":
        return is_workgroup(operation.attributes["type"].value)
    if operation.name != "llvm.mlir.global" or "addr_space" not in operation.attributes:
        return False
    return bool(ir.IntegerAttr(operation.attributes["addr_space"]).value == 3)


def mark_workgroup(gpu_module: Any) -> dict[str, int]:
    """Assigns offsets to all workgroup memory; returns the bytes of each kernel by its name.

    Globals in workgroup memory and the attributions of kernels are removed. Operations that used
    them carry the offset as an attribute. Raises UnknownSizeError.
    """
    symbols = symbols_of(gpu_module)
    places: dict[str, int] = {}
    end = 0
    for name, operation in symbols.items():
        if is_workgroup_global(operation):
            if is_dynamic_global(operation):
                places[name] = _DYNAMIC
            else:
                places[name] = round_up(end, _alignment(operation, "alignment"))
                end = places[name] + _global_bytes(operation)
    for operation in walk(gpu_module):
        used = ops.used_global(operation)
        if used in places:
            _mark(operation, places[used])
    for name in places:
        ops.erase(symbols[name])
    return {
        name: _mark_attributions(operation, end)
        for name, operation in symbols.items()
        if name not in places and is_kernel(operation)
    }


def _global_bytes(variable: Any) -> int:
    if variable.name == "memref.global":
        return memref_bytes(variable.attributes["type"].value)
    return size_of(variable.attributes["global_type"].value).bytes


def _alignment(operation: Any, name: str) -> int:
    if name not in operation.attributes:
        return _ALIGNMENT
    return max(_ALIGNMENT, int(ir.IntegerAttr(operation.attributes[name]).value))


def _mark(operation: Any, place: int) -> None:
    operation.attributes[_MARK] = ir.IntegerAttr.get(integer(64), place)


def _mark_attributions(kernel: Any, end: int) -> int:
    """Replaces each workgroup attribution, which is an argument of the body, by a marked
    operation."""
    attributes = kernel.attributes
    if "workgroup_attributions" not in attributes:
        return end
    count = int(ir.IntegerAttr(attributes["workgroup_attributions"]).value)
    entry = kernel.regions[0].blocks[0]
    first = len(attributes["function_type"].value.inputs)
    own = (
        list(attributes["workgroup_attrib_attrs"]) if "workgroup_attrib_attrs" in attributes else []
    )
    for number in range(count):
        # The next attribution moves to this index when the argument is erased.
        attribution = entry.arguments[first]
        place = round_up(
            end,
            max(_ALIGNMENT, int(own[number]["llvm.align"].value))
            if number < len(own) and "llvm.align" in own[number]
            else _ALIGNMENT,
        )
        end = place + memref_bytes(attribution.type)
        with ir.InsertionPoint.at_block_begin(entry), attribution.location:
            use = create(
                "memref.get_global",
                results=[attribution.type],
                attributes={"name": ir.FlatSymbolRefAttr.get(f"attribution{number}")},
            )
        _mark(use, place)
        attribution.replace_all_uses_with(use.result)
        entry.erase_argument(first)
    attributes["workgroup_attributions"] = ir.IntegerAttr.get(integer(64), 0)
    return end


def uses_workgroup(operation: Any) -> bool:
    """Whether `replace_marked` applies to an operation."""
    return operation.name == "gpu.dynamic_shared_memory" or _MARK in operation.attributes


def replace_marked(operation: Any, ids: Any) -> None:
    """Replaces the uses of an operation that refers to workgroup memory by pointers in `ids`."""
    result = operation.results[0]
    if operation.name == "gpu.dynamic_shared_memory":
        size = unary("arith.index_cast", ids.dynamic_shared_bytes, integer(64))
        result.replace_all_uses_with(_memref(result.type, ids.dynamic_shared, [size]))
        return
    place = int(ir.IntegerAttr(operation.attributes[_MARK]).value)
    pointer = ids.dynamic_shared if place == _DYNAMIC else at(ids.shared, place)
    if operation.name == "memref.get_global":
        result.replace_all_uses_with(_memref(result.type, pointer, []))
    else:
        result.replace_all_uses_with(pointer)


def _memref(type_: Any, pointer: Any, dynamic_sizes: list[Any]) -> Any:
    """The memref of `type_` at `pointer`, built from the descriptor of its LLVM lowering."""
    strides, offset = type_.get_strides_and_offset()
    rank = len(type_.shape)
    arrays = f", array<{rank} x i64>, array<{rank} x i64>" if rank else ""
    descriptor_type = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
    sizes = [
        dynamic_sizes.pop(0) if type_.is_dynamic_dim(d) else constant(integer(64), type_.shape[d])
        for d in range(rank)
    ]
    values: list[tuple[Any, list[int]]] = [
        (pointer, [0]),
        (pointer, [1]),
        (constant(integer(64), offset), [2]),
    ]
    values += [(size, [3, d]) for d, size in enumerate(sizes)]
    values += [(constant(integer(64), stride), [4, d]) for d, stride in enumerate(strides)]
    descriptor = create("llvm.mlir.poison", results=[descriptor_type]).result
    for value, position in values:
        descriptor = create(
            "llvm.insertvalue",
            [descriptor, value],
            [descriptor_type],
            {"position": ir.DenseI64ArrayAttr.get(position)},
        ).result
    return unary("builtin.unrealized_conversion_cast", descriptor, type_)
