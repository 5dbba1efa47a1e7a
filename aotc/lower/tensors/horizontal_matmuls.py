"""Fuses matmuls with the same left-hand side and constant weights into one matmul.

The fused matmul has all the weights; each result is a slice of its columns. Q, K and V of an
attention are such matmuls, and the two of a gated linear unit. Separately, each of them leaves
multiprocessors idle in its last wave, and small ones from the beginning.

The weights need not be constants themselves: operations on constants (a transpose, the
dequantization of packed weights) are applied to the concatenated constants. So are operations that
follow each matmul in the same way, such as the addition of a bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, maps_of, narrow
from aotc.kernels.matmul.horizontal_fusion import HorizontalFusion
from aotc.kernels.matmul.problem import Problem
from aotc.kernels.matmul.recognition import accumulator_of, matrix_of_type, multiplies
from aotc.lower.tensors.concatenated_values import Concatenation, body_key, concatenation
from aotc.mlir import ir
from aotc.sizes import element_bytes
from aotc.slices import DYNAMIC, extract_slice

# Each result starts at a multiple of this size in bytes, as kernels load vectors of that size.
_ALIGNMENT = 16
# Operations that read a slice without copying it. Returning or inserting a slice is a copy.
_READERS = ("linalg.generic", "func.call", "tensor.extract", "tensor.extract_slice")
_WIDENING = {"arith.extf", "arith.extsi", "linalg.yield"}
_LAYOUT = "bufferization.buffer_layout"


def fuse_horizontal_matmuls(
    module: Any, is_faster: Callable[[HorizontalFusion], bool]
) -> list[tuple[Any, str]]:
    """Changes `module`, whose linalg operations are `linalg.generic` on tensors, in place.

    Returns the location and a description of each change.
    """
    found = []
    with module.context:
        groups: dict[Hashable, list[Any]] = {}
        for generic in ops.find(module.operation, "linalg.generic"):
            if (key := _key(generic)) is not None:
                groups.setdefault(key, []).append(generic)
        for group in groups.values():
            for generics, plan in _candidates(group):
                with generics[0].location:
                    fusion = _fusion(generics, plan)
                if fusion is not None and is_faster(fusion):
                    columns = " + ".join(str(_columns(one)) for one in generics)
                    what = f"{len(generics)} matmuls with the same left-hand side are one"
                    text = f"{what}: {columns} columns"
                    found.append((generics[0].location, text))
                    _erase(_apply(plan), groups.values())
                    break
    return found


# --- Candidates ------------------------------------------------------------------------------


def _key(generic: Any) -> Hashable | None:
    """A key that is equal for matmuls that can be fused; None if the operation is not a matmul
    with a weight matrix of static shape."""
    if not multiplies(generic) or len(generic.results) != 1:
        return None
    rows, weights, result = (value.type for value in generic.operands)
    types = (rows, weights, result)
    if not all(isinstance(one, ir.RankedTensorType) and one.rank for one in types):
        return None
    if not weights.has_static_shape or not all(
        one.is_projected_permutation for one in maps_of(generic)
    ):
        return None
    (*outer, summed), factor, (*own, column) = (list(one.results) for one in maps_of(generic))
    if outer != own or factor not in ([summed, column], [column, summed]):
        return None
    return (generic.block, generic.operands[0], body_key(generic))


def _columns(generic: Any) -> int:
    return int(generic.results[0].type.shape[-1])


class _Plan(Struct):
    """`results` become slices of `concatenation` along `axis`."""

    results: list[Any]
    axis: int
    concatenation: Concatenation


def _candidates(group: Sequence[Any]) -> Iterator[tuple[list[Any], _Plan]]:
    """Yields subsets of a group that can be fused, with their plans: all matmuls; those whose
    result may be a slice; those that are followed by an elementwise operation, such as a bias that
    others lack."""
    if len(group) < 2:
        return
    able = [one for one in group if concatenation([one.results[0]], _last(one)) is not None]
    sliced = [one for one in able if _can_be_slice(one.results[0], _last(one))]
    followed = [one for one in able if _following(one.results) is not None]
    for generics in (able, sliced, followed):
        results = [one.results[0] for one in generics]
        if len(generics) > 1 and (plan := _plan(results, _last(generics[0]))) is not None:
            yield generics, plan


def _last(generic: Any) -> int:
    return int(generic.results[0].type.rank) - 1


def _plan(results: list[Any], axis: int) -> _Plan | None:
    """The plan for the results, or for the operations that follow each of them in the same way."""
    made = concatenation(results, axis)
    if made is None:
        return None
    following = _following(results)
    if following is not None:
        for later in range(following[0].type.rank - 1, -1, -1):
            further = _plan(following, later)
            if further is not None:
                return further
    return _Plan(results, axis, made) if all(_can_be_slice(one, axis) for one in results) else None


def _following(results: Sequence[Any]) -> list[Any] | None:
    """The results of the elementwise operations that are the only users of `results`, one for each;
    None if there is not one for each."""
    found = []
    for value in results:
        users = list(ops.users_through(value, RESHAPES))
        if len(users) != 1 or users[0].name != "linalg.generic" or has_reduction(users[0]):
            return None
        producer: Any = ops.defining(value)
        if len(users[0].results) != 1 or users[0].block != producer.block:
            return None
        found.append(users[0].results[0])
    return found if len(set(found)) == len(found) else None


def _last_following(value: Any) -> Any | None:
    """The last operation in the chain of elementwise operations that starts at the value, where
    each is the only user of the previous one. None if the chain is empty or only widens the value,
    as its readers then do."""
    last = None
    while (following := _following([value])) is not None:
        (value,) = following
        if not {op.name for op in ops.content(ops.defining(value))} <= _WIDENING:
            last = ops.defining(value)
    return last


def _can_be_slice(value: Any, axis: int) -> bool:
    """Whether all users of the value can read it as a slice along the axis in place."""
    width = element_bytes(value.type.element_type)
    if width is None:
        return False
    inner = [width, *value.type.shape[axis:]]
    if not all(size > 0 for size in inner) or math.prod(inner) % _ALIGNMENT:
        return False
    uses = list(value.uses)
    return bool(uses) and all(_reads_slice(use, axis) for use in uses)


def _reads_slice(use: Any, axis: int) -> bool:
    user = use.owner.operation
    if user.name in RESHAPES:
        moved = _boundary(user, axis)
        return moved is not None and all(_reads_slice(one, moved) for one in user.results[0].uses)
    if user.name == "func.call":
        return _takes_strides(user, use.operand_number)
    return user.name in _READERS


def _boundary(reshape: Any, axis: int) -> int | None:
    """The dimension of a reshape's result that `axis` starts at; None if `axis` is collapsed into a
    group with previous dimensions, along which a slice is strided."""
    groups = ops.groups_of(reshape)
    if reshape.name == "tensor.expand_shape":
        return int(groups[axis][0])
    return next((i for i, group in enumerate(groups) if group[0] == axis), None)


def _takes_strides(call: Any, operand: int) -> bool:
    """Whether the called function accepts the argument with any strides."""
    module = next(one for one in ops.ancestors(call) if one.name == "builtin.module")
    name = ops.callee_of(call)
    for one in ops.body_of_module(module).operations:
        function = one.operation
        if function.name == "func.func" and ops.symbol_of(function) == name:
            if "arg_attrs" not in function.attributes:
                return False
            attributes = ir.ArrayAttr(function.attributes["arg_attrs"])[operand]
            return _LAYOUT in ir.DictAttr(attributes)
    return False


# --- Cost model ------------------------------------------------------------------------------


def _fusion(generics: Sequence[Any], plan: _Plan) -> HorizontalFusion | None:
    """The problems of the fusion for the cost model; None if no kernel has these element types."""
    columns = [_columns(one) for one in generics]
    problems = [_problem(generics[0], count) for count in (sum(columns), *columns)]
    known = [one for one in problems if one is not None]
    if len(known) < len(problems):
        return None
    whole, *parts = known
    # Keyed by the last operation of the epilogue, as one epilogue may read several results.
    epilogues = {
        last: problem
        for problem, value in zip(parts, plan.results, strict=True)
        if (last := _last_following(value)) is not None
    }
    return HorizontalFusion(whole, tuple(parts), tuple(epilogues.values()))


def _problem(generic: Any, columns: int) -> Problem | None:
    """The problem of the matmul with `columns` columns."""
    result = generic.results[0].type
    *outer, k = generic.operands[0].type.shape
    unknown = ir.ShapedType.get_dynamic_size()
    m = unknown if unknown in outer else math.prod(outer)
    _, factor, out = (list(map_.results) for map_ in maps_of(generic))
    is_transposed = factor[0] == out[-1]
    sizes = ([m, k], [columns, k] if is_transposed else [k, columns], [m, columns])
    # Kernels widen their operands as they load them.
    elements = [narrow(value).type.element_type for value in list(generic.operands)[:2]]
    elements.append(result.element_type)
    a, b, c = (
        matrix_of_type(ir.MemRefType.get(shape, element), batched=False, transposed=transposed)
        for shape, element, transposed in zip(
            sizes, elements, (False, is_transposed, False), strict=True
        )
    )
    if a is None or b is None or c is None:
        return None
    return Problem(a, b, c, accumulator_of(c.element))


# --- Fusion ----------------------------------------------------------------------------------


def _apply(plan: _Plan) -> list[Any]:
    """Builds the concatenation, and replaces the results by slices. Returns the operations that are
    unused now."""
    first: Any = ops.defining(plan.results[0])
    for value in plan.results[1:]:
        other: Any = ops.defining(value)
        first = other if other.is_before_in_block(first) else first
    with first.location, ir.InsertionPoint(first):
        whole, start = plan.concatenation.build(), 0
        for value in plan.results:
            value.replace_all_uses_with(_slice(whole, value.type, plan.axis, start))
            start += value.type.shape[plan.axis]
    return _unused([ops.defining(value) for value in plan.results])


def _erase(unused: Sequence[Any], groups: Iterable[list[Any]]) -> None:
    """Erases operations, and removes them from all groups: operations that follow the matmuls of
    one group may be computed from those of another."""
    gone = set(unused)
    for group in groups:
        group[:] = [one for one in group if one not in gone]
    for one in unused:
        ops.erase(one)


def _slice(whole: Any, type_: Any, axis: int, start: int) -> Any:
    """The slice of type `type_` that starts at `start` along the axis."""
    offsets = [start if i == axis else 0 for i in range(type_.rank)]
    sizes = [ops.dim(whole, i) if n == DYNAMIC else n for i, n in enumerate(type_.shape)]
    return extract_slice(whole, type_, offsets, sizes)


def _unused(operations: Iterable[Any]) -> list[Any]:
    """The operations without users, and their producers without other users. Users come before
    producers."""
    found: dict[Any, None] = {}
    waiting = list(operations)
    while waiting:
        one = waiting.pop()
        # An operation with users left is visited again from the last of them.
        if one is not None and one not in found and _users(one) <= found.keys():
            found[one] = None
            waiting += [ops.defining(value) for value in one.operands]
    return list(found)


def _users(operation: Any) -> set[Any]:
    return {use.owner.operation for result in operation.results for use in result.uses}
