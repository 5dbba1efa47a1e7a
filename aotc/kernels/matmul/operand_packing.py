"""Operand packing: copies A or B to a temporary that another family's faster kernel can read.

The time of a copy is proportional to the size of the matrix, and that of the matmul to this size
times M or N. The temporary is in the GPU's memory, and its rows begin at multiples of 16 bytes. It
is K-major, of a wider type, or 3xTF32. In 3xTF32, an f32 element is the sum of two tf32 elements,
`high` and `low`. A is packed as (low, high, high) and B as (high, low, high), concatenated along K,
so that C is the sum of all products but low times low, which is below f32's last bit. Infinities
become NaN in 3xTF32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.builder import FLOAT8, Buffer, Builder, Launch
from aotc.builder.numbers import Number, Value, ceil_divide, compare
from aotc.chips import WARP
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Matrix, Problem
from aotc.kernels.matmul.tuned import Sizes
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.request import Chip

# A block of _WARPS warps copies a square tile, a lane for each column.
_TILE, _WARPS = WARP, 8
_ALIGNMENT = 16  # bytes: the alignment of the rows of a copy
# The bits of f32 that tf32 drops, and half of the last bit that it keeps.
_CUT_BITS, _HALF = 0x1FFF, 0x1000
_EXPONENT = 0x7F800000
# With a smaller M, N or K, packing gains less than a launch costs.
_LEAST_SIZE = 512


class Copy(Struct, frozen=True):
    """How a matrix is packed: whether it is transposed, the element type of the copy, and for
    3xTF32 the part of the elements, "high" or "low", that each block along K holds."""

    transposes: bool
    element: str
    parts: tuple[str, ...] = ()


Plan = tuple[Copy | None, Copy | None]


class OperandPacking(MatmulFamily[Problem]):
    """The kernels of `family` on packed operands. `plan` returns how A and B of a problem are
    packed, or None if they need not be. With `is_forced`, small matrices are packed, too.

    `inner` is the problem of the family's kernel, with the packed operands.
    """

    packs_operands = True
    # An estimate for the launch of a packing kernel, including its copy.
    LAUNCH_CLOCKS = 4000

    def __init__(
        self,
        family: MatmulFamily[Problem],
        what: str,
        plan: Callable[[Problem], Plan | None],
        *,
        is_forced: bool = False,
        takes_any_address: bool = True,
    ) -> None:
        self.family, self.plan = family, plan
        self.is_for_large = not is_forced
        self.takes_any_address = takes_any_address
        self.name = f"{family.name} of {what}"
        self.mnemonic = family.mnemonic
        self.target, self.variant_type = family.target, family.variant_type

    def inner(self, problem: Problem) -> Problem | None:
        plan = self.plan(problem)
        if plan is None:
            return None
        a, b = (
            _copied(matrix, copy, batched=problem.batched) if copy is not None else matrix
            for matrix, copy in zip((problem.a, problem.b), plan, strict=True)
        )
        is_parted = any(copy is not None and copy.parts for copy in plan)
        return replace(
            problem,
            a=a,
            b=b,
            allow_tf32=problem.allow_tf32 or is_parted,
            exact_accumulation=is_parted,
        )

    def can_implement(self, problem: Problem, variant: Any) -> bool:
        inner = self.inner(problem)
        return inner is not None and self.family.can_implement(inner, variant)

    def variants(self, problem: Problem) -> tuple[Any, ...]:
        sizes = [size for size in (problem.m, problem.n, problem.k) if size is not None]
        if self.is_for_large and any(size < _LEAST_SIZE for size in sizes):
            return ()
        inner = self.inner(problem)
        return () if inner is None else self.family.variants(inner)

    def expected_clocks(
        self, problem: Problem, variant: Any, sizes: Sizes, chip: Chip, *, at_most: bool = False
    ) -> float:
        inner, (m, n, k) = self.inner(problem), sizes
        assert inner is not None
        longer = (m, n, k * self.parts(problem))
        clocks = self.family.expected_clocks(inner, variant, longer, chip, at_most=at_most)
        return clocks + self.LAUNCH_CLOCKS

    def parts(self, problem: Problem) -> int:
        """The factor by which packing extends K."""
        return max(len(copy.parts) or 1 for copy in self.plan(problem) or () if copy is not None)

    def shared_bytes(self, problem: Problem, variant: Any) -> int:
        """The dynamic shared memory of a block of the family's kernel, in bytes. A packing kernel
        needs far less."""
        inner = self.inner(problem)
        assert inner is not None
        return self.family.shared_bytes(inner, variant)

    def kernel_name(self, problem: Problem, variant: Any) -> str:
        """The name of the family's kernel, which reads the packed operands."""
        inner = self.inner(problem)
        assert inner is not None
        return self.family.kernel_name(inner, variant)

    def insert(self, b: Builder, problem: Problem, variant: Any, arguments: Arguments) -> None:
        inner, plan = self.inner(problem), self.plan(problem)
        assert inner is not None
        assert plan is not None
        packings = [
            None if copy is None else _Packing(b, value, matrix, copy)
            for value, matrix, copy in zip(
                (arguments.a, arguments.b), (problem.a, problem.b), plan, strict=True
            )
        ]
        packed = [
            value if packing is None else packing.begin()
            for value, packing in zip((arguments.a, arguments.b), packings, strict=True)
        ]
        self.family.build(b, inner, variant, replace(arguments, a=packed[0], b=packed[1]))
        for packing in packings:
            if packing is not None:
                packing.end()


