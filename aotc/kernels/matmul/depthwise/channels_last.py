"""A direct depthwise convolution for the CPU device, whose channels are contiguous (NHWC).

A block is one thread, which computes a part of an image's points, for some vectors of channels. It
packs the inputs of the part for one vector of channels, with the padding around them, into memory
that stays in the core's caches. The mainloop keeps the accumulators of some points in registers
over all taps. An input vector is loaded once for all accumulators that use it. Accumulators past
the last column or row are computed, and dropped.

Multiplications and additions may be contracted: hardware with fused multiply-add uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import (
    Number,
    Value,
    compare,
    divide_up,
    select,
    signed_maximum,
    signed_minimum,
    unravel,
)
from aotc.kernels.matmul.cpu.kernel import CpuFamily, computed_in, has_convertible_types
from aotc.kernels.matmul.depthwise.extents import extents_of
from aotc.kernels.matmul.depthwise.kernel import DepthwiseKernel
from aotc.kernels.matmul.depthwise.mainloop import (
    BLOCK_WORK,
    LARGE_IMAGE,
    input_vectors,
    inputs_along,
    mean_waste,
    tile_cost,
    tiles,
)
from aotc.kernels.matmul.depthwise.problem import DepthwiseChannelsLast
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder

# The candidate sizes of the mainloop's vectors. The cost of an operation is its bytes plus
# _BYTES_OF_OPERATION.
_VECTOR_BYTES = (64, 32, 16)
_BYTES_OF_OPERATION = 16
# The size of a block's memory, which a second-level cache holds.
_PART_BYTES = 64 << 10


class Variant(Struct, frozen=True):
    """Parameters of a kernel. The mainloop keeps the accumulators of `rows` x `columns` points in
    registers, each a vector of `width` channels. A block computes `part_rows` x `part_columns`
    points, multiples of `rows` and `columns`, for `groups` vectors of channels."""

    rows: int
    columns: int
    width: int
    part_rows: int
    part_columns: int
    groups: int

    def packed(self, problem: DepthwiseChannelsLast) -> tuple[int, int]:
        """The rows and columns of the padded input that a block reads."""
        windows = ((problem.height, self.part_rows), (problem.width, self.part_columns))
        rows, columns = (window.reach_of(count) for window, count in windows)
        return rows, columns

    def vectors(self, problem: DepthwiseChannelsLast) -> int:
        """The number of vectors in a block's memory: inputs, taps and accumulators."""
        rows, columns = self.packed(problem)
        return rows * columns + problem.taps + self.part_rows * self.part_columns


class _Part(Struct, frozen=True):
    """A block's part of an image: its first row and column, and its numbers of rows and columns."""

    row: Number
    column: Number
    rows: Number
    columns: Number


