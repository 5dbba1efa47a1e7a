"""A product's result that is only read after it is rounded is rounded where it is computed.

An elementwise operation may have several products' results for operands (the gate of a layer, and
what it lets through). One of the products takes it into its kernel; what the others write is in
memory. Where the operation rounds it first, a cast of its own does that instead, which the product
then takes with it: half as many bytes are written and read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.kernels.matmul.fusion.elementwise import is_elementwise
from aotc.kernels.matmul.recognition import Matmul
from aotc.mlir import ir

_ROUNDS = "arith.truncf"
_DEALLOC = "memref.dealloc"


def narrow_results(products: Sequence[Matmul]) -> None:
    """Changes the module in which they are, in the order of its operations."""
    for number, product in enumerate(products):
        reader = _only_reader(product)
        if reader is None:
            continue
        later = [other.c for other in products[number + 1 :]]
        if any(value in later for value in reader.operands):
            _round_early(product, reader)


def _only_reader(product: Matmul) -> Any | None:
    """The elementwise operation that alone has the elements of a buffer that is C."""
    owner = ops.defining(product.c)
    if owner is None or owner.name != "memref.alloc":
        return None
    known = [product.operation, *([] if product.fill is None else [product.fill])]
    users = [use.owner.operation for use in product.c.uses]
    readers = [user for user in users if user.name not in (_DEALLOC, "memref.dim")]
    others = [user for user in readers if user not in known]
    if len(others) != 1 or not is_elementwise(others[0]):
        return None
    return others[0] if others[0].block == product.operation.block else None


def _round_early(product: Matmul, reader: Any) -> None:
    inputs, _ = ops.operand_groups(reader)
    number = inputs.index(product.c) if product.c in inputs else None
    if number is None:
        return
    argument = reader.regions[0].blocks[0].arguments[number]
    roundings = [use.owner.operation for use in argument.uses]
    types = {str(rounding.results[0].type) for rounding in roundings if rounding.results}
    if len(types) != 1 or any(rounding.name != _ROUNDS for rounding in roundings):
        return
    element = roundings[0].results[0].type
    with product.operation.location:
        rounded = _cast(product, element, roundings[0])
    reader.operands[number] = rounded
    argument.set_type(element)
    for rounding in roundings:
        rounding.results[0].replace_all_uses_with(argument)
        ops.erase(rounding)


def _cast(product: Matmul, element: Any, rounding: Any) -> Any:
    """A buffer with the product's result, rounded as `rounding` does, made behind the product."""
    allocation, operation = ops.defining(product.c), product.operation
    assert allocation is not None
    type_ = ir.MemRefType.get(ir.MemRefType(product.c.type).shape, element)
    attributes = {name: allocation.attributes[name] for name in allocation.attributes}
    with ir.InsertionPoint(allocation):
        buffer = ops.create("memref.alloc", list(allocation.operands), [type_], attributes).result
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    with ir.InsertionPoint.after(operation):
        cast = ops.create(
            "linalg.generic",
            [product.c, buffer],
            [],
            {
                "indexing_maps": ir.ArrayAttr.get([identity, identity]),
                "iterator_types": ir.ArrayAttr.get([parallel] * type_.rank),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
            },
            regions=1,
        )
    block = cast.regions[0].blocks.append(ir.MemRefType(product.c.type).element_type, element)
    with ir.InsertionPoint(block):
        kept = {name: rounding.attributes[name] for name in rounding.attributes}
        value = ops.create(_ROUNDS, [block.arguments[0]], [element], kept).result
        ops.create("linalg.yield", [value])
    for use in list(product.c.uses):
        user = use.owner.operation
        if user.name == _DEALLOC:
            with ir.InsertionPoint(user):
                ops.create(_DEALLOC, [buffer])
    return buffer
