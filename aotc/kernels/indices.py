"""Index arithmetic over `Emitter`.

An index is a value's name or a Python int: what is known while the kernel is made is computed then,
and makes no operations.
"""

from __future__ import annotations

from aotc.kernels.matmul.problem import Emitter

Index = str | int


class IndexWriter(Emitter):
    """Numbers are unsigned."""

    def index(self, value: Index) -> str:
        return self.constant(value) if isinstance(value, int) else value

    def add(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if 0 in (x, y):
            return y if x == 0 else x
        return self._binary("addi", x, y)

    def subtract(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if y == 0 else self._binary("subi", x, y)

    def multiply(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if 0 in (x, y):
            return 0
        if 1 in (x, y):
            return y if x == 1 else x
        return self._binary("muli", x, y)

    def divide(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int) and y:
            return x // y
        return x if y == 1 else self._binary("divui", x, y)

    def remainder(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int) and y:
            return x % y
        return 0 if y == 1 else self._binary("remui", x, y)

    def either(self, x: Index, y: Index) -> Index:
        """The bits that are in one of them."""
        if isinstance(x, int) and isinstance(y, int):
            return x | y
        return self._binary("ori", x, y)

    def lowest_bit(self, x: Index) -> Index:
        """The largest power of two that divides it, which is not 0."""
        if isinstance(x, int):
            return x & -x
        return self._binary("andi", x, self._binary("subi", 0, x))

    def _binary(self, operation: str, x: Index, y: Index) -> str:
        return self.value(f"arith.{operation} {self.index(x)}, {self.index(y)} : index")

    # --- Numbers -------------------------------------------------------------------------------
