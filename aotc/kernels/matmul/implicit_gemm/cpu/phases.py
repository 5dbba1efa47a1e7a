"""Copies the image of a convolution with strides to phases that the kernel for the CPU device reads
in place.

A phase has the rows and columns of the image with one remainder each modulo the strides. For each
tap of the filter, adjacent columns of the result multiply adjacent elements of a phase, and
adjacent rows are as far apart for all taps: this is a convolution without strides, whose taps read
different phases. An element is copied once, while each block would pack it for each tap. The
copy has the padding of the image: nothing else copies it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare
from aotc.kernels.cpu.vectors import VECTOR_BYTES, Vectors
from aotc.kernels.matmul.cpu.blocked import Variant
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.implicit_gemm.cpu.copied import MOST_BYTES, allocated, problem_of_copy
from aotc.kernels.matmul.implicit_gemm.cpu.image import ImageKernel, image_of
from aotc.kernels.matmul.implicit_gemm.operand import Layout, Mode, Operand, count_of, size_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Loop, Moves, Padding
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments
from aotc.mlir import ir

_STRIDE = 2
# The largest ratio of computed columns to those of C. Above it, a copy for each tap is faster.
_MOST_COMPUTED = 1.05


class Window(Struct, frozen=True):
    """The windows along a dimension: output o reads element o * 2 + t * `dilation` for tap t of the
    loop `taps`. The image has `size` elements, `pitch` apart in memory, and `low` zeros in front of
    them; what is behind them is zeros, too."""

    outputs: int
    taps: Loop
    dilation: int
    pitch: int
    low: int
    size: int

    @property
    def sizes(self) -> dict[int, int]:
        """The number of elements of each phase that taps read."""
        shifts = [divmod(tap * self.dilation, _STRIDE) for tap in range(self.taps.size or 0)]
        return {phase: self.outputs + shift for shift, phase in sorted(shifts)}

    def inside(self, phase: int) -> tuple[int, int]:
        """The elements of a phase that are in the image."""
        bounds = (self.low - phase, self.low + self.size - phase)
        first, last = (min(max(-(-one // _STRIDE), 0), self.sizes[phase]) for one in bounds)
        return first, last

    @property
    def reach(self) -> int:
        """The number of elements of the padded image that are read, from the first one on."""
        return max((size - 1) * _STRIDE + phase for phase, size in self.sizes.items()) + 1

    @property
    def count(self) -> int:
        """The number of elements of the image that are read, from the first one on."""
        return max(0, min(self.size, self.reach - self.low))


class Phases(Struct, frozen=True):
    """The copy of B, which `problem` reads: for each index of `outer` and of `channel` a plane of
    `pitch` elements, with the phases, of `image` elements, whose rows are `width` apart."""

    problem: ImplicitGemm
    k_loops: tuple[Loop, ...]
    outer: tuple[Loop, ...]
    channel: Loop
    down: Window
    along: Window
    width: int
    image: int
    pitch: int

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """For each loop along K: its dilation, the distance of the phases along it, 0 if it has
        none, and of adjacent elements."""
        found = {
            self.down.taps.b: (self.down.dilation, _STRIDE * self.image, self.width),
            self.along.taps.b: (self.along.dilation, self.image, 1),
        }
        return [found.get(loop.b, (1, 0, self.pitch)) for loop in self.k_loops]


def phases_of(problem: ImplicitGemm) -> Phases | None:
    """The copy of the problem's B; None if it is not possible, or not worth its time."""
    if len(problem.columns) < 2:
        return None
    *images, line, column = problem.columns
    down, along = _window(problem, line), _window(problem, column)
    if down is None or along is None or along.pitch != 1:
        return None
    channels = [loop for loop in problem.k_loops if loop not in (down.taps, along.taps)]
    if len(channels) != 1 or channels[0].size is None:
        return None
    [channel], outer = channels, (*problem.batch, *images)
    if not all(_is_whole(problem, loop) for loop in (channel, *outer)):
        return None
    element = computed_in(problem)
    if problem.b.element != element:
        return None
    vector = VECTOR_BYTES // ELEMENT_BYTES[element]
    width, height = max(along.sizes.values()), max(down.sizes.values())
    # Behind a phase is a vector of padding, as rows are stored as whole vectors. The odd number of
    # cache lines puts consecutive planes into different sets.
    image = (-(-(height * width + vector) // vector) | 1) * vector
    pitch = (_STRIDE * _STRIDE * image // vector | 1) * vector
    if pitch * channels[0].size * ELEMENT_BYTES[element] > MOST_BYTES:
        return None

    last = len(outer) + 1
    moves: dict[Loop, Moves] = {loop: ((number, 1),) for number, loop in enumerate(outer)}
    moves |= {channel: ((last - 1, 1),), line: ((last, width),), column: ((last, 1),)}
    # Upper bounds: `_Offsets` has the offsets of taps.
    moves |= {down.taps: ((last, 3 * image),), along.taps: ((last, 1),)}

    seen = problem_of_copy(problem, [*(loop.size for loop in outer), channel.size, pitch], moves)
    found = image_of(seen)
    if found is None or found.columns > _MOST_COMPUTED * found.height * found.width:
        return None
    return Phases(seen, problem.k_loops, outer, channel, down, along, width, image, pitch)


def _is_whole(problem: ImplicitGemm, loop: Loop) -> bool:
    """Whether the dimensions of the loop are not padded."""
    image = problem.padding
    return image is None or all(
        (image.low[dimension], image.sizes[dimension]) == (0, loop.size) for dimension, _ in loop.b
    )


def _window(problem: ImplicitGemm, loop: Loop) -> Window | None:
    """The windows along a loop of the result with a stride of 2; None for others."""
    if len(loop.b) != 1 or loop.b[0][1] != _STRIDE or loop.size is None:
        return None
    dimension = loop.b[0][0]
    loops = [one for one in problem.k_loops if [move[0] for move in one.b] == [dimension]]
    if len(loops) != 1 or loops[0].size is None:
        return None
    [taps], image = loops, problem.padding
    window = Window(loop.size, taps, taps.b[0][1], 0, 0, 0)
    pitch, low, size = problem.strides[1][dimension], 0, window.reach
    if image is not None:
        pitch, low = image.strides[dimension], image.low[dimension]
        size = image.sizes[dimension] or 0
    is_known = pitch and size and low >= 0
    return replace(window, pitch=pitch, low=low, size=size) if is_known else None


class CopyKernel(Vectors):
    """Copies B to phases; `build` inserts the kernel. A block copies a plane."""

    def __init__(self, b: Builder, problem: ImplicitGemm, phases: Phases) -> None:
        super().__init__(b, computed_in(problem))
        self.problem, self.phases = problem, phases

    def build(self, arguments: Arguments, memref: Value) -> None:
        """Fills the copy. In host code."""
        b, phases, padding = self.b, self.phases, self.problem.padding
        of_copy = replace(self.problem, batch=phases.outer, rows=(phases.channel,))
        if padding is not None:
            strides = (of_copy.strides[0], padding.strides, of_copy.strides[2])
            of_copy = replace(of_copy, strides=strides)
            arguments = replace(arguments, b=_with_dimensions(b, arguments.b, padding))
        self.source = Operand(b, of_copy, arguments, "b")
        count, channels = (
            count_of(b, arguments, loops) for loops in (phases.outer, (phases.channel,))
        )
        self.target = Buffer(_flat(b, memref, count * channels * phases.pitch, self.type))
        # A launch of no blocks is an error.
        with b.where(compare("ne", count, 0)), b.launch([channels, 1, count], 1, role="copy") as of:
            x, _, image = of.block_ids
            first = self.source.batch.offset(image) + self.source.m.offset(x)
            self._copy_plane(first, (image * channels + x) * phases.pitch)

    def _copy_plane(self, first: Number, start: Number) -> None:
        """Copies a plane with its padding. Rows of the image are read one after the other, for the
        processor to prefetch them."""
        b, phases, down = self.b, self.phases, self.phases.down
        for phase, size in down.sizes.items():
            begin = start + phase * _STRIDE * phases.image
            inside = down.inside(phase)
            for rows in ((0, inside[0]), (inside[1], size)):
                with b.loop(*rows) as row, b.loop(0, phases.width, self.width) as column:
                    for along in phases.along.sizes:
                        to = begin + along * phases.image + row.index * phases.width
                        self.store(b.zero(self.vector_type), self.target, [to + column.index])
        step = _STRIDE // len(down.sizes)
        with b.loop(-down.low % step, down.count, step) as row:
            place = row.index + down.low
            to = place % _STRIDE * (_STRIDE * phases.image) + place // _STRIDE * phases.width
            self._copy_row(first + row.index * down.pitch, start + to)

    def _copy_row(self, at: Number, to: Number) -> None:
        """Copies a row. Its phases are stored as whole vectors; the next row overwrites the values
        past the last column."""
        along = self.phases.along
        count, step = along.count, _STRIDE * self.width
        whole = count - count % step
        with self.b.loop(0, whole, step) as j:
            self._copy_vectors(at, to, j.index, step)
        if whole < count:
            self._copy_vectors(at, to, whole, count - whole)
        for phase, size in along.sizes.items():
            first, last = along.inside(phase)
            for column in (*range(first), *range(last, size)):
                place = to + phase * self.phases.image + column
                self.b.store(self.b.zero(self.type), self.target, [place])

    def _copy_vectors(self, at: Number, to: Number, column: Number, count: int) -> None:
        """Copies `count` columns of the image, at most a vector of each phase."""
        b, buffer, along = self.b, self.source.buffer, self.phases.along
        loaded = []
        for i in range(_STRIDE):
            place, left = [at + column + i * self.width], count - i * self.width
            if left >= self.width:
                loaded.append(self.load(buffer, place, self.width))
            elif left > 0:
                loaded.append(self.load_masked(buffer, place, self.mask(left)))
            else:
                loaded.append(b.zero(self.vector_type))
        for phase in along.sizes:
            begin = (phase - along.low) % _STRIDE
            mask = ir.DenseI64ArrayAttr.get(list(range(begin, _STRIDE * self.width, _STRIDE)))
            vector = b.op("vector.shuffle", loaded, self.vector_type, mask=mask)
            of_phase = to + phase * self.phases.image + along.inside(phase)[0]
            self.store(vector, self.target, [of_phase + column // _STRIDE])


def _with_dimensions(b: Builder, image: Value, padding: Padding) -> Value:
    """The image with the dimensions of its padded copy, which may lack some of size 1."""
    begin, strides = b.strides(image)
    if len(strides) == len(padding.strides):
        return image
    sizes, steps = ([one or 0 for one in known] for known in (padding.sizes, padding.strides))
    layout = f"strided<[{', '.join(map(str, steps))}], offset: ?>"
    type_ = f"memref<{'x'.join(map(str, sizes))}x{Buffer(image).element}, {layout}>"
    return b.reinterpret_cast(image, begin, sizes, steps, type_)


def _flat(b: Builder, memref: Value, extent: Number, element: str) -> Value:
    type_ = f"memref<?x{element}, strided<[1], offset: ?>>"
    return b.reinterpret_cast(memref, b.value(0), [b.value(extent)], [1], type_)


class _Offsets(Layout):
    """The offsets along K in the copy."""

    def __init__(self, b: Builder, phases: Phases) -> None:
        super().__init__(b, [Mode(loop.size or 0, 1) for loop in phases.problem.k_loops])
        self.phases = phases

    def offset(self, number: Number) -> Number:
        total: Number = 0
        steps = list(zip(self.modes, self.phases.steps, strict=True))
        for i, (mode, (dilation, of_phase, step)) in reversed(list(enumerate(steps))):
            digit = number
            if i > 0:
                number, digit = self._divide(number, mode.size)
            if of_phase == 0:
                total = total + digit * step
            else:
                place = digit * dilation
                total = total + place % _STRIDE * of_phase + place // _STRIDE * step
        return total


class PhaseKernel(ImageKernel):
    """The kernel that reads the copy."""

    phases: Phases

    def find_operands(self, arguments: Arguments) -> None:
        """See the base class."""
        super().find_operands(arguments)
        self.of_b.k = _Offsets(self.b, self.phases)


def insert_phases(
    b: Builder, phases: Phases, problem: ImplicitGemm, variant: Variant, arguments: Arguments
) -> None:
    """Inserts the copy and the kernel that reads it."""
    unknown = [size_of(b, arguments, loop) for loop in phases.outer if loop.size is None]
    with allocated(b, unknown, phases.problem.b.type) as memref:
        CopyKernel(b, problem, phases).build(arguments, memref)
        kernel = PhaseKernel(b, phases.problem, variant, arguments.epilogue)
        kernel.phases = phases
        kernel.build(replace(arguments, b=memref))
