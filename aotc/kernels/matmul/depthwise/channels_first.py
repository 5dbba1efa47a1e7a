"""A direct depthwise convolution for the CPU device, whose planes are contiguous (NCHW).

A block is one thread, which computes a band of output rows of some planes, or the part of a band in
some columns, if the width is not known. For each plane it packs the input rows of the band, with
the padding around them, into memory that stays in the core's caches. Packing removes strides: the
packed input has a part for each remainder of rows and columns modulo the strides, so that for each
tap the inputs of adjacent outputs are adjacent.

The mainloop keeps the accumulators of some rows and vectors of columns in registers over all taps.
An input vector is loaded once for all rows that use it. Accumulators past the last column or row
are computed, and dropped. Each accumulator adds its products in the order of the addresses of the
packed inputs, for any number of rows and vectors.

Multiplications and additions may be contracted: hardware with fused multiply-add uses it.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import (
    Number,
    Value,
    compare,
    divide_up,
    is_equal,
    select,
    signed_maximum,
    signed_minimum,
    unravel,
)
from aotc.kernels.cpu.levels import SSE2, is_for_level
from aotc.kernels.matmul.cpu.kernel import CpuFamily, computed_in, has_convertible_types
from aotc.kernels.matmul.depthwise.extents import extents_of
from aotc.kernels.matmul.depthwise.kernel import DepthwiseKernel
from aotc.kernels.matmul.depthwise.mainloop import (
    BAND_BYTES,
    BLOCK_WORK,
    LARGE_IMAGE,
    InputVector,
    input_vectors,
    inputs_along,
    mean_waste,
    tile_cost,
    tiles,
)
from aotc.kernels.matmul.depthwise.problem import Depthwise, Window
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import likely_count
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder
from aotc.mlir import ir

# The candidate sizes of the mainloop's vectors. The cost of an operation is its bytes plus
# _BYTES_OF_OPERATION.
_VECTOR_BYTES = (64, 32, 16)
_BYTES_OF_OPERATION = 16
_MOST_PLANES = 32
# The columns of a part of a single row of unknown length.
_LONG_ROW = 512
# Filters of at most this number of taps stay in registers, broadcast.
_MOST_HELD_TAPS = 9
# The largest ratio of a row's elements in memory to those that are packed, if its vectors begin at
# cache lines: a store that crosses lines takes several times as long.
_MOST_PITCH = 1.15


class Variant(Struct, frozen=True):
    """Parameters of a kernel. The mainloop keeps `rows` x `vectors` accumulators of `width`
    elements in registers. A block computes `columns` columns of a band of `band` output rows, a
    multiple of `rows`, of `planes` planes."""

    rows: int
    vectors: int
    width: int
    band: int
    planes: int
    columns: int


class _Part(Struct, frozen=True):
    """A part of the packed input: the rows and columns of the padded input with these remainders
    modulo the strides. It begins at `start`, and has `rows` rows."""

    row: int
    column: int
    start: int
    rows: int


def _remainders(window: Window) -> list[int]:
    """The remainders modulo the stride of the padded input's indices that taps read."""
    return sorted({tap * window.dilation % window.stride for tap in range(window.taps)})


def _last_tap(window: Window, remainder: int) -> int:
    """The largest shift, in outputs, of the taps with a remainder."""
    shifts = [divmod(tap * window.dilation, window.stride) for tap in range(window.taps)]
    return max(shift for shift, own in shifts if own == remainder)


def _first_packed(window: Window, remainder: int) -> tuple[int, int]:
    """The first index of the input with a remainder, and its place in the part."""
    index = (remainder - window.padding) % window.stride
    return index, (index + window.padding) // window.stride


def _is_cut(problem: Depthwise) -> bool:
    """Whether blocks compute parts of rows."""
    return problem.width.outputs is None


