"""Lowers `stablehlo.select_and_scatter`, which JAX writes for the gradient of a max pool.

A first operation finds the element that each window selects. A second one combines, for each
element, what the windows that selected it give, in order: no two threads write to one place, and
the result is deterministic. https://openxla.org/stablehlo/spec#select_and_scatter
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.stablehlo.regions import declare_region, replace_by_text
from aotc.frontends.tensor_text import size_lines


def turn_selections(ir: Any, module: Any) -> None:
    """Before the lowering to linalg: the first region gets an element and the one selected before
    it, in this order, and returns whether the element is selected instead.

    Upstream's lowering of windows that do not overlap takes it for this, and so it would select the
    last of equal elements, where `select(selected, element)` keeps the first one.
    """
    for operation in ops.find(module.operation, "stablehlo.select_and_scatter"):
        block = operation.regions[0].blocks[0]
        first, second = block.arguments
        uses = [(use, second) for use in first.uses] + [(use, first) for use in second.uses]
        for use, value in uses:
            use.owner.operands[use.operand_number] = value
        returned = ops.terminator(block)
        stays = returned.operands[0]
        with returned.location, ir.InsertionPoint(returned):
            negated = ir.Operation.create("stablehlo.not", [stays.type], [stays])
        returned.operands[0] = negated.result


def lower_select_and_scatter(ir: Any, operation: Any) -> None:
    """Lowers what `turn_selections` has made."""
    if ir.RankedTensorType(operation.operands[0].type).rank == 0:
        raise InputError("stablehlo.select_and_scatter of a tensor of rank 0 is not supported.")
    replace_by_text(ir, operation, _Windows(ir, operation).text())


class _Windows:
    """Generates the text. `%size0`, ... are the sizes of the operand and of the result, and
    `%count0`, ... those of the source, the numbers of windows. An element is called by its number
    in row-major order."""

    def __init__(self, ir: Any, operation: Any) -> None:
        self._operand, self._source, _ = (
            ir.RankedTensorType(value.type) for value in operation.operands
        )
        self._element = self._operand.element_type
        self._zero = "arith.constant 0"
        if isinstance(self._element, ir.FloatType):
            self._zero = "arith.constant 0.0"
        elif isinstance(self._element, ir.ComplexType):
            part = f"0.0 : {ir.ComplexType(self._element).element_type}"
            self._zero = f"complex.constant [{part}, {part}]"
        self._dimensions = range(self._operand.rank)

        def numbers(name: str, default: list[int]) -> list[int]:
            given = operation.attributes
            return list(ir.DenseI64ArrayAttr(given[name])) if name in given else default

        ones = [1 for _ in self._dimensions]
        self._window = numbers("window_dimensions", ones)
        self._strides = numbers("window_strides", ones)
        self._before = [0 for _ in self._dimensions]
        if "padding" in operation.attributes:
            padding = ir.DenseIntElementsAttr(operation.attributes["padding"])
            self._before = list(padding)[::2]
        # The largest number of windows that cover an element, along each dimension.
        self._covering = [
            0 if size == 0 else -(-width // stride)
            for size, width, stride in zip(
                self._source.shape, self._window, self._strides, strict=True
            )
        ]
        self._numbers = str(
            ir.RankedTensorType.get(self._source.shape, ir.IntegerType.get_signless(64))
        )

    def text(self) -> str:
        element, pair = self._element, [self._element] * 2
        constants = "\n".join(
            f"%{name}{d} = arith.constant {value} : index"
            for name, values in (
                ("window", self._window),
                ("stride", self._strides),
                ("before", self._before),
                ("covering", self._covering),
            )
            for d, value in enumerate(values)
        )
        return f"""
{declare_region(pair, ["i1"], 0)}
{declare_region(pair, [element], 1)}
func.func @select_and_scatter(
    %operand: {self._operand}, %source: {self._source}, %initial: tensor<{element}>)
    -> {self._operand} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant -1 : i64
  %zero = {self._zero} : {element}
  {constants}
  {size_lines("size", "%operand", self._operand)}
  {size_lines("count", "%source", self._source)}
  %first = tensor.extract %initial[] : tensor<{element}>
  {self._selection()}
  {self._combination()}
  return %combined : {self._operand}
}}"""

    def _selection(self) -> str:
        """Defines %numbers, the number of the element that each window selects; -1 if a window is
        wholly in the padding."""
        begins = "\n".join(
            f"%offset{d} = arith.muli %i{d}, %stride{d} : index\n"
            f"%begin{d} = arith.subi %offset{d}, %before{d} : index"
            for d in self._dimensions
        )
        element, places = self._element, [f"%at{d}" for d in self._dimensions]
        step = f"""
{self._place("size")}
{self._linear(places)}
%value = tensor.extract %operand[{", ".join(places)}] : {self._operand}
%is_better = func.call @region0(%value, %best) : ({element}, {element}) -> i1
%is_first = arith.cmpi eq, %chosen, %none : i64
%wins = arith.ori %is_first, %is_better : i1
%is_new = arith.andi %wins, %within : i1
%next_chosen = arith.select %is_new, %linear, %chosen : i64
%next_best = arith.select %is_new, %value, %best : {element}"""
        carried = [("chosen", "%none", "i64"), ("best", "%zero", str(element))]
        loops = self._loops("window", carried, step)
        return self._each("numbers", self._numbers, "count", "i64", [begins, loops])

    def _combination(self) -> str:
        """Defines %combined. The windows that may cover an element are the last one that does not
        begin after it, and some before."""
        begins = "\n".join(
            f"%moved{d} = arith.addi %i{d}, %before{d} : index\n"
            f"%last{d} = arith.floordivsi %moved{d}, %stride{d} : index\n"
            f"%next{d} = arith.addi %last{d}, %c1 : index\n"
            f"%begin{d} = arith.subi %next{d}, %covering{d} : index"
            for d in self._dimensions
        )
        element, places = self._element, ", ".join(f"%at{d}" for d in self._dimensions)
        step = f"""
{self._place("count")}
%number = tensor.extract %numbers[{places}] : {self._numbers}
%is_this = arith.cmpi eq, %number, %linear : i64
%is_new = arith.andi %is_this, %within : i1
%value = tensor.extract %source[{places}] : {self._source}
%sum = func.call @region1(%total, %value) : ({element}, {element}) -> {element}
%next_total = arith.select %is_new, %sum, %total : {element}"""
        loops = self._loops("covering", [("total", "%first", str(element))], step)
        linear = self._linear([f"%i{d}" for d in self._dimensions])
        return self._each(
            "combined", str(self._operand), "size", str(element), [begins, linear, loops]
        )

    def _place(self, size: str) -> str:
        """Lines that define %within, whether the place of step %k0, ... is in bounds, and %at0,
        ..., its coordinates, which are 0 where they are not."""
        lines = ["%within_ = arith.constant true"]
        within = "%within_"
        for d in self._dimensions:
            lines += [
                f"%to{d} = arith.addi %begin{d}, %k{d} : index",
                f"%is_in{d} = arith.cmpi ult, %to{d}, %{size}{d} : index",
                f"%at{d} = arith.select %is_in{d}, %to{d}, %c0 : index",
                f"%within_{d} = arith.andi {within}, %is_in{d} : i1",
            ]
            within = f"%within_{d}"
        return "\n".join([*lines, f"%within = arith.andi {within}, %within_ : i1"])

    def _linear(self, places: Sequence[str]) -> str:
        """Lines that define %linear, the number of an element of the operand."""
        lines, sum_ = [], "%c0"
        for d, place in enumerate(places):
            lines += [
                f"%row{d} = arith.muli {sum_}, %size{d} : index",
                f"%linear{d} = arith.addi %row{d}, {place} : index",
            ]
            sum_ = f"%linear{d}"
        return "\n".join([*lines, f"%linear = arith.index_cast {sum_} : index to i64"])

    def _loops(self, extent: str, carried: list[tuple[str, str, str]], step: str) -> str:
        """Loops %k0, ... around the step, which takes values from %NAME to %next_NAME. `carried`
        has the name, the initial value and the type of each. The result is %found."""
        types = ", ".join(type_ for _, _, type_ in carried)
        given = [initial for _, initial, _ in carried]
        made = [f"%next_{name}" for name, _, _ in carried]
        last = self._dimensions[-1]
        ahead: list[str] = []
        behind: list[str] = []
        for d in self._dimensions:
            own = [f"%{name}" if d == last else f"%{name}{d}" for name, _, _ in carried]
            pairs = ", ".join(f"{a} = {b}" for a, b in zip(own, given, strict=True))
            ahead.append(
                f"%loop{d}:{len(carried)} = scf.for %k{d} = %c0 to %{extent}{d} step %c1 "
                f"iter_args({pairs}) -> ({types}) {{"
            )
            values = made if d == last else [f"%loop{d + 1}#{i}" for i in range(len(carried))]
            behind.insert(0, f"scf.yield {', '.join(values)} : {types}\n}}")
            given = own
        return "\n".join([*ahead, step, *behind])

    def _each(self, name: str, type_: str, size: str, element: str, lines: list[str]) -> str:
        """Defines %NAME, a tensor whose elements are %loop0#0 of the lines, which read the index
        %i0, ..."""
        sizes = type_.removeprefix("tensor<").split("x")
        dynamic = ", ".join(f"%{size}{d}" for d in self._dimensions if sizes[d] == "?")
        kinds = ", ".join(['"parallel"'] * len(self._dimensions))
        loops = ", ".join(f"d{d}" for d in self._dimensions)
        indices = [f"%i{d} = linalg.index {d} : index" for d in self._dimensions]
        body = "\n".join([*indices, *lines])
        return f"""
%{name}_empty = tensor.empty({dynamic}) : {type_}
%{name} = linalg.generic {{
    indexing_maps = [affine_map<({loops}) -> ({loops})>], iterator_types = [{kinds}]}}
    outs(%{name}_empty : {type_}) {{
^bb0(%out: {element}):
{body}
linalg.yield %loop0#0 : {element}
}} -> {type_}"""
