"""ONNX's Loop and Scan → torch-mlir's `prim.Loop`.

torch-mlir's own lowering of Loop ignores its conditions and has no results that are stacked, and
that of Scan stacks them in a tensor of one row where their number is not known.

A loop whose condition does not change has its number of trips before the first one: its stacked
results are written into tensors of that size. Those of another loop grow in each trip.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from aotc import ops
from aotc.errors import InputError
from aotc.frontends.onnx.nodes import Node, walk
from aotc.frontends.torch_mlir.dialect import create, integer

# Of a node: four numbers for each size of a stacked row that an argument of the body has, too: the
# row, its dimension, the argument and its dimension.
_ALIKE = "aotc_alike"
_ROWS = "the rows that a loop stacks have several sizes"
_LENGTHS = "the inputs that a Scan goes through have several lengths"
_MOST_TRIPS = (1 << 63) - 1
_TENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],(\w+)>")
# Of a body, by the operator: its arguments, and its results, before the values that are carried.
_SKIPPED = {"Loop": (2, 1), "Scan": (0, 0)}
# PyTorch's numbers of the types of elements.
_NUMBERS = dict(
    zip("ui8 si8 si16 si32 si64 f16 f32 f64 i1 bf16".split(), (*range(8), 11, 15), strict=True)
)


def note_rows(model: Any) -> None:
    """Records in Loop and Scan nodes which unknown sizes of stacked rows are sizes of operands."""
    from onnx import helper

    for node in list(walk(model)):
        if node.operator not in _SKIPPED or node.proto.domain:
            continue
        (body,) = [one.g for one in node.proto.attribute if one.name == "body"]
        noted = _alike(node, body)
        if noted:
            node.proto.attribute.append(helper.make_attribute(_ALIKE, noted))


def _alike(node: Node, body: Any) -> list[int]:
    arguments, results = _SKIPPED[node.operator]
    given, made = list(body.input)[arguments:], list(body.output)[results:]
    sequences = node.attribute("num_scan_inputs", 0)
    carried = len(given) - sequences
    places: dict[str, tuple[int, int]] = {}
    for index, value in enumerate(given):
        for place, name in enumerate(_names(value)):
            is_kept = index >= carried or _names(made[index])[place : place + 1] == [name]
            if name and is_kept:
                places.setdefault(name, (index, place))
    return [
        number
        for row, value in enumerate(made[carried:])
        for dimension, name in enumerate(_names(value))
        if name in places
        for number in (row, dimension, *places[name])
    ]


def _names(value: Any) -> list[str]:
    """The names of a tensor's symbolic sizes; an empty string for each constant size."""
    return [one.dim_param for one in value.type.tensor_type.shape.dim]


def lower_loops(module: Any) -> None:
    """Replaces the imported Loop and Scan operations. Raises InputError for values that are not
    tensors, and for stacked results whose sizes are not known before the loop."""
    kinds: dict[str, type[_Loop | _Scan]] = {"Loop": _Loop, "Scan": _Scan}
    with module.context:
        for operation in ops.find(module.operation, "torch.operator"):
            operator = _name(operation).removeprefix("onnx.")
            if operator in kinds:
                kinds[operator](operation, operator).lower()


