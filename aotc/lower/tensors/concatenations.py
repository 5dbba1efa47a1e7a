"""Fuses `tensor.concat` into elementwise operations and parallel loops that read it.

An example of the latter is a loop that writes a row of a cache of keys. For each element, the fused
operation selects the operand that the element comes from, and computes it there. Cheap producers of
operands are included, with slices and transposes: for example, the sign in the half of a row that a
rotary embedding rotates. Without this, each operand and the concatenation would be a kernel.

A concatenation of constants, as of the biases of Q, K and V, is a constant, which an epilogue can
read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.analysis.generics import has_reduction, maps_of
from aotc.lower.tensors.quantized_concatenations import quantize_operands
from aotc.mlir import ir
from aotc.rewrites.cloning import copy
from aotc.slices import static_lists

_MOST_OPERANDS = 4
# The limit of operations per element of an operand that each reader computes again.
_MOST_OPERATIONS = 4
_ULT = 6

Indices = Sequence[Any]


def fuse_concatenations(module: Any) -> list[tuple[Any, str]]:
    """Changes `module` in place. Returns the location and a description of each change."""
    fused = []
    with module.context:
        for concat in ops.find(module.operation, "tensor.concat"):
            if _empty(concat) or _fold(concat):
                continue
            location = concat.location
            if quantize_operands(concat):
                fused.append((location, "its operands are quantized"))
                continue
            if not _is_known(concat):
                continue
            extract = _only_extract(concat.results[0])
            if extract is not None or _is_read_elementwise(concat.results[0]):
                text = f"the users compute its {len(concat.operands)} operands"
                fused.append((concat.location, text))
                if extract is not None:
                    _expand_into(concat, extract)
                else:
                    _expand(concat)
    return fused


def _empty(concat: Any) -> bool:
    """Replaces a concatenation without elements by an empty tensor: MLIR would insert the operands,
    and it takes no slice of a dimension of the constant size 0. Returns whether it did."""
    result, along = concat.results[0].type, _dimension(concat)
    if 0 not in result.shape:
        return False
    operands = list(concat.operands)
    with concat.location, ir.InsertionPoint(concat):
        sizes = [
            functools.reduce(
                functools.partial(ops.binary, "arith.addi"),
                (ops.dim(one, i) for one in (operands if i == along else operands[:1])),
            )
            for i in range(result.rank)
            if result.is_dynamic_dim(i)
        ]
        ops.replace(concat, [ops.create("tensor.empty", sizes, [result]).result])
    return True


def _fold(concat: Any) -> bool:
    """Replaces a concatenation of constants by a constant, unless a large one has other users.
    Returns whether it did."""
    operands = list(concat.operands)
    if not all(map(_is_constant, operands)):
        return False
    # NumPy takes longer to import than a small module takes to build.
    from aotc.lower.tensors.concatenated_values import concatenation

    plan = concatenation(operands, _dimension(concat))
    if plan is None:
        return False
    with concat.location, ir.InsertionPoint(concat):
        ops.replace(concat, [plan.build()])
    return True


def _is_constant(value: Any) -> bool:
    owner = ops.defining(value)
    return owner is not None and owner.name == "arith.constant"


def _is_known(concat: Any) -> bool:
    """Whether the concatenation has few operands of static shape. Operands of size 1 along the
    dimension are excluded: they are typically vectors used in index computations."""
    values = [*concat.operands, concat.results[0]]
    return 2 <= len(concat.operands) <= _MOST_OPERANDS and all(
        value.type.has_static_shape and value.type.get_dim_size(_dimension(concat)) > 1
        for value in values
    )


def _is_read_elementwise(value: Any) -> bool:
    """Whether the only users are elementwise operations that read each element once."""
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        user.name == "linalg.generic"
        and not has_reduction(user)
        and all(
            map_.is_permutation
            for map_, operand in zip(maps_of(user), user.operands, strict=True)
            if operand == value
        )
        for user in users
    )


def _only_extract(value: Any) -> Any | None:
    """The `tensor.extract` in a parallel loop that is the only user of the tensor and reads each
    element once. Its indices are loop variables, and the loop has as many iterations as the tensor
    has elements."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 1 or users[0].name != "tensor.extract":
        return None
    (extract,) = users
    loop = ops.enclosing(extract, "scf.forall")
    if loop is None:
        return None
    _, *indices = extract.operands
    own = [index for index, size in zip(indices, value.type.shape, strict=True) if size > 1]
    variables = list(loop.regions[0].blocks[0].arguments)
    counts = list(ir.DenseI64ArrayAttr(loop.attributes["staticUpperBound"]))
    is_once = len(set(own)) == len(own) and all(index in variables for index in own)
    is_all = math.prod(counts) == math.prod(value.type.shape)
    return extract if is_once and is_all else None


