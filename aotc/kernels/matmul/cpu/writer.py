"""Numbers, vectors and accesses over `Emitter`, as the CPU's blocks are written in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from aotc.kernels.matmul.problem import ELEMENT_BYTES, Emitter


class Buffer(Struct, frozen=True):
    """Memory that a kernel reads or writes: its name, its type, its elements' type, and the
    indices in front of the last two."""

    name: str
    type: str
    element: str
    leading: tuple[str, ...] = ()

    def place(self, *indices: str) -> str:
        return f"{self.name}[{', '.join((*self.leading, *indices))}]"


class BlockWriter:
    """Writes for elements of `type_`, that are computed with, and vectors of `columns` of them."""

    def __init__(self, type_: str, columns: int) -> None:
        self._emitter = Emitter()
        self._type = type_
        self._bytes = ELEMENT_BYTES[type_]
        self._columns = columns
        self._vector = f"vector<{columns}x{type_}>"

    def _number(self, value: int) -> str:
        return self._emitter.constant(value)

    def _op(self, name: str, left: str, right: str) -> str:
        return self._emitter.value(f"arith.{name} {left}, {right} : index")

    def _compare(self, predicate: str, left: str, right: str) -> str:
        return self._emitter.value(f"arith.cmpi {predicate}, {left}, {right} : index")

    def _choose(self, condition: str, then: str, other: str) -> str:
        return self._emitter.value(f"arith.select {condition}, {then}, {other} : index")

    @contextmanager
    def _loop(self, start: str, end: str, step: int = 1) -> Iterator[str]:
        index, by = self._emitter.name(), self._number(step)
        self._emitter.open(f"scf.for {index} = {start} to {end} step {by} {{")
        yield index
        self._emitter.close()

    def _zero_text(self) -> str:
        return "0" if self._type.startswith("i") else "0.0"

    def _zero(self) -> str:
        return self._emitter.constant(self._zero_text(), self._type)

    def _load(self, buffer: Buffer, *indices: str) -> str:
        return self._emitter.value(f"memref.load {buffer.place(*indices)} : {buffer.type}")

    def _store(self, value: str, buffer: Buffer, *indices: str) -> None:
        self._emitter.line(f"memref.store {value}, {buffer.place(*indices)} : {buffer.type}")

    def _load_vector(self, buffer: Buffer, *indices: str, width: int | None = None) -> str:
        type_ = self._of(buffer.element, width or self._columns)
        place = buffer.place(*indices)
        return self._emitter.value(f"vector.load {place} : {buffer.type}, {type_}")

    def _store_vector(
        self, value: str, buffer: Buffer, *indices: str, width: int | None = None
    ) -> None:
        type_ = self._of(buffer.element, width or self._columns)
        place = buffer.place(*indices)
        self._emitter.line(f"vector.store {value}, {place} : {buffer.type}, {type_}")

    @staticmethod
    def _of(element: str, width: int | None) -> str:
        return element if width is None else f"vector<{width}x{element}>"

    def _convert(
        self, value: str, source: str, width: int | None = None, *, target: str | None = None
    ) -> str:
        """A value, or a vector of `width`, in the type that is computed in, or in another."""
        target = target or self._type
        if source == target:
            return value
        if ELEMENT_BYTES[source] == ELEMENT_BYTES[target]:  # f16 and bf16
            return self._convert(
                self._convert(value, source, width, target="f32"), "f32", width, target=target
            )
        wider = ELEMENT_BYTES[target] > ELEMENT_BYTES[source]
        if source.startswith("i"):
            operation = "extsi" if wider else "trunci"
        else:
            operation = "extf" if wider else "truncf"
        types = f"{self._of(source, width)} to {self._of(target, width)}"
        return self._emitter.value(f"arith.{operation} {value} : {types}")

    def _times(self, left: str, right: str) -> str:
        if self._type.startswith("i"):
            return self._emitter.value(f"arith.muli {left}, {right} : {self._vector}")
        return self._emitter.value(
            f"arith.mulf {left}, {right} fastmath<contract> : {self._vector}"
        )

    def _add(self, left: str, right: str, type_: str) -> str:
        if self._type.startswith("i"):
            return self._emitter.value(f"arith.addi {left}, {right} : {type_}")
        return self._emitter.value(f"arith.addf {left}, {right} fastmath<contract> : {type_}")
