"""Folds linalg operations on constants to constants at build time.

Weights are transposed in this way. A batch norm's factor that depends on the variance becomes one
number per channel. Operations that only broadcast a constant remain, with a constant of fewer
elements if possible. The factors of matmuls are not widened: kernels multiply narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, maps_of, non_unit_loops, origin
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.kernels.matmul.recognition import WIDENING, multiplies
from aotc.lower.tensors.broadcast import create_broadcast
from aotc.lower.tensors.known_tensors import SMALL, KnownTensors, compact, extracted_tensors, packed
from aotc.mlir import ir
from aotc.sizes import dense_bytes


def fold_constants(module: Any) -> None:
    """Changes `module`, whose named operations are `linalg.generic`, in place.

    Functions without arguments are skipped: everything in them may be computed from constants, and
    the build would then execute the program that the user wants to run.

    A large constant is replaced by its transpose if only the transpose is used. If both are used,
    nothing is folded: the weights would be in the artifact twice.
    """
    with module.context:
        functions = [
            function
            for function in ops.find(module.operation, "func.func")
            if ops.function_type(function).inputs
        ]
        for function in functions:
            for constant in ops.find(function, "arith.constant"):
                _fold_slices(constant)
        # KnownTensors identifies operations by their address, which may be reused once operations
        # are erased.
        known = KnownTensors()
        generics = [
            op
            for function in functions
            for op in ops.find(function, "linalg.generic")
            if op.results
        ]
        for generic in generics:
            if (
                not _takes_tensors(generic)
                or _widens_factor(generic)
                or not _is_wanted(generic, known)
            ):
                continue
            for result in generic.results:
                array = known.of(result)
                if array is None:
                    # A large array is computed again, and its users have changed since: it is no
                    # longer worth its memory.
                    continue
                if not _is_i1(result) and _is_worth_it(generic, array):
                    _replace(generic, result, array)
        for generic in reversed(generics):
            # This includes operations with assertions, which are known to hold.
            if known.has(generic.results[0]) and not any(map(_is_used, generic.results)):
                _erase(generic)
            else:
                for select in ops.find(generic, "arith.select"):
                    if CHECK_ATTRIBUTE in select.attributes and known.is_true(select.operands[0]):
                        ops.replace(select, [select.operands[1]])


def _fold_slices(constant: Any) -> None:
    """Replaces the slices of a constant by constants if the constant has no other users.

    An example is a filter whose taps are sliced. The slices must not have more elements in total
    than the constant. If all slices are contiguous in memory, they remain.
    """
    (whole,) = constant.results
    if not isinstance(whole.type, ir.RankedTensorType) or _is_i1(whole):
        return
    slices = list(ops.users_through(whole, RESHAPES))
    # Slices of slices are followed to their users.
    while inner := [one for one in slices if _is_slice(one) and _has_only_slices(one)]:
        slices = [one for one in slices if one not in inner]
        slices += [user for one in inner for user in ops.users_through(one.results[0], RESHAPES)]
    if not slices or not all(map(_is_slice, slices)):
        return
    sizes = [dense_bytes(one.results[0].type) for one in slices]
    if None in sizes or sum(size or 0 for size in sizes) > (dense_bytes(whole.type) or 0):
        return
    known = KnownTensors()
    arrays = [known.of(one.results[0]) for one in slices]
    if any(array is None for array in arrays) or all(
        array is not None and array.flags.c_contiguous for array in arrays
    ):
        return
    for one, array in zip(slices, arrays, strict=True):
        assert array is not None
        _replace(one, one.results[0], array)
        _erase_unused(one)


def _erase_unused(operation: Any) -> None:
    """Erases the operation, and the views and the constant that it was computed from, if nothing
    else uses them."""
    made = operation
    while made is not None and not any(map(_is_used, made.results)):
        source = ops.defining(made.operands[0]) if len(made.operands) else None
        _erase(made)
        made = source


def _is_slice(operation: Any) -> bool:
    return bool(operation.name == "tensor.extract_slice")


def _has_only_slices(operation: Any) -> bool:
    users = list(ops.users_through(operation.results[0], RESHAPES))
    return bool(users) and all(map(_is_slice, users))


def _takes_tensors(generic: Any) -> bool:
    """Whether the operation reads a tensor or a loop index. An operation that fills a tensor with a
    scalar is as good as a constant, to which nothing could be written."""
    inputs, _ = ops.operand_groups(generic)
    return any(isinstance(value.type, ir.RankedTensorType) for value in inputs) or bool(
        ops.find(generic, "linalg.index")
    )


def _is_wanted(generic: Any, known: KnownTensors) -> bool:
    """Whether the operation has a user that will not be folded to a constant as well."""
    if not all(map(known.has, generic.results)):
        return False
    for user in (
        user for result in generic.results for user in ops.users_through(result, RESHAPES)
    ):
        if user.name != "linalg.generic" or not user.results or not known.has(user.results[0]):
            return True
        if _widens_factor(user):
            return True
        if _is_i1(user.results[0]) and _is_wanted(user, known):
            return True
    return False


def _widens_factor(generic: Any) -> bool:
    """Whether the operation only widens a tensor that is then multiplied."""
    names = [op.name for op in ops.content(generic)]
    if len(names) != 2 or names[0] not in WIDENING or len(set(maps_of(generic))) > 1:
        return False
    return any(user.name == "linalg.generic" and multiplies(user) for user in _users(generic))


def _is_i1(value: Any) -> bool:
    """Whether the elements are i1; no such constants are created."""
    return bool(value.type.element_type == ops.integer(1))


def _is_used(value: Any) -> bool:
    return next(ops.users_through(value, RESHAPES), None) is not None


def _erase(operation: Any) -> None:
    """Erases an operation without users, and the reshapes of its results."""
    for result in operation.results:
        for use in list(result.uses):
            _erase(use.owner.operation)
    ops.erase(operation)


def _users(generic: Any) -> Iterator[Any]:
    """Yields the operations that use the results, directly or through reshapes."""
    for result in generic.results:
        yield from ops.users_through(result, RESHAPES)


def _is_worth_it(generic: Any, array: np.ndarray) -> bool:
    kept = compact(array)
    if _only_moves(generic):
        if kept.size < array.size:
            # It is a broadcast, which is fused into its users.
            return False
        # A single user can read the constant in its present order.
        users = list(_users(generic))
        if len(users) == 1 and _reads_once(users[0]):
            return False
    return kept.nbytes <= SMALL or all(
        _is_alone(constant, generic) for constant in _large_constants(generic)
    )


def _reads_once(user: Any) -> bool:
    """Whether the user reads each element of its largest operand once, as a matrix-vector product
    does. It then reads the matrix in its present order: row-major with a warp per row, column-major
    with a thread per column."""
    if user.name != "linalg.generic" or not has_reduction(user):
        return False
    # For each operand, the loops that index it and have more than one iteration.
    loops = [non_unit_loops(user, i) for i in range(len(user.operands))]
    return set().union(*loops) in loops


def _only_moves(generic: Any) -> bool:
    """Whether the operation only permutes or broadcasts the elements of a constant."""
    inputs, _ = ops.operand_groups(generic)
    argument = generic.regions[0].blocks[0].arguments[0]
    end, *others = reversed(ops.content(generic))
    if others or len(inputs) != 1 or list(end.operands) != [argument]:
        return False
    return ops.is_constant(origin(inputs[0]))


def _large_constants(generic: Any) -> list[Any]:
    inputs, _ = ops.operand_groups(generic)
    sources = [
        source
        for source in map(origin, [*inputs, *extracted_tensors(generic)])
        if isinstance(source.type, ir.RankedTensorType) and ops.is_constant(source)
    ]
    return [source for source in sources if (dense_bytes(source.type) or 0) > SMALL]


def _is_alone(constant: Any, user: Any) -> bool:
    """Whether `user` is the only user of the constant, by its operands or in its body."""
    others = ops.users_through(constant, RESHAPES)
    return all((ops.enclosing(other, "linalg.generic") or other) == user for other in others)


def _replace(generic: Any, result: Any, array: np.ndarray) -> None:
    """Replaces `result` by a constant, or by a broadcast of one. If only a reshape of it is used,
    the constant has that shape: a filter is then in the order that layouts can change."""
    element = result.type.element_type
    kept = compact(array)
    while kept.size == array.size and (reshape := _only_reshape(result)) is not None:
        result = reshape.results[0]
        kept = array = packed(array).reshape(result.type.shape)
    with generic.location, ir.InsertionPoint(generic):
        if kept.size == 1:
            one = np.ascontiguousarray(kept.ravel())
            attribute = ir.DenseElementsAttr.get(one, type=element, shape=array.shape)
            result.replace_all_uses_with(ops.constant_from(attribute))
            return
        axes = [i for i, size in enumerate(kept.shape) if size == array.shape[i]]
        dense = packed(kept.reshape([kept.shape[i] for i in axes]))
        constant = ops.constant_from(dense_of(dense, element))
        is_whole = len(axes) == array.ndim
        result.replace_all_uses_with(
            constant
            if is_whole
            else create_broadcast(constant, result.type, _map(result.type, axes))
        )


def _only_reshape(value: Any) -> Any | None:
    """The only user of a tensor, if it is a reshape to a static shape."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 1 or users[0].name not in RESHAPES:
        return None
    return users[0] if users[0].results[0].type.has_static_shape else None


def dense_of(array: np.ndarray, element: Any) -> Any:
    """The array as an attribute. A large array becomes a resource that uses the array's own
    memory."""
    if array.nbytes <= SMALL:
        return ir.DenseElementsAttr.get(array, type=element, shape=array.shape)
    type_ = ir.RankedTensorType.get(array.shape, element)
    return ir.DenseResourceElementsAttr.get_from_buffer(array, "aotc_folded", type_)


def _map(type_: Any, axes: Sequence[int]) -> Any:
    """The map that broadcasts a tensor, whose dimensions are these axes, to `type_`."""
    return ir.AffineMap.get(type_.rank, 0, [ir.AffineDimExpr.get(axis) for axis in axes])
