"""Direct depthwise convolutions on GPUs, with planes (NCHW) or channels (NHWC) contiguous.

A thread computes a strip of outputs below each other, or several if images are low, as sequences
are. The threads of a warp have neighbouring columns, or channels, so that they read neighbouring
inputs. An input is loaded once for all outputs of the strip, and the filter stays in registers.
What lies outside of the input is 0: such a load reads the first element of the plane or image,
which is dropped.

Each output adds its products row by row of the filter, whatever the length of the strip.
"""

from __future__ import annotations

from msgspec import Struct

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Condition, Number, Value, compare, divide_up, select, unravel
from aotc.kernels.family import ANY_GPU
from aotc.kernels.matmul.depthwise.extents import extents_of
from aotc.kernels.matmul.depthwise.problem import Depthwise, DepthwiseChannelsLast, Window
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import likely_count
from aotc.kernels.matmul.problem import Arguments, Place
from aotc.kernels.matmul.scalar import accumulator_type_of, has_known_types, launch

_THREADS = 128
_LONGEST_STRIP = 8
# Strips are shorter if there were fewer threads than this: half of what an H200 holds.
_ENOUGH_THREADS = 1 << 17
# The registers of a thread hold this number of taps.
_MOST_TAPS = 128
# Indices of threads, and offsets in a plane, have 32 bits below this number.
_END_OF_SHORT = 1 << 31


class Variant(Struct, frozen=True):
    """Parameters of a kernel. `rows`: the outputs of a strip. `strips`: those of a thread."""

    rows: int
    strips: int = 1


class _Kernel:
    """The kernel for one problem; `build` inserts it."""

    def __init__(
        self, b: Builder, problem: Depthwise, variant: Variant, arguments: Arguments
    ) -> None:
        self.b, self.problem, self.arguments = b, problem, arguments
        self.rows, self.strips = variant.rows, variant.strips
        self.type = accumulator_type_of(problem)
        self.of_a, self.of_b, self.of_c = (Operand(b, problem, arguments, one) for one in "abc")
        self.of_height, self.of_width = extents_of(b, problem, arguments)
        # The number of elements that `_inputs_from` has.
        self.extent: Number = 1
        for one in (self.of_height, self.of_width):
            self.extent = self.extent + (one.size - 1) * one.pitch

    # --- Host code -----------------------------------------------------------------------------

    def build(self) -> None:
        b, p = self.b, self.problem
        is_last = isinstance(p, DepthwiseChannelsLast)
        outer = p.rows[: p.image_loops] if isinstance(p, DepthwiseChannelsLast) else p.rows
        outer_count = count_of(b, self.arguments, outer)
        channels = count_of(b, self.arguments, p.columns) if is_last else 1
        inner = (divide_up(self.of_height.outputs, self.rows), self.of_width.outputs, channels)
        threads = outer_count * inner[0] * inner[1] * inner[2]
        of_block = _THREADS * self.strips
        with (
            launch(b, divide_up(threads, of_block), _THREADS) as block,
            b.loop(0, self.strips) as loop,
        ):
            number = block.index * of_block + loop.index * _THREADS + block.thread
            with b.where(compare("ult", number, threads)):
                if isinstance(threads, int) and threads < _END_OF_SHORT:
                    number = b.signed_cast(number, "i32")
                outer_index, strip, column, channel = map(b.index, unravel(number, *inner))
                self._strip(outer_index, strip * self.rows, column, channel if is_last else None)

    # --- The kernel ----------------------------------------------------------------------------

    def _strip(self, outer: Number, row: Number, column: Number, channel: Number | None) -> None:
        """Computes the outputs from `row` on. `outer`: the plane or, with a `channel`, the
        image."""
        b, p = self.b, self.problem
        points = self.of_height.outputs * self.of_width.outputs
        # The rows of the problem's matrices are planes or, with channels, points.
        first = outer if channel is None else outer * points
        base, filter_ = self.of_a.m.offset(first), self.of_b.m.offset(first)
        if channel is not None:
            base = base + self.of_a.n.offset(channel)
            filter_ = self.of_b.n.offset(channel)
        taps = [
            b.convert(b.load(self.of_b.buffer, [filter_ + self.of_b.k.offset(tap)]), self.type)
            for tap in range(p.taps)
        ]
        sums = [b.zero(self.type)] * self.rows
        is_whole = p.height.outputs is not None and p.height.outputs % self.rows == 0
        # An index is one addition of 32 bits from the row's, if they suffice.
        self.source = self._inputs_from(base)
        columns = [
            _input(p.width, self.of_width.size, column, tap * p.width.dilation, is_output=True)
            for tap in range(p.width.taps)
        ]
        across = [self._offset(*one, self.of_width.pitch) for one in columns]
        for shift, products in sorted(_shifts(p.height, self.rows).items()):
            y, has_row = _input(p.height, self.of_height.size, row, shift, is_output=is_whole)
            down = self._offset(y, has_row, self.of_height.pitch)
            for j, (_, has_column) in enumerate(columns):
                value = self._load(b.index(down + across[j]), _both(has_row, has_column))
                for number, i in products:
                    tap = taps[i * p.width.taps + j]
                    sums[number] = b.multiply_add(value, tap, sums[number])
        for number, value in enumerate(sums):
            own = row + number
            with b.where(is_whole or compare("ult", own, self.of_height.outputs)):
                point = own * self.of_width.outputs + column
                if channel is None:
                    self._store(value, outer, point)
                else:
                    self._store(value, first + point, channel)

    def _inputs_from(self, base: Number) -> Buffer:
        """The inputs from the first one of a plane, or of a channel of an image, on."""
        b, value = self.b, self.of_a.buffer.value
        begin, _ = b.strides(value)
        sizes = [b.value(self.extent)]
        return Buffer(b.reinterpret_cast(value, begin + base, sizes, [1], value.type))

    def _offset(self, at: Number, is_inside: Condition, pitch: Number) -> Number:
        """The offset of an index along one dimension; 0 if it is outside."""
        offset = select(is_inside, at, 0) * pitch
        is_short = isinstance(self.extent, int) and self.extent < _END_OF_SHORT
        return self.b.signed_cast(offset, "i32") if is_short else offset

    def _load(self, at: Number, is_there: Condition) -> Value:
        """The input at an offset; 0 if it is not there."""
        b = self.b
        value = b.convert(b.load(self.source, [at]), self.type)
        if is_there is True:
            return value
        return b.op("arith.select", [is_there, value, b.zero(self.type)], self.type)

    def _store(self, value: Value, row: Number, column: Number) -> None:
        """Stores an accumulator as the element of C at this row and column."""
        b, p, c = self.b, self.problem, self.of_c
        at = [c.m.offset(row) + c.n.offset(column)]
        if p.adds:
            value = b.add(b.convert(b.load(c.buffer, at), self.type), value)
        value = b.convert(value, p.accumulator)
        if self.arguments.epilogue is None:
            value = b.convert(value, p.c.element)
        else:
            place = Place(None, b.value(row), b.values([column]))
            [value] = self.arguments.epilogue(b, [value], place)
        b.store(value, c.buffer, at)


