"""`aotc-clone-fills`: each operation that starts from a filled tensor gets its own, in its shape.

The same holds for a tensor that broadcasts a smaller one, such as the bias of a layer that is
applied twice. CSE makes equal tensors one, and they are reshaped: then the first operation that
writes into the tensor must copy it, and the fill runs before all of them. A separate fill becomes
part of the loop that uses it.

An empty tensor that several operations write is separated as well; otherwise its buffer would live
from the first of them to the last. Operations that read what was written into the tensor may write
in place, and keep it.

A loop that yields one tensor twice yields a copy of it the second time. Bufferization takes the
loop's results for two tensors, and lets later operations write into one of them and read the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import RESHAPES
from aotc.analysis.views import root_of
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.mlir import ir

# Operations whose result may alias their first operand.
_ALIASING = (*RESHAPES, "tensor.cast", "tensor.extract_slice")


class CloneFills(OwnPass, frozen=True):
    """Runs when named operations are `linalg.generic`."""

    name = "aotc-clone-fills"
    reason: str = "each operation that starts from a filled tensor has its own"

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for generic in ops.find(lowering.module.operation, "linalg.generic"):
                value, sizes = _value(generic), _sizes(generic)
                if value is not None and sizes is not None:
                    _reshape(generic.results[0], value)
                    _separate(generic.results[0], value, sizes)
                elif _is_broadcast(generic):
                    _separate_broadcast(generic)
            _separate_empty(lowering.module.operation)
            for loop in ops.find(lowering.module.operation, "scf.for"):
                _copy_repeated_yields(ops.terminator(loop.regions[0].blocks[0]))


def _is_broadcast(generic: Any) -> bool:
    """Whether the result is a broadcast of one tensor of lower rank."""
    inputs, _ = ops.operand_groups(generic)
    end, *others = reversed(ops.content(generic))
    if others or len(generic.results) != 1 or len(inputs) != 1:
        return False
    (source,), (result,) = inputs, generic.results
    is_it = list(end.operands) == [generic.regions[0].blocks[0].arguments[0]]
    is_tensor = isinstance(source.type, ir.RankedTensorType)
    return bool(is_it and is_tensor and source.type.rank < result.type.rank)


def _separate_broadcast(generic: Any) -> None:
    """Gives each operation that writes into the broadcast's result, except one, its own
    broadcast."""
    (result,) = generic.results
    for use in list(result.uses):
        if _is_written(use) and len(list(result.uses)) > 1:
            user = use.owner.operation
            made = generic.clone(ip=ir.InsertionPoint(user))
            user.operands[use.operand_number] = made.results[0]


def _separate_empty(root: Any) -> None:
    """Gives each operation its own empty tensor, unless it reads what the previous operation wrote
    into that tensor."""
    latest: dict[Any, Any] = {}  # tensor.empty → its copy that was written last
    made_of: dict[Any, Any] = {}  # result, or a reshape of it → its tensor.empty
    for operation in ops.walk(root):
        read = [made_of[operand] for operand in operation.operands if operand in made_of]
        if operation.name in RESHAPES and read:
            made_of[operation.results[0]] = read[0]
        for number, operand in enumerate(operation.operands):
            empty = ops.defining(operand)
            if empty is None or empty.name != "tensor.empty" or empty.block != operation.block:
                continue
            used = latest.get(empty, empty)
            if empty in latest and used not in read:
                used = empty.clone(ip=ir.InsertionPoint(operation))
            latest[empty] = used
            operation.operands[number] = used.results[0]
            made_of.update((result, used) for result in operation.results)


def _copy_repeated_yields(end: Any) -> None:
    """Copies a yielded tensor if it, or another part of the same tensor, is yielded before it."""
    yielded = set()
    for number, operand in enumerate(end.operands):
        whole = root_of(operand, _ALIASING)
        if whole in yielded and isinstance(operand.type, ir.RankedTensorType):
            sizes = ir.DenseI32ArrayAttr.get([0, 1, 0])
            with end.location, ir.InsertionPoint(end):
                end.operands[number] = ops.create(
                    "bufferization.alloc_tensor",
                    [operand],
                    [operand.type],
                    {"operandSegmentSizes": sizes},
                ).result
        yielded.add(whole)


def _value(generic: Any) -> Any | None:
    """The scalar that the operation fills its result with; None for other operations."""
    inputs, _ = ops.operand_groups(generic)
    end, *others = reversed(ops.content(generic))
    if others or len(generic.results) != 1 or len(inputs) > 1:
        return None
    (yielded,) = end.operands
    if not inputs:
        return None if isinstance(yielded.owner, ir.Block) else yielded
    is_scalar = not isinstance(inputs[0].type, ir.ShapedType)
    is_it = yielded == generic.regions[0].blocks[0].arguments[0]
    return inputs[0] if is_scalar and is_it else None


def _sizes(generic: Any) -> list[Any] | None:
    """The dynamic sizes of the result; None if they are not known at this operation."""
    if not generic.results or generic.results[0].type.has_static_shape:
        return []
    _, (out, *_) = ops.operand_groups(generic)
    producer = ops.defining(out)
    if producer is None or producer.name != "tensor.empty":
        return None
    return list(producer.operands)


def _reshape(filled: Any, value: Any) -> None:
    """Replaces reshapes of the filled tensor by separate fills."""
    for use in list(filled.uses):
        user = use.owner.operation
        if user.name in RESHAPES and user.results[0].type.has_static_shape:
            with user.location, ir.InsertionPoint(user):
                other = _fill(user.results[0].type, value)
            ops.replace(user, [other])
            _reshape(other, value)
            _separate(other, value)


def _separate(filled: Any, value: Any, sizes: Sequence[Any] = ()) -> None:
    """Gives each operation that writes into the filled tensor its own."""
    for use in [use for use in filled.uses if _is_written(use)]:
        user = use.owner.operation
        with user.location, ir.InsertionPoint(user):
            user.operands[use.operand_number] = _fill(filled.type, value, sizes)


def _is_written(use: Any) -> bool:
    user = use.owner.operation
    if user.name != "linalg.generic":
        return False
    inputs, _ = ops.operand_groups(user)
    return bool(use.operand_number >= len(inputs))


def _fill(type_: Any, value: Any, sizes: Sequence[Any] = ()) -> Any:
    """A tensor filled with `value`, at the insertion point."""
    return create_broadcast(value, type_, ir.AffineMap.get(type_.rank, 0, []), sizes)
