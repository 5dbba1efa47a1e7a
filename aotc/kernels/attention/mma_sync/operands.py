"""Q, K and V on their way from memory to shared memory, by asynchronous copies of 16 bytes.

In shared memory rows are of an odd number of 16 bytes: any eight rows of one column are in
different banks, for ldmatrix. Of the columns behind the last one, which fill up 16, elements are 0.
Matrices that are not at multiples of 16 bytes are loaded and stored element by element.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Matrix
from aotc.kernels.matmul.wgmma.tiles import SHARED, SPACE, Body

COLUMNS = 16  # that are added at once
CHUNK = 8  # elements of 16 bytes
_ALIGNMENT = 16


class Operand:
    """Q, K or V, called `name`: tiles of some rows, all columns of a head, a ring of `stages`. All
    threads of a block copy the same chunks of 16 bytes, in rows some apart."""

    def __init__(
        self,
        name: str,
        matrix: Matrix,
        shape: tuple[int, int, int],
        heads: int,
        threads: int,
    ) -> None:
        """`shape`: of the ring, without what fills rows up."""
        self.name, self.matrix, self.heads, self.threads = name, matrix, heads, threads
        self.stages, self.rows, self.columns = shape
        self.is_async = matrix.alignment % _ALIGNMENT == 0
        chunks = self.columns // CHUNK
        # So many threads copy neighbours of a row at once, as often as `across` says.
        self.width = min(chunks & -chunks, threads)
        self.across = chunks // self.width
        self.rows_at_once = threads // self.width
        self.padded = -(-self.columns // COLUMNS) * COLUMNS
        self.pitch = self.padded + CHUNK
        self.stage_bytes = self.rows * self.pitch * ELEMENT_BYTES[matrix.element]
        self.bytes = self.stages * self.stage_bytes
        ring = f"{self.stages}x{self.rows}x{self.pitch}x{matrix.element}"
        self.ring_type = f"memref<{ring}, {SPACE}>"
        self.ring = f"%{name}_ring"

    @property
    def is_shared_evenly(self) -> bool:
        """Whether threads copy as many rows each, or some of them one."""
        return self.rows % self.rows_at_once == 0 or self.rows < self.rows_at_once

    def begin(self, e: Body, shared: str, offset: int, thread: str, batch: str) -> None:
        """`offset`: of the ring, in bytes. `batch`: the tile's, which counts heads."""
        at = e.constant(offset)
        e.line(f"{self.ring} = memref.view {shared}[{at}][] : {SHARED} to {self.ring_type}")
        own_row = e.do("divui", thread, self.width)
        own_column = e.do("muli", e.do("remui", thread, self.width), CHUNK)
        self.row, self.to = e.index(own_row), e.index(own_column)
        self._find(e, batch)
        if self.padded > self.columns:
            self._fill_up(e, thread)

    def _find(self, e: Body, batch: str) -> None:
        """What this thread copies of the first tile, as a vector: one address to keep in
        registers."""
        column = self.to
        if self.heads:
            first = e.do("muli", e.do("remui", batch, self.heads), self.columns)
            column = e.do("addi", column, e.index(first), "index")
            batch = e.do("divui", batch, self.heads)
        names = [e.name() for _ in range(8)]
        element = f"memref<{self.matrix.element}>"
        e.line(
            f"{', '.join(names)} = memref.extract_strided_metadata %{self.name} "
            f": {self.matrix.type} -> {', '.join([element, *['index'] * 7])}"
        )
        start, offset, _, _, _, between, self.stride, _ = names
        first = e.do("addi", offset, e.do("muli", e.index(batch), between, "index"), "index")
        first = e.do("addi", first, column, "index")
        before = e.do("muli", self.row, self.stride, "index")
        own = e.do("addi", first, before, "index")
        # To the first row, which is there.
        self.back = e.do("subi", e.constant(0), before, "index")
        self.own_type = f"memref<?x{self.matrix.element}, strided<[1], offset: ?>>"
        self.own = e.value(
            f"memref.reinterpret_cast {start} to offset: [{own}], sizes: [{self.stride}], "
            f"strides: [1] : {element} to {self.own_type}"
        )

    def _fill_up(self, e: Body, thread: str) -> None:
        row = f"vector<{CHUNK}x{self.matrix.element}>"
        zeros = e.value(f"arith.constant dense<0.0> : {row}")
        column, own = e.constant(self.columns), e.index(thread)
        every, end = e.constant(self.threads), e.constant(self.rows)
        for number in range(self.stages):
            stage = e.constant(number)
            with e.block(f"scf.for %filled = {own} to {end} step {every}"):
                e.line(
                    f"vector.store {zeros}, {self.ring}[{stage}, %filled, {column}] "
                    f": {self.ring_type}, {row}"
                )

    def copy(self, e: Body, row: str, stage: str, count: str | None) -> None:
        """Begins to copy the tile that begins at `row` (an i32) to a stage of the ring. `count`:
        how many rows there are, where the tile may end behind the last one; what is not there is
        0."""
        first = e.do("muli", e.index(row), self.stride, "index")
        left = None
        if count is not None:
            left = e.do("subi", e.index(e.do("subi", count, row)), self.row, "index")
        if self.rows >= self.rows_at_once:
            for down in range(0, self.rows, self.rows_at_once):
                self._copy_row(e, first, down, stage, left)
            return
        with e.block(f"scf.if {e.compare('ult', self.row, self.rows, 'index')}"):
            self._copy_row(e, first, 0, stage, left)

    def _copy_row(self, e: Body, first: str, down: int, stage: str, left: str | None) -> None:
        """What this thread copies of a row, `down` below its first one, of which there are `left`
        with those below. `first`: how far the tile is from the first one, in elements."""
        to = e.do("addi", self.row, down, "index")
        at = e.do("addi", first, e.do("muli", self.stride, down, "index"), "index")
        is_there = None if left is None else e.compare("sgt", left, down, "index")
        if is_there is not None:
            # The address is one of the matrix, where nothing is read, too.
            at = e.value(f"arith.select {is_there}, {at}, {self.back} : index")
        for number in range(self.across):
            beside = number * self.width * CHUNK
            source = e.do("addi", at, beside, "index")
            target = e.do("addi", self.to, beside, "index")
            place = f"{self.ring}[{stage}, {to}, {target}]"
            if self.is_async:
                self._copy_chunk(e, source, place, is_there)
            else:
                self._load_chunk(e, source, place, is_there)

    def _copy_chunk(self, e: Body, at: str, to: str, is_there: str | None) -> None:
        elements = e.constant(CHUNK)
        if is_there is not None:
            elements = e.value(f"arith.select {is_there}, {elements}, {e.constant(0)} : index")
        e.value(
            f"nvgpu.device_async_copy {self.own}[{at}], {to}, {CHUNK}, {elements} {{bypassL1}} "
            f": {self.own_type} to {self.ring_type}"
        )

    def _load_chunk(self, e: Body, at: str, to: str, is_there: str | None) -> None:
        element = self.matrix.element
        zero = e.constant("0.0", element)
        values = []
        for number in range(CHUNK):
            one = e.do("addi", at, number, "index")
            value = e.value(f"memref.load {self.own}[{one}] : {self.own_type}")
            if is_there is not None:
                value = e.value(f"arith.select {is_there}, {value}, {zero} : {element}")
            values.append(value)
        vector = f"vector<{CHUNK}x{element}>"
        chunk = e.value(f"vector.from_elements {', '.join(values)} : {vector}")
        e.line(
            f"vector.store {chunk}, {to} {{alignment = {_ALIGNMENT} : i64}} "
            f": {self.ring_type}, {vector}"
        )
