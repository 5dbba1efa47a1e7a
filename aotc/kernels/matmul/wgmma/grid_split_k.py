"""Grid split-K: blocks compute partial accumulators of parts of K, which a second kernel reduces.

It is for a C of so few tiles that many multiprocessors would be idle. The first kernel stores the
f32 accumulators of each part to a workspace. The second kernel adds them in the order of K, and
executes the epilogue. It starts while the first kernel ends (programmatic dependent launch).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, ceil_divide, compare
from aotc.kernels.hopper.tiles import Tile
from aotc.kernels.hopper.tma import swizzled_width
from aotc.kernels.matmul.problem import (
    ELEMENT_BYTES,
    Arguments,
    Matrix,
    Place,
    Problem,
)

if TYPE_CHECKING:
    from aotc.kernels.matmul.wgmma.variants import Variant

_WORKSPACE = "memref<?x?x?xf32>"
_THREADS = 128
# The accumulators that a thread loads at once.
_WIDTH = 4
_VECTOR = f"vector<{_WIDTH}xf32>"
_K_EXTENT = swizzled_width("f16")  # the K extent of a stage


def can_slice(problem: Problem, variant: Variant) -> bool:
    if variant.grid_split_k == 1:
        return True
    return (
        variant.grid_split_k > 1
        and bool(problem.k)
        and not problem.batched
        and variant.cluster_split_k == 1
        and not variant.transposes_c
        and ELEMENT_BYTES[problem.a.element] == 2
    )


def stored_problem(problem: Problem, variant: Variant) -> Problem:
    """The problem of the first kernel. With grid split-K, its C is a batch of matrices, one for
    each part."""
    if variant.grid_split_k == 1:
        return problem
    c = Matrix(_WORKSPACE, "f32", (problem.m, problem.n), None, _WIDTH * 4)
    return replace(problem, c=c, adds=False, batched=True, epilogue_operands=())


class GridSplitK:
    """The workspace and the second kernel of grid split-K; without split-K, nothing is done.
    `sizes`: the rows and columns of C, in host code."""

    def __init__(
        self,
        b: Builder,
        problem: Problem,
        grid_split_k: int,
        arguments: Arguments,
        sizes: tuple[Scalar, Scalar],
    ) -> None:
        self.b, self.problem, self.grid_split_k = b, problem, grid_split_k
        self.c, self.epilogue = Buffer(arguments.c), arguments.epilogue
        self.rows, self.columns = sizes

    # --- The first kernel ----------------------------------------------------------------

    def allocate(self) -> Value:
        """The buffer that the first kernel stores to: C, or a new workspace, whose rows consist of
        whole vectors. In host code."""
        if self.grid_split_k == 1:
            return self.c.value
        pitch = ceil_divide(self.columns, _WIDTH) * _WIDTH
        self.workspace = Buffer(self.b.alloc([self.grid_split_k, self.rows, pitch], _WORKSPACE))
        return self.workspace.value

    def divide(self, k_tiles: Number) -> Number:
        """The number of K stages of each part; the last part's may reach beyond the end of K."""
        own = (k_tiles + (self.grid_split_k - 1)) // self.grid_split_k
        self.k_extent = own * _K_EXTENT
        return own

    def place(self, tile: Tile, first_k: Number) -> tuple[Tile, Number]:
        """The tile's position in A and B, and its first index of K. The parts are a batch of C
        only."""
        if self.grid_split_k == 1:
            return tile, first_k
        assert tile.batch is not None
        return Tile(tile.row, tile.column, None), tile.batch * self.k_extent

    # --- The second kernel ---------------------------------------------------------------

    def reduce(self) -> None:
        """Launches the second kernel, and frees the workspace. In host code."""
        if self.grid_split_k == 1:
            return
        b, across = self.b, ceil_divide(self.columns, _WIDTH)
        blocks = ceil_divide(self.rows * across, _THREADS)
        with b.launch(blocks, _THREADS, role="reduction") as launch:
            for action in ("wait", "launch_dependents"):
                b.op("nvvm.griddepcontrol", kind=f"#nvvm<grid_dep_action {action}>")
            block, thread = b.i32(launch.block), b.i32(launch.thread)
            number, vectors = block * _THREADS + thread, b.i32(across)
            row, vector = number // vectors, number % vectors
            column = vector * _WIDTH
            with b.where(compare("ult", row, b.i32(self.rows))):
                self._store(b.index(row), column, b.i32(self.columns))
        b.op("memref.dealloc", [self.workspace.value])

    def _store(self, row: Number, column: Number, columns: Number) -> None:
        """Adds the partial accumulators of a thread's elements, and stores the elements."""
        b, first, total = self.b, self.b.index(column), None
        for slice_ in range(self.grid_split_k):
            one = b.load_vector(self.workspace, [slice_, row, first], _WIDTH, _WIDTH * 4)
            total = one if total is None else b.op("arith.addf", [total, one], _VECTOR)
        sums = b.elements(total)
        if self._has_whole_vectors:
            place = Place(None, row, [first + i for i in range(_WIDTH)], is_whole=True)
            b.store_elements(self._finished(sums, place), self.c, [row, first])
            return
        for i, sum_ in enumerate(sums):
            own = column + i
            with b.where(compare("ult", own, columns)):
                at = b.index(own)
                [value] = self._finished([sum_], Place(None, row, [at]))
                b.store(value, self.c, [row, at])

    @property
    def _has_whole_vectors(self) -> bool:
        """Whether C's rows consist of whole, aligned vectors."""
        n, c = self.problem.n, self.problem.c
        return (
            n is not None
            and n % _WIDTH == 0
            and c.alignment % (_WIDTH * ELEMENT_BYTES[c.element]) == 0
        )

    def _finished(self, sums: Sequence[Value], place: Place) -> Sequence[Value]:
        """The values to store for the accumulators at `place`."""
        b = self.b
        if self.problem.adds:
            sums = [
                b.op(
                    "arith.addf",
                    [b.convert(b.load(self.c, [place.row, column]), "f32"), sum_],
                    "f32",
                )
                for column, sum_ in zip(place.columns, sums, strict=True)
            ]
        if self.epilogue is not None:
            return self.epilogue(b, sums, place)
        return [b.convert(sum_, self.c.element) for sum_ in sums]
