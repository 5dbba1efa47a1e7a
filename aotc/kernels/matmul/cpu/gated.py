"""A matmul for the CPU device whose columns are gates, which its epilogue combines. It is
`cpu.blocked`, with tiles that have the same columns of each gate. C itself is not stored.

A step of an LSTM or GRU is thus one launch, which all threads share.
"""

from __future__ import annotations

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, compare, signed_minimum
from aotc.kernels.cpu.mainloop import LONG_ROWS, LONG_VECTORS
from aotc.kernels.cpu.vectors import VECTOR_BYTES
from aotc.kernels.matmul.cpu import blocked, packed
from aotc.kernels.matmul.cpu.blocked import Step, Tile, Variant
from aotc.kernels.matmul.cpu.kernel import computed_in
from aotc.kernels.matmul.epilogue import Epilogue, EpilogueOf
from aotc.kernels.matmul.gates import GateArguments, Gates, gate_name
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Place, Problem
from aotc.mlir import ir

# Tiles are narrow enough for this number of blocks, if they can be, with a vector of each gate.
_ENOUGH_BLOCKS = 16


def can_implement(
    problem: Problem, variant: Variant, epilogue: Epilogue | None, gates: Gates
) -> bool:
    """Whether B is read in place, a tile has whole vectors of each gate, and the epilogues support
    vectors."""
    width = VECTOR_BYTES // ELEMENT_BYTES[computed_in(problem)]
    return (
        (epilogue is None or epilogue.is_of_vectors)
        and gates.epilogue.is_of_vectors
        and not problem.b.transposed
        and problem.b.element == computed_in(problem)
        and gates.columns % width == 0
        and gates.count * width <= variant.tile_columns
    )


class _Gated(blocked.Kernel):
    """The kernel for a B that is read in place. A tile's columns are those of the first gate,
    followed by those of the other gates. `Tile.column` is its first column in each gate."""

    reads_b = True
    columns_apart = 0

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        variant: Variant,
        epilogue: EpilogueOf | None,
        gates: tuple[Gates, GateArguments],
    ) -> None:
        super().__init__(b, problem, variant, epilogue)
        self.own_epilogue = epilogue
        self.gates, given = gates
        self.joined = EpilogueOf(
            self.gates.epilogue, self.gates.epilogue_operands, given.epilogue_operands
        )
        self.outputs = [Buffer(value) for value in given.outputs]
        self.gate_columns = self._columns_of_tile()
        vectors = self.gates.count * self.gate_columns // self.width
        even = (count for count in (LONG_VECTORS, LONG_VECTORS - 1) if vectors % count == 0)
        self.long_vectors = next(even, LONG_VECTORS)

    def _columns_of_tile(self) -> int:
        """The number of columns of each gate in a tile. It is the same for all tiles."""
        columns, tile_columns = self.gates.columns, self.variant.tile_columns
        rows = -(-(self.problem.m or 1) // self.variant.tile_rows)
        whole = range(self.width, tile_columns // self.gates.count + 1, self.width)
        even = [width for width in whole if columns % width == 0]
        enough = [width for width in even if rows * columns // width >= _ENOUGH_BLOCKS]
        return max(enough, default=self.width)

    def build(self, arguments: Arguments) -> None:
        b, a = self.b, self.problem.a
        self.arguments = arguments
        m, k = (b.dim(arguments.a, axis) for axis in ((1, 0) if a.transposed else (0, 1)))
        # A launch of no blocks is an error.
        with b.where(compare("ne", m, 0)):
            rows = self.even(m, self.variant.tile_rows, LONG_ROWS)
            columns = self.gate_columns
            grid = self.gates.columns // columns, self.groups(m, rows), 1
            shared_bytes = b.signed_cast(self.shared_bytes(rows), "i32")
            with b.launch(grid, 1, shared_bytes) as launch:
                x, y, _ = launch.block_ids
                row = y * rows
                tile = Tile(row, x * columns, signed_minimum(rows, m - row), columns)
                self.compute_tile(tile, k, rows)

    def multiply_step(self, tile: Tile, step: Step) -> None:
        columns = self.gates.count * self.gate_columns
        self.multiply(tile, step, (0, columns), is_packed_b=False)

    def column_of(self, tile: Tile, column: Number) -> Number:
        gate: Scalar = self.signed("divsi", column, self.gate_columns)
        in_gate = column - gate * self.gate_columns
        return gate * self.gates.columns + tile.column + in_gate

    def store_c(self, tile: Tile) -> None:
        b = self.b
        with b.loop(0, tile.rows) as i, b.loop(0, self.gate_columns, self.width) as j:
            row, column = b.values((tile.row + i.index, tile.column + j.index))
            given = {}
            for gate in range(self.gates.count):
                at = [i.index, j.index + gate * self.gate_columns]
                value = self.load(self.tile_accumulators, at, self.width)
                value = b.convert(value, self.of(self.problem.accumulator, self.width))
                place = Place(None, row, b.values([column + gate * self.gates.columns]))
                if self.own_epilogue is None:
                    value = b.convert(value, self.of(self.problem.c.element, self.width))
                else:
                    value = self.own_epilogue.on_vector(b, value, place)
                given[gate_name(gate)] = value
            results = self.joined.on_vectors(
                b, given, Place(None, row, [column]), self.gates.results
            )
            for result, output in zip(results, self.outputs, strict=True):
                self.store(result, output, [row, column])


class _GatedPacked(_Gated, packed.Kernel):
    """The kernel for a packed B."""


def insert_gated(
    b: Builder,
    chosen: tuple[Problem, Variant],
    arguments: Arguments,
) -> None:
    """Inserts the launch of the kernel, which combines the gates of the arguments. If B is a packed
    copy, its type in the problem is that of the copy."""
    problem, variant = chosen
    is_packed = ir.MemRefType(arguments.b.type).rank == 3
    kernel = _GatedPacked if is_packed else _Gated
    epilogue = arguments.epilogue
    assert epilogue is None or isinstance(epilogue, EpilogueOf)
    assert arguments.gates is not None
    kernel(b, problem, variant, epilogue, arguments.gates).build(arguments)
