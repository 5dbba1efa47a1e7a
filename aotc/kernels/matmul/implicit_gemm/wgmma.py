"""Implicit GEMM on Hopper (sm_90a): the kernel of `wgmma`, with A loaded by TMA's im2col mode.

It supports convolutions with channels last, and other contractions of the same form: A consists of
windows of pixels (`hopper/im2col.py`), and B and C are matrices in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import Builder
from aotc.builder.numbers import Number
from aotc.kernels.family import SM_90A
from aotc.kernels.hopper.im2col import Im2colTile, WindowAxis, Windows
from aotc.kernels.hopper.tma import swizzled_width
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.flattened import one_role, view
from aotc.kernels.matmul.implicit_gemm.operand import count_of, size_of
from aotc.kernels.matmul.implicit_gemm.problem import ImplicitGemm, Loop, Padding
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    LIKELY_SIZE,
    Arguments,
    Matrix,
    Problem,
)
from aotc.kernels.matmul.wgmma import cost
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.kernels.matmul.wgmma.kernel import Kernel, operands
from aotc.kernels.matmul.wgmma.variants import Variant, shapes

_ALIGNMENT = 16  # bytes: required of TMA's strides
# Further candidates: images have many rows, and often 64 columns.
_OF_FEW_CHANNELS = (Variant(n=64, consumers=3), Variant(n=64, m_blocks=2))


class WindowedMatmul(Struct, frozen=True):
    """An implicit GEMM as a matmul whose B and C are matrix views, and whose A is read by
    `windows`. `images`: the loop over images, None for a single image."""

    problem: Problem
    windows: Windows
    images: Loop | None


def as_matmul(problem: ImplicitGemm) -> WindowedMatmul | None:
    """The problem as a matmul of windows. None if A does not consist of windows with channels last,
    or B or C is not a matrix in memory."""
    rows, columns = one_role(problem, problem.rows, "c"), one_role(problem, problem.columns, "bc")
    k = one_role(problem, problem.k_loops, "b")
    found = _windows(problem)
    if problem.n is None or problem.k is None:
        return None
    if problem.batch or rows is None or columns is None or k is None or found is None:
        return None
    windows, images = found
    steps, pitch_of_c = (k.known_step("b"), columns.known_step("b")), rows.known_step("c")
    if columns.steps["c"] != 1 or 1 not in steps or min(*steps, pitch_of_c) < 1:
        return None
    pitch = windows.axes[-1].stride * windows.axes[-1].step
    a = replace(problem.a, pitch=pitch, transposed=False, sizes=(problem.m, problem.k))
    is_k_major = steps[0] == 1
    b_sizes = (problem.n, problem.k) if is_k_major else (problem.k, problem.n)
    return WindowedMatmul(
        Problem(
            a,
            _matrix(problem.b, b_sizes, max(steps), transposed=is_k_major),
            _matrix(problem.c, (problem.m, problem.n), pitch_of_c),
            problem.accumulator,
            adds=problem.adds,
            epilogue_operands=problem.epilogue_operands,
        ),
        windows,
        images,
    )


def _matrix(
    given: Matrix, sizes: tuple[int | None, int | None], pitch: int, *, transposed: bool = False
) -> Matrix:
    alignment = math.gcd(given.alignment, pitch * ELEMENT_BYTES[given.element])
    shape = "x".join("?" if size is None else str(size) for size in sizes)
    type_ = f"memref<{shape}x{given.element}, strided<[{pitch}, 1], offset: ?>>"
    return replace(
        given, type=type_, sizes=sizes, pitch=pitch, alignment=alignment, transposed=transposed
    )


def _windows(problem: ImplicitGemm) -> tuple[Windows, Loop | None] | None:
    """The windows that A is read by, and the loop over images, if there is one."""
    *taps, channels = problem.k_loops
    padding = problem.padding
    strides = problem.strides[0] if padding is None else padding.strides
    moves = [move for loop in (*problem.rows, *problem.k_loops) for move in loop.a]
    if (
        None in strides
        or len(moves) != len(problem.rows) + len(problem.k_loops)
        or problem.a.alignment < _ALIGNMENT
        or ELEMENT_BYTES.get(problem.a.element) != 2
    ):
        return None
    [(deepest, factor)] = channels.a
    size = channels.size
    if factor != 1 or strides[deepest] != 1 or not size or size % swizzled_width(problem.a.element):
        return None
    by_dimension = {loop.a[0][0]: loop for loop in taps}
    of_rows = {loop.a[0][0]: loop for loop in problem.rows}
    if deepest in of_rows or deepest in by_dimension:
        return None
    if len(of_rows) != len(problem.rows) or len(by_dimension) != len(taps):
        return None
    images, spatial = None, list(of_rows)
    first = problem.rows[0]
    if spatial[0] not in by_dimension and first.a[0][1] == 1:
        images, spatial = first, spatial[1:]
    # A dimension that only a loop of K moves along has one window. The order of rows is kept.
    alone = [one for one in by_dimension if one not in of_rows]
    order = sorted([*alone, *spatial], key=lambda one: -(strides[one] or 0))
    if [one for one in order if one in of_rows] != spatial:
        return None
    axes = []
    for dimension in order:
        axis = _axis(strides[dimension], of_rows.get(dimension), by_dimension.get(dimension))
        if axis is None:
            return None
        if padding is not None:
            axis = replace(axis, low=padding.low[dimension], size=padding.sizes[dimension])
        axes.append(axis)
    others = {channels: deepest} if images is None else {channels: deepest, images: images.a[0][0]}
    if not axes or (padding is not None and not _pads(padding, order, others)):
        return None
    # For a single image, the stride between images is arbitrary.
    outer = strides[images.a[0][0]] if images else axes[0].stride * axes[0].pixels
    tap_order = tuple(order.index(one) for one in by_dimension)
    windows = Windows(outer or 0, tuple(axes), tap_order, size)
    is_possible = windows.is_possible(_ALIGNMENT, ELEMENT_BYTES[problem.a.element])
    return (windows, images) if is_possible else None


def _pads(padding: Padding, axes: Sequence[int], others: Mapping[Loop, int]) -> bool:
    """Whether only the dimensions `axes` are padded, and their sizes are known. `others`: the
    dimensions of other loops."""
    is_whole = all(padding.sizes[dimension] == loop.size for loop, dimension in others.items())
    is_in_place = all(low == 0 for i, low in enumerate(padding.low) if i not in axes)
    is_known = all(padding.sizes[dimension] is not None for dimension in axes)
    return is_whole and is_in_place and is_known


def _axis(stride: int | None, row: Loop | None, tap: Loop | None) -> WindowAxis | None:
    """The window axis of a dimension, with the loops of rows and of K along it. None if a size is
    unknown."""
    windows, step = (1, 1) if row is None else (row.size, row.a[0][1])
    taps, dilation = (1, 1) if tap is None else (tap.size, tap.a[0][1])
    if stride is None or windows is None or taps is None:
        return None
    return WindowAxis(stride, windows, step, taps, dilation)


def rows_of_c(b: Builder, problem: ImplicitGemm, arguments: Arguments) -> Number:
    return count_of(b, arguments, [_counted_by_c(loop) for loop in problem.rows])


def _counted_by_c(loop: Loop) -> Loop:
    """The loop of rows, with a dimension of C as the source of its size."""
    return replace(loop, source=("c", loop.c[0][0]))


class ImplicitWgmma(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "implicit GEMM by wgmma"
    mnemonic = "wgmma"
    target = SM_90A
    variant_type = Variant
    takes_any_address = False

    def can_implement(self, problem: ImplicitGemm, variant: Variant) -> bool:
        plain = as_matmul(problem)
        return (
            plain is not None
            and problem.is_near
            and not variant.transposes_c
            and not variant.small_m
            and WGMMA.can_implement(plain.problem, variant)
        )

    def variants(self, problem: ImplicitGemm) -> tuple[Variant, ...]:
        plain = as_matmul(problem)
        if plain is None:
            return ()
        given = [shape for shape in shapes(plain.problem) if not shape.transposes_c]
        return WGMMA.variants_of(plain.problem, [*given, *_OF_FEW_CHANNELS])

    def clocks_on_h100(self, problem: ImplicitGemm, variant: Variant) -> float:
        return self.clocks_of_images(problem, variant, LIKELY_SIZE)

    def clocks_of_images(self, problem: ImplicitGemm, variant: Variant, images: int) -> float:
        """The expected clocks, with `images` images if their number is unknown."""
        rows = math.prod(images if loop.size is None else loop.size for loop in problem.rows)
        clocks = self.clocks_of_rows(problem, variant, rows)
        assert isinstance(clocks, int)
        return clocks

    def clocks_of_rows(self, problem: ImplicitGemm, variant: Variant, rows: Number) -> Number:
        """The expected clocks for `rows` rows of C."""
        plain = as_matmul(problem)
        assert plain is not None
        a, b, n, k = plain.problem.a, plain.problem.b, problem.n, problem.k
        assert n is not None
        assert k is not None
        sizes = cost.Sizes(rows, n, k, a.pitch or 0, b.pitch or 0)
        return cost.clocks(*operands(plain.problem, variant), variant, sizes)

    def tile_name(self, problem: ImplicitGemm, variant: Variant) -> str:
        plain = as_matmul(problem)
        assert plain is not None
        return WGMMA.tile_name(plain.problem, variant)

    def shared_bytes(self, problem: ImplicitGemm, variant: Variant) -> int:
        plain = as_matmul(problem)
        assert plain is not None
        return WGMMA.shared_bytes(plain.problem, variant)

    def insert(
        self, b: Builder, problem: ImplicitGemm, variant: Variant, arguments: Arguments
    ) -> None:
        plain = as_matmul(problem)
        assert plain is not None
        own = plain.problem
        m = rows_of_c(b, problem, arguments)
        n, k = (count_of(b, arguments, loops) for loops in (problem.columns, problem.k_loops))
        b_sizes = (n, k) if own.b.transposed else (k, n)
        values = replace(
            arguments,
            b=view(b, arguments.b, b_sizes, (own.b.pitch or 0, 1)),
            c=view(b, arguments.c, (m, n), (own.c.pitch or 0, 1)),
        )
        images = 1
        if plain.images is not None:
            images = size_of(b, arguments, _counted_by_c(plain.images))
        tile, _ = operands(own, variant)
        left = Im2colTile(
            *(tile.matrix, tile.extent, tile.is_k_major, tile.in_one_box, tile.batched),
            sharers=tile.sharers,
            windows=plain.windows,
            images=images,
        )
        Kernel(b, own, variant, values, left).build()


IMPLICIT_WGMMA = ImplicitWgmma()
