"""Operations that combine equal parts of the columns of a matmul, as data: the gates of an LSTM or
GRU, or the two halves of a gated linear unit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aotc.builder.numbers import Value
from aotc.kernels.matmul.epilogue import Epilogue
from aotc.kernels.matmul.problem import EpilogueOperand


class Gates(Struct, frozen=True):
    """The combination of `count` gates, each of which is `columns` columns of C. The outputs are
    matrices with the rows of C and the columns of a gate.

    The steps of `epilogue` read the values of C in a row, at the same column of each gate, under
    the names of `gate_name`. They also read `epilogue_operands`, whose axis "column" is the column
    in a gate. `results` names the value that is stored to each output.
    """

    count: int
    columns: int
    epilogue: Epilogue
    epilogue_operands: tuple[EpilogueOperand, ...]
    results: tuple[str, ...]

    def arguments_of(self, values: Sequence[Value]) -> GateArguments:
        """The arguments whose `values` these are."""
        own = len(self.epilogue_operands)
        return GateArguments(tuple(values[:own]), tuple(values[own:]))


class GateArguments(Struct, frozen=True):
    """The epilogue operands and outputs of `Gates`, as values in host code."""

    epilogue_operands: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        return *self.epilogue_operands, *self.outputs


def gate_name(number: int) -> str:
    return f"gate{number}"
