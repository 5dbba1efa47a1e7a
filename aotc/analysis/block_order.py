"""`BlockOrder`: what stands before and behind an operation in its block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotc.ops import operations_in


class BlockOrder:
    """Neighbours in blocks, each of which is read once: for as long as no operation of a block is
    added, moved or erased."""

    def __init__(self) -> None:
        self._places: dict[Any, tuple[list[Any], int]] = {}

    def _place(self, operation: Any) -> tuple[list[Any], int]:
        """The operations of the block, and the index of `operation` among them."""
        if operation not in self._places:
            block = operations_in(operation.block)
            self._places |= {one: (block, number) for number, one in enumerate(block)}
        return self._places[operation]

    def before(self, operation: Any) -> Iterator[Any]:
        """The operations before it, the nearest first."""
        block, place = self._place(operation)
        return (block[number] for number in range(place - 1, -1, -1))

    def after(self, operation: Any) -> Iterator[Any]:
        """The operations after it, the nearest first."""
        block, place = self._place(operation)
        return (block[number] for number in range(place + 1, len(block)))
