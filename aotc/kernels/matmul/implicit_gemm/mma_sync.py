"""Gathered contractions on tensor cores: the kernel of `tensor_cores`, with addresses of its own.

Where neighbours of an operand's tile are neighbours in memory, they come as chunks of 16 bytes, by
asynchronous copies if both operands have such; else they are loaded one by one, ahead of the tile
that is multiplied. Where an element's depth has moved it to is looked up in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.chips import H100, KIB
from aotc.kernels.family import ANY_GPU
from aotc.kernels.indices import Index
from aotc.kernels.matmul.implicit_gemm.family import ImplicitGemmFamily
from aotc.kernels.matmul.implicit_gemm.problem import (
    Gathered,
    Operand,
    count_of,
    likely_count,
    offset,
)
from aotc.kernels.matmul.implicit_gemm.split_k import (
    clocks_of_parts,
    depth_of_part,
    table_length,
)
from aotc.kernels.matmul.mma_sync.family import (
    are_types_known,
    is_tile_whole,
    place_of,
)
from aotc.kernels.matmul.mma_sync.kernel import Kernel
from aotc.kernels.matmul.mma_sync.store import Store, add_sums, results_of
from aotc.kernels.matmul.mma_sync.tiles import (
    CHUNK_BYTES,
    SHARED,
    WORKGROUP,
    Place,
    Side,
    Sizes,
    Variant,
)
from aotc.kernels.matmul.mma_sync.tiles import shared_bytes as bytes_of_tiles
from aotc.kernels.matmul.mma_sync.writer import Writer
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Problem, convert
from aotc.kernels.matmul.problem import Place as ElementPlace
from aotc.kernels.matmul.split_k_reduction import launch, partial_of

_MOST_SHARED_BYTES = 160 * KIB
_ENTRY_BYTES = 4
_SUM_THREADS = 256
_FEW_STEPS = 1


def _as_tiles(problem: Gathered) -> Gathered:
    """The same; what comes one by one lies in shared memory with its depth contiguous, as
    `ldmatrix` likes it and threads that follow each other read neighbours."""

    def turned(matrix: Matrix, transposed: bool) -> Matrix:
        if matrix.alignment >= CHUNK_BYTES or matrix.transposed == transposed:
            return matrix
        return replace(matrix, transposed=transposed, sizes=matrix.sizes[::-1])

    return replace(problem, a=turned(problem.a, False), b=turned(problem.b, True))


def _has_chunks(problem: Gathered) -> bool:
    return all(matrix.alignment >= CHUNK_BYTES for matrix in (problem.a, problem.b))


# Of a multiprocessor, about: multiply-adds of 16 bits in a clock, elements that come one by one
# and that come in chunks; clocks until the first tile is there, and of a step's latency.
_MULTIPLY_ADDS = 1024
_ELEMENTS, _CHUNKED = 16, 64
_START_CLOCKS = 3000
_STEP_CLOCKS = 500
_MOST_TOGETHER = 4


def _first_table(problem: Problem, variant: Variant) -> int:
    """Behind the tiles, and the sums where there are parts."""
    most = max(bytes_of_tiles(problem, variant), bytes_of_tiles(partial_of(problem), variant))
    return -(-most // CHUNK_BYTES) * CHUNK_BYTES


class _Launches:
    """The host's part, and the kernel that adds sums of parts of K."""

    def __init__(
        self, w: Writer, problem: Gathered, variant: Variant, finish: Finish | None
    ) -> None:
        self.w, self.problem, self.variant, self.finish = w, problem, variant, finish
        self.a, self.b, self.c = (Operand(w, problem, name) for name in "abc")
        self.sizes = Sizes(
            count_of(w, problem, problem.rows),
            count_of(w, problem, problem.columns),
            count_of(w, problem, problem.depth),
            count_of(w, problem, problem.batch),
        )

    def write(self) -> None:
        w, v, sizes = self.w, self.variant, self.sizes
        problem = self.problem if v.splits == 1 else partial_of(self.problem)
        tiles = w.divide_up(sizes.m, v.m), w.divide_up(sizes.n, v.n)
        parts = w.multiply(sizes.batches, v.splits)
        if v.splits > 1:
            # Rows begin at multiples of 16 bytes.
            pitch = w.multiply(w.divide_up(sizes.n, 4), 4)
            rooms = ", ".join(w.index(size) for size in (parts, sizes.m, pitch))
            w.line(f"%sums = memref.alloc({rooms}) : {problem.c.type}")
        blocks = w.multiply(w.multiply(*tiles), parts)
        with launch(w, blocks, v.threads, IMPLICIT_MMA_SYNC.shared_bytes(self.problem, v)):
            place, part = place_of(w, v, tiles)
            if v.splits == 1:
                _Kernel(self, problem, sizes, place, part).write(self.finish)
            else:
                batch, split = w.divide(part, v.splits), w.remainder(part, v.splits)
                first_k = w.multiply(split, depth_of_part(problem, v))
                end = w.least(w.add(first_k, depth_of_part(problem, v)), sizes.k)
                # Of the last parts there may be nothing.
                end = w.most(first_k, end)
                own = replace(sizes, k=end)
                kernel = _Kernel(
                    *(self, problem, own, place, batch), w.index(first_k), "%sums", (part,)
                )
                kernel.write(None)
        if v.splits > 1:
            self._add_parts(problem)
            w.line(f"memref.dealloc %sums : {problem.c.type}")

    def _add_parts(self, partial: Problem) -> None:
        """A thread for each element of C; a block has a part of a row."""
        w, sizes = self.w, self.sizes
        across = w.divide_up(sizes.n, _SUM_THREADS)
        blocks = w.multiply(w.multiply(sizes.batches, sizes.m), across)
        with launch(w, blocks, _SUM_THREADS, 0):
            line, piece = w.divide("%bx", across), w.remainder("%bx", across)
            column = w.add(w.multiply(piece, _SUM_THREADS), "%tx")
            batch, row = w.divide(line, sizes.m), w.remainder(line, sizes.m)
            with w.where(w.is_less(column, sizes.n)):
                first, total = w.multiply(batch, self.variant.splits), ""
                for split in range(self.variant.splits):
                    at = w.at(w.add(first, split), row, column)
                    one = w.value(f"memref.load %sums{at} : {partial.c.type}")
                    total = add_sums(w, total, one, partial.accumulator) if total else one
                self.store(batch, row, column, [total])

    def store(self, batch: Index, row: Index, column: Index, sums: Sequence[str]) -> None:
        """Stores what becomes of neighbouring sums."""
        w, problem, c = self.w, self.problem, self.c
        element, sum_type = problem.c.element, partial_of(problem).accumulator
        at = w.add(offset(w, batch, c.batch), offset(w, row, c.rows))
        place = f"{c.buffer.name}{w.at(w.add(at, offset(w, column, c.columns)))}"
        totals = list(sums)
        if problem.adds:
            before = w.load_vector(place, c.buffer.type, len(sums), element)
            totals = [
                add_sums(w, convert(w, old, element, sum_type), new, sum_type)
                for old, new in zip(before, sums, strict=True)
            ]
        columns = [w.index(w.add(column, number)) for number in range(len(totals))]
        where = ElementPlace(w.index(batch), w.index(row), columns)
        values = results_of(w, problem, totals, where, self.finish)
        type_ = f"vector<{len(values)}x{element}>"
        stored = w.value(f"vector.from_elements {', '.join(values)} : {type_}")
        w.store_vector(stored, place, c.buffer.type, len(values), element)


