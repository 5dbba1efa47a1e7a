"""Products of copies of A and B, where another family has a faster kernel for those.

Copies cost as much as the matrices are large, products K times that. A copy is a temporary in the
GPU's memory, whose rows begin at multiples of 16 bytes: of K contiguous, of a wider type, or of
f32 in parts. In parts, an element is the sum of two of tf32, `high` and `low`, and the product is
that of (low, high, high) and (high, low, high), one behind the other along K: all but low times
low, which is below f32's last bit. Infinities become NaN there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aotc.kernels.indices import Index
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.mma_sync.family import MMA_SYNC
from aotc.kernels.matmul.mma_sync.tiles import SHARED, WORKGROUP
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Problem, convert
from aotc.kernels.matmul.tuned import Sizes
from aotc.kernels.matmul.wgmma.family import WGMMA
from aotc.lower.rewrites.float8 import FLOAT8
from aotc.request import Chip

# A block copies a square tile: a column for each lane, by so many warps.
_TILE, _WARPS = 32, 8
_ALIGNMENT = 16  # bytes: of rows of copies
# Of tf32: bits of f32 that are cut off, and half of the last that is kept.
_CUT_BITS, _HALF = 0x1FFF, 0x1000
_EXPONENT = 0x7F800000
# Smaller products have less to gain than a launch costs.
_LEAST_SIZE = 512


class Copy(Struct, frozen=True):
    """Of a matrix: whether it is transposed, the type of its elements, and which of the parts of an
    element stand behind each other along K, high or low, if it is parted."""

    transposes: bool
    element: str
    parts: tuple[str, ...] = ()


Plan = tuple[Copy | None, Copy | None]


class OperandPacking(MatmulFamily):
    """The kernels of `family`, for operands that are copied as `plan` says; with `is_forced`, small
    ones too.

    The problem that the family's kernel is given is `inner`'s.
    """

    packs_operands = True
    # Of a launch that copies, and what it copies, about.
    LAUNCH_CLOCKS = 4000

    def __init__(
        self,
        family: MatmulFamily,
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
            problem, a=a, b=b, allow_tf32=problem.allow_tf32 or is_parted, exact_sums=is_parted
        )

    def can_take(self, problem: Problem, variant: Any) -> bool:
        inner = self.inner(problem)
        return inner is not None and self.family.can_take(inner, variant)

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
        """How many times as long K is."""
        return max(len(copy.parts) or 1 for copy in self.plan(problem) or () if copy is not None)

    def shared_bytes(self, problem: Problem, variant: Any) -> int:
        """Dynamic shared memory of a block, of the family's kernel: a copy has far less."""
        inner = self.inner(problem)
        assert inner is not None
        return self.family.shared_bytes(inner, variant)

    def function(
        self, problem: Problem, variant: Any, name: str, finish: Finish | None = None
    ) -> str:
        """`func.func @name(%a, %b, %c)`, which copies, and launches the kernel."""
        inner, plan = self.inner(problem), self.plan(problem)
        assert inner is not None
        assert plan is not None
        w = _Writer()
        w.open(f"func.func @{name}({problem.signature}) {{")
        launches = {
            own: _Launch(w, own, matrix, copy, batched=problem.batched)
            for own, matrix, copy in (("%a", problem.a, plan[0]), ("%b", problem.b, plan[1]))
            if copy is not None
        }
        names = {own: launch.begin() for own, launch in launches.items()}
        text = self.family.function(inner, variant, name, finish)
        _, *body, _, _ = text.strip().splitlines()
        w.lines += [re.sub(r"%[ab]\b", lambda found: names.get(found[0], found[0]), line)
                    for line in body]  # fmt: skip
        for launch in launches.values():
            launch.end()
        w.line("return")
        w.close()
        return w.text() + "\n"


class _Writer(Writer):
    """Its names are none of the family's."""

    def name(self) -> str:
        return f"{super().name()}_copy"


# --- What is copied --------------------------------------------------------------------------


def _deep(problem: Problem) -> Plan | None:
    """What wgmma cannot read: A along M. (It reads B along N, as a left operand in registers.)"""
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


def _thrice(problem: Problem) -> Plan | None:
    """f32 in parts, with K contiguous."""
    a, b = problem.a, problem.b
    if not problem.allow_3xtf32 or problem.allow_tf32 or {a.element, b.element} != {"f32"}:
        return None
    return (
        Copy(a.transposed, "f32", ("low", "high", "high")),
        Copy(not b.transposed, "f32", ("high", "low", "high")),
    )