# --- Packing plans ---------------------------------------------------------------------------


def _k_major_plan(problem: Problem) -> Plan | None:
    """Packs A K-major, and A and B with aligned rows, if elements do not have 16 bits: wgmma does
    not read an M-major A of such types. (It reads an N-major B as its left operand, from
    registers.)"""
    a, b = problem.a, problem.b
    if ELEMENT_BYTES[a.element] == 2 or a.element == "f64":
        return None
    copy_a, copy_b = (
        Copy(transposes=matrix is a and matrix.transposed, element=matrix.element)
        if (matrix is a and matrix.transposed) or matrix.alignment < _ALIGNMENT
        else None
        for matrix in (a, b)
    )
    return None if copy_a is None and copy_b is None else (copy_a, copy_b)


def _3xtf32_plan(problem: Problem) -> Plan | None:
    """Packs f32 operands K-major, as 3xTF32."""
    a, b = problem.a, problem.b
    if not problem.allow_3xtf32 or problem.allow_tf32 or {a.element, b.element} != {"f32"}:
        return None
    return (
        Copy(a.transposed, "f32", ("low", "high", "high")),
        Copy(not b.transposed, "f32", ("high", "low", "high")),
    )


def _f8_as_f16_plan(problem: Problem) -> Plan | None:
    """Packs f8 operands as f16, which represents all values of f8."""
    if any(matrix.element not in FLOAT8 for matrix in (problem.a, problem.b)):
        return None
    return Copy(False, "f16"), Copy(False, "f16")


PACK_K_MAJOR = OperandPacking(WGMMA, "copies", _k_major_plan)
PACK_3XTF32_WGMMA = OperandPacking(WGMMA, "3 x tf32", _3xtf32_plan)
PACK_3XTF32 = OperandPacking(MMA_SYNC, "3 x tf32", _3xtf32_plan, takes_any_address=False)
PACK_F8_AS_F16 = OperandPacking(MMA_SYNC, "copies as f16", _f8_as_f16_plan, is_forced=True)


def _copied(matrix: Matrix, copy: Copy, *, batched: bool) -> Matrix:
    rows, columns = matrix.sizes[::-1] if copy.transposes else matrix.sizes
    if copy.parts and columns is not None:
        columns = len(copy.parts) * _padded(columns, copy)
    return Matrix(
        _buffer(copy, batched) if copy.parts else _view(copy, batched),
        copy.element,
        (rows, columns),
        None if columns is None else _padded(columns, copy),
        _ALIGNMENT,
        matrix.transposed is not copy.transposes,
    )


def _buffer(copy: Copy, batched: bool) -> str:
    return f"memref<{'?x' if batched else ''}?x?x{copy.element}>"


def _view(copy: Copy, batched: bool) -> str:
    """The type of the view of the buffer that excludes the padding of its rows."""
    shape, strides = ("?x?x?", "?, ?, 1") if batched else ("?x?", "?, 1")
    return f"memref<{shape}x{copy.element}, strided<[{strides}]>>"


