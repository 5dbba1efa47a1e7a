"""Convolutions with constant filters of 3 x 3 for the CPU device, by Winograd's F(2x2, 3x3).

A tile of 2 x 2 outputs is computed from 4 x 4 inputs d as A^T [(G g G^T) * (B^T d B)] A, where * is
elementwise: 16 multiplications instead of 36 for each pair of channels (A. Lavin and S. Gray, "Fast
Algorithms for Convolutional Neural Networks", 2016). For each of the 16 positions in a tile,
the sum over the input channels is a matmul: filters (M) by tiles (N).

The runtime transforms the filters once. One kernel transforms images, and another one multiplies
and transforms the results. Strips of lines of tiles follow each other, so that what is transformed
stays in the caches. The lines of all images are counted together: a strip may have several images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import (
    Number,
    Scalar,
    Value,
    compare,
    is_equal,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.constant_copies import copy_of_constant
from aotc.kernels.cpu.mainloop import LONG_ROWS, ROWS_BEHIND, Row
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors
from aotc.kernels.matmul.cpu import blocked
from aotc.kernels.matmul.cpu.blocked import Step, Tile, Variant
from aotc.kernels.matmul.implicit_gemm.cpu.copied import allocated
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of, size_of
from aotc.kernels.matmul.implicit_gemm.problem import (
    ImplicitGemm,
    known_count,
    likely_count,
    loop_step,
)
from aotc.kernels.matmul.problem import Arguments, Line
from aotc.mlir import ir
from aotc.module_names import WINOGRAD_COPY

_TAPS, _INPUTS, _OUTPUTS = 3, 4, 2
_POSITIONS = _INPUTS**2
_ELEMENT, _ELEMENT_BYTES = "f32", 4
_WIDTH = VECTOR_BYTES // _ELEMENT_BYTES
# With fewer input channels or output channels, the transforms take more than they save.
_LEAST_CHANNELS, _LEAST_ROWS = 8, 16
_LEAST_TILES = 16
# The limit of transformed filters, in bytes per tile: more take longer to load than to multiply.
# (Transformed filters are 16 / 9 of the original ones.)
_MOST_FILTER_BYTES = 1 << 19
# The size of a strip's transformed image in bytes, and the smallest number of tiles of a strip.
_STRIP_BYTES, _STRIP_TILES = 4 << 20, 192
# The rows and columns of tiles of C. A block has sixteen accumulators for each element.
_ROWS, _COLUMNS = 72, 48


class Winograd(Struct, frozen=True):
    """The convolution of images with `channels` to C's `rows` channels of `lines` x `columns`
    outputs, by strips of `strip` lines of tiles."""

    problem: ImplicitGemm
    channels: int
    rows: int
    lines: Number
    columns: Number
    strip: Number

    @property
    def tile_lines(self) -> Number:
        return (self.lines + _OUTPUTS - 1) // _OUTPUTS

    @property
    def tile_columns(self) -> Number:
        return (self.columns + _OUTPUTS - 1) // _OUTPUTS

    def place_of(self, line: Number) -> tuple[Number, Number]:
        """The image of a line of tiles, and the line's index in the image."""
        return line // self.tile_lines, line % self.tile_lines

    @property
    def pitch(self) -> Number:
        """The pitch of channels of the transformed image: the number of tiles of a strip, and a
        vector more, as lines are stored as whole vectors. It is an odd number of vectors, so that
        consecutive channels are in different sets of a cache."""
        return ((self.strip * self.tile_columns + _WIDTH - 1) // _WIDTH + 1 | 1) * _WIDTH

    @property
    def filters_type(self) -> str:
        """The type of the transformed filters, in the layout of `aotc_constant_get_winograd`."""
        return f"memref<{_POSITIONS}x{self.rows}x{self.channels + _WIDTH}x{_ELEMENT}>"

    def allocate_strip(self, b: Builder) -> AbstractContextManager[Value]:
        """Allocates a strip's transformed image, which is indexed by (position, channel, tile)."""
        pitch = self.pitch
        unknown, size = ([], pitch) if isinstance(pitch, int) else ([pitch], "?")
        return allocated(b, unknown, f"memref<{_POSITIONS}x{self.channels}x{size}x{_ELEMENT}>")


class Strip(Struct, frozen=True):
    """Lines of tiles: the first one among those of all images, and their number."""

    first: Number
    lines: Number


def can_implement(problem: ImplicitGemm) -> bool:
    """Whether these kernels support the problem, and are faster."""
    elements = {problem.a.element, problem.b.element, problem.c.element, problem.accumulator}
    if elements != {_ELEMENT} or problem.batch or len(problem.k_loops) != _TAPS:
        return False
    if len(problem.rows) != 1 or len(problem.columns) < 2:
        return False
    *outer, line, column = problem.columns
    channel, down, across = problem.k_loops
    (row,) = problem.rows
    channels, rows = channel.size, row.size
    if channels is None or rows is None or [down.size, across.size] != [_TAPS, _TAPS]:
        return False
    of_filters = [loop_step(problem, loop, "a") for loop in (row, channel, down, across)]
    if of_filters != [channels * _TAPS**2, _TAPS**2, _TAPS, 1]:
        return False
    of_columns = [loop_step(problem, column, name) for name in "bc"]
    if down.b != line.b or across.b != column.b or of_columns != [1, 1]:
        return False
    if channels < _LEAST_CHANNELS or rows < _LEAST_ROWS:
        return False
    if line.size is None or column.size is None:
        return True
    pitch = loop_step(problem, line, "b")
    if pitch is None or pitch < column.size + _TAPS - 1:
        return False
    if loop_step(problem, line, "c") != column.size:
        return False
    tiles = likely_count(outer) * math.prod(
        -(-size // _OUTPUTS) for size in (line.size, column.size)
    )
    filter_bytes = _POSITIONS * rows * channels * _ELEMENT_BYTES
    return tiles >= _LEAST_TILES and filter_bytes <= tiles * _MOST_FILTER_BYTES


def insert_winograd(
    b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
) -> bool:
    """Inserts the launches of the kernels. Returns False, and inserts nothing, if the filters are
    no constant."""
    *outer, line, column = problem.columns
    channels, rows = problem.k_loops[0].size, problem.rows[0].size
    assert channels is not None
    assert rows is not None
    # In the layout of `aotc_constant_get_winograd`.
    type_ = f"memref<{_POSITIONS}x{rows}x{channels + _WIDTH}x{_ELEMENT}>"
    filters = copy_of_constant(b, arguments.a, WINOGRAD_COPY, type_)
    if filters is None:
        return False
    sizes = size_of(b, arguments, line), size_of(b, arguments, column)
    convolution = Winograd(problem, channels, rows, *sizes, 0)
    # An image without columns has no line of tiles.
    lines = convolution.tile_lines * signed_minimum(convolution.columns, 1)
    lines = count_of(b, arguments, outer) * lines
    strip = _strip_of(convolution, None if known_count(outer) is None else lines)
    convolution = replace(convolution, strip=strip)
    with convolution.allocate_strip(b) as transformed:
        given = replace(arguments, a=filters, b=transformed)

        def insert(strip: Strip) -> None:
            ImageTransform(b, convolution).build(arguments, transformed, strip)
            kernel = WinogradKernel(b, problem, variant, arguments.epilogue)
            kernel.build_strip(convolution, given, strip)

        if isinstance(lines, int) and isinstance(strip, int) and lines <= strip:
            insert(Strip(0, lines))
        else:
            with b.loop(0, lines, strip) as loop:
                insert(Strip(loop.index, signed_minimum(lines - loop.index, strip)))
    return True


def _strip_of(convolution: Winograd, lines: Number | None) -> Number:
    """The number of lines of tiles of a strip: as many as suffice for `_STRIP_BYTES`, or for
    `_STRIP_TILES`. If the number of all `lines` is given, all strips are about equally long."""
    across = signed_maximum(convolution.tile_columns, 1)
    tile_bytes = _POSITIONS * convolution.channels * _ELEMENT_BYTES
    enough = (_STRIP_TILES - 1 + across) // across
    most = signed_maximum(_STRIP_BYTES // tile_bytes // across, enough)
    if lines is None:
        return most
    # Without lines, there is one strip of one line, of which nothing is computed.
    lines = signed_maximum(lines, 1)
    strips = (lines + most - 1) // most
    return (lines + strips - 1) // strips


class ImageTransform(Vectors):
    """Computes B^T d B of each tile of a strip. `build` inserts the kernel. A block computes one
    channel."""

    def __init__(self, b: Builder, convolution: Winograd) -> None:
        super().__init__(b, _ELEMENT)
        self.convolution = convolution

    def build(self, arguments: Arguments, transformed: Value, strip: Strip) -> None:
        b, of = self.b, self.convolution
        *images, line, column = of.problem.columns
        channel, *taps = of.problem.k_loops
        by_channel = replace(
            of.problem,
            batch=tuple(images),
            rows=(channel,),
            columns=(line,),
            k_loops=(column, *taps),
        )
        source = Operand(b, by_channel, arguments, "b")
        with b.launch(of.channels, 1, role="winograd_image") as launch:
            of_channel, _, _ = launch.block_ids
            target, first = Buffer(transformed), source.m.offset(of_channel)
            with b.loop(0, strip.lines) as loop:
                image, tile_line = of.place_of(strip.first + loop.index)
                begin = first + source.batch.offset(image)
                begins = [
                    begin + source.n.offset(signed_minimum(tile_line * _OUTPUTS + i, of.lines + 1))
                    for i in range(_INPUTS)
                ]
                start = loop.index * of.tile_columns
                self._transform_line(source.buffer, begins, target, (of_channel, start))

    def _transform_line(
        self, source: Buffer, begins: Sequence[Number], target: Buffer, to: tuple[Number, Number]
    ) -> None:
        """Transforms a line of tiles. It stores whole vectors, and the next line overwrites the
        values past the last tile. If the number of columns is odd, the last tile has neither its
        last input nor its second output."""
        of = self.convolution
        is_cut = of.columns % _OUTPUTS
        whole = (of.tile_columns - is_cut) // self.width * self.width
        with self.b.loop(0, whole, self.width) as loop:
            self._transform_vector(source, begins, target, (*to, loop.index), None)
        rest = of.tile_columns - whole
        if is_equal(rest, 0):
            return
        with self.b.where(isinstance(rest, int) or compare("ne", rest, 0)):
            self._transform_vector(source, begins, target, (*to, whole), (rest, rest - is_cut))

    def _transform_vector(
        self,
        source: Buffer,
        begins: Sequence[Number],
        target: Buffer,
        to: tuple[Number, Number, Number],
        counts: tuple[Number, Number] | None,
    ) -> None:
        """Transforms a vector of tiles. `counts`: the number of tiles, and the number of those with
        a last input; None if all are complete."""
        channel, start, tile = to
        of_all, of_last = (
            (None, None)
            if counts is None
            else (self.masks_of(counts[0], _OUTPUTS), self.masks_of(counts[1], _OUTPUTS))
        )
        masks = [*[of_all] * (_INPUTS - 1), of_last]
        inputs = [
            [
                self.load_strided(source, begin + tile * _OUTPUTS + x, _OUTPUTS, masks[x])
                for x in range(_INPUTS)
            ]
            for begin in begins
        ]
        lines = [self._transform(line) for line in inputs]
        for x in range(_INPUTS):
            for y, value in enumerate(self._transform([line[x] for line in lines])):
                self.store(value, target, [y * _INPUTS + x, channel, start + tile])

    def _transform(self, d: Sequence[Value]) -> list[Value]:
        """B^T d."""
        add, subtract = self.b.add, self.b.subtract
        return [
            subtract(d[0], d[2]),
            add(d[1], d[2]),
            subtract(d[2], d[1]),
            subtract(d[1], d[3]),
        ]


class WinogradKernel(blocked.Kernel):
    """The matmuls of all positions for a tile of C, and A^T m A of their results."""

    role = "winograd"
    reads_a = True
    reads_b = True
    convolution: Winograd
    strip: Strip

    def build_strip(self, convolution: Winograd, arguments: Arguments, strip: Strip) -> None:
        """Inserts the kernel. A and B of `arguments` are the transformed filters and image."""
        b = self.b
        self.convolution, self.strip, self.arguments = convolution, strip, arguments
        problem = convolution.problem
        outer, inner = problem.columns[:-2], problem.columns[-2:]
        problem = replace(problem, batch=outer, columns=inner)
        self.of_c = Operand(b, problem, arguments, "c")
        columns = strip.lines * convolution.tile_columns
        self.launch(convolution.rows, columns, convolution.channels, 1)

    def tile_sizes(self, m: Number, n: Number) -> tuple[Number, Number, Number]:
        rows = self.even(m, _ROWS, LONG_ROWS)
        whole = signed_maximum(n - self.width, 1)
        columns = self.even(whole, _COLUMNS, _COLUMNS)
        return rows, columns, self.groups(whole, columns)

    # --- Memory --------------------------------------------------------------------------------

    @property
    def columns(self) -> int | None:
        lines = self.strip.lines
        return lines * self.convolution.tile_columns if isinstance(lines, int) else None

    def shared_bytes(self, rows: Number) -> Number:
        """The shared memory of a block: the accumulators of all positions, two lines of results,
        and the columns for dot products."""
        sizes = (*self._shapes(), self.columns_shape)
        return sum(math.prod(shape) for shape in sizes) * self.bytes

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        # Up to a vector more columns than a tile, and a vector that begins in the last column.
        columns = _COLUMNS + 2 * self.width
        return (_POSITIONS, _ROWS + ROWS_BEHIND, columns), (_OUTPUTS, _OUTPUTS * columns)

    def allocate(self) -> None:
        b, start = self.b, 0
        memory, buffers = b.shared_memory(), []
        for shape in (*self._shapes(), self.columns_shape):
            buffers.append(b.shared_buffer(memory, start, shape, self.type))
            start += math.prod(shape) * self.bytes
        self.accumulators, self.results, self.packed_columns = buffers

    # --- The kernel ----------------------------------------------------------------------------

    def prepare(self, tile: Tile, rows: Number) -> None:
        """Does nothing: `multiply_tile` sets the operands for each position."""

    def multiply_tile(self, tile: Tile, k: Number) -> None:
        a, b, accumulators = self.arguments.a, self.arguments.b, self.accumulators.value
        with self.b.loop(0, _POSITIONS) as loop:
            self.source_a = Buffer(a, [loop.index])
            self.source_b = Buffer(b, [loop.index])
            self.tile_accumulators = Buffer(accumulators, [loop.index])
            super().multiply_tile(tile, k)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        """See the base class."""
        self.multiply_padded(tile, step)

    # --- C -------------------------------------------------------------------------------------

    def store_c(self, tile: Tile) -> None:
        """Stores the outputs of the tile, row by row of C, and line by line of tiles."""
        b, of = self.b, self.convolution
        end = tile.column + tile.columns
        lines = tile.column // of.tile_columns, self.groups(end, of.tile_columns)
        with b.loop(0, tile.rows) as row, b.loop(*lines) as line:
            start = line.index * of.tile_columns
            begin = signed_maximum(start, tile.column)
            count = signed_minimum(start + of.tile_columns, end) - begin
            with b.loop(0, count, self.width) as group:
                at = begin - tile.column + group.index
                self._transform(row.index, at, group.index)
            across = (begin - start) * _OUTPUTS
            outputs = signed_minimum(count * _OUTPUTS, of.columns - across)
            image, tile_line = of.place_of(self.strip.first + line.index)
            for i in range(_OUTPUTS):
                of_line = tile_line * _OUTPUTS + i
                with b.where(compare("slt", of_line, of.lines)):
                    place = image, tile.row + row.index, of_line
                    self._store_line(place, (across, outputs), i)

    def _transform(self, row: Scalar, column: Number, group: Scalar) -> None:
        """Computes the results of a vector of tiles, and stores them to the lines of results, from
        `group` on."""
        b = self.b
        m = [
            [
                self.load(self.accumulators, [y * _INPUTS + x, row, column], self.width)
                for x in range(_INPUTS)
            ]
            for y in range(_INPUTS)
        ]
        columns = [self._outputs([line[x] for line in m]) for x in range(_INPUTS)]
        for i in range(_OUTPUTS):
            pair = self._outputs([found[i] for found in columns])
            for half in range(_OUTPUTS):
                first = half * self.width // 2
                mask = [
                    lane + side
                    for lane in range(first, first + self.width // 2)
                    for side in (0, self.width)
                ]
                vector = b.op(
                    "vector.shuffle",
                    pair,
                    self.vector_type,
                    mask=ir.DenseI64ArrayAttr.get(mask),
                )
                self.store(vector, self.results, [i, group * _OUTPUTS + half * self.width])

    def _outputs(self, m: Sequence[Value]) -> list[Value]:
        """A^T m."""
        add, subtract = self.b.add, self.b.subtract
        return [add(add(m[0], m[1]), m[2]), subtract(subtract(m[1], m[2]), m[3])]

    def _store_line(
        self, place: tuple[Number, Number, Number], columns: tuple[Number, Number], line: int
    ) -> None:
        """Stores a line of results to a row of C. `place`: the image, the row, and the line of the
        image. `columns`: the first column in the line, and the number of columns."""
        c, of, (image, row, of_line) = self.of_c, self.convolution, place
        across, count = columns
        column = of_line * of.columns + across
        base = c.batch.offset(image) + c.m.offset(row) + c.n.offset(column)
        # The epilogue gets the column among those of all images.
        number = image * of.lines + of_line
        first = number * of.columns + across
        of_c = Line(of.columns, number) if isinstance(of.columns, int) else None

        for column, width in self.each_stored(0, count, self.width):
            value = self.load(self.results, [line, column], width)
            self.store_result(value, c.buffer, [base + column], (row, first + column), of_c)

    # --- The mainloop's access to operands -----------------------------------------------------

    def row_of_a(self, tile: Tile, step: Step, row: Number) -> Row:
        def load(k: Number, width: int = 1) -> Value:
            return self.load(self.source_a, [tile.row + row, step.start + k], width)

        return load
