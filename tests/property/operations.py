"""The operations that expressions have, by name and by the type that they give."""

from __future__ import annotations

from collections.abc import Mapping

from property.arithmetic import DTYPES, Arithmetic, Table
from property.floats import add_floats
from property.integers import add_integers

# Only for positions, whose divisor is a size, and so not 0: not for what is made at random.
UNGUARDED = ("modulo", "quotient")


def _all() -> Table:
    table = Table()
    add_integers(table)
    add_floats(table)
    return table


OPERATIONS: Mapping[str, Arithmetic] = _all()

_BY_RESULT = {
    type_: [
        name
        for name, operation in OPERATIONS.items()
        if operation.result == type_ and not name.startswith(UNGUARDED)
    ]
    for type_ in DTYPES
}


def operations_with(result: str) -> list[str]:
    """The names of the operations that give this type."""
    return _BY_RESULT[result]
