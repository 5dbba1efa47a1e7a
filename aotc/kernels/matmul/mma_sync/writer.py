"""Index arithmetic, loops and branches over `Emitter`, for kernels on tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aotc.kernels.indices import Index, IndexWriter
from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter

_WIDEST_ACCESS = 16  # bytes


class Writer(IndexWriter):
    """Indices: names of values, or numbers, which are computed with here."""

    @classmethod
    def behind(cls, other: Emitter) -> Writer:
        """One that goes on with the names of another."""
        writer = cls()
        writer._names = other._names
        return writer

    def divide_up(self, left: Index, right: int) -> Index:
        if isinstance(left, int):
            return -(-left // right)
        return self._binary("ceildivui", left, right)

    def xor(self, left: Index, right: Index) -> Index:
        return left if right == 0 else self._binary("xori", left, right)

    def clamp(self, value: Index, most: int) -> str:
        """Between 0 and `most`, of a value that may be negative."""
        return self._binary("maxsi", self._binary("minsi", value, most), 0)

    def least(self, left: Index, right: Index) -> str:
        return self._binary("minui", left, right)

    def most(self, left: Index, right: Index) -> str:
        return self._binary("maxui", left, right)

    def is_less(self, left: Index, right: Index) -> str:
        """Whether it is, of values that may be negative."""
        left, right = self.index(left), self.index(right)
        return self.value(f"arith.cmpi slt, {left}, {right} : index")

    def equals(self, left: Index, right: Index) -> str:
        left, right = self.index(left), self.index(right)
        return self.value(f"arith.cmpi eq, {left}, {right} : index")

    def select(self, condition: str, yes: Index, no: Index) -> str:
        yes, no = self.index(yes), self.index(no)
        return self.value(f"arith.select {condition}, {yes}, {no} : index")

    def loop(
        self,
        steps: Index,
        carried: Sequence[tuple[str, str]],
        body: Callable[..., Sequence[str]],
    ) -> list[str]:
        """Values with their types, which each step makes others of: the last ones."""
        none, one, end = self.index(0), self.index(1), self.index(steps)
        names = [self.name() for _ in carried]
        result, step = self.name(), self.name()
        given = ", ".join(
            f"{name} = {value}" for name, (_, value) in zip(names, carried, strict=True)
        )
        types = ", ".join(type_ for type_, _ in carried)
        self.line(f"{result}:{len(carried)} = scf.for {step} = {none} to {end} step {one}")
        self.open(f"    iter_args({given}) -> ({types}) {{")
        self.line(f"scf.yield {', '.join(body(step, *names))} : {types}")
        self.close()
        return [f"{result}#{number}" for number in range(len(carried))]

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        self.open(f"scf.if {condition} {{")
        yield
        self.close()

    def at(self, *indices: Index) -> str:
        return "[" + ", ".join(self.index(index) for index in indices) + "]"

    def load_vector(self, at: str, type_: str, width: int, element: str) -> list[str]:
        """The elements that are loaded at once."""
        vector = f"vector<{width}x{element}>"
        alignment = f"{{alignment = {width * ELEMENT_BYTES[element]} : i64}}"
        if width * ELEMENT_BYTES[element] > _WIDEST_ACCESS:
            alignment = f"{{alignment = {_WIDEST_ACCESS} : i64}}"
        loaded = self.value(f"vector.load {at} {alignment} : {type_}, {vector}")
        return [
            self.value(f"vector.extract {loaded}[{number}] : {element} from {vector}")
            for number in range(width)
        ]

    def store_vector(self, value: str, at: str, type_: str, width: int, element: str) -> None:
        alignment = f"{{alignment = {width * ELEMENT_BYTES[element]} : i64}}"
        vector = f"vector<{width}x{element}>"
        self.line(f"vector.store {value}, {at} {alignment} : {type_}, {vector}")
