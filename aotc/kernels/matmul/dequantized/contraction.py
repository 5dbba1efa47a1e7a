"""Fuses a matmul of few vectors and the dequantization of its matrix to one `linalg.generic`, on
tensors.

The elements of the matrix are traced back through elementwise operations to the packed weights, and
the scales and zero points of groups. Reshapes on the way determine how K is divided into groups,
and into the weights of a byte. The new operation has a loop for each of these digits of K, after
the loops of the result. Its body computes an element of the matrix before it multiplies and adds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from aotc import ops
from aotc.analysis.generics import has_reduction, maps_of
from aotc.dense import content_of, is_splat
from aotc.kernels.attention.elements import Constant, Element, Expression, Operation, Place, Reader
from aotc.kernels.matmul.dequantized.recognition import FLOATS_OF_A_BYTE, MOST_COLUMNS
from aotc.kernels.matmul.least_work import LEAST_WORK
from aotc.kernels.matmul.recognition import multiplies
from aotc.mlir import ir
from aotc.rewrites.cloning import copy
from aotc.sizes import dense_bytes

_COLUMN, _ROW, _K = "m", "n", "k"
_FROM_INTEGERS = ("sitofp", "uitofp")
_MOST_STEPS = 64
_NARROW_BITS = 8
# The smallest group: with fewer elements of the matrix for each scale or zero point, these would be
# more data than the weights.
_LEAST_GROUP = 16
_MOST_TABLE = 16  # the most elements of a table of shifts


class _Leaf(Struct, frozen=True, eq=False):
    """A tensor that the matrix is computed from, and its index."""

    tensor: Any
    index: tuple[Place, ...]


class _NoContractionError(Exception):
    """The matrix is not computed from narrower weights."""


def fuse_dequantization(module: Any) -> None:
    """Fuses dequantizations to matmuls in `module`, in place. Its linalg operations are
    `linalg.generic` on tensors."""
    with module.context:
        for generic in ops.find(module.operation, "linalg.generic"):
            if not _is_product(generic):
                continue
            try:
                with generic.location:
                    _Fusion(generic).apply()
            except _NoContractionError:
                continue


def _is_product(generic: Any) -> bool:
    """Whether the operation multiplies few vectors by a matrix of known sizes, on tensors."""
    inputs, outputs = ops.operand_groups(generic)
    values = [*inputs, *outputs]
    if len(inputs) != 2 or len(generic.results) != 1 or not has_reduction(generic):
        return False
    types = [value.type for value in values]
    if not all(isinstance(one, ir.RankedTensorType) and one.has_static_shape for one in types):
        return False
    rank, maps = types[2].rank, maps_of(generic)
    if rank not in (1, 2) or sorted(one.rank for one in types[:2]) != [rank, 2]:
        return False
    return bool(
        maps[0].n_dims == 1 + rank
        and all(one.is_projected_permutation for one in maps)
        and isinstance(types[2].element_type, ir.F32Type | ir.F64Type)
        and multiplies(generic)
        and max(math.prod(one.shape) for one in types[:2] if one.rank == 2) >= LEAST_WORK
        and (rank == 1 or _has_few_columns(types, [_loops(one) for one in maps]))
    )


def _has_few_columns(types: Sequence[Any], loops: Sequence[tuple[int, ...]]) -> bool:
    """Whether tensor cores support the product of several vectors: the rows of x are those of the
    result, and the element types match."""
    column, row = loops[2]
    matrix = next(i for i in range(2) if row in loops[i])
    element = types[matrix].element_type
    return bool(
        column not in loops[matrix]
        and loops[1 - matrix][0] == column
        and types[2].shape[0] <= MOST_COLUMNS
        and isinstance(element, ir.F16Type | ir.BF16Type)
        and types[1 - matrix].element_type == element
    )


def _loops(map_: Any) -> tuple[int, ...]:
    return tuple(ir.AffineDimExpr(one).position for one in map_.results)


class _Fusion:
    def __init__(self, generic: Any) -> None:
        self.generic = generic
        self.inputs, (self.out,) = ops.operand_groups(generic)
        loops = [_loops(map_) for map_ in maps_of(generic)]
        *columns, row = loops[2]
        # The index of the matrix among the inputs: it is the one with the loop of rows.
        self.number = next(i for i in range(2) if row in loops[i])
        symbols = dict.fromkeys(range(2 + len(columns)), _K)
        self.symbols = symbols | dict.fromkeys(columns, _COLUMN) | {row: _ROW}
        self.places = [tuple(self.symbols[loop] for loop in own) for own in loops]
        self.columns = len(columns)
        self.reader = Reader()
        self.leaves: list[_Leaf] = []

    def apply(self) -> None:
        matrix = self.inputs[self.number]
        places = self.places[self.number]
        self.sizes = dict(zip(places, map(int, matrix.type.shape), strict=True))
        element = Element(matrix, places)
        expression = self._read(element, 0)
        if not self._is_dequantized(expression, matrix.type.element_type):
            raise _NoContractionError
        self.radices = self._radices()
        self._replace(expression)

    def _read(self, expression: Expression, depth: int) -> Expression:
        """The expression traced back to elements that no elementwise operation computes. Each of
        their tensors is added to `leaves`."""
        if depth > _MOST_STEPS:
            raise _NoContractionError
        if isinstance(expression, Element):
            before = self.reader.step(expression)
            is_unpacked = isinstance(before, Operation) and self._is_small_byte(expression)
            if isinstance(before, Element | Operation | Constant) and not is_unpacked:
                return self._read(before, depth + 1)
            if not any(one.is_same(expression) for one in self._elements()):
                self.leaves.append(_Leaf(expression.tensor, expression.index))
            return expression
        if isinstance(expression, Operation):
            operands = tuple(self._read(one, depth + 1) for one in expression.operands)
            return Operation(expression.name, operands, expression.operation)
        if isinstance(expression, Constant):
            return expression
        raise _NoContractionError

    def _is_small_byte(self, element: Element) -> bool:
        """Whether the element is of a tensor of bytes that is much smaller than the matrix, such as
        zero points of 4 bits that were unpacked. The kernel loads them, and does not unpack them
        for each weight."""
        type_ = element.tensor.type
        is_byte = str(type_.element_type) == f"i{_NARROW_BITS}" and type_.has_static_shape
        return is_byte and self._is_small(type_)

    def _is_small(self, type_: Any) -> bool:
        return bool(math.prod(type_.shape) * _LEAST_GROUP <= math.prod(self.sizes.values()))

    def _elements(self) -> list[Element]:
        return [Element(leaf.tensor, leaf.index) for leaf in self.leaves]

    def _is_dequantized(self, expression: Expression, element: Any) -> bool:
        """Whether the expression is computed from narrower integers (one for one or several
        elements) or from floats of 8 bits, and otherwise only from much smaller tensors."""
        count = math.prod(self.sizes.values())
        large = []
        for leaf in self.leaves:
            type_ = leaf.tensor.type
            if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
                return False
            if not self._is_small(type_):
                large.append(type_)
        if len(large) != 1 or element.width <= _NARROW_BITS or math.prod(large[0].shape) > count:
            return False
        (type_,) = large
        if isinstance(type_.element_type, ir.IntegerType):
            is_byte = type_.element_type.width == _NARROW_BITS
            return is_byte and _has_operation(expression, _FROM_INTEGERS)
        return str(type_.element_type) in FLOATS_OF_A_BYTE

    def _radices(self) -> list[int]:
        """The sizes of the digits of K, the slowest first."""
        divisors = {1, self.sizes[_K]}
        for leaf in self.leaves:
            for place in (one for whole in leaf.index for one in _apart(whole)):
                if isinstance(place, tuple):
                    divisors.update(self._weights(place))
                elif place not in (_ROW, _K, 0):
                    raise _NoContractionError
        steps = sorted(divisors, reverse=True)
        pairs = list(itertools.pairwise(steps))
        if any(larger % smaller for larger, smaller in pairs):
            raise _NoContractionError
        return [larger // smaller for larger, smaller in pairs]

    def _weights(self, place: Place) -> tuple[int, int]:
        """The weights in K of the lowest digit of an index, and of the first one above the index:
        1 and the size of K for K itself."""
        if place == _K:
            return 1, self.sizes[_K]
        if not isinstance(place, tuple) or place[0] not in ("high", "low"):
            raise _NoContractionError
        least, end = self._weights(place[1])
        middle = least * place[2]
        return (middle, end) if place[0] == "high" else (least, middle)

    def _digits(self, place: Place) -> list[int]:
        """The loops of the new operation that an index consists of."""
        apart = _apart(place)
        if len(apart) > 1:
            return [loop for one in apart for loop in self._digits(one)]
        if place == 0:
            return []
        if place == _COLUMN:
            return [0]
        if place == _ROW:
            return [self.columns]
        weights = [math.prod(self.radices[i + 1 :]) for i in range(len(self.radices))]
        loops = [(1 + self.columns + i, weight) for i, weight in enumerate(weights)]
        least, end = self._weights(place)
        return [i for i, weight in loops if least <= weight < end]

    # --- The new operation ---------------------------------------------------------------

    def _replace(self, expression: Expression) -> None:
        generic, inputs, maps = self.generic, list[Any](), list[Any]()
        vector = self.inputs[1 - self.number]
        tables: dict[int, tuple[int, int, int]] = {}
        with ir.InsertionPoint(generic):
            for number, (tensor, index) in enumerate(
                [
                    (vector, self.places[1 - self.number]),
                    *((leaf.tensor, leaf.index) for leaf in self.leaves),
                ]
            ):
                table = self._table(tensor, index)
                if table is not None:
                    tables[number] = table
                    continue
                inputs.append(self._expanded(tensor, index))
                loops = [loop for place in index for loop in self._digits(place)]
                maps.append(self._map(loops))
            parallel = [*range(self.columns + 1)]
            maps.append(self._map(parallel))

            def compute(*elements: Any) -> Any:
                given = iter(elements)
                values = [
                    _entry_of_table(tables[number], leaf) if number in tables else next(given)
                    for number, leaf in enumerate([None, *self.leaves])
                ]
                weight = self._compute(expression, dict(enumerate(values[1:])))
                old = generic.regions[0].blocks[0].arguments
                copies = {old[1 - self.number]: values[0], old[self.number]: weight}
                copies[old[2]] = elements[-1]
                *body, last = ops.content(generic)
                for operation in body:
                    copy(operation, copies)
                return copies[last.operands[0]]

            reductions = range(len(parallel), len(parallel) + len(self.radices))
            made = ops.create_generic([*inputs, self.out], maps, compute, reductions)
        ops.replace(generic, [made.results[0]])

    def _map(self, loops: Sequence[int]) -> Any:
        count = 1 + self.columns + len(self.radices)
        dims = [ir.AffineDimExpr.get(loop) for loop in loops]
        return ir.AffineMap.get(count, 0, dims)

    def _expanded(self, tensor: Any, index: Sequence[Place]) -> Any:
        """The tensor with a dimension for each loop of its index. Dimensions of size 1 without a
        loop are removed."""
        groups, shape, next_ = [], [], 0
        columns = [int(self.out.type.shape[0])] * self.columns
        sizes = [*columns, self.sizes[_ROW], *self.radices]
        for place, size in zip(index, tensor.type.shape, strict=True):
            own = [sizes[loop] for loop in self._digits(place)]
            if not own:
                return self._expanded(*_without_ones(tensor, index))
            if math.prod(own) != size:
                raise _NoContractionError
            groups.append(list(range(next_, next_ + len(own))))
            next_ += len(own)
            shape += own
        type_ = ir.RankedTensorType.get(shape, tensor.type.element_type)
        if shape == list(tensor.type.shape):
            return tensor
        attributes = {
            "reassociation": ir.Attribute.parse(str(groups)),
            "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
        }
        return ops.create("tensor.expand_shape", [tensor], [type_], attributes).result

    def _table(self, tensor: Any, index: Sequence[Place]) -> tuple[int, int, int] | None:
        """The first element, the step and the loop of a small constant whose elements are evenly
        spaced, such as the shifts of the weights of a byte; None for another tensor."""
        loops = [loop for place in index for loop in self._digits(place)]
        if not ops.is_constant(tensor) or len(loops) != 1:
            return None
        numbers = _integers(ops.known_constant(tensor))
        if numbers is None:
            return None
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
        is_even = all(one == numbers[0] + i * step for i, one in enumerate(numbers))
        return (numbers[0], step, loops[0]) if is_even else None

    def _compute(self, expression: Expression, values: dict[int, Any]) -> Any:
        if isinstance(expression, Element):
            number = next(i for i, one in enumerate(self._elements()) if one.is_same(expression))
            return values[number]
        if isinstance(expression, Constant):
            raise _NoContractionError
        assert isinstance(expression, Operation)
        source: Any = expression.operation
        operands = []
        for value, operand in zip(source.operands, expression.operands, strict=True):
            if isinstance(operand, Constant):
                operands.append(ops.constant(value.type, operand.value))
            else:
                operands.append(self._compute(operand, values))
        attributes = ops.attributes_of(source)
        types = [result.type for result in source.results]
        return ops.create(source.name, operands, types, attributes).result


def _apart(place: Place) -> list[Place]:
    """The indices that were joined to this one, the slowest first."""
    if isinstance(place, tuple) and place[0] == "joined":
        return [one for part in place[1] for one in _apart(part)]
    return [place]


def _has_operation(expression: Expression, names: Sequence[str]) -> bool:
    return isinstance(expression, Operation) and (
        expression.name in names or any(_has_operation(one, names) for one in expression.operands)
    )


def _without_ones(tensor: Any, index: Sequence[Place]) -> tuple[Any, list[Place]]:
    """The tensor without the dimensions whose index is 0, which have size 1."""
    groups: list[list[int]] = []
    leading: list[int] = []
    for i, place in enumerate(index):
        if place != 0:
            groups.append([*leading, i])
            leading = []
        elif groups:
            groups[-1].append(i)
        else:
            leading.append(i)
    kept = [place for place in index if place != 0]
    shape = [tensor.type.shape[i] for i, place in enumerate(index) if place != 0]
    type_ = ir.RankedTensorType.get(shape, tensor.type.element_type)
    attributes = {"reassociation": ir.Attribute.parse(str(groups))}
    collapsed = ops.create("tensor.collapse_shape", [tensor], [type_], attributes)
    return collapsed.result, kept


def _integers(attribute: Any) -> list[int] | None:
    """The elements of a small constant of integers; None for another constant."""
    type_ = ir.ShapedType(attribute.type)
    count, size = math.prod(type_.shape), dense_bytes(type_)
    if not isinstance(type_.element_type, ir.IntegerType) or count > _MOST_TABLE or size is None:
        return None
    if is_splat(attribute):
        return None if count > 1 else [ir.IntegerAttr(attribute.get_splat_value()).value]
    content, each = bytes(content_of(attribute, size)), size // count
    pieces = (content[i : i + each] for i in range(0, size, each))
    return [int.from_bytes(piece, "little", signed=True) for piece in pieces]


def _entry_of_table(table: tuple[int, int, int], leaf: _Leaf | None) -> Any:
    assert leaf is not None
    first, step, loop = table
    index = ir.IndexType.get()
    scaled = ops.binary("arith.muli", ops.loop_index(loop), ops.constant(index, step))
    sum_ = ops.binary("arith.addi", scaled, ops.constant(index, first))
    return ops.unary("arith.index_cast", sum_, leaf.tensor.type.element_type)
