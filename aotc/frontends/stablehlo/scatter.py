"""Lowers `stablehlo.scatter` to loops over the updates. The updates of one place are applied in
order.

A dimension of the updates is independent if it corresponds to a dimension of the result that no
index selects. The loops over independent dimensions are the outer ones, and become a kernel. For a
single window, all dimensions are independent. An update whose window is not completely within the
result is dropped, as in XLA. (The specification drops each element separately.)
https://openxla.org/stablehlo/spec#scatter
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from aotc.frontends.stablehlo.regions import declare_region, replace_by_text


def lower_scatter(ir: Any, operation: Any) -> None:
    replace_by_text(ir, operation, _Scatter(ir, operation).text())


# Lines of MLIR, and the names of the values that they define.
LinesAndNames = tuple[list[str], list[str]]


class _Scatter:
    """Generates the text of a scatter.

    `along` maps dimensions of the result to window dimensions of the updates. The other dimensions
    of the updates, `points`, select the indices. `%p0`, ... is an index of the updates.
    """

    def __init__(self, ir: Any, operation: Any) -> None:
        from torch_mlir._mlir_libs._stablehlo import ScatterDimensionNumbers

        types = [ir.RankedTensorType(value.type) for value in operation.operands]
        self._count = count = (len(types) - 1) // 2
        self._results, self._indices, self._updates = (
            types[:count],
            types[count],
            types[count + 1 :],
        )
        self._elements = [type_.element_type for type_ in self._results]
        self._result, self._update = self._results[0], self._updates[0]
        numbers = ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
        window = list(numbers.update_window_dims)
        self._points = [d for d in range(self._update.rank) if d not in window]
        self._index_dimension = numbers.index_vector_dim
        # The dimensions of the result that the indices select, in order; and the batching
        # dimensions of the result, each with its dimension of the updates.
        self._named = list(numbers.scattered_dims_to_operand_dims)
        self._batching = {
            of: self._points[d if d < self._index_dimension else d - 1]
            for of, d in zip(
                numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True
            )
        }
        hidden = {*numbers.inserted_window_dims, *self._batching}
        along = [of for of in range(self._result.rank) if of not in hidden]
        self._along = dict(zip(along, window, strict=True))

    def text(self) -> str:
        arguments = [
            *(f"%to{i}: {type_}" for i, type_ in enumerate(self._results)),
            f"%indices: {self._indices}",
            *(f"%from{i}: {type_}" for i, type_ in enumerate(self._updates)),
        ]
        whole = [f"%to{i}" for i in range(self._count)]
        sizes = [
            None if self._update.is_dynamic_dim(d) else self._update.shape[d] for d in self._points
        ]
        lines, made = (
            self._single_window(whole)
            if all(size == 1 for size in sizes)
            else self._several_windows(whole)
        )
        return "\n".join(
            [
                declare_region(self._elements * 2, self._elements),
                f"func.func @scatter({_list(arguments)}) -> ({_list(self._results)}) {{",
                "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index",
                *_sizes("size", "%to0", self._result),
                *_sizes("count", "%from0", self._update),
                *lines,
                f"return {_list(made)} : {_list(self._results)}\n}}",
            ]
        )

    def _single_window(self, whole: list[str]) -> LinesAndNames:
        """The lines for a scatter of one window. All dimensions are independent. A window that is
        not within the result is left out."""
        points = [f"%p{d} = arith.constant 0 : index" for d in self._points]
        sums, place = self._place()
        every = set(range(self._result.rank))
        if self._along:
            first = ["%c0"] * self._result.rank
            dimensions = sorted(self._along.values())
            made = self._parallel(
                whole,
                dimensions,
                every,
                (sums, place),
                lambda parts, types: self._update_element(parts, types, first),
            )
        else:
            lines, names = self._update_element(whole, self._types(set()), place)
            made = [*sums, *lines], names
        guarded = self._if_within(made, whole, self._types(set()))
        return [*points, *self._read_index(), *guarded[0]], guarded[1]

    def _several_windows(self, whole: list[str]) -> LinesAndNames:
        """The lines for several windows. Updates with the same independent indices are applied in
        order."""
        independent = {
            **self._batching,
            **{of: d for of, d in self._along.items() if of not in self._named},
        }
        order = [d for d in range(self._update.rank) if d not in independent.values()]
        sums, place = self._place()
        if not independent:
            return self._sequential_loops(whole, self._types(set()), order, (sums, place))
        inner = ["%c0" if of in independent else at for of, at in enumerate(place)]
        outer = [
            f"%p{independent[of]}" if of in independent else "0" for of in range(self._result.rank)
        ]
        return self._parallel(
            whole,
            sorted(independent.values()),
            set(independent),
            ([], outer),
            lambda parts, types: self._sequential_loops(parts, types, order, (sums, inner)),
        )

    def _types(self, ones: set[int]) -> list[str]:
        """The types of the slices of the results that have size 1 along the dimensions `ones`."""
        sizes = [
            "1"
            if of in ones
            else "?"
            if self._result.is_dynamic_dim(of)
            else str(self._result.shape[of])
            for of in range(self._result.rank)
        ]
        return [f"tensor<{'x'.join([*sizes, str(element)])}>" for element in self._elements]

    def _place(self) -> LinesAndNames:
        """Lines that compute the index in the result of an update, and the names of its
        components."""
        lines, place = [], []
        for of in range(self._result.rank):
            parts = [f"%start{self._named.index(of)}"] if of in self._named else []
            parts += [f"%p{goes[of]}" for goes in (self._batching, self._along) if of in goes]
            if len(parts) > 1:
                lines.append(f"%at{of} = arith.addi {_list(parts)} : index")
                parts = [f"%at{of}"]
            place.append(parts[0])
        return lines, place

    def _parallel(
        self,
        whole: list[str],
        dimensions: list[int],
        ones: set[int],
        place: LinesAndNames,
        inner: Callable[[list[str], list[str]], LinesAndNames],
    ) -> LinesAndNames:
        """A parallel loop over these dimensions of the updates. `inner` changes the slices of the
        results at `place`, which have size 1 along the dimensions `ones`."""
        types, parts = self._types(set()), self._types(ones)
        sizes = [
            "1"
            if of in ones
            else f"%size{of}"
            if self._result.is_dynamic_dim(of)
            else str(self._result.shape[of])
            for of in range(self._result.rank)
        ]
        at = f"[{_list(place[1])}] [{_list(sizes)}] [{_list(['1'] * len(sizes))}]"
        shared = _list(f"%shared{i} = {name}" for i, name in enumerate(whole))
        lines, made = inner([f"%part{i}" for i in range(self._count)], parts)
        places = _list(f"%p{d}" for d in dimensions)
        counts = _list(f"%count{d}" for d in dimensions)
        return [
            f"{self._left_hand_side('spread')} = scf.forall ({places}) in ({counts}) "
            f"shared_outs({shared}) -> ({_list(types)}) {{",
            *place[0],
            *(
                f"%part{i} = tensor.extract_slice %shared{i}{at} : {types[i]} to {parts[i]}"
                for i in range(self._count)
            ),
            *lines,
            "scf.forall.in_parallel {",
            *(
                f"tensor.parallel_insert_slice {made[i]} into %shared{i}{at} : "
                f"{parts[i]} into {types[i]}"
                for i in range(self._count)
            ),
            "}\n}",
        ], self._result_names("spread")

    def _sequential_loops(
        self, whole: list[str], types: list[str], order: list[int], place: LinesAndNames
    ) -> LinesAndNames:
        """Sequential loops over these dimensions of the updates, inside the loops over the
        others."""
        lines, ends = [], []
        for d in order:
            given = _list(f"%in{d}_{i} = {name}" for i, name in enumerate(whole))
            lines.append(
                f"{self._left_hand_side(f'out{d}')} = scf.for %p{d} = %c0 to %count{d} step %c1 "
                f"iter_args({given}) -> ({_list(types)}) {{"
            )
            whole = [f"%in{d}_{i}" for i in range(self._count)]
            ends.append(f"out{d}")
        change, made = self._update_element(whole, types, place[1])
        inner, made = self._if_within(([*place[0], *change], made), whole, types)
        lines += [*self._read_index(), *inner]
        for end in reversed(ends):
            lines.append(f"scf.yield {_list(made)} : {_list(types)}\n}}")
            made = self._result_names(end)
        return lines, made

    def _read_index(self) -> list[str]:
        """Lines that define %start0, ..., the start of the window along the selected dimensions,
        and %is_within."""
        lines, last = ["%true = arith.constant true"], "%true"
        for i, of in enumerate(self._named):
            place = [f"%p{d}" for d in self._points]
            if self._index_dimension < self._indices.rank:
                place.insert(self._index_dimension, f"%component{i}")
            size = f"%count{self._along[of]}" if of in self._along else "%c1"
            lines += [
                f"%component{i} = arith.constant {i} : index",
                f"%number{i} = tensor.extract %indices[{_list(place)}] : {self._indices}",
                f"%start{i} = arith.index_cast %number{i} : {self._indices.element_type} to index",
                # The start may be from 0 to %last. If the window is larger than the result, %last
                # is negative.
                f"%last{i} = arith.subi %size{of}, {size} : index",
                f"%has_room{i} = arith.cmpi sge, %last{i}, %c0 : index",
                f"%is_in{i} = arith.cmpi ule, %start{i}, %last{i} : index",
                f"%fits{i} = arith.andi %has_room{i}, %is_in{i} : i1",
                f"%within{i} = arith.andi {last}, %fits{i} : i1",
            ]
            last = f"%within{i}"
        return [*lines, f"%is_within = arith.andi {last}, %true : i1"]

    def _if_within(
        self, then: LinesAndNames, otherwise: list[str], types: list[str]
    ) -> LinesAndNames:
        lines, made = then
        return [
            f"{self._left_hand_side('kept')} = scf.if %is_within -> ({_list(types)}) {{",
            *lines,
            f"scf.yield {_list(made)} : {_list(types)}\n}} else {{",
            f"scf.yield {_list(otherwise)} : {_list(types)}\n}}",
        ], self._result_names("kept")

    def _update_element(
        self, whole: list[str], types: list[str], place: list[str]
    ) -> LinesAndNames:
        """Lines that update one element by the region, from its old value and the update."""
        at = _list(place)
        update = _list(f"%p{d}" for d in range(self._update.rank))
        values = [f"%{kind}{i}" for kind in ("was", "update") for i in range(self._count)]
        new = self._result_names("new")
        return [
            *(
                f"%was{i} = tensor.extract {whole[i]}[{at}] : {types[i]}"
                for i in range(self._count)
            ),
            *(
                f"%update{i} = tensor.extract %from{i}[{update}] : {type_}"
                for i, type_ in enumerate(self._updates)
            ),
            f"{self._left_hand_side('new')} = func.call @region({_list(values)}) : "
            f"({_list(self._elements * 2)}) -> ({_list(self._elements)})",
            *(
                f"%changed{i} = tensor.insert {new[i]} into {whole[i]}[{at}] : {types[i]}"
                for i in range(self._count)
            ),
        ], [f"%changed{i}" for i in range(self._count)]

    def _left_hand_side(self, name: str) -> str:
        """The left-hand side of an operation that has a result for each result of the scatter."""
        return f"%{name}:{self._count}" if self._count > 1 else f"%{name}"

    def _result_names(self, name: str) -> list[str]:
        """The names of these results."""
        return [f"%{name}#{i}" for i in range(self._count)] if self._count > 1 else [f"%{name}"]


def _sizes(name: str, of: str, type_: Any) -> list[str]:
    """Lines that define %NAME0, ..., the tensor's sizes."""
    return [
        f"%{name}_of{d} = arith.constant {d} : index\n"
        f"%{name}{d} = tensor.dim {of}, %{name}_of{d} : {type_}"
        for d in range(type_.rank)
    ]


def _list(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))
