"""A row times a matrix, for the CPU device: memory decides, so nothing is packed.

A matrix times a column is that, too, of C, B and A transposed.

Where K is contiguous in B, a thread multiplies some rows of B with A's row at a time, a vector of
each, and adds the elements of each sum at the end. Where it is not, it has the sums of a strip of
columns in its cache, and adds some rows of B to them at a time.

Products and sums may be contracted: hardware with a fused multiply-add uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from aotc.kernels.family import CPU
from aotc.kernels.matmul.cpu.blocked import computed_in
from aotc.kernels.matmul.cpu.writer import BlockWriter, Buffer
from aotc.kernels.matmul.family import MatmulFamily
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Finish, Matrix, Place, Problem

_WORKGROUP = "#gpu.address_space<workgroup>"
# What the CPU's lowering has conversions for.
_FLOATS = ("f64", "f32", "f16", "bf16")
_INTEGERS = ("i32", "i8")
_VECTOR_BYTES = 64


class Variant(Struct, frozen=True):
    """`rows` of B are read at a time. A block has at most `most` elements of C and at least
    `least`: as many as make `blocks` of them. (A strip of columns touches a page in each row of B,
    so few wide ones are faster than one for each of many cores.)"""

    rows: int
    least: int
    most: int
    blocks: int


def _of_row(problem: Problem) -> Problem | None:
    """The same with one row, of views of the vectors; None if there is neither one row nor one
    column, or the vector's elements do not follow each other."""
    if problem.m == 1:
        a = _as_row(problem.a, problem.batched)
        return None if a is None else replace(problem, a=a)
    a, c = (_as_row(matrix, problem.batched) for matrix in (problem.b, problem.c))
    if problem.n != 1 or a is None or c is None:
        return None
    b = replace(problem.a, transposed=not problem.a.transposed)
    return replace(problem, a=a, b=b, c=c)


def _as_row(matrix: Matrix, batched: bool) -> Matrix | None:
    """The vector that it is, as `_Kernel` sees it."""
    rows, columns = matrix.sizes
    if rows == 1:
        return replace(matrix, transposed=False)
    if columns != 1 or matrix.pitch != 1:
        return None
    sizes, strides = ("?x1x?", "?, 1, 1") if batched else ("1x?", "1, 1")
    type_ = f"memref<{sizes}x{matrix.element}, strided<[{strides}], offset: ?>>"
    return replace(matrix, type=type_, sizes=(1, rows), transposed=False)


