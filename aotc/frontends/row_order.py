"""Generates the MLIR text of loops in which one thread puts a row's elements in order (`RowOrder`).

They are for the CPU device. A subclass finds the elements' numbers; the values are read by number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from aotc.frontends.tensor_text import index_list


class RowOrder(ABC):
    """A loop over the rows of tensors of one shape along `dimension`, whose results are the first
    `count` elements of each row, or all elements if it is None. `numbers` is the operand that has
    the elements' numbers."""

    def __init__(
        self,
        types: Sequence[Any],
        results: Sequence[str],
        dimension: int,
        count: int | None,
        numbers: int | None,
    ) -> None:
        self._types, self._results = types, results
        self._rank, self._dimension = types[0].rank, dimension
        is_dynamic = types[0].is_dynamic_dim(dimension)
        self._length = None if is_dynamic else types[0].shape[dimension]
        self._count = self._length if count is None else count
        self._numbers = numbers

    @abstractmethod
    def _find(self) -> str:
        """Lines that find the numbers of the first elements, for `_number`."""

    @abstractmethod
    def _number(self, name: str, place: str) -> str:
        """Lines that define the index %NAME: the number of the element that comes to %PLACE."""

    def _shared(self) -> list[tuple[str, str, str]]:
        """Memory with a part for each row: the name of the part, of the tensor, and its type. The
        part has a dimension, the tensor those of the loops as well."""
        return []

    def _place(self, along: str, others: str = "%d{i}") -> str:
        return index_list(self._rank, self._dimension, along, others)

    def _loops(self) -> list[tuple[str, str]]:
        """The index and the size of each loop."""
        loops = [(f"%d{i}", f"%size{i}") for i in range(self._rank) if i != self._dimension]
        return loops or [("%row", "%c1")]

    def _read_at(self, name: str, index: str) -> str:
        """Lines that define %NAME0, ... as the row's elements number %INDEX, which is in bounds."""
        lines = []
        for i, type_ in enumerate(self._types):
            if i == self._numbers:
                lines.append(f"%{name}{i} = arith.index_cast %{index} : index to {_element(type_)}")
            else:
                place = self._place(f"%{index}")
                lines.append(f"%{name}{i} = tensor.extract %given{i}[{place}] : {type_}")
        return "\n".join(lines)

    def lines(self, made: str, target: str) -> str:
        """Lines that define %MADE0, ... as the tensors %TARGET0, ... with the first elements."""
        loops, known = self._loops(), self._count is not None
        ones = ", ".join(["1"] * self._rank)
        extent = str(self._count) if known else "%n"
        slice_ = f"[{self._place('0')}] [{self._place(extent, '1')}] [{ones}]"
        cut, put, into = [], [], []
        kinds = list(zip(self._results, self._types, strict=True))
        parts = [f"tensor<{self._count if known else '?'}x{_element(type_)}>" for _, type_ in kinds]
        outs = [(f"%to{i}", f"%{target}{i}", result) for i, result in enumerate(self._results)]
        for i, result in enumerate(self._results):
            cut.append(f"%part{i} = tensor.extract_slice %to{i}{slice_} : {result} to {parts[i]}")
            put.append(f"%put{i} = tensor.insert %v{i} into %made{i}[%j] : {parts[i]}")
            into.append(
                f"tensor.parallel_insert_slice %written#{i} into %to{i}{slice_} : {parts[i]} into "
                f"{result}"
            )
        for part, tensor, type_ in self._shared():
            slice_ = (
                f"[{', '.join(name for name, _ in loops)}, 0] "
                f"[{', '.join('1' for _ in loops)}, %n] [{', '.join('1' for _ in loops)}, 1]"
            )
            types = f"{type_} to tensor<?xi64>"
            outs.append((f"%all_{part}", f"%{tensor}", type_))
            cut.append(f"%{part} = tensor.extract_slice %all_{part}{slice_} : {types}")
            into.append(
                f"tensor.parallel_insert_slice %{part} into %all_{part}{slice_} : "
                f"tensor<?xi64> into {type_}"
            )

        newline, count = "\n", len(self._types)

        def each(form: str) -> str:
            return ", ".join(form.format(i=i) for i in range(count))

        return f"""
    %first = {"arith.constant " + str(self._count) if known else "arith.addi %n, %c0"} : index
    %{made}:{len(outs)} = scf.forall ({", ".join(name for name, _ in loops)})
        in ({", ".join(size for _, size in loops)})
        shared_outs({", ".join(f"{inner} = {outer}" for inner, outer, _ in outs)})
        -> ({", ".join(type_ for _, _, type_ in outs)}) {{
      {newline.join(cut)}
      {self._find()}
      %written:{count} = scf.for %j = %c0 to %first step %c1
          iter_args({each("%made{i} = %part{i}")}) -> ({", ".join(parts)}) {{
        {self._number("taken", "j")}
        {self._read_at("v", "taken")}
        {newline.join(put)}
        scf.yield {each("%put{i}")} : {", ".join(parts)}
      }}
      scf.forall.in_parallel {{
        {newline.join(into)}
      }}
    }}"""


def _element(type_: Any) -> str:
    return str(type_.element_type)