class _Packing:
    """The layout of the packed input of a band of rows, and the accumulators that use its
    vectors."""

    def __init__(self, problem: Depthwise, variant: Variant) -> None:
        self.problem, self.variant = problem, variant
        height, width = problem.height, problem.width
        step = variant.width * variant.vectors
        self.columns = -(-variant.columns // step) * step
        # Columns are packed from a multiple of the stride on, which may be in front of the first.
        lead = 1 if _is_cut(problem) and width.padding % width.stride else 0
        self.size = lead
        # The elements from one row of a part to the next: whole vectors, if few are added.
        packed = -(-width.reach_of(variant.columns) // width.stride) + lead
        whole = -(-packed // variant.width) * variant.width
        is_aligned = whole <= _MOST_PITCH * packed
        self.pitch = whole if is_aligned else packed
        self.parts: dict[tuple[int, int], _Part] = {}
        for row in _remainders(height):
            rows = variant.band + _last_tap(height, row)
            for column in _remainders(width):
                if is_aligned:
                    # The first element that is packed begins a vector.
                    _, place = _first_packed(width, column)
                    self.size += -(self.size + place) % variant.width
                self.parts[row, column] = _Part(row, column, self.size, rows)
                # Vector accesses may end past the last row.
                self.size += rows * self.pitch + self.columns
        self.size += -self.size % variant.width

    @property
    def accumulators(self) -> int:
        """The number of accumulators of a band, including those stored past its end."""
        return self.variant.band * self.variant.columns + self.columns

    @property
    def band_size(self) -> int:
        """The number of elements in a block's memory."""
        return self.size + self.accumulators

    def input_vectors(self, rows: int) -> list[InputVector]:
        """The input vectors of a tile of `rows` rows at the first row and column."""
        height, width, v = self.problem.height, self.problem.width, self.variant
        taps = []
        for tap in range(self.problem.taps):
            i, j = divmod(tap, width.taps)
            down, row = divmod(i * height.dilation, height.stride)
            along, column = divmod(j * width.dilation, width.stride)
            taps.append(self.parts[row, column].start + down * self.pitch + along)
        return input_vectors(taps, rows, v.vectors, (self.pitch, v.width))


class _Kernel(DepthwiseKernel):
    """The kernel for one problem; `build` inserts it."""

    problem: Depthwise

    def __init__(
        self, b: Builder, problem: Depthwise, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, variant, epilogue)
        self.packing = _Packing(problem, variant)

    # --- Host code -----------------------------------------------------------------------------

    def build(self, arguments: Arguments) -> None:
        b, p, v = self.b, self.problem, self.variant
        self.of_a, self.of_b, self.of_c = (Operand(b, p, arguments, letter) for letter in "abc")
        self.of_height, self.of_width = extents_of(b, p, arguments)
        planes = count_of(b, arguments, p.rows)
        bands = divide_up(self.of_height.outputs, v.band)
        across = divide_up(self.of_width.outputs, v.columns)
        # All blocks are along x, which has the largest limit.
        blocks = self.groups(planes, v.planes) * bands * across
        # A launch of no blocks is an error.
        with (
            b.where(compare("ne", blocks, 0)),
            b.launch(blocks, 1, self.packing.band_size * self.bytes) as launch,
        ):
            group, band, column = unravel(launch.block, bands, across)
            first = group * v.planes
            last = signed_minimum(first + v.planes, planes)
            row = 0 if is_equal(bands, 1) else band * v.band
            self._kernel(first, last, row, 0 if is_equal(across, 1) else column * v.columns)

    # --- The kernel ----------------------------------------------------------------------------

    def _kernel(self, first: Number, last: Number, row: Number, column: Number) -> None:
        """Computes the columns from `column` on of the band of output rows from `row` on, of the
        planes from `first` to `last`."""
        b, v = self.b, self.variant
        memory, size = b.shared_memory(), self.packing.size
        self.packed = b.shared_buffer(memory, 0, [size], self.type)
        self.accumulators = b.shared_buffer(
            memory, size * self.bytes, [self.packing.accumulators], self.type
        )
        rows = signed_minimum(self.of_height.outputs - row, v.band)
        columns = signed_minimum(self.of_width.outputs - column, v.columns)
        with b.loop(0, size, v.width) as loop:
            self.store(b.zero(self.short_type), self.packed, [loop.index])
        with b.loop(first, last) as plane:
            self._pack(plane.index, row, column)
            self._mainloop(plane.index, rows, columns)
            self._store(plane.index, row, column, rows, columns)

    # --- Packing -------------------------------------------------------------------------------

    def _pack(self, plane: Number, row: Number, column: Number) -> None:
        """Packs the band's rows. The padding was cleared before, and stays 0, as it has the same
        indices in all planes."""
        b, height, width = self.b, self.problem.height, self.problem.width
        base = self.of_a.m.offset(plane)
        # The first column of the input, a multiple of the stride, and the one after the last.
        before = -(-width.padding // width.stride)
        begin = signed_maximum(column - before, 0)
        reach = width.reach_of(self.variant.columns) - width.padding
        end = signed_minimum(self.of_width.size, column * width.stride + reach)
        first_column, count = begin * width.stride, signed_maximum(end - begin * width.stride, 0)
        for remainder in _remainders(height):
            parts = [part for part in self.packing.parts.values() if part.row == remainder]
            # Input row = row of the part * stride - before.
            before = height.padding - remainder
            first = -(-before // height.stride)
            last = (self._used_rows + (height.stride - 1 + before)) // height.stride
            start = signed_maximum(first - row, 0)
            stop = signed_minimum(last - row, parts[0].rows)
            with b.loop(start, stop) as loop:
                of_input = (row + loop.index) * height.stride - before
                source = base + of_input * self.of_height.pitch + first_column
                places = {}
                for part in parts:
                    offset, place = _first_packed(width, part.column)
                    shift = place + (begin - column)
                    places[offset] = part.start + loop.index * self.packing.pitch + shift
                self._pack_row(source, places, count)

    @property
    def _used_rows(self) -> Number:
        """The number of rows of the input that are read, counted from its first, if known."""
        height = self.problem.height
        if height.outputs is None:
            return self.of_height.size
        used = signed_minimum(self.of_height.size, height.reach_of(height.outputs) - height.padding)
        return signed_maximum(used, 0)

    def _pack_row(self, source: Number, places: dict[int, Number], count: Number) -> None:
        """Packs the `count` elements from `source` on: `places` are those of the first ones of each
        remainder."""
        b, stride = self.b, self.problem.width.stride
        if stride <= 2:
            self._pack_vectors(source, places, count)
            return
        for offset, place in places.items():
            with b.loop(0, (count + (stride - 1 - offset)) // stride) as loop:
                value = self.load_input([source + offset + loop.index * stride])
                b.store(value, self.packed, [place + loop.index])

    def _pack_vectors(self, source: Number, places: dict[int, Number], count: Number) -> None:
        """Packs a row by vectors, for a stride of 1 or 2. Elements past the last one are padding,
        that is, 0."""
        b = self.b
        step = self.variant.width * self.problem.width.stride
        whole = count // step * step
        with b.loop(0, whole, step) as loop:
            self._pack_step(source, places, loop.index, step)
        if isinstance(count, int):
            if whole != count:
                self._pack_step(source, places, whole, count - whole)
            return
        with b.where(compare("ne", whole, count)):
            self._pack_step(source, places, whole, count - whole)

    def _pack_step(
        self, source: Number, places: dict[int, Number], column: Number, count: Number
    ) -> None:
        """Packs one vector for each remainder, from `column` on. `count` input elements are in
        bounds."""
        v, stride = self.variant, self.problem.width.stride
        vectors = [
            self._load_first(source + column + i * v.width, count - i * v.width)
            for i in range(stride)
        ]
        for remainder, place in places.items():
            vector = vectors[0]
            if stride == 2:
                mask = ir.DenseI64ArrayAttr.get(list(range(remainder, 2 * v.width, 2)))
                vector = self.b.op("vector.shuffle", vectors, self.short_type, mask=mask)
            self.store(vector, self.packed, [place + column // stride])

    def _load_first(self, at: Number, count: Number) -> Value:
        """A vector of the input, whose elements from number `count` on are 0, and not read."""
        b, width = self.b, self.variant.width
        if isinstance(count, int) and count >= width:
            return self.load_input([at], width)
        if isinstance(count, int) and count <= 0:
            return b.zero(self.short_type)
        mask = b.op("vector.create_mask", [b.value(count)], f"vector<{width}xi1>")
        return self.load_input([at], width, mask)

    # --- The mainloop --------------------------------------------------------------------------

    def _mainloop(self, plane: Number, rows: Number, columns: Number) -> None:
        """Computes the accumulators of a band of C, whose rows are adjacent. Values stored past
        the end of a row are overwritten by later rows. (Columns are computed from right to
        left.)"""
        b, v = self.b, self.variant
        filter_ = self.of_b.m.offset(plane)
        taps = self.problem.taps
        held = None
        if taps <= _MOST_HELD_TAPS:
            held = [self._tap(filter_, tap) for tap in range(taps)]
        # SSE2 has registers for the accumulators of a row.
        with b.where(is_for_level(b, SSE2)) as branch:
            self._tiles(filter_, held, rows, columns, 1)
        with branch.otherwise():
            self._tiles(filter_, held, rows, columns, v.rows)

    def _tiles(
        self,
        filter_: Number,
        held: list[Value] | None,
        rows: Number,
        columns: Number,
        count: int,
    ) -> None:
        """Computes the accumulators of `count` rows at a time. `held`: the taps in registers."""
        b, v = self.b, self.variant
        pitch, step = self.packing.pitch, v.width * v.vectors
        groups = divide_up(columns, step)
        with b.loop(0, self.groups(rows, count)) as row_group, b.loop(0, groups) as loop:
            row, column = row_group.index * count, (groups - 1 - loop.index) * step
            accumulators = [b.zero(self.short_type)] * (count * v.vectors)
            at = row * pitch + column
            for offset, uses in self.packing.input_vectors(count):
                factor = self.load(self.packed, [at + offset], v.width)
                for number, tap in uses:
                    weight = self._tap(filter_, tap) if held is None else held[tap]
                    accumulators[number] = b.multiply_add(factor, weight, accumulators[number])
            first = row * columns + column
            for number, value in enumerate(accumulators):
                of_row, vector = divmod(number, v.vectors)
                place = first + (of_row * columns + vector * v.width)
                self.store(value, self.accumulators, [place])

    def _tap(self, filter_: Number, tap: int) -> Value:
        """A tap of the filter at offset `filter_`, broadcast to a vector."""
        b = self.b
        value = self.load_filter([filter_ + self.of_b.k.offset(tap)])
        return b.op("vector.broadcast", [value], self.short_type)

    # --- C -------------------------------------------------------------------------------------

    def _store(
        self, plane: Number, row: Number, column: Number, rows: Number, columns: Number
    ) -> None:
        """Stores the accumulators. Whole rows are contiguous in C."""
        b, outputs = self.b, self.of_width.outputs
        base, first = self.of_c.m.offset(plane), row * outputs + column
        lines: Number = 1
        length = rows * columns
        if _is_cut(self.problem):
            is_whole = compare("eq", columns, outputs)
            lines, length = select(is_whole, 1, rows), select(is_whole, length, columns)
        with b.loop(0, lines) as line:
            own, at = line.index * columns, first + line.index * outputs
            for column, width in self.each_stored(0, length, self.width):
                value = self.load(self.accumulators, [own + column], width)
                place = at + column
                self.store_result(value, self.of_c.buffer, [base + place], (plane, place))


class ChannelsFirst(CpuFamily[Depthwise]):
    """See the module's docstring."""

    name = "depthwise convolution"
    problem_type = Depthwise
    variant_type = Variant
    kernel_type = _Kernel
    is_bandwidth_bound = True

    def can_implement(self, problem: Depthwise, variant: Variant) -> bool:
        return (
            has_convertible_types(problem) and problem.width.pitch == 1 and problem.point_pitch == 1
        )

    def variants(self, problem: Depthwise) -> tuple[Variant, ...]:
        return (_variant(problem),)

    def tile_name(self, problem: Depthwise, variant: Variant) -> str:
        height, width = problem.height, problem.width
        strides = f"s{max(height.stride, width.stride)}"
        return f"{height.taps}x{width.taps}_{strides}_{variant.rows}x{variant.vectors}"


def _variant(problem: Depthwise) -> Variant:
    size, height, width = ELEMENT_BYTES[computed_in(problem)], problem.height, problem.width
    elements, rows, vectors = min(
        ((bytes_ // size, *one) for bytes_ in _VECTOR_BYTES for one in tiles()),
        key=lambda one: _cost(problem, size, *one),
    )
    most = LARGE_IMAGE if height.outputs != 1 else _LONG_ROW
    columns = width.likely_outputs(-(-most // (elements * vectors)) * elements * vectors)
    variant = Variant(rows, vectors, elements, rows, 1, columns)
    # The largest band whose memory fits BAND_BYTES.
    groups = -(-height.likely_outputs(LARGE_IMAGE) // rows)
    for bands in range(1, groups + 1):
        variant = replace(variant, band=-(-groups // bands) * rows)
        if _Packing(problem, variant).band_size * size <= BAND_BYTES:
            break
    work = variant.band * -(-columns // elements) * problem.taps
    planes = max(1, min(_MOST_PLANES, BLOCK_WORK // work, likely_count(problem.rows)))
    return replace(variant, planes=planes)


def _cost(problem: Depthwise, size: int, elements: int, rows: int, vectors: int) -> Fraction:
    """The estimated cost of the mainloop for each point. `size`: the bytes of an element."""
    columns = elements * vectors
    loads = inputs_along(problem.height, rows) * vectors * problem.width.taps
    of_tile = tile_cost(problem, rows, vectors, loads) * (elements * size + _BYTES_OF_OPERATION)
    return mean_waste(problem, rows, columns) * of_tile / (rows * columns)


CHANNELS_FIRST = ChannelsFirst()