class _Control:
    """A Loop or Scan. `prim.Loop` carries the condition separately from the other values."""

    def __init__(self, operation: Any, operator: str) -> None:
        self.first_argument, self.first_result = _SKIPPED[operator]
        self.operation = operation
        self.body = operation.regions[0].blocks[0]
        self.end = list(self.body.operations)[-1]
        self.made = list(self.end.operands)[self.first_result :]

    def attribute(self, name: str, default: Sequence[int]) -> list[int]:
        """An attribute of integers; `default` where it is left out."""
        from torch_mlir import ir

        name = f"torch.onnx.{name}"
        if name not in self.operation.attributes:
            return list(default)
        return [ir.IntegerAttr(one).value for one in ir.ArrayAttr(self.operation.attributes[name])]

    def place(self) -> Any:
        """The insertion point before the operation."""
        from torch_mlir import ir

        return ir.InsertionPoint(self.operation)

    def refuse(self, reason: str) -> InputError:
        place = re.search(r'loc\("(onnx\.[^"]*)"', str(self.operation.location))
        name = place[1] if place else str(self.operation.attributes["name"]).strip('"')
        return InputError(f"torch-mlir cannot lower this model: {name}: {reason}")

    def build(
        self,
        trips: Any,
        initial: Sequence[Any],
        given: Callable[[Any], list[Any]],
        axes: Sequence[int],
        backward: Sequence[int],
        condition: tuple[Any, Any] | None = None,
    ) -> None:
        """Inserts the loop in the place of the operation. `given`: the body's arguments other than
        the carried values, of the number of the trip. `condition`: the first one, and the body's
        own; without, all `trips` are made."""
        from torch_mlir import ir

        count = len(initial)
        carried = list(self.body.arguments)[self.first_argument : self.first_argument + count]
        rows = self.made[count:]
        is_whole = condition is None
        for value in (*initial, *carried, *self.made, *self.operation.results):
            if _TENSOR.fullmatch(str(value.type)) is None:
                raise self.refuse("values that are no tensors have no lowering in a loop")
        stacks = [
            self._stack(row, axis, trips if is_whole else integer(0), self._known(index, initial))
            for index, (row, axis) in enumerate(zip(rows, axes, strict=True))
        ]
        types = [*(one.type for one in carried), *(one.type for one in stacks)]
        starts = [
            *(_cast(value, one.type) for value, one in zip(initial, carried, strict=True)),
            *stacks,
        ]
        true = _true()
        integers = ir.Type.parse("!torch.int")
        if condition is None:
            operands, extra = [trips, true, *starts], []
        else:
            # A loop that ends by its condition counts its trips itself.
            may_start = _both(condition[0], create("aten.gt.int", "bool", trips, integer(0)))
            operands, extra = [integer(_MOST_TRIPS), may_start, *starts, integer(0)], [integers]
        types = [*types, *extra]
        loop = ir.Operation.create("torch.prim.Loop", types, operands, regions=1)
        block = ir.Block.create_at_start(loop.regions[0], [integers, *types])
        with ir.InsertionPoint(block):
            number = block.arguments[0 if condition is None else len(types)]
            values = list(block.arguments)[1 : 1 + count]
            others = given(number)
            replacements = [*others[: self.first_argument], *values, *others[self.first_argument :]]
            for argument, value in zip(list(self.body.arguments), replacements, strict=True):
                argument.replace_all_uses_with(_cast(value, argument.type))
            for one in list(self.body.operations)[:-1]:
                block.append(one)
        with ir.InsertionPoint(block):
            results = [_cast(a, b.type) for a, b in zip(self.made[:count], carried, strict=True)]
            for index, (row, stack) in enumerate(zip(rows, stacks, strict=True)):
                whole = block.arguments[1 + count + index]
                results.append(
                    self._stacked(whole, row, axes[index], trips, number, backward[index])
                    if is_whole
                    else self._grown(whole, row, axes[index], stack.type)
                )
            go_on = true
            if condition is not None:
                next_number = create("aten.add.int", "int", number, integer(1))
                is_left = create("aten.lt.int", "bool", next_number, trips)
                go_on = _both(_truth(condition[1]), is_left) if condition[1] else is_left
                results.append(next_number)
            ir.Operation.create("torch.prim.Loop.condition", [], [go_on, *results])
        for result, made in zip(self.operation.results, loop.results, strict=False):
            result.replace_all_uses_with(_cast(made, result.type))
        ops.erase(self.end)
        ops.erase(self.operation)

    def _known(self, index: int, initial: Sequence[Any]) -> dict[int, Any]:
        """The sizes of a row that are not in its type, and those of the loop's operands."""
        noted = self.attribute(_ALIKE, [])
        known = {}
        for row, dimension, argument, place in zip(*[iter(noted)] * 4, strict=True):
            if row == index:
                value, at = self.operand(argument, place, initial)
                known[dimension] = create("aten.size.int", "int", value, integer(at))
        return known

    def operand(self, argument: int, place: int, initial: Sequence[Any]) -> tuple[Any, int]:
        """The operand that a size of an argument of the body is one of, and its dimension."""
        return initial[argument], place

    def _stack(self, row: Any, axis: int, size: Any, known: dict[int, Any]) -> Any:
        """The tensor for the rows that a loop makes, before its first trip. `known`: those of their
        sizes that are not in their type."""
        from torch_mlir import ir

        sizes, element = _parts(row)
        if any(one == "?" and place not in known for place, one in enumerate(sizes)):
            raise self.refuse("stacked results of sizes that are known in the loop alone")
        if element not in _NUMBERS:
            raise self.refuse(f"stacked results of {element} have no lowering")
        listed = [
            known[place] if one == "?" else integer(int(one)) for place, one in enumerate(sizes)
        ]
        axis %= len(sizes) + 1
        listed.insert(axis, size)
        none = create("constant.none", "none")
        zero = integer(0)
        shape = [*sizes[:axis], "?", *sizes[axis:]]
        type_ = ir.Type.parse(f"!torch.vtensor<[{','.join(shape)}],{element}>")
        number = integer(_NUMBERS[element])
        sizes_ = create("prim.ListConstruct", "list<int>", *listed)
        return create("aten.full", type_, sizes_, zero, number, none, none, none)

    def _stacked(
        self, whole: Any, row: Any, axis: int, trips: Any, number: Any, is_backward: int
    ) -> Any:
        place = _from_end(trips, number) if is_backward else number
        end = create("aten.add.int", "int", place, integer(1))
        row, axis = self._row(row, whole, axis)
        return create(
            "aten.slice_scatter", whole.type, whole, row, integer(axis), place, end, integer(1)
        )

    def _grown(self, whole: Any, row: Any, axis: int, type_: Any) -> Any:
        row, axis = self._row(row, whole, axis)
        listed = create("prim.ListConstruct", "list<vtensor>", whole, row)
        return create("aten.cat", type_, listed, integer(axis))

    def _row(self, row: Any, whole: Any, axis: int) -> tuple[Any, int]:
        """A row with an added dimension of size 1, cast to the sizes of the previous rows."""
        from torch_mlir import ir

        sizes, element = _parts(row)
        axis %= len(sizes) + 1
        for place, size in enumerate(sizes):
            if size == "?":
                own = create("aten.size.int", "int", row, integer(place))
                at = integer(place + (place >= axis))
                _expect(own, create("aten.size.int", "int", whole, at), _ROWS)
        shape = ",".join([*sizes[:axis], "1", *sizes[axis:]])
        type_ = ir.Type.parse(f"!torch.vtensor<[{shape}],{element}>")
        return create("aten.unsqueeze", type_, row, integer(axis)), axis


