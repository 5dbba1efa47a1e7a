"""`aotc-sink-transposes`: a transpose of which only slices are used becomes transposes of the
slices.

An example is a tensor that holds Q, K and V. A transposed slice is fused with its consumer, and
attention reads its heads in this form. The transpose of the whole tensor would be a copy. Unit
dimensions may be dropped between the transpose and the slices, as PyTorch's `nn.MultiheadAttention`
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from aotc import ops
from aotc.lower.passes.base import Lowering, OwnPass
from aotc.mlir import dialect, ir
from aotc.slices import extract_slice, mixed_lists


class SinkTransposes(OwnPass, frozen=True):
    """Runs when transposes are `linalg.transpose`."""

    name = "aotc-sink-transposes"
    reason: str = (
        "a slice of a transposed tensor becomes a transposed slice: the rest is not copied"
    )

    def run(self, lowering: Lowering) -> None:
        with lowering.module.context:
            for transpose in ops.find(lowering.module.operation, "linalg.transpose"):
                for user in _users(transpose):
                    if user.name == "tensor.collapse_shape" and _drops_ones(user):
                        _slice_before(user)
                slices = _users(transpose)
                if slices and _can_sink(slices):
                    for slice_ in slices:
                        _transpose_slice(slice_, transpose)
                    ops.erase(transpose)


def _users(operation: Any) -> list[Any]:
    return [use.owner.operation for result in operation.results for use in result.uses]


def _drops_ones(collapse: Any) -> bool:
    """Whether the collapse drops only unit dimensions, and its only users are slices of the same
    rank."""
    shape, slices = collapse.operands[0].type.shape, _users(collapse)
    return (
        bool(slices)
        and all(sum(shape[i] != 1 for i in group) <= 1 for group in ops.groups_of(collapse))
        and all(
            one.name == "tensor.extract_slice"
            and one.results[0].type.rank == collapse.results[0].type.rank
            for one in slices
        )
    )


def _slice_before(collapse: Any) -> None:
    """Moves the slices before the collapse: each slice is collapsed instead."""
    (source,) = collapse.operands
    shape = source.type.shape
    kept = [
        next((i for i in group if shape[i] != 1), group[0]) for group in ops.groups_of(collapse)
    ]
    for slice_ in _users(collapse):
        lists = [
            [mixed[kept.index(i)] if i in kept else whole for i in range(len(shape))]
            for mixed, whole in zip(mixed_lists(slice_), (0, 1, 1), strict=True)
        ]
        sizes = list(slice_.results[0].type.shape)
        sizes = [sizes[kept.index(i)] if i in kept else 1 for i in range(len(shape))]
        with slice_.location, ir.InsertionPoint(slice_):
            type_ = ir.RankedTensorType.get(sizes, source.type.element_type, source.type.encoding)
            part = extract_slice(source, type_, *lists)
            result = ops.create(
                "tensor.collapse_shape",
                [part],
                [slice_.results[0].type],
                {"reassociation": collapse.attributes["reassociation"]},
            ).result
        ops.replace(slice_, [result])
    ops.erase(collapse)


def _can_sink(slices: Sequence[Any]) -> bool:
    """Whether all users are slices of the transpose's rank that have no more elements in total than
    the tensor. Overlapping slices would be copied several times."""
    return (
        all(one.name == "tensor.extract_slice" for one in slices)
        and all(one.operands[0].type.rank == one.results[0].type.rank for one in slices)
        and sum(map(_share, slices)) <= 1
    )


def _share(slice_: Any) -> Fraction:
    """The fraction of the tensor in a slice. A dimension of unknown size counts as whole."""
    share = Fraction(1)
    whole, part = slice_.operands[0].type, slice_.results[0].type
    for i in range(whole.rank):
        if not whole.is_dynamic_dim(i) and not part.is_dynamic_dim(i):
            share *= Fraction(part.get_dim_size(i), max(whole.get_dim_size(i), 1))
    return share


def _transpose_slice(slice_: Any, transpose: Any) -> None:
    linalg = dialect("linalg")
    order = list(ir.DenseI64ArrayAttr(transpose.attributes["permutation"]))
    source, type_ = transpose.operands[0], slice_.results[0].type
    with slice_.location, ir.InsertionPoint(slice_):
        part = _slice_of(source, slice_, order)
        _, _, sizes, _ = ops.operand_groups(slice_)
        made = ops.create("tensor.empty", sizes, [type_]).result
        transposed = linalg.transpose(part, outs=[made], permutation=order).results[0]
    ops.replace(slice_, [transposed])


def _slice_of(source: Any, slice_: Any, order: Sequence[int]) -> Any:
    """The same slice of the tensor before its dimensions were permuted by `order`."""
    places = [order.index(i) for i in range(len(order))]
    lists = [[mixed[i] for i in places] for mixed in mixed_lists(slice_)]
    shape = list(slice_.results[0].type.shape)
    shape = [shape[i] for i in places]
    type_ = ir.RankedTensorType.get(shape, source.type.element_type, source.type.encoding)
    return extract_slice(source, type_, *lists)