def _input(
    window: Window, size: Number, output: Number, shift: int, *, is_output: bool
) -> tuple[Number, Condition]:
    """The index of the input `shift` elements behind the first one of an output's window, and
    whether it is inside. `is_output`: the window is known to be that of an output."""
    at = output * window.stride + (shift - window.padding)
    return at, (is_output and window.is_inside) or compare("ult", at, size)


def _both(one: Condition, other: Condition) -> Condition:
    if one is True or other is True:
        return other if one is True else one
    both: Condition = one & other
    return both


def _shifts(window: Window, rows: int) -> dict[int, list[tuple[int, int]]]:
    """For each input that a strip reads, counted from the first one: the outputs and the taps that
    multiply it."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number in range(rows):
        for tap in range(window.taps):
            found.setdefault(number * window.stride + tap * window.dilation, []).append(
                (number, tap)
            )
    return found


class DepthwiseSimt(MatmulFamily[Depthwise]):
    """See the module's docstring."""

    name = "depthwise convolution"
    mnemonic = "simt"
    target = ANY_GPU
    variant_type = Variant
    kernel_type = _Kernel
    has_cost_model = False
    is_bandwidth_bound = True

    def legal_variants(self, problem: Depthwise) -> list[Variant]:
        is_depthwise = isinstance(problem, Depthwise)
        return list(self.variants(problem)) if is_depthwise else []

    def can_implement(self, problem: Depthwise, variant: Variant) -> bool:
        return has_known_types(problem) and problem.zero == 0 and problem.taps <= _MOST_TAPS

    def variants(self, problem: Depthwise) -> tuple[Variant, ...]:
        count = likely_count((*problem.rows, *problem.columns))
        rows = _LONGEST_STRIP
        while rows > 1 and count < rows * _ENOUGH_THREADS:
            rows //= 2
        # Strips of about the same length.
        if problem.height.outputs is not None:
            strips = -(-problem.height.outputs // rows)
            rows = -(-problem.height.outputs // strips)
        strips = max(1, _LONGEST_STRIP // rows)
        while strips > 1 and count < rows * strips * _ENOUGH_THREADS:
            strips //= 2
        variant = Variant(rows, strips)
        return (variant,) if self.can_implement(problem, variant) else ()

    def tile_name(self, problem: Depthwise, variant: Variant) -> str:
        height, width = problem.height, problem.width
        strides = f"s{max(height.stride, width.stride)}"
        strips = f"x{variant.strips}" if variant.strips > 1 else ""
        return f"{height.taps}x{width.taps}_{strides}_{variant.rows}{strips}"


DEPTHWISE_SIMT = DepthwiseSimt()