class _Loop(_Control):
    def lower(self) -> None:
        most, first, *initial = self.operation.operands
        own = self.end.operands[0]
        kept = _source(own) == self.body.arguments[1]
        always = _is_true(own)
        with self.operation.location, self.place():
            trips = integer(_MOST_TRIPS)
            has_most = str(most.type) != "!torch.none"
            if has_most:
                asked = create("aten.item", "int", most)
                trips = create("prim.max.int", "int", asked, integer(0))
            is_started = _is_absent(first) or _is_true(first)
            condition = None
            start = _true() if is_started else _truth(first)
            if has_most and (kept or always):
                once = create("aten.Int.bool", "int", start)
                trips = trips if is_started else create("aten.mul.int", "int", trips, once)
            else:
                condition = start, own

            def given(number: Any) -> list[Any]:
                index = create("prim.NumToTensor.Scalar", "vtensor<[],si64>", number)
                return [self._shaped(index, 0), self._shaped(_flag(), 1)]

            stacked = len(self.made) - len(initial)
            self.build(trips, initial, given, [0] * stacked, [0] * stacked, condition)

    def _shaped(self, value: Any, index: int) -> Any:
        """A scalar in the type of the body's argument, which may be a vector of one element."""
        type_ = self.body.arguments[index].type
        sizes, _ = _parts_of(type_)
        if not sizes:
            return value
        listed = create("prim.ListConstruct", "list<int>", *[integer(1)] * len(sizes))
        return create("aten.view", type_, value, listed)


