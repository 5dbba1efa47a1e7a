"""What an operation of expressions is: the MLIR it is printed as, and NumPy's meaning of it.

All are total. What MLIR leaves undefined is guarded in the text, and the same way in NumPy:
divisors are made odd and positive or are constants, shifts are taken modulo the width, and
what is converted to an integer, or seen as one, is no NaN and within its range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}
UNSIGNED: dict[str, Any] = {
    "i8": np.uint8,
    "i32": np.uint32,
    "i64": np.uint64,
    "index": np.uint64,
}
INTEGERS = ("i8", "i32", "i64", "index")


@dataclass(frozen=True)
class Arithmetic:
    """One operation on operands and a result of given types.

    `text` has a line for each MLIR operation: the last without a result's name, which the
    printer gives. `{0}` is the first operand, `$name` a value of the lines.
    """

    result: str
    operands: tuple[str, ...]
    text: tuple[str, ...]
    evaluate: Callable[..., Array]


class Table(dict[str, Arithmetic]):
    """Operations by name."""

    def add(
        self,
        name: str,
        result: str,
        operands: Sequence[str],
        text: str | Sequence[str],
        evaluate: Callable[..., Array],
    ) -> None:
        lines = (text,) if isinstance(text, str) else tuple(text)
        self[name] = Arithmetic(result, tuple(operands), lines, evaluate)


def unsigned(array: Array, type_: str) -> Array:
    """The same bits without a sign."""
    return array.view(UNSIGNED[type_])
