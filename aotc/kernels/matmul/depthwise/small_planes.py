"""A direct depthwise convolution for the CPU device of small images whose planes are contiguous.

A row of such an image fills a part of a vector only. Here a vector has the same point of several
planes: a block transposes the inputs and the filters of as many planes as a vector has elements,
multiplies, and transposes the accumulators back, all in memory that stays in the core's caches.
Taps outside of the image are skipped. Each accumulator adds its products in the order of the taps.

Multiplications and additions may be contracted: hardware with fused multiply-add uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod

from msgspec import Struct

from aotc.builder import Builder
from aotc.builder.numbers import (
    Number,
    Value,
    compare,
    divide_up,
    signed_maximum,
    signed_minimum,
)
from aotc.kernels.cpu.packing import TRANSPOSED_BYTES, transposed
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu.kernel import CpuFamily, computed_in, has_convertible_types
from aotc.kernels.matmul.depthwise.kernel import DepthwiseKernel
from aotc.kernels.matmul.depthwise.mainloop import BLOCK_WORK
from aotc.kernels.matmul.depthwise.problem import Depthwise, Window
from aotc.kernels.matmul.implicit_gemm.operand import Operand, count_of
from aotc.kernels.matmul.implicit_gemm.problem import likely_count
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, EpilogueBuilder

# The most columns of a result, whose accumulators of a row are in registers.
_MOST_COLUMNS = 8
# The limit of a block's memory.
_MOST_BYTES = 40 << 10


class Variant(Struct, frozen=True):
    """Parameters of a kernel: a block computes `groups` times `width` planes."""

    width: int
    groups: int


class _Sizes(Struct, frozen=True):
    """The rows and columns of an image and of its result, the number of taps, and the pitch of rows
    of results, which are the points of a plane."""

    image: tuple[int, int]
    result: tuple[int, int]
    taps: int
    pitch: int

    @property
    def vectors(self) -> tuple[int, int, int]:
        """The numbers of inputs, taps and accumulators of a plane."""
        return prod(self.image), self.taps, prod(self.result)

    def bytes(self, width: int, element: int) -> int:
        """The size of a block's memory."""
        return (sum(self.vectors) + self.pitch) * width * element