class _Kernel(BlockWriter):
    def __init__(self, problem: Problem, variant: Variant, finish: Finish | None) -> None:
        seen = _of_row(problem)
        assert seen is not None
        self._problem, self._variant, self._finish = seen, variant, finish
        self._signature, self._is_column = problem.signature, problem.m != 1
        type_ = computed_in(problem)
        super().__init__(type_, _VECTOR_BYTES // ELEMENT_BYTES[type_])
        a, b = ("%a", problem.a), ("%b", problem.b)
        row, matrix = (b, a) if self._is_column else (a, b)
        self._a = self._seen(*row, seen.a)
        self._b = self._seen(*matrix, seen.b)
        self._c = self._seen("%c", problem.c, seen.c)

    def _seen(self, name: str, given: Matrix, matrix: Matrix) -> Buffer:
        """An argument, or a view of it."""
        e, batch = self._emitter, int(self._problem.batched)
        if given.type != matrix.type:
            known, rank = e.name(), 2 + batch
            types = ", ".join([f"memref<{given.element}>", *["index"] * (1 + 2 * rank)])
            e.line(
                f"{known}:{2 + 2 * rank} = memref.extract_strided_metadata {name} "
                f": {given.type} -> {types}"
            )
            sizes = [*(f"{known}#2" for _ in range(batch)), "1", f"{known}#{2 + batch}"]
            strides = [*(f"{known}#{2 + rank}" for _ in range(batch)), "1", "1"]
            name = e.value(
                f"memref.reinterpret_cast {name} to offset: [{known}#1], "
                f"sizes: [{', '.join(sizes)}], strides: [{', '.join(strides)}] "
                f": {given.type} to {matrix.type}"
            )
        return Buffer(name, matrix.type, matrix.element, ("%bz",) if batch else ())

    # --- The host's part -------------------------------------------------------------------------

    def function(self, name: str) -> str:
        e, p = self._emitter, self._problem
        first = 1 if p.batched else 0
        n, k = self._size(self._c, first + 1), self._size(self._a, first + 1)
        batches = self._size(self._c, 0) if p.batched else self._number(1)
        # A launch of no blocks is an error.
        elements = self._op("muli", n, batches)
        e.open(f"scf.if {self._compare('ne', elements, self._number(0))} {{")
        self._launch(n, k, batches)
        e.close()
        e.line("return")
        return f"func.func @{name}({self._signature}) {{\n{e.text()}\n}}\n"

    def _size(self, buffer: Buffer, dimension: int) -> str:
        number = self._number(dimension)
        return self._emitter.value(f"memref.dim {buffer.name}, {number} : {buffer.type}")

    def _launch(self, n: str, k: str, batches: str) -> None:
        e, v, one = self._emitter, self._variant, self._number(1)
        group = self._number(v.rows if self._problem.b.transposed else self._columns)
        each = self._op("ceildivsi", n, self._number(v.blocks))
        each = self._op("muli", self._op("ceildivsi", each, group), group)
        each = self._op(
            "maxsi", self._op("minsi", each, self._number(v.most)), self._number(v.least)
        )
        grid = self._op("ceildivsi", n, each)
        bytes_ = 0 if self._problem.b.transposed else v.most * self._bytes
        shared = f" dynamic_shared_memory_size {e.constant(bytes_, 'i32')}" if bytes_ else ""
        e.open(
            f"gpu.launch blocks(%bx, %by, %bz) in (%gx = {grid}, %gy = {one}, %gz = {batches}) "
            f"threads(%tx, %ty, %tz) in (%sx = {one}, %sy = {one}, %sz = {one}){shared} {{"
        )
        begin = self._op("muli", "%bx", each)
        count = self._op("minsi", each, self._op("subi", n, begin))
        add = self._add_rows if self._problem.b.transposed else self._add_columns
        add(begin, count, k)
        e.line("gpu.terminator")
        e.close()

    # --- Rows of B along K -----------------------------------------------------------------------

    def _add_rows(self, begin: str, count: str, k: str) -> None:
        end = self._op("addi", begin, count)
        whole = self._whole(count, self._variant.rows)
        middle = self._op("addi", begin, whole)
        for start, stop, rows in ((begin, middle, self._variant.rows), (middle, end, 1)):
            with self._loop(start, stop, rows) as row:
                of_rows = [self._op("addi", row, self._number(i)) for i in range(rows)]
                for at, total in zip(of_rows, self._products_of_rows(of_rows, k), strict=True):
                    self._finish_one(total, at)

    def _products_of_rows(self, rows: Sequence[str], k: str) -> list[str]:
        """Of each row of B with A's."""
        whole = self._whole(k, self._columns)
        zero = self._number(0)
        nothing = f"arith.constant dense<{self._zero_text()}> : {self._vector}"
        vectors = [self._emitter.value(nothing) for _ in rows]

        def add_vectors(at: str, sums: list[str]) -> list[str]:
            factor = self._vector_of(self._a, zero, at)
            loaded = [self._vector_of(self._b, row, at) for row in rows]
            return self._add_each(sums, [self._times(factor, one) for one in loaded], self._vector)

        vectors = self._fold(zero, whole, self._columns, vectors, self._vector, add_vectors)
        kind = f"vector.reduction <add>, {{}} : {self._vector} into {self._type}"
        sums = [self._emitter.value(kind.format(one)) for one in vectors]

        def add_elements(at: str, sums: list[str]) -> list[str]:
            factor = self._element_of(self._a, zero, at)
            loaded = [self._element_of(self._b, row, at) for row in rows]
            return self._add_each(sums, [self._multiply(factor, one) for one in loaded], self._type)

        return self._fold(whole, k, 1, sums, self._type, add_elements)

    # --- Rows of B along N -----------------------------------------------------------------------

    def _add_columns(self, begin: str, count: str, k: str) -> None:
        sums = self._sums()
        zero = self._number(0)
        with self._loop(zero, count) as j:
            self._store(self._zero(), sums, j)
        whole = self._whole(k, self._variant.rows)
        for start, stop, rows in ((zero, whole, self._variant.rows), (whole, k, 1)):
            with self._loop(start, stop, rows) as first:
                of_rows = [self._op("addi", first, self._number(i)) for i in range(rows)]
                self._add_strip(of_rows, begin, count, sums)
        with self._loop(zero, count) as j:
            self._finish_one(self._load(sums, j), self._op("addi", begin, j))

    def _sums(self) -> Buffer:
        e = self._emitter
        shared = e.value(f"gpu.dynamic_shared_memory : memref<?xi8, {_WORKGROUP}>")
        type_ = f"memref<{self._variant.most}x{self._type}, {_WORKGROUP}>"
        view = f"memref.view {shared}[{self._number(0)}][] : memref<?xi8, {_WORKGROUP}> to {type_}"
        return Buffer(e.value(view), type_, self._type)

    def _add_strip(self, rows: Sequence[str], begin: str, count: str, sums: Buffer) -> None:
        """Adds A's elements of these rows, times their columns from `begin` on."""
        factors = [self._element_of(self._a, self._number(0), row) for row in rows]
        spread = f"vector.broadcast {{}} : {self._type} to {self._vector}"
        vectors = [self._emitter.value(spread.format(factor)) for factor in factors]
        whole = self._whole(count, self._columns)
        with self._loop(self._number(0), whole, self._columns) as j:
            column, total = self._op("addi", begin, j), self._load_vector(sums, j)
            for factor, row in zip(vectors, rows, strict=True):
                product = self._times(factor, self._vector_of(self._b, row, column))
                total = self._add(total, product, self._vector)
            self._store_vector(total, sums, j)
        with self._loop(whole, count) as j:
            column, total = self._op("addi", begin, j), self._load(sums, j)
            for factor, row in zip(factors, rows, strict=True):
                product = self._multiply(factor, self._element_of(self._b, row, column))
                total = self._add(total, product, self._type)
            self._store(total, sums, j)

    # --- Numbers ---------------------------------------------------------------------------------

    def _whole(self, count: str, group: int) -> str:
        """How many of `count` are in whole groups."""
        return self._op("subi", count, self._op("remsi", count, self._number(group)))

    def _vector_of(self, buffer: Buffer, row: str, column: str) -> str:
        loaded = self._load_vector(buffer, row, column)
        return self._convert(loaded, buffer.element, self._columns)

    def _element_of(self, buffer: Buffer, row: str, column: str) -> str:
        return self._convert(self._load(buffer, row, column), buffer.element)

    def _multiply(self, left: str, right: str) -> str:
        if self._type.startswith("i"):
            return self._emitter.value(f"arith.muli {left}, {right} : {self._type}")
        text = f"arith.mulf {left}, {right} fastmath<contract> : {self._type}"
        return self._emitter.value(text)

    def _add_each(self, sums: Sequence[str], products: Sequence[str], type_: str) -> list[str]:
        pairs = zip(sums, products, strict=True)
        return [self._add(total, product, type_) for total, product in pairs]

    def _fold(
        self,
        start: str,
        end: str,
        step: int,
        begin: Sequence[str],
        type_: str,
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """The sums that the last turn of a loop has returned."""
        e = self._emitter
        result, at, names = e.name(), e.name(), [e.name() for _ in begin]
        carried = ", ".join(f"{one} = {value}" for one, value in zip(names, begin, strict=True))
        types = ", ".join([type_] * len(names))
        e.open(
            f"{result}:{len(names)} = scf.for {at} = {start} to {end} step {self._number(step)} "
            f"iter_args({carried}) -> ({types}) {{"
        )
        e.line(f"scf.yield {', '.join(body(at, names))} : {types}")
        e.close()
        return [f"{result}#{number}" for number in range(len(names))]

    def _finish_one(self, total: str, column: str) -> None:
        """Stores the result for a sum."""
        p, row = self._problem, self._number(0)
        if p.adds:
            total = self._add(self._element_of(self._c, row, column), total, self._type)
        value = self._convert(total, self._type, target=p.accumulator)
        if self._finish is None:
            value = self._convert(value, p.accumulator, target=p.c.element)
        else:
            at, along = (column, row) if self._is_column else (row, column)
            place = Place("%bz" if p.batched else None, at, [along])
            [value] = self._finish(self._emitter, [value], place)
        self._store(value, self._c, row, column)


class CpuStreamed(MatmulFamily):
    """See the module's docstring."""

    name = "one pass over the matrix"
    target = CPU
    variant_type = Variant
    has_cost_model = False
    is_bandwidth_bound = True

    def can_take(self, problem: Problem, variant: Variant) -> bool:
        problem_of_row = _of_row(problem)
        if problem_of_row is None:
            return False
        elements = {problem.a.element, problem.b.element, problem.c.element, problem.accumulator}
        columns = _VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
        group = variant.rows if problem_of_row.b.transposed else columns
        return (
            (elements <= set(_FLOATS) or elements <= set(_INTEGERS))
            and variant.least % group == 0
            and variant.most % group == 0
        )

    def variants(self, problem: Problem) -> tuple[Variant, ...]:
        of_row = _of_row(problem)
        if of_row is None:
            return ()
        found = Variant(4, 4, 64, 64) if of_row.b.transposed else Variant(8, 256, 1024, 4)
        return (found,) if self.can_take(problem, found) else ()

    def function(
        self, problem: Problem, variant: Variant, name: str, finish: Finish | None = None
    ) -> str:
        return _Kernel(problem, variant, finish).function(name)


CPU_STREAMED = CpuStreamed()
