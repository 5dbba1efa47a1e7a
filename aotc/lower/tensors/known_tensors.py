"""Values of tensors that are computed from constants alone, as NumPy arrays.

A broadcast tensor is an array with strides of 0, and takes no more memory than its source. Sums of
floating-point numbers are computed in f64 and rounded once, and the products in them are not
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aotc import ops
from aotc.analysis.generics import RESHAPES, has_reduction, maps_of, origin, reduction_loops
from aotc.attributes import CHECK_ATTRIBUTE
from aotc.dense import content_of, element_of, is_splat
from aotc.input.blobs import resource_name
from aotc.lower.tensors.known_operations import BIT, NUMBERS, apply
from aotc.mlir import ir
from aotc.sizes import dense_bytes, element_bytes
from aotc.slices import DYNAMIC, static_lists

# Results up to this size in bytes may be larger than their operands.
SMALL = 1 << 16
# Larger arrays, in bytes, are not cached but computed again. Products of constants are at most as
# large: the multiplications in each call are worth their memory.
_KEPT = 1 << 20
# The limit of multiplications in a product of constants: a fraction of a second.
_MOST_MULTIPLICATIONS = 1 << 29
# The limit of nested operations; deeper values count as unknown. A recurrent layer has thousands of
# steps.
_DEEPEST = 100
_COLUMNS = 64
# How much larger than weights their difference to a mean may be: f64 is, for weights of f16.
_WIDENED = 4
# The limit of operations between a filter and its convolution.
_MOST_STEPS = 4
_SUMS = ("arith.addf", "arith.addi")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")


class KnownTensors:
    """The tensors and scalars of a module whose values are known.

    It is invalid once an operation is erased: values are identified by their address, which a new
    operation may reuse.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, np.ndarray] = {}
        self._is_known: dict[Any, bool] = {}
        # A large array that is not cached, as it is often queried several times in a row.
        self._last: tuple[Any, np.ndarray] | None = None
        # The current depth of the recursion.
        self._depth = 0

    def has(self, value: Any) -> bool:
        """Whether `of` returns a value."""
        if value not in self._is_known:
            self.of(value)
        return self._is_known[value]

    def of(self, value: Any) -> np.ndarray | None:
        """The elements of a tensor, or a scalar as an array of rank 0; None if unknown at build
        time."""
        if value in self._kept:
            return self._kept[value]
        if self._last is not None and self._last[0] == value:
            return self._last[1]
        if not self._is_known.get(value, True):
            return None
        operation = ops.defining(value)
        array = None
        if operation is not None and self._depth < _DEEPEST:
            self._depth += 1
            array = self._result(operation, value)
            self._depth -= 1
        self._is_known[value] = array is not None
        if array is not None and compact(array).nbytes <= _KEPT:
            self._kept[value] = array
        elif array is not None:
            self._last = (value, array)
        return array

    def _result(self, operation: Any, value: Any) -> np.ndarray | None:
        if operation.name == "arith.constant":
            return _constant(operation)
        if operation.name in RESHAPES:
            return self._reshaped(operation)
        if operation.name in _SLICES:
            return self._sliced(operation)
        if operation.name != "linalg.generic":
            return self._scalar(operation)
        with np.errstate(all="ignore"):
            results = self._computed(operation)
        return results[list(operation.results).index(value)] if results else None

    def _scalar(self, operation: Any) -> np.ndarray | None:
        """The result of an operation on scalars, or of one that extracts a scalar."""
        is_tensor = any(isinstance(result.type, ir.ShapedType) for result in operation.results)
        if is_tensor or not operation.name.startswith(("arith.", "tensor.extract")):
            return None
        found = [self.of(operand) for operand in operation.operands]
        arrays = [array for array in found if array is not None]
        return apply(operation, arrays) if arrays and len(arrays) == len(found) else None

    def _reshaped(self, operation: Any) -> np.ndarray | None:
        type_ = operation.results[0].type
        array = self.of(operation.operands[0]) if type_.has_static_shape else None
        return None if array is None else packed(array).reshape(type_.shape)

    def _sliced(self, operation: Any) -> np.ndarray | None:
        """The result of `extract_slice` or `insert_slice` with static offsets, sizes and
        strides."""
        lists = static_lists(operation)
        if any(DYNAMIC in numbers for numbers in lists):
            return None
        places = tuple(
            slice(offset, offset + (size - 1) * stride + 1 if size else offset, stride)
            for offset, size, stride in zip(*lists, strict=True)
        )
        whole = self.of(operation.operands[-1])
        if whole is None or operation.name == "tensor.extract_slice":
            return None if whole is None else whole[places].reshape(operation.results[0].type.shape)
        part = self.of(operation.operands[0])
        if part is None or whole.nbytes > _KEPT:
            return None
        result = whole.copy()
        result[places] = part.reshape(lists[1])
        return result

    def is_true(self, condition: Any) -> bool:
        """Whether an i1 in a `linalg.generic` is known to be true in each iteration, even if the
        operation's result is unknown."""
        operation = ops.defining(condition)
        generic = operation and ops.enclosing(operation, "linalg.generic")
        loops = _Loops.of(generic) if generic else None
        if loops is None:
            return False
        with np.errstate(all="ignore"):
            known = loops.inputs(self._operands(generic, needs_all=False) or {})
            values = self._run(loops, known)
        array = values.get(condition)
        return array is not None and bool(array.all())

    def _operands(self, generic: Any, *, needs_all: bool) -> dict[int, np.ndarray] | None:
        """The known operands, by the numbers of the block arguments that are used. With
        `needs_all`, None if an operand is unknown."""
        inputs, _ = ops.operand_groups(generic)
        arguments = generic.regions[0].blocks[0].arguments
        found: dict[int, np.ndarray] = {}
        for number, (argument, operand) in enumerate(zip(arguments, inputs, strict=False)):
            if not list(argument.uses):
                continue
            array = self.of(operand)
            if array is not None:
                found[number] = array
            elif needs_all:
                return None
        return found

    def _computed(self, generic: Any) -> list[np.ndarray] | None:
        """The results of a `linalg.generic` that is elementwise or a sum reduction."""
        # Most generics have an unknown operand: it is looked for first.
        operands = self._operands(generic, needs_all=True)
        loops = None if operands is None else _Loops.of(generic)
        if operands is None or loops is None:
            return None
        values = loops.inputs(operands)
        if len(values) < len(operands):
            return None
        indices = [loops.index(op) for op in loops.body if op.name == "linalg.index"]
        shape = np.broadcast_shapes(*(array.shape for array in [*values.values(), *indices]))
        read = [*values.values(), *map(self.of, extracted_tensors(generic))]
        given = max((array.nbytes for array in read if array is not None), default=0)
        made = math.prod(shape) * max(_bytes_of(result.type) for result in generic.results)
        # A sum that reads each given element at most once has a smaller result than its operands.
        is_sum = loops.summand is not None and math.prod(shape) <= max(
            (array.size for array in values.values()), default=0
        )
        is_large = made > max(SMALL, given) and not loops.only_moves
        if is_large and loops.product is not None and not is_sum:
            return self._contraction(loops, loops.product, values, generic)
        is_standardized = made <= _WIDENED * given and _is_standardized(generic)
        if is_large and not (is_sum or _is_filter(generic.results) or is_standardized):
            return None
        self._run(loops, values)
        *body, end = loops.body
        if loops.summand is not None:
            start, terms = self.of(_init(generic)), self._value(values, loops.summand)
            return None if start is None or terms is None else [loops.sum(start, terms)]
        results = [self._value(values, operand) for operand in end.operands]
        asserted = [
            op.operands[0]
            for op in body
            if op.name == "cf.assert" or CHECK_ATTRIBUTE in op.attributes
        ]
        conditions = [self._value(values, condition) for condition in asserted]
        if not all(condition is not None and condition.all() for condition in conditions):
            return None
        arrays = [loops.result(array, i) for i, array in enumerate(results) if array is not None]
        return arrays if len(arrays) == len(results) else None

    def _contraction(
        self, loops: _Loops, product: Any, values: dict[Any, np.ndarray], generic: Any
    ) -> list[np.ndarray] | None:
        """The result of a matmul or another contraction of floats; None if it is too large."""
        made = dense_bytes(generic.results[0].type)
        if math.prod(loops.sizes) > _MOST_MULTIPLICATIONS or made is None or made > _KEPT:
            return None
        self._run(loops, values, without=[product])
        start = self.of(_init(generic))
        left, right = (self._value(values, factor) for factor in product.operands)
        if start is None or left is None or right is None:
            return None
        # The elements of bf16 are known as bits alone. The order of the sums matters to infinity.
        if not all(
            one.dtype.kind == "f" and np.isfinite(one).all() for one in (start, left, right)
        ):
            return None
        return [loops.contraction(start, left, right)]

    def _run(
        self, loops: _Loops, values: dict[Any, np.ndarray], without: Sequence[Any] = ()
    ) -> dict[Any, np.ndarray]:
        """Evaluates the body, except for the operations `without`, and adds the values that can
        be computed to `values`."""
        for operation in loops.body[:-1]:
            if operation in without:
                continue
            if operation.name == "linalg.index":
                values[operation.results[0]] = loops.index(operation)
                continue
            operands = [self._value(values, operand) for operand in operation.operands]
            known = [array for array in operands if array is not None]
            if len(operation.results) == 1 and known and len(known) == len(operands):
                array = apply(operation, known)
                if array is not None:
                    values[operation.results[0]] = array
        return values

    def _value(self, values: dict[Any, np.ndarray], value: Any) -> np.ndarray | None:
        array = values.get(value)
        return self.of(value) if array is None else array