def _wide(problem: Problem) -> Plan | None:
    """f8 as f16, which have all its values."""
    if any(matrix.element not in FLOAT8 for matrix in (problem.a, problem.b)):
        return None
    return Copy(False, "f16"), Copy(False, "f16")


ALONG_K = OperandPacking(WGMMA, "copies", _deep)
THRICE_ON_HOPPER = OperandPacking(WGMMA, "3 x tf32", _thrice)
THRICE = OperandPacking(MMA_SYNC, "3 x tf32", _thrice, takes_any_address=False)
AS_F16 = OperandPacking(MMA_SYNC, "copies as f16", _wide, is_forced=True)


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
    """Of the buffer without what rows are padded by."""
    shape, strides = ("?x?x?", "?, ?, 1") if batched else ("?x?", "?, 1")
    return f"memref<{shape}x{copy.element}, strided<[{strides}]>>"


def _padded(columns: int, copy: Copy) -> int:
    unit = _unit(copy)
    return -(-columns // unit) * unit


def _unit(copy: Copy) -> int:
    """Parts begin where stages do."""
    return _TILE if copy.parts else _ALIGNMENT // ELEMENT_BYTES[copy.element]


# --- The kernel ------------------------------------------------------------------------------


class _Launch:
    """Copies the matrix `own`: `begin`, before what uses the copy, gives its name; `end` frees."""

    def __init__(self, w: _Writer, own: str, matrix: Matrix, copy: Copy, *, batched: bool) -> None:
        self.w, self.own, self.matrix, self.copy, self.batched = w, own, matrix, copy, batched
        self.buffer_type = _buffer(copy, batched)

    def begin(self) -> str:
        w, copy, first = self.w, self.copy, 1 if self.batched else 0
        batches: Index = self._dim(0) if self.batched else 1
        known = self.matrix.sizes
        sizes: list[Index] = [
            self._dim(first + i) if size is None else size for i, size in enumerate(known)
        ]
        self.rows, self.columns = sizes[::-1] if copy.transposes else sizes
        self.width = w.multiply(w.divide_up(self.columns, _unit(copy)), _unit(copy))
        pitch = w.multiply(self.width, len(copy.parts) or 1)
        outer = [w.index(batches)] if self.batched else []
        rooms = ", ".join([*outer, w.index(self.rows), w.index(pitch)])
        self.buffer = w.value(f"memref.alloc({rooms}) : {self.buffer_type}")
        self._launch(batches)
        if copy.parts:
            return self.buffer
        zeros, ones = (", ".join([digit] * (2 + first)) for digit in "01")
        shape = ", ".join([*outer, w.index(self.rows), w.index(self.columns)])
        return w.value(
            f"memref.subview {self.buffer}[{zeros}] [{shape}] [{ones}] "
            f": {self.buffer_type} to {_view(copy, self.batched)}"
        )

    def end(self) -> None:
        self.w.line(f"memref.dealloc {self.buffer} : {self.buffer_type}")

    def _dim(self, dimension: int) -> str:
        w = self.w
        return w.value(f"memref.dim {self.own}, {w.index(dimension)} : {self.matrix.type}")

    def _launch(self, batches: Index) -> None:
        w = self.w
        down, across = w.divide_up(self.rows, _TILE), w.divide_up(self.width, _TILE)
        tiles = w.multiply(down, across)
        blocks = w.multiply(tiles, batches)
        shared = _TILE * (_TILE + 1) * ELEMENT_BYTES[self.copy.element]
        with w.where(w.is_less(0, blocks)):
            grid, one, threads = w.index(blocks), w.index(1), w.index(_TILE * _WARPS)
            bytes_ = w.constant(shared if self.copy.transposes else 0, "i32")
            w.line(f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {grid}, %gy = {one}, %gz = {one})")
            w.line(f"    threads(%tx, %ty, %tz) in (%sx = {threads}, %sy = {one}, %sz = {one})")
            w.open(f"    dynamic_shared_memory_size {bytes_} {{")
            self._copy_tile(w.index(tiles), w.index(across))
            w.line("gpu.terminator")
            w.close()

    def _copy_tile(self, tiles: str, across: str) -> None:
        w = self.w
        batch, number = self._divide("%bx", tiles)
        tile_row, tile_column = self._divide(number, across)
        self.at = [batch] if self.batched else []
        row, column = w.multiply(tile_row, _TILE), w.multiply(tile_column, _TILE)
        lane, warp = w.remainder("%tx", _TILE), w.divide("%tx", _TILE)
        own = [w.add(warp, _WARPS * number) for number in range(_TILE // _WARPS)]
        if not self.copy.transposes:
            for first in own:
                at = w.add(row, first), w.add(column, lane)
                self._store(*at, self._load(*at))
            return
        shared = w.value(f"gpu.dynamic_shared_memory : {SHARED}")
        type_ = f"memref<{_TILE}x{_TILE + 1}x{self.copy.element}, {WORKGROUP}>"
        tile = w.value(f"memref.view {shared}[{w.index(0)}][] : {SHARED} to {type_}")
        for first in own:
            value = self._load(w.add(row, lane), w.add(column, first))
            w.line(f"memref.store {value}, {tile}{w.at(first, lane)} : {type_}")
        w.line("gpu.barrier")
        for first in own:
            value = w.value(f"memref.load {tile}{w.at(lane, first)} : {type_}")
            self._store(w.add(row, first), w.add(column, lane), value)

    def _divide(self, number: str, by: str) -> tuple[str, str]:
        """The quotient and the rest: in 32 bits, which is far faster."""
        w = self.w
        short = [w.value(f"arith.index_cast {one} : index to i32") for one in (number, by)]
        results = [
            w.value(f"arith.{name} {short[0]}, {short[1]} : i32") for name in ("divui", "remui")
        ]
        quotient, rest = (w.value(f"arith.index_cast {one} : i32 to index") for one in results)
        return quotient, rest

    def _load(self, row: Index, column: Index) -> str:
        """The copy's element at a place, of its type: zero behind the last column."""
        w, element = self.w, self.copy.element
        is_there = w.is_less(row, self.rows)
        is_column = w.is_less(column, self.columns)
        is_there = w.value(f"arith.andi {is_there}, {is_column} : i1")
        place = [column, row] if self.copy.transposes else [row, column]
        name = w.name()
        w.open(f"{name} = scf.if {is_there} -> ({element}) {{")
        loaded = w.value(f"memref.load {self.own}{w.at(*self.at, *place)} : {self.matrix.type}")
        w.line(f"scf.yield {convert(w, loaded, self.matrix.element, element)} : {element}")
        w.otherwise()
        zero = w.constant("0" if element.startswith("i") else "0.0", element)
        w.line(f"scf.yield {zero} : {element}")
        w.close()
        return name

    def _store(self, row: Index, column: Index, value: str) -> None:
        w, parts = self.w, self.copy.parts
        end = self.width if parts else self.columns
        is_row, is_column = w.is_less(row, self.rows), w.is_less(column, end)
        with w.where(w.value(f"arith.andi {is_row}, {is_column} : i1")):
            if not parts:
                self._put(value, row, column)
                return
            both = dict(zip(("high", "low"), _parted(w, value), strict=True))
            for number, part in enumerate(parts):
                self._put(both[part], row, w.add(column, w.multiply(self.width, number)))

    def _put(self, value: str, row: Index, column: Index) -> None:
        at = self.w.at(*self.at, row, column)
        self.w.line(f"memref.store {value}, {self.buffer}{at} : {self.buffer_type}")


def _parted(w: Writer, value: str) -> tuple[str, str]:
    """An f32 as the nearest of tf32's and what is missing; as itself and 0 if it is not finite, or
    would not be when it is rounded."""
    bits = w.value(f"arith.bitcast {value} : f32 to i32")
    kept = w.constant(~_CUT_BITS, "i32")
    half, exponent = w.constant(_HALF, "i32"), w.constant(_EXPONENT, "i32")
    rounded = w.value(f"arith.addi {bits}, {half} : i32")
    rounded = w.value(f"arith.andi {rounded}, {kept} : i32")
    of_rounded = w.value(f"arith.andi {rounded}, {exponent} : i32")
    of_value = w.value(f"arith.andi {bits}, {exponent} : i32")
    is_finite = [
        w.value(f"arith.cmpi ne, {one}, {exponent} : i32") for one in (of_rounded, of_value)
    ]
    both = w.value(f"arith.andi {is_finite[0]}, {is_finite[1]} : i1")
    cut = w.value(f"arith.andi {bits}, {kept} : i32")
    # A NaN may have all its bits in what is cut.
    is_nan = w.value(f"arith.cmpf uno, {value}, {value} : f32")
    other = w.value(f"arith.select {is_nan}, {bits}, {cut} : i32")
    high = w.value(f"arith.select {both}, {rounded}, {other} : i32")
    high = w.value(f"arith.bitcast {high} : i32 to f32")
    zero = w.constant("0.0", "f32")
    rest = w.value(f"arith.subf {value}, {high} : f32")
    low = w.value(f"arith.select {is_finite[1]}, {rest}, {zero} : f32")
    return high, low
