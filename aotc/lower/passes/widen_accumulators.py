"""`aotc-widen-accumulators`: linalg operations sum 16-bit floats in f32.

The kernels of matmuls and convolutions accumulate in f32 and round once. Loops that compute what
has no kernel would round to 16 bits after each addition: the error of a sum of K terms grows with
K, and a sum in bf16 stays at 256 if ones are added to it. So such a reduction accumulates in a
buffer of f32, which becomes a loop-carried value when the loops around it are fused.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.generics import has_reduction
from aotc.kernels.launches import generics_on_host
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_NARROW = 16  # bits


class WidenAccumulators(OwnPass, frozen=True):
    name = "aotc-widen-accumulators"
    reason: str = "sums of 16-bit floats are accumulated in f32, and rounded once"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for generic in generics_on_host(lowering.module):
                if has_reduction(generic):
                    _widen_outputs(generic)


def _widen_outputs(generic: Any) -> None:
    inputs, outputs = ops.operand_groups(generic)
    terminator = ops.content(generic)[-1]
    arguments = list(generic.regions[0].blocks[0].arguments)[len(inputs) :]
    for i, (output, argument) in enumerate(zip(outputs, arguments, strict=True)):
        addition = ops.defining(terminator.operands[i])
        if addition is not None and _is_sum(addition, argument):
            with generic.location:
                _widen(generic, len(inputs) + i, output, addition)


def _is_sum(addition: Any, accumulator: Any) -> bool:
    """Whether the operation adds a term to a 16-bit accumulator, and nothing else uses that."""
    type_ = accumulator.type
    return (
        isinstance(type_, ir.FloatType)
        and type_.width == _NARROW
        and addition.name == "arith.addf"
        and accumulator in list(addition.operands)
        and len(list(accumulator.uses)) == 1
        and len(list(addition.results[0].uses)) == 1
    )


def _widen(generic: Any, operand: int, narrow: Any, addition: Any) -> None:
    """Accumulates the output `operand`, which is the buffer `narrow`, in a buffer of f32."""
    wide_type, narrow_type = ir.F32Type.get(), narrow.type.element_type
    with ir.InsertionPoint(generic):
        type_ = ir.MemRefType.get(narrow.type.shape, wide_type)
        sizes = ops.dynamic_sizes(narrow)
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(sizes), 0])}
        wide = ops.create("memref.alloc", sizes, [type_], segments).result
        _convert("arith.extf", narrow, wide, wide_type)
    generic.operands[operand] = wide
    accumulator = generic.regions[0].blocks[0].arguments[operand]
    terms = [value for value in addition.operands if value != accumulator]
    accumulator.set_type(wide_type)
    with ir.InsertionPoint(addition), addition.location:
        term = _widened(terms[0], wide_type)
        total = _with_flags(addition, [accumulator, term], wide_type)
    addition.results[0].replace_all_uses_with(total)
    ops.erase(addition)
    with ir.InsertionPoint.after(generic):
        _convert("arith.truncf", wide, narrow, narrow_type)
        ops.create("memref.dealloc", [wide])


def _convert(name: str, source: Any, target: Any, element: Any) -> None:
    """Writes the elements of one buffer, converted, to another one."""
    maps = [ir.AffineMap.get_identity(source.type.rank)] * 2
    ops.create_generic([source, target], maps, lambda one, _: ops.unary(name, one, element))


def _widened(term: Any, wide: Any) -> Any:
    """A term in f32; a product is not rounded before."""
    product = ops.defining(term)
    if product is not None and product.name == "arith.mulf":
        factors = [ops.unary("arith.extf", one, wide) for one in product.operands]
        return _with_flags(product, factors, wide)
    return ops.unary("arith.extf", term, wide)


def _with_flags(operation: Any, operands: list[Any], type_: Any) -> Any:
    """An operation of the same name and fast-math flags on other operands."""
    flags = {name: operation.attributes[name] for name in operation.attributes}
    return ops.create(operation.name, operands, [type_], flags).result