def _bytes_of(type_: Any) -> int:
    return element_bytes(type_.element_type) or 1


def _init(generic: Any) -> Any:
    """The init operand of the first result."""
    _, outputs = ops.operand_groups(generic)
    return outputs[0]


def extracted_tensors(generic: Any) -> list[Any]:
    """The tensors that the body of a `linalg.generic` reads by `tensor.extract`."""
    return [op.operands[0] for op in ops.content(generic) if op.name == "tensor.extract"]


def compact(array: np.ndarray) -> np.ndarray:
    """`array` reduced to one element along each broadcast axis (stride 0)."""
    once = (
        stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)
    )
    return array[tuple(slice(0, 1) if repeats else slice(None) for repeats in once)]


def packed(array: np.ndarray) -> np.ndarray:
    """`array` as a contiguous row-major array."""
    if array.flags.c_contiguous or array.nbytes <= SMALL or array.ndim < 2:
        return np.ascontiguousarray(array)
    # A few columns at a time, so that the cache lines of the other rows are reused.
    result = np.empty(array.shape, array.dtype)
    for start in range(0, array.shape[-1], _COLUMNS):
        part = (..., slice(start, start + _COLUMNS))
        result[part] = array[part]
    return result


class _Loops:
    """The loops of a `linalg.generic` that is elementwise and reads no result, or that is a sum
    reduction.

    Attributes
    ----------
    summand
        The value of the body that is added to the result in each iteration; None if all loops
        are parallel.
    product
        The multiplication of floats that computes `summand`; None for another operation.
    """

    def __init__(self, generic: Any, maps: Sequence[Any]) -> None:
        block = generic.regions[0].blocks[0]
        self.arguments = list(block.arguments)
        self.body = ops.content(generic)
        count = len(generic.results)
        self.input_maps, self._output_maps = maps[:-count], maps[-count:]
        self.rank = maps[0].n_dims
        self._places = [_dimensions(map_) for map_ in self._output_maps]
        self.sizes = [0] * self.rank
        for operand, map_ in zip(generic.operands, maps, strict=False):
            if isinstance(operand.type, ir.RankedTensorType):
                for size, dimension in zip(
                    operand.type.shape, _dimensions(map_) or [], strict=False
                ):
                    self.sizes[dimension] = size
        self._summed = reduction_loops(generic)
        self.summand = _summand(self.body[-1], self.arguments[-1]) if self._summed else None
        maker = None if self.summand is None else ops.defining(self.summand)
        self.product = maker if maker is not None and maker.name == "arith.mulf" else None

    @classmethod
    def of(cls, generic: Any) -> _Loops | None:
        """The loops; None if they are of another kind, or if their sizes are not static."""
        results = list(generic.results)
        if not results or not all(result.type.has_static_shape for result in results):
            return None
        loops = cls(generic, maps_of(generic))
        if loops._summed:
            # The size of a loop of a reduction is 0 if nothing gives it, and negative if dynamic.
            if loops.summand is None or len(results) > 1 or min(loops.sizes) <= 0:
                return None
        elif any(list(argument.uses) for argument in loops.arguments[-len(results) :]):
            return None
        parallel = [i for i in range(loops.rank) if i not in loops._summed]
        if any(place is None or sorted(place) != parallel for place in loops._places):
            return None
        return loops

    def inputs(self, operands: dict[int, np.ndarray]) -> dict[Any, np.ndarray]:
        """The arrays of block arguments, from those of operands by number; without those that
        `along` does not take."""
        arrays = ((i, self.along(one, self.input_maps[i])) for i, one in operands.items())
        return {self.arguments[i]: array for i, array in arrays if array is not None}

    @property
    def only_moves(self) -> bool:
        return len(self.body) == 1

    def along(self, array: np.ndarray, map_: Any) -> np.ndarray | None:
        """The operand that `map_` reads, with one axis for each loop; the axis of a loop that does
        not index it has size 1. None for other maps."""
        fixed: list[Any] = []
        dimensions = []
        for expression in map_.results:
            if isinstance(expression, ir.AffineDimExpr):
                fixed.append(slice(None))
                dimensions.append(expression.position)
            elif isinstance(expression, ir.AffineConstantExpr):
                fixed.append(expression.value)
            else:
                return None
        if len(set(dimensions)) != len(dimensions):
            return None
        array = array[tuple(fixed)].transpose(np.argsort(dimensions))
        missing = [i for i in range(self.rank) if i not in dimensions]
        return compact(np.expand_dims(array, missing))

    def index(self, operation: Any) -> np.ndarray:
        """The value of a `linalg.index` in all iterations."""
        dimension = ir.IntegerAttr(operation.attributes["dim"]).value
        shape = [self.sizes[i] if i == dimension else 1 for i in range(self.rank)]
        return np.arange(self.sizes[dimension], dtype=np.int64).reshape(shape)

    def result(self, array: np.ndarray, number: int) -> np.ndarray:
        place = self._places[number]
        assert place is not None
        return np.broadcast_to(array, self.sizes).transpose(place)

    def sum(self, start: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """The result: `start` plus the sums of `terms`, which has one axis for each loop."""
        wide = np.dtype(np.float64) if start.dtype.kind == "f" else start.dtype
        place = self._places[0]
        assert place is not None
        ordered = np.broadcast_to(terms, self.sizes).transpose([*place, *self._summed])
        sums = np.add.reduce(ordered, tuple(range(start.ndim, ordered.ndim)), dtype=wide)
        return np.asarray(start.astype(wide) + sums).astype(start.dtype)

    def contraction(self, start: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """`start` plus the sums of products of two arrays, which have one axis for each loop."""
        place = self._places[0]
        assert place is not None
        operands: list[Any] = []
        for array in (left, right):
            # An axis of size 1 is that of a loop that does not index the array.
            axes = [i for i, size in enumerate(array.shape) if size > 1]
            operands += [array.reshape([array.shape[i] for i in axes]).astype(np.float64), axes]
        used = {*operands[1], *operands[3]}
        sums = np.einsum(*operands, [i for i in place if i in used], optimize=True)
        sums = sums.reshape([self.sizes[i] if i in used else 1 for i in place])
        for loop in self._summed:
            sums = sums if loop in used else sums * self.sizes[loop]
        return np.asarray(start.astype(np.float64) + sums).astype(start.dtype)


def _is_filter(tensors: Sequence[Any], steps: int = _MOST_STEPS) -> bool:
    """Whether the tensors are read only by convolutions, possibly through a few elementwise
    operations. A quantized filter is worth the memory of its dequantized constant, as kernels then
    know its values."""
    users = [user for tensor in tensors for user in ops.users_through(tensor, RESHAPES)]
    return bool(users) and all(
        user.name == "linalg.generic"
        and (
            _is_convolution(user)
            if reduction_loops(user)
            else steps > 0 and _is_filter(user.results, steps - 1)
        )
        for user in users
    )


def _is_standardized(generic: Any) -> bool:
    """Whether the operation reads weights whose sum is computed, too, as the mean and the variance
    of a layer's standardized weights are. Their result is as large as the weights."""
    inputs, _ = ops.operand_groups(generic)
    tensors = [value for value in inputs if isinstance(value.type, ir.RankedTensorType)]
    return any(_is_summed(origin(value)) for value in tensors)


def _is_summed(tensor: Any, steps: int = _MOST_STEPS) -> bool:
    """Whether a sum of these elements alone is computed, possibly after some elementwise
    operations. The weights of a matmul have another factor."""
    for user in ops.users_through(tensor, RESHAPES):
        if user.name != "linalg.generic" or not user.results:
            continue
        if has_reduction(user):
            inputs, _ = ops.operand_groups(user)
            if len(inputs) == 1:
                return True
        elif steps > 1 and any(_is_summed(result, steps - 1) for result in user.results):
            return True
    return False


def _is_convolution(generic: Any) -> bool:
    return not all(map_.is_projected_permutation for map_ in maps_of(generic))


def _summand(end: Any, out: Any) -> Any | None:
    """The value that is added to `out`, the block argument of the result; None if `end` yields
    something else."""
    total = ops.defining(end.operands[0])
    if total is None or total.name not in _SUMS or len(list(out.uses)) != 1:
        return None
    others = [operand for operand in total.operands if operand != out]
    is_alone = len(list(total.results[0].uses)) == 1
    return others[0] if is_alone and len(others) == 1 else None


def _dimensions(map_: Any) -> list[int] | None:
    """The loops that a map projects or permutes; None for a map with other expressions."""
    if not all(isinstance(expression, ir.AffineDimExpr) for expression in map_.results):
        return None
    return [expression.position for expression in map_.results]


def _constant(operation: Any) -> np.ndarray | None:
    """The value of an `arith.constant`."""
    try:
        attribute = operation.attributes["value"]
    except TypeError:
        return None  # complex numbers: the bindings have no class for this attribute
    type_ = operation.results[0].type
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr):
        number = NUMBERS.get(str(type_))
        return None if number is None else np.array(attribute.value).astype(number)
    is_dense = isinstance(attribute, ir.DenseElementsAttr)
    if not isinstance(type_, ir.RankedTensorType):
        return None
    if not is_dense and resource_name(attribute) is None:
        return None
    size, dtype = dense_bytes(type_), dtype_of(type_.element_type)
    if dtype is None:
        return None
    shape = type_.shape
    if is_splat(attribute):
        if dtype.kind == BIT:
            return np.broadcast_to(np.array(attribute.get_splat_value().value, bool), shape)
        element = element_of(attribute)
        return None if element is None else np.broadcast_to(np.frombuffer(element, dtype)[0], shape)
    if size is None or (is_dense and dtype.kind == "u"):
        return None  # the bindings cannot read elements of these types
    return np.frombuffer(content_of(attribute, size), dtype).reshape(shape)


def dtype_of(element_type: Any) -> np.dtype[Any] | None:
    """The NumPy type of the elements. Types that NumPy lacks are unsigned integers with the same
    bits. None for elements that are not whole bytes, or are larger than 8 bytes."""
    size = element_bytes(element_type)
    number = NUMBERS.get(str(element_type))
    if number is None and size in (1, 2, 4, 8):
        return np.dtype(f"u{size}")
    return number
