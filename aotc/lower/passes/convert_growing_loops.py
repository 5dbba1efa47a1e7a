"""`aotc-convert-growing-loops`: an scf.for becomes an scf.while if a tensor that it carries may
change its sizes.

Upstream's canonicalization gives a tensor that an scf.for carries the static sizes that its initial
value has (`ForOpTensorCastFolder` in mlir/lib/Dialect/SCF/IR/SCF.cpp). Each iteration would take
the one that it is given for a tensor of these sizes. An scf.while has no such pattern.
"""

from __future__ import annotations

from typing import Any

from aotc import ops
from aotc.analysis.same_sizes import same_sized_operand
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import ir

_SLT, _ULT = 2, 6  # arith.cmpi's numbers


class ConvertGrowingLoops(OwnPass, frozen=True):
    name = "aotc-convert-growing-loops"
    reason: str = "no iteration takes a tensor for one of the sizes that the first one has"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            # The inner ones first: whether an outer one's tensor grows depends on them as they are.
            loops = ops.find(lowering.module.operation, "scf.for")
            for loop in [one for one in reversed(loops) if _may_grow(one)]:
                with loop.location, ir.InsertionPoint(loop):
                    _convert(loop)


def _may_grow(loop: Any) -> bool:
    body = loop.regions[0].blocks[0]
    carried = list(body.arguments)[1:]
    yielded = ops.terminator(body).operands
    return any(
        isinstance(argument.type, ir.RankedTensorType)
        and not argument.type.has_static_shape
        and not _Sizes(argument).are_of(value)
        for argument, value in zip(carried, yielded, strict=True)
    )


class _Sizes:
    """The sizes of a tensor that a loop carries."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self._others: set[Any] = set()  # values that are not known to have them

    def are_of(self, value: Any) -> bool:
        """Whether a value is known to have these sizes."""
        if value == self._tensor:
            return True
        producer = ops.defining(value)
        if producer is None or value in self._others:
            return False
        is_known = self._are_of_result(producer, list(producer.results).index(value))
        if not is_known:
            self._others.add(value)
        return is_known

    def _are_of_result(self, producer: Any, number: int) -> bool:
        name = producer.name
        if name == "tensor.empty":
            return self._are_of_empty(producer)
        if name == "scf.if":
            ends = [ops.terminator(region.blocks[0]) for region in producer.regions]
            return all(self.are_of(end.operands[number]) for end in ends)
        if name == "scf.for":  # growing ones have been converted
            return self.are_of(producer.operands[3 + number])
        if name.startswith(("arith.", "math.")):  # elementwise
            tensors = [
                one for one in producer.operands if isinstance(one.type, ir.RankedTensorType)
            ]
            return any(map(self.are_of, tensors))
        operand = same_sized_operand(producer, number)
        return operand is not None and self.are_of(operand)

    def _are_of_empty(self, empty: Any) -> bool:
        """Whether a tensor.empty is made with these sizes, by tensor.dim."""
        type_ = empty.results[0].type
        if list(type_.shape) != list(self._tensor.type.shape):
            return False
        dynamic = [i for i in range(type_.rank) if type_.is_dynamic_dim(i)]
        for dimension, size in zip(dynamic, empty.operands, strict=True):
            dim = ops.defining(size)
            if dim is None or dim.name != "tensor.dim" or ops.known_dimension(dim) != dimension:
                return False
            if not self.are_of(dim.operands[0]):
                return False
        return True


def _convert(loop: Any) -> None:
    """Replaces an scf.for by an scf.while that carries the induction variable, too."""
    lower, upper, step, *initial = loop.operands
    body = loop.regions[0].blocks[0]
    types = [lower.type, *(value.type for value in initial)]
    made = ops.create("scf.while", [lower, *initial], types, regions=2)
    before = made.regions[0].blocks.append(*types)
    with ir.InsertionPoint(before):
        predicate = _ULT if "unsignedCmp" in loop.attributes else _SLT
        goes_on = ops.compare(predicate, before.arguments[0], upper)
        ops.create("scf.condition", [goes_on, *before.arguments])
    terminator = ops.terminator(body)
    yielded = list(terminator.operands)
    with ir.InsertionPoint(terminator):
        following = ops.binary("arith.addi", body.arguments[0], step)
        ops.create("scf.yield", [following, *yielded])
    ops.erase(terminator)
    body.append_to(made.regions[1])
    for result, value in zip(loop.results, list(made.results)[1:], strict=True):
        result.replace_all_uses_with(value)
    ops.erase(loop)
