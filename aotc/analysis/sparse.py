"""Which tensors are sparse, and the formats of their levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from aotc.mlir import ir

_LEVEL = re.compile(r"(?:^ \(|, )([^:\]]*?) : (\w+)((?:\([^()]*\))?)")
_EXPRESSION = re.compile(r"d(\d+)(?: (floordiv|mod) (\d+))?")


class Level(NamedTuple):
    """One level of a sparse tensor, such as `d1 floordiv 4 : compressed(nonunique)`."""

    expression: str
    format: str
    properties: str

    @property
    def dimension(self) -> int | None:
        """The dimension whose coordinate is the level's coordinate; None if it is computed."""
        parts = _parts(self)
        return parts[0] if parts is not None and not parts[1] else None


def is_sparse(type_: Any) -> bool:
    """Whether it is a tensor with an encoding of the sparse_tensor dialect."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return False
    return str(type_.encoding).startswith("#sparse_tensor.")


def levels_of(type_: Any) -> list[Level]:
    """The levels of a sparse type, the outermost first."""
    levels = str(type_.encoding).partition("->")[2]
    return [Level(*found.groups()) for found in _LEVEL.finditer(levels)]


def level_size(level: Level, sizes: Sequence[Any]) -> tuple[Any, int] | int | None:
    """The size of a level, given the sizes of the dimensions.

    A pair (size, factor) means size divided by factor; an int is the size itself. None if the level
    is neither a dimension nor a part of one."""
    parts = _parts(level)
    if parts is None:
        return None
    dimension, operation, factor = parts
    return factor if operation == "mod" else (sizes[dimension], factor)


def block_of(levels: Sequence[Level]) -> tuple[int, int] | None:
    """The rows and columns of a matrix's blocks; None if the matrix is not blocked. The levels of a
    blocked matrix are the block row, the block column, and the row and column inside a block."""
    parts = [_parts(level) for level in levels]
    if len(parts) != 4 or None in parts:
        return None
    rows, columns = parts[0][2], parts[1][2]  # type: ignore[index]
    blocks = [(0, "floordiv", rows), (1, "floordiv", columns)]
    return (rows, columns) if parts == [*blocks, (0, "mod", rows), (1, "mod", columns)] else None


def _parts(level: Level) -> tuple[int, str, int] | None:
    found = _EXPRESSION.fullmatch(level.expression)
    return None if found is None else (int(found[1]), found[2] or "", int(found[3] or 1))