class _Piece(Struct, frozen=True):
    """What a thread brings of a tile at once: its row and column in it, and where that is in shared
    memory. `starts`: where its elements are but for their depth, one for all that follow each
    other. `is_there`: whether it is inside of M or N."""

    row: Index
    column: Index
    shared_column: Index
    starts: tuple[Index, ...]
    is_there: str | None


class _Kernel(Kernel):
    """Of `sizes` k is where the block's part of it ends. `batch` is the block's; `target` and `at`
    are those of `Kernel`."""

    def __init__(
        self,
        host: _Launches,
        problem: Problem,
        sizes: Sizes,
        place: Place,
        batch: Index,
        first_k: Index = 0,
        target: str = "%c",
        at: tuple[str, ...] = (),
    ) -> None:
        super().__init__(host.w, problem, host.variant, sizes, place, first_k, target, at)
        self.host, self.batch = host, batch
        self.tables: dict[str, str] = {}

    def write(self, finish: Finish | None) -> None:
        if self.target != "%c":
            super().write(finish)
            return
        sums = self._multiply()
        if self.a.is_async:
            self.w.line(f"nvgpu.device_async_wait {self.group} {{numGroups = 0 : i32}}")
        _Store(self).write(sums, finish)

    # Where elements are

    def _operand(self, side: Side) -> Operand:
        return self.host.a if side is self.a else self.host.b

    def _table_type(self) -> str:
        return f"memref<{table_length(self.problem, self.variant)}xi32, {WORKGROUP}>"

    def _rings(self) -> None:
        """And tables of where the depth leads to, for operands in which that is no plain
        distance."""
        super()._rings()
        w, type_ = self.w, self._table_type()
        start = _first_table(self.host.problem, self.variant)
        for side in (self.a, self.b):
            digits = self._operand(side).depth
            if len(digits) < 2:
                continue
            shared = w.value(f"gpu.dynamic_shared_memory : {SHARED}")
            view = f"memref.view {shared}[{w.index(start)}][] : {SHARED} to {type_}"
            table = self.tables[side.name] = w.value(view)
            start += table_length(self.problem, self.variant) * _ENTRY_BYTES
            threads, number = w.index(self.variant.threads), w.name()
            length = w.index(table_length(self.problem, self.variant))
            w.open(f"scf.for {number} = {self.place.thread} to {length} step {threads} {{")
            k = self._known(w.add(self.first_k, number), self.host.sizes.k)
            entry = w.index(offset(w, k, digits))
            entry = w.value(f"arith.index_cast {entry} : index to i32")
            w.line(f"memref.store {entry}, {table}[{number}] : {type_}")
            w.close()
        if self.tables:
            w.line("gpu.barrier")

    def _known(self, number: Index, size: Index) -> Index:
        """What there is nothing at gets another place: where the first one is."""
        return self.w.select(self.w.is_less(number, size), number, 0)

    def _moved(self, side: Side, k: Index, count: int) -> list[Index]:
        """Where `count` elements of the depth lead to, the first at a multiple of `count`."""
        w = self.w
        if side.name not in self.tables:
            digits = self._operand(side).depth
            last = self.host.sizes.k
            return [
                offset(w, self._known(w.add(k, number), last), digits) for number in range(count)
            ]
        table, place = self.tables[side.name], w.subtract(k, self.first_k)
        found: list[Index] = []
        width = min(count, 4)
        for number in range(0, count, width):
            at = f"{table}{w.at(w.add(place, number))}"
            for entry in w.load_vector(at, self._table_type(), width, "i32"):
                found.append(w.value(f"arith.index_cast {entry} : i32 to index"))
        return found

    # Copies to shared memory

    def _is_chunked(self, side: Side) -> bool:
        return side.matrix.alignment >= CHUNK_BYTES

    def _copies(self, side: Side) -> list[_Piece]:  # type: ignore[override]
        """This thread's. Threads that follow each other have neighbours in memory: along the tile
        where elements come one by one."""
        w, threads = self.w, self.variant.threads
        across = side.columns // side.copied
        pieces = []
        for number in range(side.rows * across // threads):
            row: Index
            if not self._is_chunked(side) and side.is_deep:
                row, chunk = self._down(side.rows, number)
            else:
                row = w.add(w.divide(self.place.thread, across), number * (threads // across))
                chunk = w.remainder(self.place.thread, across)
            pieces.append(self._piece(side, row, w.multiply(chunk, side.copied)))
        return pieces

    def _down(self, rows: int, number: int) -> tuple[Index, Index]:
        """A thread's row and chunk: first down the rows."""
        w, threads = self.w, self.variant.threads
        if threads % rows == 0:
            chunk = w.add(w.divide(self.place.thread, rows), number * (threads // rows))
            return w.remainder(self.place.thread, rows), chunk
        turns = rows // threads
        return w.add(self.place.thread, number % turns * threads), number // turns

    def _piece(self, side: Side, row: Index, column: Index) -> _Piece:
        w, operand = self.w, self._operand(side)
        begin, size = self._outer(side)
        along = operand.rows if side is self.a else operand.columns
        base = offset(w, self.batch, operand.batch)
        is_whole = isinstance(size, int) and size % side.outer == 0
        first = w.add(begin, row if side.is_deep else column)
        is_single = side.is_deep or self._is_chunked(side)
        starts = []
        for number in range(1 if is_single else side.copied):
            own = w.add(first, number)
            if not is_whole:
                own = self._known(own, size)
            starts.append(w.add(base, offset(w, own, along)))
        is_there = None if is_whole else w.is_less(first, size)
        shared_column = self._swizzled(side, row, column)
        return _Piece(row, column, shared_column, tuple(starts), is_there)

    def _depth(self, side: Side, piece: _Piece, step_k: Index) -> Index:
        return self.w.add(step_k, piece.column if side.is_deep else piece.row)

    def _fetch(  # type: ignore[override]
        self, side: Side, copies: Sequence[_Piece], step_k: Index, stage: Index
    ) -> list[str]:
        """Begins to copy a tile of chunks, which may be behind the last one."""
        w, buffer = self.w, self._operand(side).buffer
        tokens = []
        for piece in copies:
            k = self._depth(side, piece, step_k)
            count: Index = w.select(w.is_less(k, self.sizes.k), side.copied, 0)
            if piece.is_there is not None:
                count = w.select(piece.is_there, count, 0)
            [moved] = self._moved(side, k, 1)
            source, target = (
                w.add(piece.starts[0], moved),
                w.at(stage, piece.row, piece.shared_column),
            )
            tokens.append(
                w.value(
                    f"nvgpu.device_async_copy {buffer.name}{w.at(source)}, "
                    f"{side.name}_ring{target}, "
                    f"{side.copied}, {w.index(count)} {{bypassL1}} : {buffer.type} to {side.type}"
                )
            )
        return tokens

    def _load(  # type: ignore[override]
        self, side: Side, copies: Sequence[_Piece], step_k: Index
    ) -> list[str]:
        """The elements of a tile: zeros behind K; behind M or N, what its last row has."""
        w, buffer = self.w, self._operand(side).buffer
        element = side.matrix.element
        type_ = f"vector<{side.copied}x{element}>"
        loaded = []
        for piece in copies:
            k = self._depth(side, piece, step_k)
            if self._is_chunked(side):
                [moved] = self._moved(side, k, 1)
                at = f"{buffer.name}{w.at(w.add(piece.starts[0], moved))}"
                value = w.value(
                    f"vector.load {at} {{alignment = {CHUNK_BYTES} : i64}} : {buffer.type}, {type_}"
                )
                loaded.append(self._unless_behind(side, k, value, type_))
                continue
            if side.is_deep:
                moves = self._moved(side, k, side.copied)
                places = [w.add(piece.starts[0], moved) for moved in moves]
            else:
                [moved] = self._moved(side, k, 1)
                places = [w.add(start, moved) for start in piece.starts]
            values = []
            for number, place in enumerate(places):
                at = f"{buffer.name}{w.at(place)}"
                value = w.value(f"memref.load {at} : {buffer.type}")
                own_k = w.add(k, number) if side.is_deep else k
                values.append(self._unless_behind(side, own_k, value, element))
            loaded.append(w.value(f"vector.from_elements {', '.join(values)} : {type_}"))
        return loaded

    def _unless_behind(self, side: Side, k: Index, value: str, type_: str) -> str:
        """The value, or zeros where k is behind the last one."""
        w, size = self.w, self.host.sizes.k
        if isinstance(size, int) and size % self.variant.k == 0:
            return value  # what is fetched behind the last tile is not multiplied
        zero = "0" if side.matrix.element == "i8" else "0.0"
        nothing = f"dense<{zero}>" if type_.startswith("vector") else zero
        empty = w.value(f"arith.constant {nothing} : {type_}")
        return w.value(f"arith.select {w.is_less(k, self.sizes.k)}, {value}, {empty} : {type_}")


class _Store(Store):
    """To a C whose elements are where its loops lead to."""

    def __init__(self, kernel: _Kernel) -> None:
        super().__init__(
            *(kernel.w, kernel.problem, kernel.variant, kernel.sizes, kernel.place),
            *(kernel.target, kernel.at),
        )
        self.host, self.batch = kernel.host, kernel.batch

    def _store_sums(
        self, sums: Sequence[str], row: Index, column: Index, finish: Finish | None
    ) -> None:
        self.host.store(self.batch, row, column, sums)


class ImplicitMmaSync(ImplicitGemmFamily):
    """See the module's docstring."""

    name = "gathered mma.sync"
    target = ANY_GPU
    variant_type = Variant

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        if not isinstance(problem, Gathered) or problem.k is None:
            return False
        problem = _as_tiles(problem)
        assert problem.k is not None
        if not are_types_known(problem) or ELEMENT_BYTES[problem.a.element] == 8:
            return False
        if variant.copy_bytes >= CHUNK_BYTES and not _has_chunks(problem):
            return False
        steps = -(-problem.k // variant.k)
        return (
            is_tile_whole(problem, variant)
            and (variant.splits == 1 or steps >= variant.splits * _FEW_STEPS)
            and self.shared_bytes(problem, variant) <= _MOST_SHARED_BYTES
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        if not isinstance(problem, Gathered):
            return ()
        size = ELEMENT_BYTES[problem.a.element]
        k, deep = 64 // size, 128 // size
        stages, copy_bytes = (4, CHUNK_BYTES) if _has_chunks(problem) else (2, 1)
        tiles = (
            *((128, 128, k, 2, 4), (128, 64, k, 2, 2), (64, 128, k, 2, 2)),
            *((128, 64, deep, 2, 2), (64, 128, deep, 2, 4)),
            *((64, 64, deep, 2, 2), (64, 64, k, 2, 2), (64, 32, deep, 2, 2)),
            *((32, 64, deep, 1, 4), (32, 32, deep, 2, 2)),
        )
        found = (
            Variant(*tile, stages, copy_bytes, splits=splits)
            for tile in tiles
            for splits in (1, 2, 3, 4, 6, 8, 12, 16)
        )
        return tuple(variant for variant in found if self.can_take(problem, variant))

    def gathered_clocks(self, problem: Gathered, variant: Variant) -> float:
        m, n, k = (likely_count(one) for one in (problem.rows, problem.columns, problem.depth))
        batches = likely_count(problem.batch)
        tiles = batches * -(-m // variant.m) * -(-n // variant.n) * variant.splits
        depth = -(-k // variant.splits)
        scale = ELEMENT_BYTES[problem.a.element] / 2
        fetched = sum(
            tile / (_CHUNKED if matrix.alignment >= CHUNK_BYTES else _ELEMENTS)
            for tile, matrix in ((variant.m, problem.a), (variant.n, problem.b))
        )
        busy = depth * scale * max(variant.m * variant.n / _MULTIPLY_ADDS, fetched)
        alone = -(-depth // variant.k) * _STEP_CLOCKS
        each = -(-tiles // H100.multiprocessors)
        total = max(busy * each, alone * -(-each // _MOST_TOGETHER)) + _START_CLOCKS
        return total + clocks_of_parts(problem, variant.splits)

    def shared_bytes(self, problem: Problem, variant: Variant) -> int:
        assert isinstance(problem, Gathered)
        problem = _as_tiles(problem)
        tables = 2 * table_length(problem, variant) * _ENTRY_BYTES
        return _first_table(problem, variant) + tables

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        assert isinstance(problem, Gathered)
        w = Writer()
        w.open(f"func.func @{name}({problem.signature}) {{")
        _Launches(w, _as_tiles(problem), variant, finish).write()
        w.line("return")
        w.close()
        return w.text() + "\n"


IMPLICIT_MMA_SYNC = ImplicitMmaSync()
