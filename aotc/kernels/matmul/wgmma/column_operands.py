"""Epilogue operands along C's columns, such as a bias. A thread loads its elements of a subtile
together, one subtile ahead.

The latency of memory that is in no cache is some 700 ns. With a load in front of each accumulator,
a thread would wait for it once for every 32 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotc.builder import Buffer, Builder
from aotc.builder.numbers import Number, Scalar, Value, minimum
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Axis, EpilogueOperand, Problem
from aotc.kernels.matmul.wgmma.epilogue_operands import Pairs


class ColumnOperands:
    """The epilogue operands along columns of C. There are none if `has_pairs` is False, that is, if
    pairs of adjacent elements cannot be loaded at once."""

    def __init__(
        self, b: Builder, problem: Problem, values: Sequence[Value], *, has_pairs: bool
    ) -> None:
        self.b, self.n = b, problem.n
        self.operands = {
            number: (operand, value)
            for number, (operand, value) in enumerate(
                zip(problem.epilogue_operands, values, strict=True)
            )
            if has_pairs and is_column_operand(operand)
        }

    def load(self, column: Number, columns: int, lane: Scalar) -> dict[int, Pairs]:
        """Loads this lane's pairs, by the operand's number, for a subtile of `columns` columns that
        begins at C's column `column` (an i32)."""
        return {
            number: self._load(operand, Buffer(value), column, columns, lane)
            for number, (operand, value) in self.operands.items()
        }

    def _load(
        self, operand: EpilogueOperand, buffer: Buffer, column: Number, columns: int, lane: Scalar
    ) -> Pairs:
        b, n, found = self.b, self.n, Pairs()
        assert n is not None
        own = column + ((lane & 3) << 1)
        for group in range(columns // 8):
            # Pairs past C's last columns are replaced by these.
            at = b.index(minimum(own + 8 * group, n - 2))
            vector = b.load_vector(buffer, [at], 2, 2 * ELEMENT_BYTES[operand.element or ""])
            left, right = b.elements(vector)
            found[group, 0] = found[group, 1] = left, right
        return found


def is_column_operand(operand: EpilogueOperand) -> bool:
    size = ELEMENT_BYTES.get(operand.element or "")
    is_column = operand.axes == (Axis("column"),)
    return is_column and size is not None and operand.alignment % (2 * size) == 0
