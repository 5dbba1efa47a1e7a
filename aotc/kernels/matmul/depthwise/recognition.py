"""Recognizes `linalg.generic` operations on buffers that are depthwise convolutions, as a
`Depthwise`.

The operation reads its input as an operand, or its body loads it. The latter is the form of a
padding that is fused to the convolution: `select(is_inside, load(input, where), 0)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from aotc import ops
from aotc.analysis.affine import evaluate_affine
from aotc.analysis.aliasing import Roots
from aotc.analysis.generics import maps_of
from aotc.analysis.same_sizes import is_size_of
from aotc.kernels.matmul.depthwise.problem import (
    NO_WINDOW,
    Depthwise,
    DepthwiseChannelsLast,
    Window,
)
from aotc.kernels.matmul.implicit_gemm.problem import Loop, Moves, known_count
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.matmul.recognition import Matmul, accumulator_of, fill_of
from aotc.mlir import ir

_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")
_ULT = 6  # arith.cmpi's number for "less than", without signs
# The kernel has code for each tap.
_MOST_TAPS = 128


class _Index(Struct, frozen=True):
    """A sum of loop indices times `factors` (loop → factor), plus a constant."""

    factors: Mapping[int, int]
    constant: int = 0

    def plus(self, other: _Index, sign: int = 1) -> _Index:
        factors = dict(self.factors)
        for loop, factor in other.factors.items():
            factors[loop] = factors.get(loop, 0) + sign * factor
        return _Index(
            {loop: factor for loop, factor in factors.items() if factor},
            self.constant + sign * other.constant,
        )

    def times(self, factor: int) -> _Index:
        factors = {loop: factor * own for loop, own in self.factors.items() if factor}
        return _Index(factors, factor * self.constant)

    @property
    def loop(self) -> int | None:
        """The loop whose index this is; None for another sum."""
        if len(self.factors) != 1 or self.constant:
            return None
        [(loop, factor)] = self.factors.items()
        return loop if factor == 1 else None


class _Read(Struct, frozen=True):
    """What a factor is read of, the index along each dimension, and along which dimensions
    everything outside of the buffer is 0. `zero`, a zero point, is subtracted from integers, which
    have no sign if `unsigned`."""

    buffer: Any
    indices: tuple[_Index, ...]
    padded: frozenset[int] = frozenset()
    unsigned: bool = False
    zero: int = 0

    @property
    def type(self) -> Any:
        return ir.MemRefType(self.buffer.type)

    @property
    def strides(self) -> tuple[int | None, ...]:
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        strides, _ = self.type.get_strides_and_offset()
        return tuple(None if one == unknown else int(one) for one in strides)

    def size(self, dimension: int) -> int | None:
        is_unknown = self.type.is_dynamic_dim(dimension)
        return None if is_unknown else int(self.type.shape[dimension])

    def moves(self, loop: int) -> Moves:
        """How a loop moves in the buffer."""
        return tuple(
            (dimension, index.factors[loop])
            for dimension, index in enumerate(self.indices)
            if loop in index.factors
        )


def recognise_depthwise(generic: Any, roots: Roots) -> Matmul | None:
    """The depthwise convolution that the operation computes. None if it is no depthwise
    convolution, or the kernels do not support its sizes or types."""
    inputs, outputs = ops.operand_groups(generic)
    if len(outputs) != 1 or generic.results:
        return None
    if not all(isinstance(value.type, ir.MemRefType) for value in (*inputs, *outputs)):
        return None
    body = _Body(generic, (*inputs, *outputs))
    factors, result = body.factors(), body.operands[-1]
    if factors is None or result is None:
        return None
    if not all(_is_supported(one.type) for one in (*factors, result)):
        return None
    for a, b in (factors, factors[::-1]):
        problem = _problem(a, b, result, maps_of(generic)[0].n_dims)
        if problem is not None:
            fill = fill_of(generic, result.buffer, roots)
            problem = replace(problem, adds=fill is None)
            return Matmul(generic, a.buffer, b.buffer, result.buffer, problem, fill)
    return None


def _is_supported(type_: Any) -> bool:
    return str(type_.element_type) in ELEMENT_BYTES and type_.memory_space is None


# --- The reads of the body -----------------------------------------------------------------------


class _Body:
    """The body of a generic on buffers. `operands`: the read of each operand; None if an index is
    not linear."""

    def __init__(self, generic: Any, values: Sequence[Any]) -> None:
        self._operations = ops.content(generic)
        self._arguments = list(generic.regions[0].blocks[0].arguments)
        self.operands = [
            _read_operand(value, map_) for value, map_ in zip(values, maps_of(generic), strict=True)
        ]

    def factors(self) -> tuple[_Read, _Read] | None:
        """The reads of a and b in c + a * b; None for another body."""
        *body, end = self._operations
        if len(end.operands) != 1 or not all(_is_pure(operation) for operation in body):
            return None
        add = ops.defining(end.operands[0])
        if add is None or add.name not in ("arith.addf", "arith.addi"):
            return None
        products = [value for value in add.operands if value != self._arguments[-1]]
        if len(products) != 1:
            return None
        multiply = ops.defining(products[0])
        if multiply is None or multiply.name not in ("arith.mulf", "arith.muli"):
            return None
        one, other = (self._read(value) for value in multiply.operands)
        return None if one is None or other is None else (one, other)

    def _read(self, value: Any) -> _Read | None:
        zero, unsigned, owner = 0, False, ops.defining(value)
        if owner is not None and owner.name == "arith.subi":
            number = ops.known_constant(owner.operands[1])
            if not isinstance(number, ir.IntegerAttr):
                return None
            zero, value = number.value, owner.operands[0]
        while (owner := ops.defining(value)) is not None and owner.name in _WIDENING:
            if unsigned and owner.name == "arith.extsi":
                return None  # The sign bits of the narrower type are no sign in the wider one.
            unsigned = owner.name == "arith.extui"
            value = owner.operands[0]
        read = self._read_narrow(value, owner, zero)
        return None if read is None else replace(read, unsigned=unsigned, zero=zero)

    def _read_narrow(self, value: Any, owner: Any | None, zero: int) -> _Read | None:
        """What a factor is read of before it is widened and has its zero point subtracted."""
        if value in self._arguments[:-1]:
            return self.operands[self._arguments.index(value)]
        if owner is None:
            return None
        if owner.name == "memref.load":
            return self._load(owner, None)
        if owner.name != "arith.select":
            return None
        condition, loaded, outside = owner.operands
        load = ops.defining(loaded)
        if load is None or load.name != "memref.load" or not _is_number(outside, zero):
            return None
        return self._load(load, condition)

    def _load(self, load: Any, condition: Any | None) -> _Read | None:
        """The read of a load, whose value is replaced by 0 where the condition does not hold."""
        buffer, *places = load.operands
        indices = _all_known([_index_of(_unselected(place, condition)) for place in places])
        bounds = [] if condition is None else _bounds_of(condition)
        if indices is None or bounds is None:
            return None
        padded = set()
        for index, size in bounds:
            found = {
                d for d, own in enumerate(indices) if own == index and is_size_of(size, buffer, d)
            }
            if not found:
                return None
            padded |= found
        return _Read(buffer, indices, frozenset(padded))


def _read_operand(value: Any, map_: Any) -> _Read | None:
    loops = [_Index({loop: 1}) for loop in range(map_.n_dims)]
    indices = _all_known([_index_in(result, loops, ()) for result in map_.results])
    return None if indices is None else _Read(value, indices)


def _all_known(indices: Sequence[_Index | None]) -> tuple[_Index, ...] | None:
    known = tuple(index for index in indices if index is not None)
    return known if len(known) == len(indices) else None


def _is_pure(operation: Any) -> bool:
    return operation.name.startswith("arith.") or operation.name in (
        *("affine.apply", "linalg.index", "memref.load"),
    )


def _is_number(value: Any, number: int) -> bool:
    known = ops.known_constant(value)
    if isinstance(known, ir.IntegerAttr) and isinstance(value.type, ir.IntegerType):
        return bool((known.value - number) % (1 << value.type.width) == 0)
    return isinstance(known, ir.FloatAttr) and bool(known.value == number)


def _unselected(place: Any, condition: Any | None) -> Any:
    """The index of a load under the condition."""
    select = None if condition is None else ops.defining(place)
    if select is None or select.name != "arith.select" or select.operands[0] != condition:
        return place
    return select.operands[1]


def _bounds_of(condition: Any) -> list[tuple[_Index, Any]] | None:
    """The indices that a condition requires to be at least 0 and less than a size, with the sizes'
    values; None for a condition of another form."""
    owner = ops.defining(condition)
    if owner is None:
        return None
    if owner.name == "arith.andi":
        left, right = (_bounds_of(operand) for operand in owner.operands)
        return None if left is None or right is None else left + right
    if owner.name != "arith.cmpi" or ir.IntegerAttr(owner.attributes["predicate"]).value != _ULT:
        return None
    index = _index_of(owner.operands[0])
    return None if index is None else [(index, owner.operands[1])]


def _index_of(value: Any) -> _Index | None:
    """A value of type index as a linear expression of loop indices; None for another value."""
    known = ops.known_index(value)
    if known is not None:
        return _Index({}, known)
    owner = ops.defining(value)
    if owner is None:
        return None
    if owner.name == "linalg.index":
        return _Index({ir.IntegerAttr(owner.attributes["dim"]).value: 1})
    operands = _all_known([_index_of(operand) for operand in owner.operands])
    if operands is None:
        return None
    if owner.name == "affine.apply":
        map_ = ir.AffineMapAttr(owner.attributes["map"]).value
        return _index_in(map_.results[0], operands[: map_.n_dims], operands[map_.n_dims :])
    if owner.name in ("arith.addi", "arith.subi"):
        left, right = operands
        return left.plus(right, 1 if owner.name == "arith.addi" else -1)
    if owner.name == "arith.muli":
        return _product_of(*operands)
    return None


def _product_of(left: _Index, right: _Index) -> _Index | None:
    if not right.factors:
        return left.times(right.constant)
    return None if left.factors else right.times(left.constant)


def _index_in(
    expression: Any, dimensions: Sequence[_Index | None], symbols: Sequence[_Index | None]
) -> _Index | None:
    """An affine expression, with the given indices in place of its dimensions and symbols."""
    return evaluate_affine(
        expression, dimensions, symbols, lambda number: _Index({}, number), _combine
    )


def _combine(kind: str, left: _Index | None, right: _Index | None) -> _Index | None:
    if left is None or right is None or kind not in ("add", "mul"):
        return None
    return left.plus(right) if kind == "add" else _product_of(left, right)


# --- The problem ---------------------------------------------------------------------------------


class _Loops(Struct, frozen=True):
    """The loops by role, the slowest first. `outer`: the loops outside of the points. `points`: the
    spatial loops of C. `channels`: the loops inside of the points. `taps`: the loops of a filter.
    `spatial`: the dimensions of A along which windows move."""

    outer: tuple[int, ...]
    points: tuple[int, ...]
    channels: tuple[int, ...]
    taps: tuple[int, ...]
    spatial: tuple[int, ...]


def _problem(a: _Read, b: _Read, c: _Read, count: int) -> Depthwise | None:
    """The problem with the given A, B and C; None if they are not the operands of a supported
    convolution."""
    loops = _loops(a, b, c, count)
    if loops is None or b.zero or not _is_in_type(a):
        return None
    windows = [_window(a, b, c, dimension, loops) for dimension in loops.spatial]
    known = [window for window in windows if window is not None]
    if len(known) != len(windows):
        return None
    roles = (loops.outer, loops.points, loops.taps)
    if loops.channels:
        roles = ((*loops.outer, *loops.points), loops.channels, loops.taps)
    rows, columns, taps = (tuple(_loop(a, b, c, loop) for loop in role) for role in roles)
    m, n, k = (known_count(role) for role in (rows, columns, taps))
    problem = Depthwise(
        _matrix(a, (m, k)),
        _matrix(b, (k, n)),
        _matrix(c, (m, n)),
        accumulator_of(str(c.type.element_type)),
        batch=(),
        rows=rows,
        columns=columns,
        k_loops=taps,
        strides=(a.strides, b.strides, c.strides),
        height=known[0] if len(known) == 2 else NO_WINDOW,
        width=known[-1],
        point_pitch=_point_pitch(c, loops.points),
        zero=a.zero,
    )
    if problem.taps > _MOST_TAPS:
        return None
    if loops.channels:
        return DepthwiseChannelsLast(**structs.asdict(problem), image_loops=len(loops.outer))
    return problem


def _loops(a: _Read, b: _Read, c: _Read, count: int) -> _Loops | None:
    written = [index.loop for index in c.indices]
    filter_ = [index.loop for index in b.indices if index.factors]
    parallel = [loop for loop in written if loop is not None]
    taps = [loop for loop in range(count) if loop not in parallel]
    if len(set(parallel)) != len(written) or None in filter_ or b.padded or not taps:
        return None
    if len(set(filter_)) != len(filter_) or any(index.constant for index in b.indices):
        return None
    # The first spatial dimension, the dimensions inside of it, and the channels as the last one.
    moved = [d for d, index in enumerate(a.indices) if index.factors]
    first = next((d for d in moved if a.indices[d].factors.keys() & set(taps)), None)
    if first is None:
        return None
    behind = moved[-1:] if a.indices[moved[-1]].loop in filter_ else []
    channels = [loop for d in behind for loop in a.indices[d].factors]
    if set(channels) & set(taps):
        behind, channels = [], []
    spatial = [d for d in moved if d >= first and d not in behind]
    others = [index for d, index in enumerate(a.indices) if d not in (*spatial, *behind)]
    if len(spatial) > 2 or any(index.constant for index in others):
        return None
    found = [list(a.indices[d].factors) for d in spatial]
    points = [loop for one in found for loop in one if loop not in taps]
    found_taps = [loop for one in found for loop in one if loop in taps]
    inner = [*points, *channels]
    outer = parallel[: len(parallel) - len(inner)]
    if (
        parallel[len(outer) :] != inner
        or sorted(found_taps) != taps
        or not set(taps) <= set(filter_)
        or set(points) & set(filter_)
        or not {index.loop for index in others if index.factors} <= set(outer)
        or (channels and set(outer) & set(filter_))
        or not a.padded <= set(spatial)
    ):
        return None
    return _Loops(*map(tuple, (outer, points, channels, found_taps, spatial)))


def _window(a: _Read, b: _Read, c: _Read, dimension: int, loops: _Loops) -> Window | None:
    """The windows along a dimension of A; None for a filter of unknown size, or if they leave the
    input without padding."""
    index = a.indices[dimension]
    along = [loop for loop in index.factors if loop in loops.points]
    taps = [loop for loop in index.factors if loop in loops.taps]
    is_last = dimension == loops.spatial[-1]
    if len(along) > 1 or len(taps) > 1 or (is_last and not along):
        return None
    output = _dimension(c, along[0]) if along else 0
    outputs = c.size(output) if along else 1
    tap_count = b.size(_dimension(b, taps[0])) if taps else 1
    size, is_padded = a.size(dimension), dimension in a.padded
    if tap_count is None:
        return None
    window = Window(
        size=size,
        outputs=outputs,
        taps=tap_count,
        stride=index.factors[along[0]] if along else 1,
        dilation=index.factors[taps[0]] if taps else 1,
        padding=-index.constant,
        pitch=a.strides[dimension],
        input=dimension,
        output=output,
    )
    if min(window.padding, window.stride - 1, window.dilation - 1) < 0:
        return None
    # An operation reads no element outside of its operands.
    is_inside = window.padding == 0 and not is_padded
    if size is not None and outputs is not None:
        is_inside = window.padding == 0 and window.reach_of(outputs) <= size
    return replace(window, is_inside=is_inside) if is_padded or is_inside else None


def _dimension(read: _Read, loop: int) -> int:
    """The dimension whose index is the loop."""
    return next(d for d, index in enumerate(read.indices) if index.loop == loop)


def _point_pitch(c: _Read, points: Sequence[int]) -> int | None:
    """See `Depthwise`."""
    dimensions = [d for d in (_dimension(c, loop) for loop in points) if c.size(d) != 1]
    if not dimensions:
        return 1
    rank, strides = c.type.rank, c.strides
    is_dense = c.type.affine_map == ir.AffineMap.get_identity(rank)
    for outer, inner in pairwise(dimensions):
        size, step, own = c.size(inner), strides[inner], strides[outer]
        between = [c.size(d) for d in range(outer + 1, inner)]
        is_adjacent = is_dense and outer < inner and set(between) <= {1}
        is_regular = size is not None and step is not None and own == size * step
        if not (is_adjacent or is_regular):
            return None
    return strides[dimensions[-1]]


def _loop(a: _Read, b: _Read, c: _Read, loop: int) -> Loop:
    name, read = next(
        (name, read)
        for name, read in (("c", c), ("b", b))
        if any(index.loop == loop for index in read.indices)
    )
    dimension = next(d for d, index in enumerate(read.indices) if index.loop == loop)
    moves = (read.moves(loop) for read in (a, b, c))
    return Loop(read.size(dimension), (name, dimension), *moves)


def _is_in_type(read: _Read) -> bool:
    """Whether a zero point is a number of the type of what it is subtracted from."""
    element = read.type.element_type
    if not isinstance(element, ir.IntegerType):
        return read.zero == 0
    least = 0 if read.unsigned else -(1 << element.width - 1)
    return bool(least <= read.zero < least + (1 << element.width))


def _matrix(read: _Read, sizes: tuple[int | None, int | None]) -> Matrix:
    """The matrix of an operand of any rank, with no known pitch or alignment."""
    element = str(read.type.element_type)
    size = ELEMENT_BYTES[element]
    return Matrix(str(read.type), element, sizes, 0, size, unsigned=read.unsigned)