def _padded(columns: int, copy: Copy) -> int:
    unit = _unit(copy)
    return -(-columns // unit) * unit


def _unit(copy: Copy) -> int:
    """Rows are padded to a multiple of this number of elements. With parts, it is the tile size, so
    that each part begins at the beginning of a stage."""
    return _TILE if copy.parts else _ALIGNMENT // ELEMENT_BYTES[copy.element]


# --- The kernel ------------------------------------------------------------------------------


class _Packing:
    """The packed copy of the matrix `own`. `begin` allocates, fills and returns it; `end` frees it
    after its use."""

    def __init__(self, b: Builder, own: Value, matrix: Matrix, copy: Copy) -> None:
        self.b, self.own, self.matrix, self.copy = b, Buffer(own), matrix, copy
        self.batched = self.own.type.rank > 2

    def begin(self) -> Value:
        b, copy, first = self.b, self.copy, int(self.batched)
        batches = b.dim(self.own.value, 0) if self.batched else 1
        sizes = [
            b.dim(self.own.value, first + i) if size is None else size
            for i, size in enumerate(self.matrix.sizes)
        ]
        self.rows, self.columns = sizes[::-1] if copy.transposes else sizes
        self.width = ceil_divide(self.columns, _unit(copy)) * _unit(copy)
        pitch = self.width * (len(copy.parts) or 1)
        outer = b.values([batches]) if self.batched else []
        rooms = [*outer, *b.values([self.rows, pitch])]
        self.packed = Buffer(b.alloc(rooms, _buffer(copy, self.batched)))
        self._launch(batches)
        if copy.parts:
            return self.packed.value
        shape = [*outer, *b.values([self.rows, self.columns])]
        return b.prefix(self.packed.value, shape, _view(copy, self.batched))

    def end(self) -> None:
        self.b.op("memref.dealloc", [self.packed.value])

    def _launch(self, batches: Number) -> None:
        down, across = ceil_divide(self.rows, _TILE), ceil_divide(self.width, _TILE)
        tiles = down * across
        blocks = tiles * batches
        shared = _TILE * (_TILE + 1) * ELEMENT_BYTES[self.copy.element]
        bytes_ = shared if self.copy.transposes else 0
        is_there = blocks > 0 if isinstance(blocks, int) else compare("slt", 0, blocks)
        with (
            self.b.where(is_there),
            self.b.launch(blocks, _TILE * _WARPS, bytes_, role="packing") as launch,
        ):
            self._copy_tile(launch, tiles, across)

    def _copy_tile(self, launch: Launch, tiles: Number, across: Number) -> None:
        b = self.b
        batch, number = self._divide(launch.block, tiles)
        tile_row, tile_column = self._divide(number, across)
        self.at = [batch] if self.batched else []
        row, column = tile_row * _TILE, tile_column * _TILE
        lane, warp = launch.thread % _TILE, launch.thread // _TILE
        own = [warp + _WARPS * number for number in range(_TILE // _WARPS)]
        if not self.copy.transposes:
            for first in own:
                at = row + first, column + lane
                self._store(*at, self._load(*at))
            return
        tile = b.shared_buffer(b.shared_memory(), 0, [_TILE, _TILE + 1], self.copy.element)
        for first in own:
            b.store(self._load(row + lane, column + first), tile, [first, lane])
        b.barrier()
        for first in own:
            self._store(row + first, column + lane, b.load(tile, [lane, first]))

    def _divide(self, number: Number, by: Number) -> tuple[Number, Number]:
        """The quotient and the remainder, computed in 32 bits, which is far faster than in 64."""
        b = self.b
        left, right = (b.signed_cast(one, "i32") for one in (number, by))
        quotient, rest = left // right, left % right
        return b.signed_cast(quotient, "index"), b.signed_cast(rest, "index")

    def _load(self, row: Number, column: Number) -> Value:
        """The element at a row and column of the copy, converted to its type; 0 outside of the
        matrix."""
        b, element = self.b, self.copy.element
        is_there = compare("slt", row, self.rows) & compare("slt", column, self.columns)
        place = [column, row] if self.copy.transposes else [row, column]
        [value] = b.choose(
            is_there,
            [element],
            lambda: [b.convert(b.load(self.own, [*self.at, *place]), element)],
            lambda: [b.zero(element)],
        )
        return value

    def _store(self, row: Number, column: Number, value: Value) -> None:
        b, parts = self.b, self.copy.parts
        end = self.width if parts else self.columns
        with b.where(compare("slt", row, self.rows) & compare("slt", column, end)):
            if not parts:
                b.store(value, self.packed, [*self.at, row, column])
                return
            both = dict(zip(("high", "low"), _parted(b, value), strict=True))
            for number, part in enumerate(parts):
                at = [*self.at, row, column + self.width * number]
                b.store(both[part], self.packed, at)


def _parted(b: Builder, value: Value) -> tuple[Value, Value]:
    """Splits an f32 into the nearest tf32 (`high`) and the difference (`low`). If it is not finite,
    the parts are itself and 0. If rounding would make it infinite, it is truncated instead."""
    bits = b.op("arith.bitcast", [value], "i32")
    kept, half, exponent = (b.constant(one, "i32") for one in (~_CUT_BITS, _HALF, _EXPONENT))
    rounded = (bits + half) & kept
    is_rounded_finite, is_finite = (
        compare("ne", one & exponent, exponent) for one in (rounded, bits)
    )
    # All mantissa bits that make it a NaN may be among the bits that are cut.
    is_nan = b.compare_floats("uno", value, value)
    other = b.select(is_nan, bits, bits & kept)
    chosen = b.select(is_rounded_finite & is_finite, rounded, other)
    high = b.op("arith.bitcast", [chosen], "f32")
    rest = b.op("arith.subf", [value, high], "f32")
    return high, b.select(is_finite, rest, b.zero("f32"))