def _dimension(concat: Any) -> int:
    return int(ir.IntegerAttr(concat.attributes["dim"]).value)


def _expand(concat: Any) -> None:
    result, along = concat.results[0], _dimension(concat)
    type_ = result.type
    operands = list(concat.operands)
    with concat.location, ir.InsertionPoint(concat):

        def element() -> Any:
            indices = [ops.loop_index(dimension) for dimension in range(type_.rank)]
            return _select_element(operands, indices, along)

        made = ops.create_elementwise([], type_, [], element)
    ops.replace(concat, [made])


def _expand_into(concat: Any, extract: Any) -> None:
    _, *indices = extract.operands
    with extract.location, ir.InsertionPoint(extract):
        element = _select_element(list(concat.operands), indices, _dimension(concat))
    ops.replace(extract, [element])
    ops.erase(concat)


def _select_element(operands: Sequence[Any], indices: Indices, along: int) -> Any:
    """The element at `indices` of the concatenation of `operands` along dimension `along`."""
    first, *rest = operands
    if not rest:
        return _element(first, indices, _MOST_OPERATIONS)
    element_type = first.type.element_type
    size = ops.constant_index(first.type.get_dim_size(along))
    branch = ops.create(
        "scf.if", [ops.compare(_ULT, indices[along], size)], [element_type], regions=2
    )

    def then() -> Any:
        return _element(first, indices, _MOST_OPERATIONS)

    def other() -> Any:
        moved = [*indices]
        moved[along] = ops.index_op("arith.subi", indices[along], size)
        return _select_element(rest, moved, along)

    for region, fill in zip(branch.regions, (then, other), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            ops.create("scf.yield", [fill()])
    return branch.result


def _element(value: Any, indices: Indices, budget: int) -> Any:
    """The element of a tensor, computed from the tensor's producers as long as that takes at most
    `budget` operations; otherwise a `tensor.extract`."""
    producer: Any = ops.defining(value)
    name = None if producer is None else producer.name
    if name == "tensor.extract_slice" and (offsets := _offsets(producer)) is not None:
        moved = [
            index if offset == 0 else ops.index_op("arith.addi", index, ops.constant_index(offset))
            for index, offset in zip(indices, offsets, strict=True)
        ]
        return _element(producer.operands[0], moved, budget)
    if name == "linalg.transpose":
        order = list(ir.DenseI64ArrayAttr(producer.attributes["permutation"]))
        source = [indices[order.index(place)] for place in range(len(order))]
        return _element(producer.operands[0], source, budget)
    if name == "linalg.generic" and (count := _operations(producer)) <= budget:
        return _computed(producer, indices, budget - count)
    return ops.create("tensor.extract", [value, *indices], [value.type.element_type]).result


def _offsets(slice_: Any) -> list[int] | None:
    """The offsets of a slice that has static offsets, unit strides and the rank of its source;
    otherwise None."""
    offsets, _, strides = static_lists(slice_)
    is_known = all(one >= 0 for one in offsets) and all(one == 1 for one in strides)
    same_rank = slice_.operands[0].type.rank == slice_.results[0].type.rank
    return offsets if is_known and same_rank else None


def _operations(generic: Any) -> int:
    """The number of operations per element of the result; a number above any budget if the
    operation is not elementwise or has several users."""
    maps = maps_of(generic)
    body = ops.content(generic)
    is_simple = (
        len(generic.results) == 1
        and not has_reduction(generic)
        and len(list(generic.results[0].uses)) == 1
        and all(map_.is_projected_permutation for map_ in maps)
        and maps[-1].is_permutation
        and not list(generic.regions[0].blocks[0].arguments[-1].uses)
        and all(op.name.startswith("arith.") and not op.regions for op in body[:-1])
    )
    return len(body) - 1 if is_simple else _MOST_OPERATIONS + 1


def _computed(generic: Any, indices: Indices, budget: int) -> Any:
    """The elementwise operation's result for these indices."""
    *maps, result = maps_of(generic)
    loops = {expression.position: index
             for expression, index in zip(result.results, indices, strict=True)}  # fmt: skip
    inputs, _ = ops.operand_groups(generic)
    arguments = generic.regions[0].blocks[0].arguments
    values = {}
    for argument, value, map_ in zip(arguments, inputs, maps, strict=False):
        places = [loops[expression.position] for expression in map_.results]
        is_tensor = isinstance(value.type, ir.RankedTensorType)
        values[argument] = _element(value, places, budget) if is_tensor else value
    *body, returned = ops.content(generic)
    for operation in body:
        copy(operation, values)
    (value,) = returned.operands
    return values.get(value, value)