def _sizes(problem: Depthwise) -> _Sizes | None:
    """None if a size is not known, or 0."""
    height, width = problem.height, problem.width
    sizes = (height.size, width.size, height.outputs, width.outputs)
    known = [size for size in sizes if size]
    if len(known) < len(sizes):
        return None
    rows, columns, *result = known
    line = VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
    # An odd number of cache lines, so that the rows begin in different sets.
    pitch = (-(-prod(result) // line) | 1) * line
    return _Sizes((rows, columns), (result[0], result[1]), problem.taps, pitch)


class _Kernel(DepthwiseKernel):
    """The kernel for one problem; `build` inserts it."""

    problem: Depthwise
    variant: Variant

    def __init__(
        self, b: Builder, problem: Depthwise, variant: Variant, epilogue: EpilogueBuilder | None
    ) -> None:
        super().__init__(b, problem, variant, epilogue)
        sizes = _sizes(problem)
        assert sizes is not None
        self.sizes = sizes

    # --- Host code -----------------------------------------------------------------------------

    def build(self, arguments: Arguments) -> None:
        b, p, v = self.b, self.problem, self.variant
        self.of_a, self.of_b, self.of_c = (Operand(b, p, arguments, letter) for letter in "abc")
        self.planes = count_of(b, arguments, p.rows)
        vectors = divide_up(self.planes, v.width)
        blocks = divide_up(vectors, v.groups)
        # A launch of no blocks is an error.
        with (
            b.where(compare("ne", blocks, 0)),
            b.launch(blocks, 1, self.sizes.bytes(v.width, self.bytes)) as launch,
        ):
            self._allocate()
            first = launch.block * v.groups
            with b.loop(first, signed_minimum(first + v.groups, vectors)) as vector:
                self._compute(vector.index * v.width)

    # --- The kernel ----------------------------------------------------------------------------

    def _allocate(self) -> None:
        b, memory, at = self.b, self.b.shared_memory(), 0
        buffers = []
        for count in self.sizes.vectors:
            buffers.append(b.shared_buffer(memory, at, [count, self.width], self.type))
            at += count * self.width * self.bytes
        self.packed, self.taps, self.accumulators = buffers
        self.results = b.shared_buffer(memory, at, [self.width, self.sizes.pitch], self.type)

    def _compute(self, first: Number) -> None:
        """Computes the planes from `first` on. Those past the last one are copies of it, and are
        not stored."""
        (inputs, taps, outputs), planes, width = self.sizes.vectors, self.planes, self.width
        is_whole = isinstance(planes, int) and planes % width == 0
        count = signed_minimum(planes - first, width)

        def plane_of(number: Number) -> Number:
            plane = first + number
            return plane if is_whole else signed_minimum(plane, planes - 1)

        def load_image(plane: Number, point: Number) -> Value:
            return self.load_input([self.of_a.m.offset(plane_of(plane)) + point], self._side)

        def load_filter(plane: Number, tap: Number) -> Value:
            return self.load_filter([self.of_b.m.offset(plane_of(plane)) + tap], self._side)

        for size, load, target in (
            (inputs, load_image, self.packed),
            (taps, load_filter, self.taps),
        ):
            with self._square(size, count) as (point, plane):
                loaded = [load(plane + i, point) for i in range(self._side)]
                for i, vector in enumerate(transposed(self, loaded)):
                    self.store(vector, target, [point + i, plane])
        self._mainloop(count)
        with self._square(outputs, count) as (point, plane):
            loaded = [
                self.load(self.accumulators, [point + i, plane], self._side)
                for i in range(self._side)
            ]
            for i, vector in enumerate(transposed(self, loaded)):
                self.store(vector, self.results, [plane + i, point])
        self._store(first, count)

    @property
    def _side(self) -> int:
        return TRANSPOSED_BYTES // self.bytes

    @contextmanager
    def _square(self, size: int, count: Number) -> Iterator[tuple[Number, Number]]:
        """A loop over squares of `size` points of `count` planes. Yields the first point and the
        first plane. The last points may be in two squares, and planes past the last in one."""
        with (
            self.b.loop(0, count, self._side) as plane,
            self.b.loop(0, size, self._side) as point,
        ):
            yield signed_minimum(point.index, size - self._side), plane.index

    def _mainloop(self, count: Number) -> None:
        """Computes the accumulators, a row of them at a time."""
        b, height = self.b, self.problem.height
        (size, _), (outputs, columns) = self.sizes.image, self.sizes.result
        zeros = [b.zero(self.vector_type)] * columns
        # The number of rows, but no constant: LLVM would unroll the loop, which takes it long.
        rows = signed_minimum(count * outputs, outputs)
        with b.loop(0, rows) as row:
            start = row.index * height.stride
            first = divide_up(signed_maximum(height.padding - start, 0), height.dilation)
            reach = signed_maximum(size + height.padding - start, 0)
            last = signed_minimum(divide_up(reach, height.dilation), height.taps)
            with b.loop(first, last, carried=zeros) as loop:
                of_input = start + loop.index * height.dilation - height.padding
                loop.next(self._multiply(loop.carried, of_input, loop.index))
            for i, value in enumerate(loop.results):
                self.store(value, self.accumulators, [row.index * columns + i, 0])

    def _multiply(
        self, accumulators: Sequence[Value], row: Number, of_filter: Number
    ) -> list[Value]:
        """Adds the products of a row of the input and a row of the filter to the accumulators."""
        b, window, sums = self.b, self.problem.width, list(accumulators)
        columns = self.sizes.image[1]
        taps = [
            self.load(self.taps, [of_filter * window.taps + tap, 0], self.width)
            for tap in range(window.taps)
        ]
        for place, uses in _uses(window, columns, len(sums)):
            factor = self.load(self.packed, [row * columns + place, 0], self.width)
            for number, tap in uses:
                sums[number] = b.multiply_add(factor, taps[tap], sums[number])
        return sums

    # --- C -------------------------------------------------------------------------------------

    def _store(self, first: Number, count: Number) -> None:
        b, c = self.b, self.of_c
        with b.loop(0, count) as loop:
            plane = first + loop.index
            base = c.m.offset(plane)
            for place, width in self.each_stored(0, prod(self.sizes.result), self.width):
                value = self.load(self.results, [loop.index, place], width)
                self.store_result(value, c.buffer, [base + place], (plane, place))


def _uses(window: Window, size: int, outputs: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """For each of the `size` elements of a row of the input, in order: the outputs that multiply
    it, each with its tap."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, tap in product(range(outputs), range(window.taps)):
        place = number * window.stride + tap * window.dilation - window.padding
        if 0 <= place < size:
            found.setdefault(place, []).append((number, tap))
    return sorted(found.items())


class SmallPlanes(CpuFamily[Depthwise]):
    """See the module's docstring."""

    name = "depthwise convolution, small planes"
    problem_type = Depthwise
    variant_type = Variant
    kernel_type = _Kernel
    is_bandwidth_bound = True

    def can_implement(self, problem: Depthwise, variant: Variant) -> bool:
        size = ELEMENT_BYTES[computed_in(problem)]
        sizes, side = _sizes(problem), TRANSPOSED_BYTES // size
        return (
            has_convertible_types(problem)
            and sizes is not None
            and min(sizes.vectors) >= side
            and sizes.bytes(variant.width, size) <= _MOST_BYTES
            and problem.height.pitch == problem.width.size
            and (problem.width.pitch, problem.point_pitch) == (1, 1)
        )

    def variants(self, problem: Depthwise) -> tuple[Variant, ...]:
        sizes = _sizes(problem)
        if sizes is None or sizes.result[1] > _MOST_COLUMNS:
            return ()
        width = VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
        planes = likely_count(problem.rows)
        if planes < width:
            return ()
        work = prod(sizes.result) * sizes.taps
        groups = max(1, min(BLOCK_WORK // work, planes // width))
        return (Variant(width, groups),)

    def tile_name(self, problem: Depthwise, variant: Variant) -> str:
        height, width = problem.height, problem.width
        strides = f"s{max(height.stride, width.stride)}"
        return f"{height.taps}x{width.taps}_{strides}_planes"


SMALL_PLANES = SmallPlanes()
