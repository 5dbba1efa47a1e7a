"""`aotc-widen-accumulators`: linalg operations sum floats of 16 and fewer bits in f32.

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
# Operations that add to an accumulator → the operands that it may be. One that a term is subtracted
# from is a sum; one that is subtracted from a term is not.
_ADDITIONS = {"arith.addf": (0, 1), "arith.subf": (0,), "math.fma": (2,)}


class WidenAccumulators(OwnPass, frozen=True):
    name = "aotc-widen-accumulators"
    reason: str = "sums of floats of up to 16 bits are accumulated in f32, and rounded once"

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
        additions = _additions(terminator.operands[i], argument) if _is_narrow(argument) else None
        if additions:
            with generic.location:
                _widen(generic, len(inputs) + i, output, additions)


def _is_narrow(accumulator: Any) -> bool:
    type_ = accumulator.type
    return isinstance(type_, ir.FloatType) and type_.width <= _NARROW and _is_used_once(accumulator)


def _is_used_once(value: Any) -> bool:
    return len(list(value.uses)) == 1


def _additions(value: Any, accumulator: Any) -> list[tuple[Any, int]] | None:
    """The operations that add terms to the accumulator until it is `value`, in their order, each
    with the number of the operand that is the accumulator. None if it is not such a sum, or if
    anything else uses it."""
    found = []
    while accumulator != value:
        if not _is_used_once(accumulator):
            return None
        use = next(accumulator.uses)
        addition = use.owner.operation
        if use.operand_number not in _ADDITIONS.get(addition.name, ()):
            return None
        found.append((addition, use.operand_number))
        accumulator = addition.results[0]
    return found if _is_used_once(value) else None


def _widen(generic: Any, operand: int, narrow: Any, additions: list[tuple[Any, int]]) -> None:
    """Accumulates the output `operand`, which is the buffer `narrow`, in a buffer of f32."""
    wide_type, narrow_type = ir.F32Type.get(), narrow.type.element_type
    with ir.InsertionPoint(generic):
        type_ = ir.MemRefType.get(narrow.type.shape, wide_type)
        wide = ops.alloc(type_, ops.dynamic_sizes(narrow))
        _convert("arith.extf", narrow, wide, wide_type)
    generic.operands[operand] = wide
    accumulator = generic.regions[0].blocks[0].arguments[operand]
    accumulator.set_type(wide_type)
    total = accumulator
    for addition, place in additions:
        is_sum = addition.name != "math.fma"
        with ir.InsertionPoint(addition), addition.location:
            operands = [
                total if i == place else _widened(term, wide_type, is_term=is_sum)
                for i, term in enumerate(addition.operands)
            ]
            total = _with_flags(addition, operands, wide_type)
    additions[-1][0].results[0].replace_all_uses_with(total)
    for addition, _ in reversed(additions):
        ops.erase(addition)
    with ir.InsertionPoint.after(generic):
        _convert("arith.truncf", wide, narrow, narrow_type)
        ops.create("memref.dealloc", [wide])


def _convert(name: str, source: Any, target: Any, element: Any) -> None:
    """Writes the elements of one buffer, converted, to another one."""
    maps = [ir.AffineMap.get_identity(source.type.rank)] * 2
    ops.create_generic([source, target], maps, lambda one, _: ops.unary(name, one, element))


def _widened(value: Any, wide: Any, *, is_term: bool) -> Any:
    """A value in f32; a term that is a product is not rounded before."""
    product = ops.defining(value)
    if is_term and product is not None and product.name == "arith.mulf":
        factors = [ops.unary("arith.extf", one, wide) for one in product.operands]
        return _with_flags(product, factors, wide)
    return ops.unary("arith.extf", value, wide)


def _with_flags(operation: Any, operands: list[Any], type_: Any) -> Any:
    """An operation of the same name and fast-math flags on other operands."""
    flags = {name: operation.attributes[name] for name in operation.attributes}
    return ops.create(operation.name, operands, [type_], flags).result
