"""A small-M matmul on a GPU whose columns are gates, which its epilogue combines. It is the kernel
of `gemv.kernel`, with strips that have the same columns of each gate. C itself is not stored.

A step of an LSTM or GRU with few rows is thus one kernel instead of two. Each of them takes longer
to begin and to end than to multiply.
"""

from __future__ import annotations

from typing import Any

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Value, compare, minimum
from aotc.chips import H100, WARP
from aotc.kernels.matmul.epilogue import EpilogueOf
from aotc.kernels.matmul.gates import Gates, gate_name
from aotc.kernels.matmul.gemv.family import GEMV, Gemv
from aotc.kernels.matmul.gemv.kernel import Kernel
from aotc.kernels.matmul.gemv.shape import Variant, operands_of
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Arguments, Place, Problem
from aotc.kernels.matmul.scalar import elements_of_c

# With more rows, tensor cores or tiles are faster.
_MOST_ROWS = 8
# With more multiply-adds, the matmul takes longer than the launch that is saved.
_MOST_WORK = 1 << 26
# Numbers of blocks that share the gates' columns: at least half of an H100's multiprocessors, if
# accesses are then wide enough, and at most all of them.
_LEAST_BLOCKS, _MOST_BLOCKS = H100.multiprocessors // 2 - 2, H100.multiprocessors
_LEAST_ACCESS = 4  # bytes
_MOST_WARPS, _MOST_UNROLL = 8, 8


def gated_variants(problem: Problem, gates: Gates) -> list[Variant]:
    """The variant of `GATED_GEMV` that combines the gates; empty if there is none."""
    m, n, k = problem.m, problem.n, problem.k
    if type(problem) is not Problem or not (m and n and k) or m > _MOST_ROWS:
        return []
    if problem.batched or problem.adds or m * n * k > _MOST_WORK:
        return []
    _, large = operands_of(problem, is_right=False)
    element = ELEMENT_BYTES.get(large.matrix.element)
    if element is None:
        return []
    width = max(1, min(16, large.matrix.alignment) // element)
    make = _variant_over_rows if large.is_k_major else _variant_over_columns
    variant = make(gates, (m, k), width, element)
    return [variant] if variant is not None and GEMV.can_implement(problem, variant) else []


def _variant_over_rows(
    gates: Gates, sizes: tuple[int, int], width: int, element: int
) -> Variant | None:
    """For a K-major B: a group of warps has the rows of all gates at one column."""
    m, k = sizes
    step = WARP * width
    along = _power_of_two(k // step, _MOST_WARPS)
    unroll = _power_of_two(k // (step * along), 4)
    groups = 1
    while (
        2 * groups * along <= _MOST_WARPS
        and gates.columns % (2 * groups) == 0
        and gates.columns // groups > _MOST_BLOCKS
    ):
        groups *= 2
    return Variant(
        *(m, groups * along, width * element, unroll),
        rows=gates.count,
        warps_along=along,
        gates=gates.count,
    )


def _variant_over_columns(
    gates: Gates, sizes: tuple[int, int], width: int, element: int
) -> Variant | None:
    """For a B whose rows are contiguous along N: adjacent lanes have the columns of one gate."""
    m, k = sizes
    while (
        width > 1
        and width * element > _LEAST_ACCESS
        and (gates.columns % width or gates.columns // width < _LEAST_BLOCKS)
    ):
        width //= 2
    if gates.columns % width:
        return None
    lanes = 1 << (gates.count - 1).bit_length()
    columns = width
    while (
        2 * lanes <= WARP
        and gates.columns % (2 * columns) == 0
        and gates.columns // columns > _MOST_BLOCKS
    ):
        lanes, columns = 2 * lanes, 2 * columns
    if lanes > WARP:
        return None
    slices = WARP // lanes * _MOST_WARPS
    unroll = _power_of_two(k // slices, _MOST_UNROLL)
    return Variant(m, _MOST_WARPS, width * element, unroll, lanes=lanes, gates=gates.count)


def _power_of_two(most: int, limit: int) -> int:
    """The largest power of two that is at most `most` and `limit`; at least 1."""
    return 1 << (max(1, min(most, limit)).bit_length() - 1)


class _Gated(Kernel):
    """The gates of a strip are `slots` parts of it. (Those behind the last gate repeat it.)"""

    def __init__(
        self, b: Builder, problem: Problem, variant: Variant, arguments: Arguments
    ) -> None:
        super().__init__(b, problem, variant, arguments)
        assert arguments.gates is not None
        self.gates, given = arguments.gates
        self.joined = EpilogueOf(
            self.gates.epilogue, self.gates.epilogue_operands, given.epilogue_operands
        )
        self.outputs = [Buffer(value) for value in given.outputs]
        self.slots = self.gates.count
        if not self.large.is_k_major:
            self.slots = 1 << (self.gates.count - 1).bit_length()
        # The columns of each gate in a strip.
        self.columns = self.strip // self.slots

    def _strips(self) -> Number:
        return self.gates.columns // self.columns

    def _in_large(self, number: Number) -> Number:
        if self.large.is_k_major:
            column, gate = number // self.slots, number % self.slots
        else:
            gate, column = number // self.columns, number % self.columns
            gate = minimum(gate, self.gates.count - 1)
        return gate * self.gates.columns + self.number_of_strip * self.columns + column

    def _in_strip(self, gate: int, column: Number) -> Number:
        if self.large.is_k_major:
            return column * self.slots + gate
        return column + gate * self.columns

    def _store(self) -> None:
        """Each thread combines the gates of some elements of the outputs."""
        outputs = self.variant.small * self.columns
        for first in range(0, outputs, self.threads):
            number = self.thread + first
            is_whole = first + self.threads <= outputs
            with self.b.where(is_whole or compare("ult", number, outputs)):
                self._combine(number // self.columns, number % self.columns)

    def _combine(self, i: Number, j: Number) -> None:
        """Stores the outputs in row i of the block's rows, column j of its columns."""
        b, gates = self.b, self.gates
        row, column = b.values((i, self.number_of_strip * self.columns + j))
        given: dict[str, Value] = {}
        for gate in range(gates.count):
            total = self._sum_of_warps(i, self._in_strip(gate, j))
            at = (0, row, column + gate * gates.columns)
            [given[gate_name(gate)]] = elements_of_c(b, self.operands, self.epilogue, [total], at)
        results = self.joined.on_elements(b, given, Place(None, row, [column]), gates.results)
        for result, output in zip(results, self.outputs, strict=True):
            b.store(result, output, [row, column])


class GatedGemv(Gemv):
    """Small-M matmuls whose columns are gates. Its variants depend on the gates: see
    `gated_variants`."""

    mnemonic = "gemv_gates"
    kernel_type = _Gated

    def variants(self, problem: Problem) -> tuple[Any, ...]:
        return ()


GATED_GEMV = GatedGemv()