class _Kernel(DepthwiseKernel):
    """The kernel for one problem; `build` inserts it."""

    problem: DepthwiseChannelsLast

    def __init__(
        self,
        b: Builder,
        problem: DepthwiseChannelsLast,
        variant: Variant,
        epilogue: EpilogueBuilder | None,
    ) -> None:
        super().__init__(b, problem, variant, epilogue)
        channels = problem.columns[0].size
        assert channels is not None
        self.channels = channels

    # --- Host code -----------------------------------------------------------------------------

    def build(self, arguments: Arguments) -> None:
        b, p, v = self.b, self.problem, self.variant
        self.of_a, self.of_b, self.of_c = (Operand(b, p, arguments, letter) for letter in "abc")
        images = count_of(b, arguments, p.rows[: p.image_loops])
        vectors = -(-self.channels // v.width)
        groups = -(-vectors // v.groups)
        self.of_height, self.of_width = extents_of(b, p, arguments)
        self.points = self.of_height.outputs * self.of_width.outputs
        down = divide_up(self.of_height.outputs, v.part_rows)
        across = divide_up(self.of_width.outputs, v.part_columns)
        # All blocks are along x, which has the largest limit.
        blocks = images * (down * across * groups)
        # A launch of no blocks is an error.
        with b.where(compare("ne", blocks, 0)):
            shared_bytes = v.vectors(p) * v.width * self.bytes
            with b.launch(blocks, 1, shared_bytes) as launch:
                image, i, j, group = unravel(launch.block, down, across, groups)
                first, row, column = group * v.groups, i * v.part_rows, j * v.part_columns
                rows = signed_minimum(v.part_rows, self.of_height.outputs - row)
                columns = signed_minimum(v.part_columns, self.of_width.outputs - column)
                self._allocate()
                with b.loop(first, signed_minimum(first + v.groups, vectors)) as vector:
                    self._compute(image, vector.index, _Part(row, column, rows, columns))

    # --- The kernel ----------------------------------------------------------------------------

    def _allocate(self) -> None:
        b, v = self.b, self.variant
        memory, at = b.shared_memory(), 0
        rows, columns = v.packed(self.problem)
        buffers = []
        for count in (rows * columns, self.problem.taps, v.part_rows * v.part_columns):
            buffers.append(b.shared_buffer(memory, at, [count, v.width], self.type))
            at += count * v.width * self.bytes
        self.packed, self.taps, self.accumulators = buffers

    def _compute(self, image: Number, vector: Number, part: _Part) -> None:
        """Computes a part of an image, for one vector of channels."""
        channel = vector * self.variant.width
        point = image * self.points
        for tap in range(self.problem.taps):
            value = self._load_channels(self.load_filter, self.of_b.k.offset(tap), channel)
            self.store(value, self.taps, [tap, 0])
        self._pack(self.of_a.m.offset(point), channel, part)
        self._mainloop(part)
        self._store(point, channel, part)

    def _load_channels(self, load: Callable[..., Value], at: Number, channel: Number) -> Value:
        """A vector of channels, those beyond the last of which are 0."""
        b, width = self.b, self.variant.width
        if self.channels % width == 0:
            return load([at + channel], width)
        mask = b.op("vector.create_mask", [self.channels - channel], f"vector<{width}xi1>")
        return load([at + channel], width, mask)

    def _pack(self, base: Number, channel: Number, part: _Part) -> None:
        """Packs the inputs of a part. `base`: the offset of the image."""
        b, p, height, width = self.b, self.problem, self.of_height, self.of_width
        rows, columns = self.variant.packed(p)
        row, column = (
            first * window.stride - window.padding
            for first, window in ((part.row, p.height), (part.column, p.width))
        )
        with b.loop(0, rows) as loop:
            of_input = row + loop.index
            is_there = compare("ult", of_input, height.size)
            start = select(is_there, _within(0 - column, columns), columns)
            stop = select(is_there, _within(width.size - column, columns), columns)
            source = base + of_input * height.pitch + column * width.pitch
            first = loop.index * columns
            for begin, end in ((0, start), (stop, columns)):
                with b.loop(begin, end) as outside:
                    zero = b.zero(self.short_type)
                    self.store(zero, self.packed, [first + outside.index, 0])
            with b.loop(start, stop) as inside:
                at = source + inside.index * width.pitch
                value = self._load_channels(self.load_input, at, channel)
                self.store(value, self.packed, [first + inside.index, 0])

    def _mainloop(self, part: _Part) -> None:
        """Computes the accumulators of a part, whose rows are contiguous. Values stored past the
        end of a row are overwritten by later rows."""
        b, v, height, width = self.b, self.variant, self.problem.height, self.problem.width
        _, pitch = v.packed(self.problem)
        taps = [
            tap // width.taps * height.dilation * pitch + tap % width.taps * width.dilation
            for tap in range(self.problem.taps)
        ]
        inputs = input_vectors(taps, v.rows, v.columns, (height.stride * pitch, width.stride))
        row_groups, column_groups = (
            self.groups(count, size)
            for count, size in ((part.rows, v.rows), (part.columns, v.columns))
        )
        with b.loop(0, row_groups) as i, b.loop(0, column_groups) as j:
            row, column = i.index * v.rows, j.index * v.columns
            at = row * (height.stride * pitch) + column * width.stride
            accumulators = [b.zero(self.short_type)] * (v.rows * v.columns)
            for offset, uses in inputs:
                factor = self.load(self.packed, [at + offset, 0], v.width)
                for number, tap in uses:
                    weight = self.load(self.taps, [tap, 0], v.width)
                    accumulators[number] = b.multiply_add(factor, weight, accumulators[number])
            for number, value in enumerate(accumulators):
                down, along = divmod(number, v.columns)
                place = (row + down) * v.part_columns + (column + along)
                self.store(value, self.accumulators, [place, 0])

    def _store(self, point: Number, channel: Number, part: _Part) -> None:
        """Stores the points of a part. `point` is the index of the image's first point."""
        b, v, p = self.b, self.variant, self.problem
        base, pitch = self.of_c.m.offset(point), p.point_pitch
        assert pitch is not None
        with b.loop(0, part.rows) as i, b.loop(0, part.columns) as j:
            place = i.index * v.part_columns + j.index
            number = (part.row + i.index) * self.of_width.outputs + (part.column + j.index)
            at = base + number * pitch
            self._store_channels(
                channel, partial(self._store_point, place, at, point + number, channel)
            )

    def _store_point(
        self, place: Number, at: Number, row: Number, first: Number, offset: Number, width: int
    ) -> None:
        """Stores `width` channels of a point, from `offset` on in a vector of channels. `place`:
        the index of the point's accumulators. `at`: the offset of the point in C."""
        value = self.load(self.accumulators, [place, offset], width)
        channel = first + offset
        self.store_result(value, self.of_c.buffer, [at + channel], (row, channel))

    def _store_channels(self, channel: Number, store: Callable[[Number, int], None]) -> None:
        """Stores a vector of channels, or if it has channels past the last one, the others one by
        one."""
        b, width = self.b, self.variant.width
        count = signed_minimum(self.channels - channel, width)

        def store_elements() -> None:
            with b.loop(0, count) as loop:
                store(loop.index, 1)

        if not self.stores_vectors:
            store_elements()
        elif self.channels % width == 0:
            store(0, width)
        else:
            with b.where(compare("eq", count, width)) as branch:
                store(0, width)
            with branch.otherwise():
                store_elements()


def _within(number: Number, most: int) -> Number:
    """The number, clamped to 0 to `most`."""
    return signed_minimum(signed_maximum(number, 0), most)


def _has_contiguous_channels(problem: DepthwiseChannelsLast) -> bool:
    [loop] = problem.columns
    moves = zip((loop.a, loop.b, loop.c), problem.strides, strict=True)
    return loop.size is not None and all(strides[move[0][0]] == 1 for move, strides in moves)


class ChannelsLast(CpuFamily[DepthwiseChannelsLast]):
    """See the module's docstring."""

    name = "depthwise convolution, channels last"
    problem_type = DepthwiseChannelsLast
    variant_type = Variant
    kernel_type = _Kernel
    is_bandwidth_bound = True

    def can_implement(self, problem: DepthwiseChannelsLast, variant: Variant) -> bool:
        return has_convertible_types(problem)

    def variants(self, problem: DepthwiseChannelsLast) -> tuple[Variant, ...]:
        if not _has_contiguous_channels(problem) or problem.point_pitch is None:
            return ()
        return (_variant(problem),)

    def tile_name(self, problem: DepthwiseChannelsLast, variant: Variant) -> str:
        height, width = problem.height, problem.width
        strides = f"s{max(height.stride, width.stride)}"
        return f"last_{height.taps}x{width.taps}_{strides}_{variant.rows}x{variant.columns}"


def _variant(problem: DepthwiseChannelsLast) -> Variant:
    size, channels = ELEMENT_BYTES[computed_in(problem)], problem.columns[0].size
    assert channels is not None
    widths = [bytes_ // size for bytes_ in _VECTOR_BYTES]
    width = min(widths, key=lambda one: -(-channels // one) * (one * size + _BYTES_OF_OPERATION))
    rows, columns = min(tiles(), key=lambda tile: _cost(problem, *tile))
    variant = Variant(rows, columns, width, rows, columns, 1)
    parts = [
        replace(variant, part_rows=part_rows, part_columns=part_columns)
        for part_rows in _part_sizes(problem.height.likely_outputs(LARGE_IMAGE), rows)
        for part_columns in _part_sizes(problem.width.likely_outputs(LARGE_IMAGE), columns)
    ]
    fitting = [one for one in parts if one.vectors(problem) * width * size <= _PART_BYTES]
    variant = min(fitting or [variant], key=lambda one: _packed_in_all(problem, one))
    work = variant.part_rows * variant.part_columns * problem.taps
    groups = max(1, min(BLOCK_WORK // work, -(-channels // width)))
    return replace(variant, groups=groups)


def _part_sizes(outputs: int, tile: int) -> list[int]:
    """The candidate sizes of parts along a dimension: multiples of the tile's size that divide the
    dimension about evenly."""
    count = -(-outputs // tile)
    return sorted({-(-count // parts) * tile for parts in range(1, count + 1)})


def _packed_in_all(problem: DepthwiseChannelsLast, variant: Variant) -> int:
    """The number of inputs that all blocks of an image pack."""
    rows, columns = variant.packed(problem)
    down = -(-problem.height.likely_outputs(LARGE_IMAGE) // variant.part_rows)
    across = -(-problem.width.likely_outputs(LARGE_IMAGE) // variant.part_columns)
    return down * across * rows * columns


def _cost(problem: DepthwiseChannelsLast, rows: int, columns: int) -> Fraction:
    """The estimated cost of the mainloop for each point."""
    loads = inputs_along(problem.height, rows) * inputs_along(problem.width, columns)
    of_tile = tile_cost(problem, rows, columns, loads)
    return mean_waste(problem, rows, columns) * of_tile / (rows * columns)


CHANNELS_LAST = ChannelsLast()