class _Scan(_Control):
    def operand(self, argument: int, place: int, initial: Sequence[Any]) -> tuple[Any, int]:
        if argument < len(initial):
            return initial[argument], place
        sequence, axis = self._sequences[argument - len(initial)]
        return sequence, place + (place >= axis)

    def lower(self) -> None:
        from torch_mlir import ir

        operands = list(self.operation.operands)
        (count,) = [ir.IntegerAttr(self.operation.attributes["torch.onnx.num_scan_inputs"]).value]
        initial, sequences = operands[:-count], operands[-count:]
        stacked = len(self.made) - len(initial)
        axes = self.attribute("scan_input_axes", [0] * count)
        backward = self.attribute("scan_input_directions", [0] * count)
        axes = [axis % len(_parts(one)[0]) for axis, one in zip(axes, sequences, strict=True)]
        self._sequences = list(zip(sequences, axes, strict=True))
        with self.operation.location, self.place():
            lengths = [
                create("aten.size.int", "int", one, integer(axis))
                for one, axis in zip(sequences, axes, strict=True)
            ]
            trips = lengths[0]
            for length in lengths[1:]:
                _expect(trips, length, _LENGTHS)

            def given(number: Any) -> list[Any]:
                return [
                    _selected(one, axis, _from_end(trips, number) if is_backward else number)
                    for one, axis, is_backward in zip(sequences, axes, backward, strict=True)
                ]

            self.build(
                trips,
                initial,
                given,
                self.attribute("scan_output_axes", [0] * stacked),
                self.attribute("scan_output_directions", [0] * stacked),
            )


def _expect(one: Any, other: Any, message: str) -> None:
    """Inserts a check that two numbers are equal when the entry is called."""
    from torch_mlir import ir

    is_equal = create("aten.eq.int", "bool", one, other)
    attributes = {"message": ir.StringAttr.get(message)}
    ir.Operation.create("torch.runtime.assert", [], [is_equal], attributes)


def _selected(value: Any, axis: int, place: Any) -> Any:
    from torch_mlir import ir

    sizes, element = _parts(value)
    shape = ",".join([*sizes[:axis], *sizes[axis + 1 :]])
    type_ = ir.Type.parse(f"!torch.vtensor<[{shape}],{element}>")
    return create("aten.select.int", type_, value, integer(axis), place)


def _from_end(count: Any, number: Any) -> Any:
    last = create("aten.sub.int", "int", count, integer(1))
    return create("aten.sub.int", "int", last, number)


def _parts(value: Any) -> tuple[list[str], str]:
    """The sizes of a tensor, `?` for an unknown size, and its element type."""
    return _parts_of(value.type)


def _parts_of(type_: Any) -> tuple[list[str], str]:
    found = _TENSOR.fullmatch(str(type_))
    if found is None:
        return [], ""
    return [one for one in found[1].split(",") if one], found[2]


def _cast(value: Any, type_: Any) -> Any:
    """A value cast to a type with more or fewer static sizes."""
    if value.type == type_:
        return value
    return create("tensor_static_info_cast", type_, value)


def _true() -> Any:
    from torch_mlir import ir

    return create("constant.bool", "bool", attributes={"value": ir.BoolAttr.get(True)})


def _flag() -> Any:
    """A tensor of rank 0 that is true."""
    empty = create("prim.ListConstruct", "list<int>")
    none = create("constant.none", "none")
    number = integer(_NUMBERS["i1"])
    return create("aten.full", "vtensor<[],i1>", empty, integer(1), number, none, none, none)


def _truth(tensor: Any) -> Any:
    """The boolean in a tensor of one element, such as a condition."""
    return create("aten.Bool.int", "bool", create("aten.item", "int", tensor))


def _both(one: Any, other: Any) -> Any:
    return create("aten.__and__.bool", "bool", one, other)


def _source(value: Any) -> Any:
    """The operand of an Identity, or the value itself."""
    while (maker := ops.defining(value)) is not None and _name(maker) == "onnx.Identity":
        value = maker.operands[0]
    return value


def _name(operation: Any) -> str:
    is_onnx = operation.name == "torch.operator"
    return str(operation.attributes["name"]).strip('"') if is_onnx else operation.name


def _is_absent(value: Any) -> bool:
    return str(value.type) == "!torch.none"


def _is_true(value: Any) -> bool:
    """Whether a tensor is the constant true."""
    maker = ops.defining(_source(value))
    if maker is None:
        return False
    name = "value" if maker.name == "torch.vtensor.literal" else "torch.onnx.value"
    found = str(maker.attributes[name]) if name in maker.attributes else ""
    return found.startswith("dense<true>")
