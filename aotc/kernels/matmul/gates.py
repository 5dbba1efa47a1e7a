"""What joins equal parts of the columns of a product, as data: the gates of an LSTM or GRU, the
two halves of a gated linear unit."""

from __future__ import annotations

from msgspec import Struct

from aotc.kernels.matmul.epilogue import Epilogue
from aotc.kernels.matmul.problem import EpilogueOperand
from aotc.numbers import Value


class Gates(Struct, frozen=True):
    """C's columns are `count` gates of `columns` each. The steps of `epilogue` read what C would
    get in a row at one column of each gate, by the names that `gate_name` makes, and
    `epilogue_operands`, whose axis "column" is the column of a gate. `results` names what each
    output gets, a matrix of as many columns as a gate has."""

    count: int
    columns: int
    epilogue: Epilogue
    epilogue_operands: tuple[EpilogueOperand, ...]
    results: tuple[str, ...]


class GateArguments(Struct, frozen=True):
    """The values of the epilogue operands and outputs in host code."""

    epilogue_operands: tuple[Value, ...]
    outputs: tuple[Value, ...]


def gate_name(number: int) -> str:
    return f"gate{number}"
